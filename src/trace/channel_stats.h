/* trace/channel_stats.h: a query's readings as the statistics that upstream's records have.
 *
 * Upstream keeps one value for all boards of a machine; here each board has channels of its own
 * (ipw_query_trace.metrics), which are put together: percentages and degrees as the mean of the
 * boards' averages and medians, the smallest minimum and the largest maximum; bytes as sums.
 * Pure; owns nothing. */
#ifndef IPW_TRACE_CHANNEL_STATS_H
#define IPW_TRACE_CHANNEL_STATS_H

#include "json/json.h"
#include "trace/spec.h"
#include "trace/turn.h"

/* NAN: not known. */
struct ipw_metric_stats {
    double avg, max, median, min;
};
/* Of the channels "*SUFFIX", such as "/temp"; `sum`: added up. */
struct ipw_metric_stats ipw_query_metric(const struct ipw_query_trace *q, const char *suffix,
                                         bool sum);
/* Use of the accelerators' memory bandwidth in percent: the mean of the devices' averages, and the
 * largest of their peaks (`max_pct` may be NULL); NAN when it was not read. */
double ipw_query_mbu(const struct ipw_query_trace *q, double *max_pct);

/* Rows of the query's table: hardware_utilization, memory_metrics, power_metrics, temperature_metrics;
 * of[0] is the trace. */
extern const struct ipw_spec ipw_spec_utilization[], ipw_spec_memory[], ipw_spec_power[],
    ipw_spec_statistic[];
void ipw_stats_put_utilization(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
void ipw_stats_put_memory(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
void ipw_stats_put_power(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
void ipw_stats_put_temperature(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
/* q->power, of a line; after the figures. */
void ipw_stats_read_power(struct ipw_query_trace *q, const struct ipw_json *line);

#endif
