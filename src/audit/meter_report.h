/* audit/meter_report.h: a saved run against the log of a power meter.
 *
 * Reads the run's queries and the logs.  lua/ipw/report/meter_rows.lua puts the logs' readings on
 * the run's clock.  With these it has the energy computed as of any sensor (ledger/recompute.h;
 * each joule once: shared among queries in flight, or idle).  Owns everything it read; release
 * it. */
#ifndef IPW_AUDIT_METER_REPORT_H
#define IPW_AUDIT_METER_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "energy/meter.h"
#include "ledger/series.h"

struct ipw_metered_run_query {
    char *id;
    int epoch;
    double t0_s, t1_s; /* since 1970 */
    struct ipw_figure energy;
};

struct ipw_metered_run_busy { /* a time in which the run was active, in seconds since 1970 */
    double t0_s, t1_s;
};

struct ipw_metered_run_input {
    char *path;
    struct ipw_meter_log log;
};

struct ipw_metered_run {
    const char *run; /* borrowed */
    struct ipw_metered_run_query *queries;
    size_t n_queries, cap_queries;
    struct ipw_metered_run_busy *busy; /* the clocks are aligned by model calls, else by queries */
    size_t n_busy, cap_busy;
    struct ipw_metered_run_input *logs;
    size_t n_logs;

    double t0_s, t1_s; /* from the first query's start to the last one's end */
    struct ipw_figure total, idle;
};

/* `column`: this one alone, or NULL.  Without logs: the queries alone.  Release `r` in any case. */
int ipw_metered_run_read(struct ipw_metered_run *r, const char *run, const char *const *logs,
                         size_t n_logs, const char *column, struct ipw_err *err);
/* columns: a JSON array of {file, kind, rows}.  rows: as text, "TIME VALUE" for each reading, in
 * seconds since 1970 on the run's clock and in milliwatts, or microjoules since the column's first;
 * IPW_NO_VALUE: nothing was read.  IPW_EUNSUPPORTED: the log does not cover the run. */
int ipw_metered_run_book(struct ipw_metered_run *r, const char *columns, struct ipw_err *err);
void ipw_metered_run_release(struct ipw_metered_run *r);

/* What was read, as one JSON object: {busy: [[t0, t1]], logs: [{bad_rows, clock, columns: [{in_sum,
 * kind, name, t, v}], file, first_bad_row, rows}], t0_s, t1_s}; t and v of columns in the sum. */
void ipw_metered_run_logs(struct ipw_buf *out, const struct ipw_metered_run *r);
/* What was booked, with exact numbers, null for the unknown: {coverage, idle_joules, joules,
 * provenance, queries, t0_s, t1_s}. */
void ipw_metered_run_facts(struct ipw_buf *out, const struct ipw_metered_run *r);

#endif
