/* ledger/query_energy.h: what a query, its turns and their spans cost.
 *
 * Asks the ledger for each of them and fills the figures of a built trace (trace/turn.h).  Owns
 * nothing. */
#ifndef IPW_LEDGER_QUERY_ENERGY_H
#define IPW_LEDGER_QUERY_ENERGY_H

#include "ledger/ledger.h"
#include "trace/turn.h"

/* Fills every energy figure and power mean from the ledger.  `query` is what
 * ipw_ledger_query_begin() answered for it; -1: not known, its share is an equal slice. */
void ipw_query_trace_book(struct ipw_query_trace *trace, const struct ipw_ledger *ledger,
                          int64_t query);

#endif
