/* ledger/series_priv.h: shared by series.c (counters, chains) and series_gauge.c (gauges). */
#ifndef IPW_LEDGER_SERIES_PRIV_H
#define IPW_LEDGER_SERIES_PRIV_H

#include "ledger/series.h"

#define IPW_SERIES_SLOW_NS INT64_C(10000000) /* a channel with a longer period starts as slow */

void ipw_series_add(struct ipw_series *s, const struct ipw_series_sample *sample);
/* This reading becomes the first of a new chain. */
void ipw_series_break_chain(struct ipw_series *s, int64_t t_ns, int64_t value, const char *reason);
/* A plausible reading of a gauge, later than all earlier ones. */
void ipw_series_push_gauge(struct ipw_series *s, int64_t t_ns, int64_t value);

#endif
