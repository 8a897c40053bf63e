/* ledger/series_priv.h: shared by series.c (counters, chains), series_gauge.c (gauges),
 * series_read.c and series_bounds.c (answers). */
#ifndef IPW_LEDGER_SERIES_PRIV_H
#define IPW_LEDGER_SERIES_PRIV_H

#include "ledger/series.h"

#define IPW_SERIES_SLOW_NS INT64_C(10000000) /* a channel with a longer period starts as slow */
/* The highest power of a channel whose device has no limit, at least: a meter at the wall. */
#define IPW_SERIES_UNLIMITED_W 4000

void ipw_series_add(struct ipw_series *s, const struct ipw_series_sample *sample);
/* This reading becomes the first of a new chain. */
void ipw_series_break_chain(struct ipw_series *s, int64_t t_ns, int64_t value, const char *reason);
/* A plausible reading of a gauge, later than all earlier ones. */
void ipw_series_push_gauge(struct ipw_series *s, int64_t t_ns, int64_t value);

/* ipw_series_bounds() at an instant whose energy and samples around it are known. */
void ipw_series_bound(const struct ipw_series *s, int64_t t_ns, int64_t uj,
                      const struct ipw_series_sample *at, const struct ipw_series_sample *next,
                      int64_t *below_uj, int64_t *above_uj);

#endif
