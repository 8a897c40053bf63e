/* ledger/balance.h: the balance of a run or a session, and of each device.
 *
 * Total and idle energy are read from the ledger.  The queries' energy is summed from their traces,
 * so the balance is a check.  Devices are listed only where a domain has several.  Sessions of one
 * run may differ in their devices: a session in which a domain has one device does not name it.
 * Such a session leaves an item without a name, and the named devices then do not add up to the
 * domain.  Unknown is NAN; lists own their items. */
#ifndef IPW_LEDGER_BALANCE_H
#define IPW_LEDGER_BALANCE_H

#include "ledger/ledger.h"
#include "trace/turn.h"

/* total = idle + queries + wasted + warm-up + difference. */
struct ipw_balance {
    struct ipw_figure total, idle; /* energy of the device between the run's start and end */
    /* What the ledger says of all queries together, also of those that do not count: its bounds are
     * much narrower than the queries' own added up (IPW_LEDGER_QUERIES). */
    struct ipw_figure queries;
    double wasted_j; /* of earlier attempts (resumed runs) */
    double warmup_j; /* of warm-up queries */
    struct ipw_bounds wasted, warmup;
    double seconds; /* length of the run; coverages are shares of it */
};
/* Fills balance[IPW_DOMAIN_COUNT] for the run [t0, t1]. */
void ipw_balance_fill(struct ipw_balance *balance, const struct ipw_ledger *ledger, int64_t t0_ns,
                      int64_t t1_ns);
/* Adds the balance of another session.  A value that is unknown in one of them is unknown in the
 * sum; its measured part is the sum of both. */
void ipw_balance_add(struct ipw_balance *sum, const struct ipw_balance *more);

/* Joules of several queries on each device. */
struct ipw_device_sum {
    char name[64];
    enum ipw_domain domain;
    double j; /* NAN: the part of one query is unknown */
    struct ipw_query_account account;
};
struct ipw_device_sums {
    struct ipw_device_sum *all; /* by domain and name */
    size_t n, cap;
};
void ipw_device_sums_add(struct ipw_device_sums *s, const struct ipw_query_trace *q);
/* 0 if no query used the device. */
double ipw_device_sums_get(const struct ipw_device_sums *s, enum ipw_domain domain,
                           const char *name);
void ipw_device_sums_release(struct ipw_device_sums *s);

/* The balance of each device. */
struct ipw_device_balance {
    char name[64];
    enum ipw_domain domain;
    struct ipw_balance balance;
};
struct ipw_device_balances {
    struct ipw_device_balance *all; /* by domain and name */
    size_t n, cap;
};
void ipw_device_balances_fill(struct ipw_device_balances *b, const struct ipw_ledger *ledger,
                              int64_t t0_ns, int64_t t1_ns);
void ipw_device_balances_add(struct ipw_device_balances *sum,
                             const struct ipw_device_balances *more);
/* Does the list hold the domain's devices for every session? */
bool ipw_device_balances_whole(const struct ipw_device_balances *b, enum ipw_domain domain);
/* Sets the energy of warm-up queries and earlier attempts; either may be NULL. */
void ipw_device_balances_apart(struct ipw_device_balances *b, const struct ipw_device_sums *warmup,
                               const struct ipw_device_sums *wasted);
void ipw_device_balances_release(struct ipw_device_balances *b);

/* The balance of a run, summed over its sessions.  Warm-up queries and earlier attempts do not
 * count; they are summed separately and put into the balance at the end.  All zero is empty. */
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
