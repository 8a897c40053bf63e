/* ledger/run_books.h: the balance of a run, summed over its sessions.
 *
 * Each session is added with its own balance (ledger/balance.h).  Queries that do not count, those of
 * the warm-up and earlier attempts, are summed apart and put into the balance at the end.  Owns its
 * lists; all zero is empty. */
#ifndef IPW_LEDGER_RUN_BOOKS_H
#define IPW_LEDGER_RUN_BOOKS_H

#include "ledger/balance.h"

struct ipw_uncounted {          /* joules of queries that do not count */
    double j[IPW_DOMAIN_COUNT]; /* NAN: a query's are unknown */
    struct ipw_device_sums devices;
};
void ipw_uncounted_add(struct ipw_uncounted *u, const struct ipw_query_trace *trace);
/* Onto a balance and its devices; either of both may be NULL. */
void ipw_uncounted_put(struct ipw_balance *balance, struct ipw_device_books *devices,
                       const struct ipw_uncounted *warmup, const struct ipw_uncounted *earlier);
void ipw_uncounted_release(struct ipw_uncounted *u);

struct ipw_run_books {
    size_t n_sessions;
    struct ipw_balance balance[IPW_DOMAIN_COUNT];
    struct ipw_device_books devices;
    struct ipw_uncounted warmup, earlier; /* earlier: attempts at queries that were run again */
};
void ipw_run_books_session(struct ipw_run_books *b, const struct ipw_balance *balance,
                           const struct ipw_device_books *devices);
/* After the last session and the last query: the uncounted joules are part of the balance. */
void ipw_run_books_close(struct ipw_run_books *b);
void ipw_run_books_release(struct ipw_run_books *b);

#endif
