/* script/dataset.h: the queries of a run, from a dataset script.
 *
 * A dataset is a Lua script (datasets/NAME.lua, or lua/ipw/dataset.lua for a file of rows).  It has
 * a state of its own for the whole run, which also scores the answers; the agents' states never see
 * a reference answer.  The object owns everything that it returns. */
#ifndef IPW_SCRIPT_DATASET_H
#define IPW_SCRIPT_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_case_file {
    char *name;    /* as the agent sees it */
    char *path;    /* on disk, or NULL */
    char *builtin; /* among the embedded files, or NULL */
    char *data;    /* its content as a data URL, or NULL */
};

struct ipw_case {
    char *id;
    char *prompt, *system; /* system may be NULL */
    char *level;           /* or NULL */
    char *metadata;        /* JSON object text, or NULL */
    /* For the scorer and the files of a run, never for an agent: the reference answer (NULL:
     * withheld), the subject, and what else the scorer knows (JSON object text); or NULL. */
    char *answer, *subject, *reference;
    char *error; /* why this one cannot be run (a missing attachment), or NULL */
    char *given; /* JSON text for the agent alone, such as the requests to send; or NULL */
    double at_s; /* when it was due in the recording that it is from; NAN: not told */
    int epoch;   /* of that recording: several tasks can have one id; else 0 */
    struct ipw_case_file *files;
    size_t n_files, cap_files;
    int64_t number; /* of the task in the dataset, from 1 */
    int64_t place;  /* in the selection before ipw_dataset_cut(), from 1; 0: it was not cut */
};

struct ipw_dataset;

/* The selection of tasks, in the order in which its parts act (lua/ipw/choose.lua). */
struct ipw_choice {
    const char *where, *ids;     /* an expression (lua/ipw/where.lua), a file of ids; or NULL */
    const char *query;           /* the one task that this name means, as in a saved run; or NULL */
    int64_t sample, sample_seed; /* how many to draw; 0: all */
    int64_t from, to;            /* of those left, from 1, inclusive; to 0: to the end */
};

struct ipw_dataset_options {
    const char *dataset;      /* name, .lua file, or a file of rows */
    const char *data_dir;     /* or NULL */
    const char *encoding;     /* of its files of text (data/encoding.h); NULL: UTF-8 */
    const char *const *paths; /* --path folders, or NULL */
    const char *scorer; /* in place of the dataset's: a rule of ipw.score, or a .lua file; NULL */
    struct ipw_choice choice;
    bool scorer_only; /* no tasks are read: for ipw_dataset_score_saved() */
};

int ipw_dataset_open(struct ipw_dataset **out, const struct ipw_dataset_options *options,
                     struct ipw_err *err);
/* Can the expression be read?  Its columns are known only with the dataset. */
int ipw_dataset_check_where(const char *expression, struct ipw_err *err);
/* Without a script: the caller has the `n` tasks (ipw_dataset_get() returns none), and they are
 * never scored.  `sha256`: of the rows, or NULL. */
struct ipw_dataset *ipw_dataset_given(const char *name, const char *source, const char *sha256,
                                      const char *unscored, size_t n);
void ipw_dataset_free(struct ipw_dataset *cases);
/* Only the tasks that `keep` wants stay. */
void ipw_dataset_cut(struct ipw_dataset *cases, bool (*keep)(const void *ud, const char *id),
                     const void *ud);
size_t ipw_dataset_count(const struct ipw_dataset *cases);
size_t ipw_dataset_total(const struct ipw_dataset *cases); /* before the choice */
size_t ipw_dataset_files(const struct ipw_dataset *cases); /* attachments of all tasks */
const struct ipw_case *ipw_dataset_get(const struct ipw_dataset *cases, size_t i);
/* The task of that id, of those with several epochs the one of this epoch; SIZE_MAX: none. */
size_t ipw_dataset_find(const struct ipw_dataset *cases, const char *id, int epoch);
const char *ipw_dataset_name(const struct ipw_dataset *cases);   /* "gaia" */
const char *ipw_dataset_note(const struct ipw_dataset *cases);   /* for the user, or NULL */
const char *ipw_dataset_sha256(const struct ipw_dataset *cases); /* of the rows, or NULL */
const char *ipw_dataset_source(const struct ipw_dataset *cases); /* where they came from, or NULL */

struct ipw_score {
    int resolved;            /* 1, 0, or -1: not scored */
    struct ipw_buf answer;   /* the extracted final answer */
    char source[24];         /* "marker", "tool", "last_line", "none", ... */
    char reason[128];        /* why it is not scored, or "" */
    struct ipw_buf metadata; /* JSON object text for score_metadata; may be empty */
};

/* `response` is the text that the agent returned, or NULL; `source` is the agent's word for where
 * it came from, or NULL.  Never fails: if a scorer raises, `resolved` is -1 and `reason` says
 * why. */
void ipw_dataset_score(struct ipw_dataset *cases, size_t i, const char *response,
                       const char *source, struct ipw_score *out);
/* The same of a query of a saved run, whose trace has its reference.  `question` is its prompt. */
struct ipw_saved_case {
    const char *id, *question, *answer, *subject, *metadata,
        *reference; /* the last two: JSON text */
    /* What graders found: the judge's verdict, and the JSON text of its score_metadata; or NULL. */
    const char *judge_verdict, *score_metadata;
};
void ipw_dataset_score_saved(struct ipw_dataset *cases, const struct ipw_saved_case *saved,
                             const char *response, const char *source, struct ipw_score *out);
void ipw_score_release(struct ipw_score *score);

/* What is done with an answer after the queries of a run (run/grading.h): a judge model is asked,
 * or its program is run. */
enum ipw_grader { IPW_GRADER_JUDGE, IPW_GRADER_CODE, IPW_GRADERS };
struct ipw_grade_given {
    enum ipw_grader grader;
    const char *response, *answer; /* the agent's text, the extracted answer; or NULL */
    const char *template;          /* the judge's prompt in place of the dataset's; or NULL */
};
struct ipw_grade_task {
    bool wanted, official; /* official: the verdict is the dataset's own score */
    bool missing;          /* not done, because there is no answer */
    char *why;             /* not done: the reason; else NULL */
    char *prompt, *form;   /* for the grader; form: JSON object text */
};
void ipw_dataset_grade_task(struct ipw_dataset *cases, const struct ipw_saved_case *saved,
                            const struct ipw_grade_given *given, struct ipw_grade_task *out);
void ipw_grade_task_release(struct ipw_grade_task *task);
/* The keys of the trace that a grader sets; `found` is the JSON object of grade.patch
 * (lua/ipw/grade.lua). */
int ipw_dataset_grade_patch(struct ipw_dataset *cases, const struct ipw_buf *found,
                            struct ipw_buf *out, struct ipw_err *err);
/* The rule that the dataset declares for all of its records, or NULL. */
const char *ipw_dataset_rule(const struct ipw_dataset *cases);

#endif
