/* report/summary.h: what summary.json is computed from, and the file.
 *
 * Keeps a row of numbers for each query and for each model call of a run, live or read back, and
 * sums by name where the rows would be too many: parts of queries, tools, models, outcomes.  It
 * computes nothing else: lua/ipw/summary.lua does (script/summary_text.h), from the rows and from
 * the facts: the sums, and what only the running program knows (struct ipw_summary_run).
 * docs/trace-format.md specifies the file.  Unknown is NAN, never 0.  Owns its rows and texts. */
#ifndef IPW_REPORT_SUMMARY_H
#define IPW_REPORT_SUMMARY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/columns.h"
#include "ledger/balance.h"
#include "trace/schema.h"

enum ipw_summary_kind {
    IPW_SUMMARY_FAILED,       /* queries that failed, by outcome */
    IPW_SUMMARY_INTERRUPTED,  /* queries that were stopped with the run, by outcome */
    IPW_SUMMARY_MODEL,        /* turns, by the model that answered */
    IPW_SUMMARY_JUDGE,        /* queries, by the judge's model */
    IPW_SUMMARY_PART,         /* parts of queries: `of` is the kind of part; tools have a name */
    IPW_SUMMARY_TOOL,         /* calls of a tool */
    IPW_SUMMARY_TOOL_OUTCOME, /* of the calls of a tool, `of` */
};

/* All queries, turns or calls of one name. */
struct ipw_summary_group {
    enum ipw_summary_kind kind;
    char *of, *name;
    size_t last; /* number of the latest query that was counted, from 1 */
    int64_t queries, calls;
    /* Of parts and tools; NAN: the value of one is unknown. */
    double seconds, j[IPW_DOMAIN_COUNT], waste_j[IPW_DOMAIN_COUNT];
    struct ipw_bounds bounds[IPW_DOMAIN_COUNT];        /* of j */
    double argument_bytes, result_bytes, cut_bytes;    /* of tools */
    double child_calls, child_cpu_s, child_peak_bytes; /* of calls with child processes */
};

enum { IPW_PROV_COUNT = IPW_PROV_ESTIMATED + 1 };

struct ipw_summary {
    struct ipw_columns queries,
        calls; /* their names: ipw_summary_query_columns, ..._call_columns */
    /* The ids of the queries, one after the other, each with a NUL; a long one is its beginning and
     * a hash. */
    char *ids;
    size_t id_bytes, id_cap;
    struct ipw_summary_group **groups; /* in the order of their first queries */
    size_t n_groups, cap_groups;
    void *by_name;                                         /* the groups, for tsearch() */
    struct ipw_query_account accounts[IPW_DOMAIN_COUNT];   /* sums over all queries */
    double provenance_j[IPW_DOMAIN_COUNT][IPW_PROV_COUNT]; /* joules of turns and before them */
    struct ipw_device_list devices;
    size_t correct, wrong, failed, stopped; /* queries; others are not scored */
    /* The first query without an answer; NULL: there is none.  Its error may be NULL. */
    char *unanswered_id, *unanswered_outcome, *unanswered_error;
};
/* Names of the columns; NULL-terminated. */
extern const char *const ipw_summary_query_columns[], *const ipw_summary_call_columns[];

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
    const char *config, *hardware; /* JSON object texts */
    const char *energy_note;       /* why a sensor is missing: "no energy sensor ..." */
    const char *note;              /* any other remark, such as "demo model" */
    int64_t wall_ns;               /* now, since 1970, for generated_at; 0: unknown */
    double runner_cpu_s;           /* CPU time of this process without its sampler threads */
    double sampler_cpu_s;          /* of the sampler threads */
    double own_joules;             /* of both, estimated by their share of the processors */
    double wall_s;                 /* the run's wall time, without sessions that were killed */
    int64_t planned;               /* queries that the run was to do; -1: unknown */
    int64_t sessions;              /* number of sessions; 0: unknown */
    int64_t attempts;              /* earlier attempts, in attempts.jsonl */
    bool have_balance;
    struct ipw_balance balance[IPW_DOMAIN_COUNT];
    const struct ipw_device_list *devices; /* NULL: no domain has several */
    double baseline_s;                     /* duration of the baseline; 0: not measured */
    struct ipw_baseline_watts baseline[IPW_DOMAIN_COUNT];
};
/* All unknown. */
#define IPW_SUMMARY_RUN_UNKNOWN                                                                    \
    ((struct ipw_summary_run){.runner_cpu_s = NAN,                                                 \
                              .sampler_cpu_s = NAN,                                                \
                              .own_joules = NAN,                                                   \
                              .wall_s = NAN,                                                       \
                              .planned = -1})

/* Appends summary.json. */
int ipw_summary_write(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, struct ipw_err *err);
/* Appends the facts, as JSON with exact numbers and null for the unknown. */
void ipw_summary_facts(struct ipw_buf *out, const struct ipw_summary *s,
                       const struct ipw_summary_run *run);

#endif
