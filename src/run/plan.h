/* run/plan.h: which queries a run has, and which of them is next.
 *
 * First come --warmup queries, then every case in turn, --epochs times.  A query's number in the run
 * is its index here.  Where a run is resumed the plan knows which ones are done already. */
#ifndef IPW_RUN_PLAN_H
#define IPW_RUN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipw_place {
    size_t index; /* of the case */
    int epoch;
    bool warmup;
};

struct ipw_plan {
    size_t n_cases, n_warmup, n_epochs;
    size_t next; /* to be admitted, after ipw_plan_more() */
    bool *done;  /* by index; NULL: none is done yet */
};

void ipw_plan_init(struct ipw_plan *p, size_t n_cases, int64_t warmup, int64_t epochs);
void ipw_plan_release(struct ipw_plan *p);
size_t ipw_plan_total(const struct ipw_plan *p);   /* queries, those of the warm-up included */
size_t ipw_plan_counted(const struct ipw_plan *p); /* without them */
struct ipw_place ipw_plan_place(const struct ipw_plan *p, size_t index);
bool ipw_plan_more(struct ipw_plan *p); /* is there one to admit?  Then it is p->next */

/* A run that goes on: from here on queries are marked. */
void ipw_plan_resume(struct ipw_plan *p);
/* A query of an epoch of this plan.  False: it was marked before. */
bool ipw_plan_mark(struct ipw_plan *p, size_t index_of_case, int epoch);
void ipw_plan_skip_warmup(struct ipw_plan *p);

#endif
