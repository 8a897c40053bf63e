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
 * ends the run in order.
 *
 * struct ipw_run_limits is the run's part: it owns the run's timers and what was spent, and knows
 * the queries in flight by their struct ipw_query_limits.  Both report through the callback that
 * they were given: that the run is to end, that the query is to be cut.  Borrowed: the loop, the
 * session, the ledger, and why the run ends. */
#ifndef IPW_RUN_LIMIT_ACTIONS_H
#define IPW_RUN_LIMIT_ACTIONS_H

#include "io/loop.h"
#include "ledger/feed.h"
#include "ledger/ledger.h"
#include "run/ending.h"
#include "run/limits.h"
#include "run/session.h"
#include "script/host.h"

struct ipw_query_limits;

struct ipw_run_limits {
    const struct ipw_limit_options *o;
    struct ipw_loop *loop;
    const struct ipw_session *session;
    const struct ipw_ending *ending;
    const struct ipw_ledger *ledger;
    const struct ipw_feed *feed;
    void (*run_reached)(void *ud); /* the run is to end */
    void *ud;

    struct ipw_query_limits *queries; /* in flight */
    struct ipw_spending spent;
    enum ipw_limit reached;
    char why[160]; /* once one was reached */
    struct ipw_timer *clock, *working;
    int64_t blind_ns; /* since when the energy is not known, under a limit; 0: it is */
    bool told_guess;
};

struct ipw_query_limits {
    struct ipw_run_limits *of;
    int32_t query; /* its number in the run */
    int64_t start_ns;
    void (*cut)(void *ud, enum ipw_query_stop how); /* end the query */
    void *ud;

    struct ipw_query_limits *prev, *next;
    struct ipw_spending spent;
    enum ipw_limit reached;
    char why[160];
    struct ipw_timer *clock, *working; /* wall and working time */
    struct ipw_defer *cut_soon;        /* the query is cut on the next round */
    int64_t blind_ns;
};

void ipw_run_limits_start(struct ipw_run_limits *l);
void ipw_run_limits_end(struct ipw_run_limits *l); /* its timers */

/* The query is in flight; query, start_ns, cut and ud are filled in. */
void ipw_query_limits_begin(struct ipw_query_limits *q, struct ipw_run_limits *of);
void ipw_query_limits_start(struct ipw_query_limits *q); /* its agent runs: the clock does too */
void ipw_query_limits_end(struct ipw_query_limits *q);
/* `usd`: see ipw_spending_event(). */
void ipw_query_limits_event(struct ipw_query_limits *q, const struct ipw_event *event, double usd);
void ipw_run_limits_samples(struct ipw_run_limits *l);

/* Before an inference: false when a limit, or the end of the run, forbids it; the query is cut. */
bool ipw_query_limits_admit(struct ipw_query_limits *q);
/* All that the query does is wait, or that is over. */
void ipw_query_limits_rest(struct ipw_query_limits *q, int64_t t_ns, bool rest);
/* What a script may still use. */
void ipw_query_limits_budget(const struct ipw_query_limits *q, struct ipw_host_budget *out);

#endif
