/* run/grade_book.h: the verdicts of graders, until they are in the lines of traces.jsonl.
 *
 * Each verdict is appended to grades.jsonl in the run's folder when it is known: the query's index,
 * grader, and the keys of the trace that it sets.  Closing the book puts all of them into
 * traces.jsonl in one step and removes the file.  If the process is killed before, the next one
 * that opens the book finds them.  Owns the file and its index; borrows the folder. */
#ifndef IPW_RUN_GRADE_BOOK_H
#define IPW_RUN_GRADE_BOOK_H

#include "json/jsonl.h"
#include "script/dataset.h"
#include "trace/rundir.h"

struct ipw_grade_place { /* of a query's verdicts in the file, plus 1; 0: there is none */
    int64_t at[IPW_GRADERS];
};

struct ipw_grade_book {
    struct ipw_rundir *dir;
    char *path;
    struct ipw_jsonl_appender *to; /* NULL: nothing was added */
    struct ipw_grade_place *all;   /* by the query's index */
    size_t n, cap, n_found;        /* n_found: verdicts of an earlier process */
};

/* Whether an earlier process left verdicts in this folder. */
bool ipw_grade_book_left(const char *run);
int ipw_grade_book_open(struct ipw_grade_book *book, struct ipw_rundir *dir, struct ipw_err *err);
bool ipw_grade_book_has(const struct ipw_grade_book *book, int64_t query, enum ipw_grader grader);
/* `patch`: a JSON object with sorted keys of the trace; null: it has none. */
int ipw_grade_book_add(struct ipw_grade_book *book, int64_t query, enum ipw_grader grader,
                       const char *patch, struct ipw_err *err);
/* Puts the verdicts into traces.jsonl, unless there are none. */
int ipw_grade_book_settle(struct ipw_grade_book *book, struct ipw_err *err);
void ipw_grade_book_release(struct ipw_grade_book *book); /* the file stays */

#endif
