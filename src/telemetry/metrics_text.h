/* telemetry/metrics_text.h: writes the Prometheus text format (0.0.4).
 *
 * Pure; the metrics of a run are written in Lua (lua/ipw/live/metrics.lua).  A family is its
 * heading followed by its samples.  A sample is begun with its name, gets its labels one by one,
 * and is ended with its value:
 *
 *   ipw_metrics_family(out, "ipw_power_watts", "gauge", "Power over the last second.");
 *   ipw_metrics_begin(out, "ipw_power_watts");
 *   ipw_metrics_label(out, "domain", "gpu");
 *   ipw_metrics_end(out, 312.5);
 *
 * A value that is not known (NAN) must be left out by the caller, with its sample. */
#ifndef IPW_TELEMETRY_METRICS_TEXT_H
#define IPW_TELEMETRY_METRICS_TEXT_H

#include <stdint.h>

#include "base/buf.h"

#define IPW_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8" /* its Content-Type */

void ipw_metrics_family(struct ipw_buf *out, const char *name, const char *type, const char *help);
void ipw_metrics_begin(struct ipw_buf *out, const char *name);
void ipw_metrics_label(struct ipw_buf *out, const char *name, const char *value);
void ipw_metrics_end(struct ipw_buf *out, double value);
void ipw_metrics_end_joules(struct ipw_buf *out, int64_t uj); /* microjoules, to the last digit */

#endif
