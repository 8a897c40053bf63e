/* telemetry/run_metrics.h: the metrics of a run that goes on, as a page of Prometheus text.
 *
 * Owns the counts.  It is fed by an observer (run/observer.h); a server (io/server.h) asks for the
 * page.  Labels have a fixed set of values, and memory does not grow, except by 16 bytes for each
 * tool call that is in flight. */
#ifndef IPW_TELEMETRY_RUN_METRICS_H
#define IPW_TELEMETRY_RUN_METRICS_H

#include "base/buf.h"
#include "run/observer.h"

struct ipw_run_metrics;

struct ipw_run_metrics *ipw_run_metrics_new(void);
void ipw_run_metrics_free(struct ipw_run_metrics *m); /* NULL is fine */
/* The functions of an observer.  `energy` and `event` may come in any order. */
void ipw_run_metrics_begun(struct ipw_run_metrics *m, const struct ipw_observed_run *run);
void ipw_run_metrics_event(struct ipw_run_metrics *m, const struct ipw_event *event);
void ipw_run_metrics_energy(struct ipw_run_metrics *m, const struct ipw_observed_energy *energy);
/* Appends the page; `metrics` is a struct ipw_run_metrics. */
void ipw_run_metrics_write(struct ipw_buf *page, void *metrics);

#endif
