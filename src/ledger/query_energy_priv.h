/* ledger/query_energy_priv.h: shared by query_energy.c (the figures of a query) and
 * query_energy_account.c (its accounts).  Owns nothing. */
#ifndef IPW_LEDGER_QUERY_ENERGY_PRIV_H
#define IPW_LEDGER_QUERY_ENERGY_PRIV_H

#include "ledger/query_energy.h"

/* The ledger's index of a device within its domain. */
size_t ipw_query_energy_device(const struct ipw_ledger *ledger, const struct ipw_device *device);
/* Does the model run on the domain's devices? */
bool ipw_query_energy_of_model(const struct ipw_query_trace *trace, enum ipw_domain domain);
/* Fills the accounts of every domain and device; call it after the figures. */
void ipw_query_energy_accounts(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                               int64_t query);

#endif
