/* run/schedule.h: admits queries and ends them.
 *
 * Owns the queries in flight.  It begins queries while there is room, the counted ones after the
 * last of the warm-up has ended, frees agents outside of their callbacks, and ends all queries when
 * the run must end (a limit of the run, a signal, a lost server, an error).  It handles signals,
 * and scripts that are stuck in C.  Borrows the parts that it uses: the plan, the queries' shared
 * parts, the finished queries, durable writing, the limits. */
#ifndef IPW_RUN_SCHEDULE_H
#define IPW_RUN_SCHEDULE_H

#include "run/durable.h"
#include "run/finished_queries.h"

struct ipw_schedule {
    struct ipw_loop *loop;
    const struct ipw_query_ground *ground;
    struct ipw_plan *plan;
    struct ipw_finished_queries *finished;
    const struct ipw_durable *durable;
    struct ipw_ending *ending;
    int64_t grace_ns;               /* --grace */
    void (*before_sleep)(void *ud); /* each time before the loop waits */
    void *ud;

    struct ipw_query *active; /* in flight */
    struct ipw_query *over;   /* agents to free outside their callbacks */
    bool asked;               /* the origin was asked to end */
    struct ipw_defer *step;   /* the next step is scheduled */
    struct ipw_timer *grace;  /* after the first signal: until queries are ended */
};

/* Returns when every query is safe, or when the run has stopped. */
int ipw_schedule_run(struct ipw_schedule *s);
void ipw_schedule_step_soon(struct ipw_schedule *s);
/* A query has ended, as its callback reports. */
void ipw_schedule_over(struct ipw_schedule *s, struct ipw_query *q);
/* Stops the run; the first error counts. */
void ipw_schedule_fail(struct ipw_schedule *s, const struct ipw_err *err);

#endif
