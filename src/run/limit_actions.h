/* run/limit_actions.h: what happens when a limit is reached.
 *
 * Limits are looked at before an inference, at each start and end of an inference or a tool, with
 * every batch of samples (energy), and when a timer says so (time).  A limit of time or energy ends
 * a query at once.  One of tokens, turns or cost, which only a finished answer can pass, lets the
 * agent go on until it begins the next thing: an answer that it gives from what it has is kept.
 * Either way the outcome has the limit's name, and what there is is scored.  A limit of energy that can
 * no longer be kept, because a sensor stopped saying what is drawn (for 4 s), ends the query too, with
 * that as its error.
 *
 * A limit of the run stops admission, cuts the queries in flight (outcome run_..., not scored) and
 * ends the run in order. */
#ifndef IPW_RUN_LIMIT_ACTIONS_H
#define IPW_RUN_LIMIT_ACTIONS_H

#include "ledger/ledger.h"
#include "run/limits.h"
#include "script/host.h"

struct ipw_run;
struct ipw_query;

struct ipw_query_limits { /* a query's part */
    struct ipw_meter meter;
    enum ipw_limit reached;
    char why[160];                     /* once one was reached */
    struct ipw_timer *clock, *working; /* wall and working time */
    struct ipw_defer *cut;             /* the query is cancelled on the next round */
    int64_t blind_ns; /* since when its energy is not known, under a limit; 0: it is */
};

struct ipw_run_limits { /* the run's */
    struct ipw_meter meter;
    enum ipw_limit reached;
    char why[160];
    struct ipw_timer *clock, *working;
    int64_t blind_ns;
    bool told_guess;
};

/* Before a run: a limit that cannot be kept on this machine is refused, with the reason. */
int ipw_enforce_check(const struct ipw_run *run, struct ipw_err *err);
void ipw_enforce_run_start(struct ipw_run *run);
void ipw_enforce_run_end(struct ipw_run *run); /* its timers */

void ipw_enforce_query_start(struct ipw_query *q);
void ipw_enforce_query_end(struct ipw_query *q); /* its timers */
/* `usd`: see ipw_meter_event(). */
void ipw_enforce_event(struct ipw_query *q, const struct ipw_event *event, double usd);
void ipw_enforce_samples(struct ipw_run *run);
/* What the model's machine used so far in the run, and in which time; nothing is written when no
 * sensor has told yet. */
void ipw_enforce_run_joules(void *run, double *joules, double *seconds);

/* The host's callbacks; ud is the query. */
bool ipw_enforce_admit(void *q);
void ipw_enforce_held(void *q, int64_t t_ns);
void ipw_enforce_rest(void *q, int64_t t_ns, bool rest);
void ipw_enforce_energy(void *q, struct ipw_host_energy *out);
void ipw_enforce_budget(void *q, struct ipw_host_budget *out);

#endif
