/* ledger/query_energy.h: the energy of a query, its turns and their spans.
 *
 * Asks the ledger for each window and fills the figures of a built trace (trace/turn.h).  Owns
 * nothing. */
#ifndef IPW_LEDGER_QUERY_ENERGY_H
#define IPW_LEDGER_QUERY_ENERGY_H

#include "ledger/ledger.h"
#include "trace/turn.h"

/* Fills every energy figure and power mean of a trace; call it once.  `query` is its ordinal in the
 * ledger, or IPW_LEDGER_ANY: then its share is an equal slice. */
void ipw_query_energy_fill(struct ipw_query_trace *trace, const struct ipw_ledger *ledger,
                           int64_t query);

#endif
