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

/* What queries used of each device, and the balances of devices. */
struct ipw_device_item {
    char name[64];
    enum ipw_domain domain;
    double j; /* of the queries; NAN: the part of one is unknown */
    struct ipw_query_account account;
    struct ipw_balance balance;
};
struct ipw_device_list {
    struct ipw_device_item *all; /* by domain and name */
    size_t n, cap;
};
/* Counts a query. */
void ipw_device_list_count(struct ipw_device_list *l, const struct ipw_query_trace *q);
/* The joules of the queries counted; 0 if none used the device. */
double ipw_device_list_j(const struct ipw_device_list *l, enum ipw_domain domain, const char *name);
/* Fills the balances, and adds those of others. */
void ipw_device_list_fill(struct ipw_device_list *b, const struct ipw_ledger *ledger, int64_t t0_ns,
                          int64_t t1_ns);
void ipw_device_list_add(struct ipw_device_list *sum, const struct ipw_device_list *more);
/* Does the list hold the domain's devices for every session? */
bool ipw_device_list_whole(const struct ipw_device_list *b, enum ipw_domain domain);
/* Sets the energy of warm-up queries and earlier attempts; either may be NULL. */
void ipw_device_list_apart(struct ipw_device_list *b, const struct ipw_device_list *warmup,
                           const struct ipw_device_list *wasted);
void ipw_device_list_release(struct ipw_device_list *l);

/* The balance of a run, summed over its sessions.  Warm-up queries and earlier attempts do not
 * count; they are summed separately and put into the balance at the end.  All zero is empty. */
struct ipw_uncounted {          /* joules of queries that do not count */
    double j[IPW_DOMAIN_COUNT]; /* NAN: the energy of one query is unknown */
    struct ipw_bounds bounds[IPW_DOMAIN_COUNT];
    struct ipw_device_list devices;
};
void ipw_uncounted_add(struct ipw_uncounted *u, const struct ipw_query_trace *trace);
/* Puts them into a balance and its devices; either may be NULL. */
void ipw_uncounted_put(struct ipw_balance *balance, struct ipw_device_list *devices,
                       const struct ipw_uncounted *warmup, const struct ipw_uncounted *earlier);
void ipw_uncounted_release(struct ipw_uncounted *u);

struct ipw_run_balance {
    size_t n_sessions;
    struct ipw_balance balance[IPW_DOMAIN_COUNT];
    struct ipw_device_list devices;
    /* earlier: earlier attempts of queries that were run again. */
    struct ipw_uncounted warmup, earlier;
};
void ipw_run_balance_session(struct ipw_run_balance *b, const struct ipw_balance *balance,
                             const struct ipw_device_list *devices);
/* Call it after the last session and the last query; it puts the uncounted joules into the
 * balance. */
void ipw_run_balance_close(struct ipw_run_balance *b);
void ipw_run_balance_release(struct ipw_run_balance *b);

#endif
