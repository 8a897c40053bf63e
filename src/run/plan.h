/* run/plan.h: the queries of a run, and the next one.
 *
 * First come --warmup queries, then, when these have ended (run/schedule.h), every task in turn,
 * --epochs times.  A query's number in the run is its index here.  For a resumed run the plan knows
 * which queries are done. */
#ifndef IPW_RUN_PLAN_H
#define IPW_RUN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipw_place {
    size_t index; /* of the task */
    int epoch;
    bool warmup;
};

struct ipw_plan {
    size_t n_cases, n_warmup, n_epochs;
    size_t next;  /* the next query to admit, after ipw_plan_more() */
    bool endless; /* there is always one more; the total is the number of those so far */
    bool *done;   /* by index; NULL: no query is done yet */
};

void ipw_plan_init(struct ipw_plan *p, size_t n_cases, int64_t warmup, int64_t epochs);
void ipw_plan_release(struct ipw_plan *p);
size_t ipw_plan_total(const struct ipw_plan *p);   /* queries, including the warm-up */
size_t ipw_plan_counted(const struct ipw_plan *p); /* queries without the warm-up */
struct ipw_place ipw_plan_place(const struct ipw_plan *p, size_t index);
bool ipw_plan_more(
    struct ipw_plan *p); /* whether there is a query to admit, which is then p->next */

/* For a resumed run: from now on done queries are marked. */
void ipw_plan_resume(struct ipw_plan *p);
/* Marks a query of an epoch of this plan.  False: it was marked before. */
bool ipw_plan_mark(struct ipw_plan *p, size_t index_of_case, int epoch);
void ipw_plan_skip_warmup(struct ipw_plan *p);

#endif
