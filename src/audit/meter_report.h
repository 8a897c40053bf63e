/* audit/meter_report.h: a saved run against the log of a power meter.
 *
 * Reads the run's queries and the logs, puts the logs' clocks on the run's (energy/meter_align.h),
 * has the energy computed as of any sensor (ledger/recompute.h; each joule once: shared among
 * queries in flight, or idle), and writes the facts for lua/ipw/report/meter.lua.  Owns everything
 * it read; release it. */
#ifndef IPW_AUDIT_METER_REPORT_H
#define IPW_AUDIT_METER_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "energy/meter_align.h"
#include "ledger/series.h"

struct ipw_metered_run_query {
    char *id;
    int epoch;
    double t0_s, t1_s; /* since 1970 */
    struct ipw_figure energy;
};

struct ipw_metered_run_input {
    char *path;
    struct ipw_meter_log log;
    bool aligned; /* `fit` was found, not given */
    struct ipw_meter_fit fit;
};

struct ipw_metered_run {
    const char *run; /* borrowed */
    struct ipw_metered_run_query *queries;
    size_t n_queries, cap_queries;
    struct ipw_meter_busy *busy; /* the clocks are aligned by model calls, else by queries */
    size_t n_busy, cap_busy;
    struct ipw_metered_run_input *logs;
    size_t n_logs;

    double t0_s, t1_s; /* from the first query's start to the last one's end */
    struct ipw_figure total, idle;
    size_t samples;         /* of the sum, inside */
    double peak_w, least_w; /* of the log's line over the run, its ends between rows included */
};

/* IPW_EUNSUPPORTED: the log does not fit the run (the message says why); other codes: a file cannot
 * be read.  `column` and `offset_s` may be NULL: then they are found. */
int ipw_metered_run_make(struct ipw_metered_run *r, const char *run, const char *const *logs,
                         size_t n_logs, const char *column, const double *offset_s,
                         struct ipw_err *err);
/* Reading `i` of a column as the ledger takes it: milliwatts, or microjoules since the column's
 * first.  Returns when it holds, on the run's clock: a mean stands in the middle of its time. */
double ipw_metered_run_reading(int64_t *value, const struct ipw_metered_run_input *in,
                               size_t column, size_t i);
void ipw_metered_run_release(struct ipw_metered_run *r);

/* Appends it as one JSON object with exact numbers, null for the unknown: {coverage, idle_joules,
 * joules, least_w, logs, peak_w, provenance, queries, samples, t0_s, t1_s}. */
void ipw_metered_run_facts(struct ipw_buf *out, const struct ipw_metered_run *r);

#endif
