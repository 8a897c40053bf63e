/* audit/ledger_check.h: compares a run's trace lines with the recomputed queries.
 *
 * For each recomputed query it finds the line that the run wrote, takes from it what the ledger
 * does not know (texts, score, cost), and writes the line again: both must be equal, byte for byte.
 * Owns its files.  Of a line that was passed over (earlier attempts, lines in another order) only
 * the place is kept; it is read again when it is needed. */
#ifndef IPW_AUDIT_LEDGER_CHECK_H
#define IPW_AUDIT_LEDGER_CHECK_H

#include "ledger/recompute.h"
#include "trace/schema.h"

enum ipw_check_verdict {
    IPW_CHECK_SAME,
    IPW_CHECK_DIFFERS,
    IPW_CHECK_MISSING,   /* the run wrote no such line */
    IPW_CHECK_UNWRITTEN, /* no line, because the run was killed before; resume runs it again */
};

struct ipw_check;

/* The files with lines of queries, each in the order of its bookings. */
enum ipw_check_file { IPW_CHECK_TRACES, IPW_CHECK_ATTEMPTS, IPW_CHECK_WARMUP, IPW_CHECK_FILES };
extern const char *const ipw_check_names[IPW_CHECK_FILES];

/* Who else wants each line of these files, once, when it is read for the first time. */
struct ipw_check_watch {
    /* `line` NULL: the last line is torn, and was left out.  `repairs`: see ipw_json_parse().  A
     * result other than 0 ends the reading. */
    int (*line)(void *ud, enum ipw_check_file file, const struct ipw_json *line, int64_t number,
                size_t repairs, struct ipw_err *err);
    void *ud;
};

/* *out is NULL, without an error, when RUN has none of these files.  `watch` may be NULL. */
int ipw_check_open(struct ipw_check **out, const char *run, const struct ipw_check_watch *watch,
                   struct ipw_err *err);
/* Looks for the line of a query of `segment`, also among earlier attempts.  `loaded` receives the
 * head of the run's own query, if there is one: see ipw_schema_read_head(); the caller releases it.
 * `what` (may be NULL) receives the first difference, such as "turns[2].energy.gpu.joules: 1.5, now
 * 1.6"; `now` (may be NULL) the line as it is written now, if the run wrote one. */
int ipw_check_query(struct ipw_check *c, const struct ipw_recompute_segment *segment,
                    const struct ipw_recompute_query *query, enum ipw_check_verdict *verdict,
                    struct ipw_query_loaded *loaded, struct ipw_buf *what, struct ipw_buf *now,
                    struct ipw_err *err);
struct ipw_check_line { /* where a line is */
    enum ipw_check_file file;
    int64_t number; /* from 1 */
    int segment;
    int32_t index;
    /* Of a line that differs: not only the energy, but the course of the query. */
    bool other_course;
};
/* For a reader of the lines alone: where the line of a query is (1: it has one), and the head of
 * that line, which is not found again.  The caller releases it. */
int ipw_check_find(struct ipw_check_line *out, struct ipw_check *c, int segment, int32_t index,
                   struct ipw_err *err);
int ipw_check_take(struct ipw_query_loaded *out, struct ipw_check *c, int segment, int32_t index,
                   struct ipw_err *err);
/* The line that ipw_check_query() found last; it differed, or was the same. */
struct ipw_check_line ipw_check_found(const struct ipw_check *c);
/* How many lines of the run were not asked for.  A line that a crash left both in traces.jsonl and
 * among the earlier attempts counts once. */
int ipw_check_left(struct ipw_check *c, size_t *left, struct ipw_err *err);
/* Each of these, after ipw_check_left().  `twin`: it is also among the earlier attempts. */
int ipw_check_each_left(struct ipw_check *c,
                        void (*fn)(void *ud, const struct ipw_check_line *line, bool twin),
                        void *ud, struct ipw_err *err);
void ipw_check_close(struct ipw_check *c); /* NULL is fine */

#endif
