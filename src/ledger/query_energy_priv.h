/* ledger/query_energy_priv.h: what the two halves of booking a query share: its figures (query_energy.c) and where
 * its joules went (query_energy_account.c).  Owns nothing.  For nobody else. */
#ifndef IPW_LEDGER_QUERY_ENERGY_PRIV_H
#define IPW_LEDGER_QUERY_ENERGY_PRIV_H

#include "ledger/query_energy.h"

/* Which one of its domain's in the ledger a device is. */
size_t ipw_book_place(const struct ipw_ledger *ledger, const struct ipw_device *device);
/* Are the domain's devices those that the model runs on? */
bool ipw_book_of_model(const struct ipw_query_trace *trace, enum ipw_domain domain);
/* The figure of a window; query -1: none is named. */
struct ipw_figure ipw_book_window(const struct ipw_ledger *ledger, int64_t query, enum ipw_domain d,
                                  int64_t t0_ns, int64_t t1_ns);
/* Fills the accounts of every domain and device; after the figures. */
void ipw_book_accounts(struct ipw_query_trace *q, const struct ipw_ledger *ledger, int64_t query);

#endif
