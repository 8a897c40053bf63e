/* ledger/metrics.h: readings other than energy, as statistics of a query.
 *
 * Keeps the readings of the metric channels (utilisation, memory, temperature, bandwidth) for as
 * long as a query may need them.  A negative reading is a missing one; zero is a reading. */
#ifndef IPW_LEDGER_METRICS_H
#define IPW_LEDGER_METRICS_H

#include "trace/turn.h"

struct ipw_metrics;

struct ipw_metrics *ipw_metrics_new(const struct ipw_channel *channels, size_t n_channels);
void ipw_metrics_free(struct ipw_metrics *m); /* NULL is fine */
/* Readings of channels [first, first + n), in thousandths of their units. */
void ipw_metrics_row(struct ipw_metrics *m, size_t first, size_t n, int64_t t_ns,
                     const int64_t *values);
void ipw_metrics_trim(struct ipw_metrics *m, int64_t before_ns);
/* Fills trace->metrics, by name, for each channel that was read within the query, both ends
 * included. */
void ipw_metrics_fill(const struct ipw_metrics *m, struct ipw_query_trace *trace);

#endif
