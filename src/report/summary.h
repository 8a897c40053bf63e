/* report/summary.h: the queries of a run for summary.json, and the run's own facts.
 *
 * Gathers the queries, live or read back, as rows (report/summary_rows.h); report/summary_facts.h
 * writes summary.json.  The owner adds what only the running program knows (the ledger's balance,
 * its own CPU time, the configuration) as struct ipw_summary_run.  Unknown is NAN, never 0. */
#ifndef IPW_REPORT_SUMMARY_H
#define IPW_REPORT_SUMMARY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/balance.h"
#include "report/summary_rows.h"
#include "trace/schema.h"

struct ipw_summary {
    struct ipw_summary_rows kept;
};
void ipw_summary_init(struct ipw_summary *s);
void ipw_summary_release(struct ipw_summary *s);
void ipw_summary_add(struct ipw_summary *s, const struct ipw_query_trace *trace,
                     const struct ipw_query_details *details);

/* Idle power of the domain; NAN: not measured, or unknown. */
struct ipw_baseline_watts {
    double before_w, after_w;
};

/* What only the running program knows.  Everything is borrowed; NULL and NAN: unknown. */
struct ipw_summary_run {
    const char *agent, *model, *dataset;
    const char *status;            /* "complete" or "interrupted" */
    const char *path;              /* the run's folder */
    const char *config, *hardware; /* JSON object texts */
    const char *energy_note;       /* why a sensor is missing: "no energy sensor ..." */
    const char *note;              /* any other remark, such as "demo model" */
    int64_t wall_ns;               /* now, since 1970, for generated_at; 0: unknown */
    double runner_cpu_s;           /* CPU time of this process without its sampler threads */
    double sampler_cpu_s;          /* of the sampler threads */
    double own_joules;             /* of both, estimated by their share of the processors */
    double wall_s;                 /* the run's wall time, without sessions that were killed */
    double cut_s;                  /* the wall time of these sessions */
    int64_t planned;               /* queries that the run was to do; -1: unknown */
    int64_t sessions;              /* number of sessions; 0: unknown */
    int64_t attempts;              /* earlier attempts, in attempts.jsonl */
    bool have_balance;
    struct ipw_balance balance[IPW_DOMAIN_COUNT];
    const struct ipw_device_balances *devices; /* NULL: no domain has several */
    /* By --share phase, of the joules of queries in flight together: the part that went by equal
     * slices, because nothing was known yet of what the phases draw. */
    double equal_part[IPW_DOMAIN_COUNT];
    double baseline_s; /* duration of the baseline; 0: not measured */
    struct ipw_baseline_watts baseline[IPW_DOMAIN_COUNT];
};
/* All unknown. */
#define IPW_SUMMARY_RUN_UNKNOWN                                                                    \
    ((struct ipw_summary_run){.runner_cpu_s = NAN,                                                 \
                              .sampler_cpu_s = NAN,                                                \
                              .own_joules = NAN,                                                   \
                              .wall_s = NAN,                                                       \
                              .planned = -1})

#endif
