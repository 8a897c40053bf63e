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

/* The place for this instant among what was looked up; NULL: nothing is kept. */
static inline struct ipw_series_known *ipw_series_cell(const struct ipw_series *s, int64_t t_ns)
{
    uint64_t hash = ((uint64_t)t_ns + (uintptr_t)s) * UINT64_C(0x9E3779B97F4A7C15);

    return s->known ? &s->known[(hash >> 32) % IPW_SERIES_KNOWN] : NULL;
}

/* The samples around an instant that does not lie before the first one, and the energy there; into
 * its place, if there is one. */
struct ipw_series_known ipw_series_look(const struct ipw_series *s, int64_t t_ns);

#endif
