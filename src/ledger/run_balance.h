/* ledger/run_balance.h: the balance of a run, summed over its sessions.
 *
 * Each session is added with its own balance (ledger/balance.h).  Warm-up queries and earlier
 * attempts do not count; they are summed separately and put into the balance at the end.  Owns its
 * lists; all zero is empty. */
#ifndef IPW_LEDGER_RUN_BALANCE_H
#define IPW_LEDGER_RUN_BALANCE_H

#include "ledger/balance.h"

struct ipw_uncounted {          /* joules of queries that do not count */
    double j[IPW_DOMAIN_COUNT]; /* NAN: the energy of one query is unknown */
    struct ipw_bounds bounds[IPW_DOMAIN_COUNT];
    struct ipw_device_sums devices;
};
void ipw_uncounted_add(struct ipw_uncounted *u, const struct ipw_query_trace *trace);
/* Puts them into a balance and its devices; either may be NULL. */
void ipw_uncounted_put(struct ipw_balance *balance, struct ipw_device_balances *devices,
                       const struct ipw_uncounted *warmup, const struct ipw_uncounted *earlier);
void ipw_uncounted_release(struct ipw_uncounted *u);

struct ipw_run_balance {
    size_t n_sessions;
    struct ipw_balance balance[IPW_DOMAIN_COUNT];
    struct ipw_device_balances devices;
    /* earlier: earlier attempts of queries that were run again. */
    struct ipw_uncounted warmup, earlier;
};
void ipw_run_balance_session(struct ipw_run_balance *b, const struct ipw_balance *balance,
                             const struct ipw_device_balances *devices);
/* Call it after the last session and the last query; it puts the uncounted joules into the
 * balance. */
void ipw_run_balance_close(struct ipw_run_balance *b);
void ipw_run_balance_release(struct ipw_run_balance *b);

#endif
