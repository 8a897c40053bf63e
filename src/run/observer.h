/* run/observer.h: the interface for what watches a run from outside, such as a page of metrics.
 *
 * The command creates an observer, hands it to ipw_run_start() and frees it after the run.  The run
 * calls it in the loop's thread; each function can be NULL.  It only watches: it must return at
 * once, fail nothing, and keep nothing that it is handed. */
#ifndef IPW_RUN_OBSERVER_H
#define IPW_RUN_OBSERVER_H

#include "energy/source.h"
#include "trace/event.h"

struct ipw_observed_run {
    const char *folder, *agent, *model, *dataset;
    int session;     /* from 0 */
    int64_t wall_ns; /* when it began, since 1970 */
    size_t planned;  /* queries, with those of earlier sessions */
};

/* Energy from the session's start to the last reading, by domain; NAN: unknown. */
struct ipw_observed_energy {
    int64_t until_ns;
    double joules[IPW_DOMAIN_COUNT];
};

struct ipw_progress_state; /* run/progress.h */
struct ipw_loop;           /* io/loop.h */

struct ipw_observer {
    /* The loop of the run is there; it will be freed. */
    void (*opened)(struct ipw_observer *o, struct ipw_loop *loop);
    void (*closing)(struct ipw_observer *o, struct ipw_loop *loop);
    void (*begun)(struct ipw_observer *o, const struct ipw_observed_run *run);
    void (*event)(struct ipw_observer *o, const struct ipw_event *event);
    /* About five times a second while sensors are read. */
    void (*energy)(struct ipw_observer *o, const struct ipw_observed_energy *energy);
    /* About five times a second, and once at the end. */
    void (*progress)(struct ipw_observer *o, const struct ipw_progress_state *state);
    /* CPU time of processes that it started: part of the run's own overhead. */
    int64_t (*cpu_ns)(const struct ipw_observer *o);
};

#endif
