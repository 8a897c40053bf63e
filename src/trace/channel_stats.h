/* trace/channel_stats.h: a query's readings as the statistics of upstream's format.
 *
 * Upstream keeps one value for all devices of a machine.  Here each device has its own channels
 * (ipw_query_trace.metrics), which are combined.  Percentages and degrees: the mean of the devices'
 * averages and medians, the smallest minimum and the largest maximum.  Bytes: sums.  Pure; owns
 * nothing. */
#ifndef IPW_TRACE_CHANNEL_STATS_H
#define IPW_TRACE_CHANNEL_STATS_H

#include "json/json.h"
#include "trace/spec.h"
#include "trace/turn.h"

/* NAN: unknown. */
struct ipw_metric_stats {
    double avg, max, median, min;
};
/* The statistics of the channels "*SUFFIX", such as "/temp"; `sum`: add their values. */
struct ipw_metric_stats ipw_channel_stats_metric(const struct ipw_query_trace *q,
                                                 const char *suffix, bool sum);
/* Use of the accelerators' memory bandwidth in percent: the mean of the devices' averages, and the
 * largest of their peaks (`max_pct` may be NULL); NAN if it was not read. */
double ipw_channel_stats_mbu(const struct ipw_query_trace *q, double *max_pct);

/* Rows of the query's table: hardware_utilization, memory_metrics, power_metrics,
 * temperature_metrics; of[0] is the trace. */
extern const struct ipw_spec ipw_spec_utilization[], ipw_spec_memory[], ipw_spec_power[],
    ipw_spec_statistic[];
void ipw_channel_stats_put_utilization(struct ipw_jw *w, const struct ipw_spec *s,
                                       const void *const *of);
void ipw_channel_stats_put_memory(struct ipw_jw *w, const struct ipw_spec *s,
                                  const void *const *of);
void ipw_channel_stats_put_power(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
void ipw_channel_stats_put_temperature(struct ipw_jw *w, const struct ipw_spec *s,
                                       const void *const *of);
/* Reads q->power from a line; call it after the figures were read. */
void ipw_channel_stats_read_power(struct ipw_query_trace *q, const struct ipw_json *line);

#endif
