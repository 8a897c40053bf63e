/* run/grading.h: grades the answers of a run when its queries are over.
 *
 * A judge model gives its verdict (--judge-model), and the programs of a dataset with the rule
 * `code` run with their tests.  Each answer is graded by a small agent in a Lua state of its own
 * (lua/ipw/judge_agent.lua, code_agent.lua); the dataset's state says what it is given.  Several
 * answers are graded at a time, each with a window of its own in the ledger.  No window overlaps a
 * query, because all of them are over.  Verdicts are kept in a book (run/grade_book.h) and end in
 * traces.jsonl.  A verdict that cannot be had is a reason, never a wrong answer.
 *
 * A run and `score RUN` use it.  Borrows what it is given; owns the judge's client and the grades
 * in flight while it runs. */
#ifndef IPW_RUN_GRADING_H
#define IPW_RUN_GRADING_H

#include "run/judge_options.h"
#include "run/run_pricing.h"
#include "run/script_options.h"
#include "run/sensors.h"
#include "run/server_options.h"
#include "run/workspaces.h"
#include "script/dataset.h"
#include "trace/schema.h"

struct ipw_grading_server { /* the run's server, for a judge without an address of its own */
    const char *url, *key;  /* or NULL */
};

struct ipw_grading {
    const struct ipw_judge_options *judge;
    const struct ipw_script_options *script;
    const struct ipw_net_options *net; /* certificates and keys; or NULL */
    struct ipw_grading_server server;
    struct ipw_loop *loop;
    struct ipw_dataset *cases;
    struct ipw_rundir *dir;
    struct ipw_workspaces *workspaces;
    struct ipw_pricing *pricing;
    struct ipw_sensors *sensors; /* NULL: joules are unknown */
    size_t concurrency;
    int32_t first_number; /* the ledger's numbers of grades begin here */
    bool no_content;      /* keeps no texts */
    bool quiet;

    int stop_signal; /* a signal ended it; the rest is graded when the run is resumed */
    size_t n_graded; /* verdicts and reasons that were added to traces.jsonl */
    struct ipw_grading_kept *kept, **kept_tail;
};

/* Whether there is anything to grade in such a run. */
bool ipw_grading_wanted(const struct ipw_grading *g);
/* Keeps the texts of a query in memory until it is graded: its line will not have them. */
void ipw_grading_keep(struct ipw_grading *g, const struct ipw_query_trace *trace,
                      const struct ipw_query_details *details);
/* Whether RUN has answers that such a grading has not graded yet. */
int ipw_grading_pending(bool *pending, const struct ipw_grading *g, const char *run,
                        struct ipw_err *err);
/* Grades all answers without a verdict. */
int ipw_grading_run(struct ipw_grading *g, struct ipw_err *err);
void ipw_grading_release(struct ipw_grading *g); /* the kept texts */

#endif
