/* run/limit_actions.h: checks limits and acts on them.
 *
 * Limits are checked before an inference, at each start and end of an inference or a tool, with
 * every batch of readings (energy), and by a timer (time).  A limit of time or energy ends a query
 * at once.  A limit of tokens, turns or cost can only be passed by a finished answer; the agent
 * continues until it begins the next step, so that an answer from what it has is kept.  In both
 * cases the outcome has the limit's name, and the result is scored.  If a limit of energy cannot be
 * checked, because a sensor has given no energy for 4 s, the query also ends, and its error says
 * so.
 *
 * A limit of the run stops admission, ends the queries in flight (outcome run_..., not scored) and
 * ends the run in order.
 *
 * struct ipw_run_limits is the run's part: it owns the run's timers and its spending, and knows the
 * queries in flight by their struct ipw_query_limits.  Both report through their callbacks that the
 * run must end or that the query must end.  Borrowed: the loop, the session, the ledger, and the
 * reason why the run ends. */
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
    void (*run_reached)(void *ud); /* the run must end */
    void *ud;

    struct ipw_query_limits *queries; /* in flight */
    struct ipw_spending spent;
    enum ipw_limit reached;
    char why[160]; /* the reached limit, as text */
    struct ipw_timer *clock, *working;
    int64_t blind_ns; /* under a limit: since when the energy is unknown; 0: it is known */
    bool told_guess;
};

struct ipw_query_limits {
    struct ipw_run_limits *of;
    int32_t query; /* its number in the run */
    int64_t start_ns;
    void (*cut)(void *ud, enum ipw_query_stop how); /* the query must end */
    void *ud;

    struct ipw_query_limits *prev, *next;
    struct ipw_spending spent;
    enum ipw_limit reached;
    char why[160];
    struct ipw_timer *clock, *working; /* wall and working time */
    struct ipw_defer *cut_soon;        /* ends the query in the next round */
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
