/* report/summary.h: a run in numbers.
 *
 * Gathers the queries of a run, live or read back, one small row each, and answers totals and
 * efficiency; report/write_summary.h writes them as summary.json.  The owner adds what only the
 * running program knows (the ledger's balance, its own CPU time, the configuration) as struct
 * ipw_summary_run.  Unknown is NAN, never 0: a sum is unknown when the value of one query is, and
 * the sum of the known values has another name.  Owns its rows, which move to a file when they are
 * many (base/spill.h), so that memory does not grow with the number of queries. */
#ifndef IPW_REPORT_SUMMARY_H
#define IPW_REPORT_SUMMARY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spill.h"
#include "ledger/balance.h"
#include "report/judge_sums.h"
#include "report/summary_rows.h"
#include "report/tool_sums.h"
#include "trace/schema.h"

/* The energy value of a row. */
struct ipw_summary_figure {
    double j;                 /* if `known`; else, if `estimated`, the estimate */
    struct ipw_bounds bounds; /* if `known` */
    uint8_t provenance;
    bool known, estimated;
};

/* Texts for the table, kept only for the queries that it has room for. */
enum { IPW_SUMMARY_SHOWN = 60 };
struct ipw_summary_shown {
    size_t row; /* the number of its row */
    int32_t index;
    int epoch;
    char *id, *outcome;           /* outcome: as summary.json names it */
    char *level, *answer, *error; /* or NULL; answer and error shortened to 400 bytes */
    double lo_j[IPW_DOMAIN_COUNT], hi_j[IPW_DOMAIN_COUNT]; /* of estimates; both 0: unknown */
};

/* The latencies of a turn's successful attempt, in seconds; NAN: unknown. */
struct ipw_summary_call {
    double ttft_s, ttfo_s, itl_mean_s, gap_p50_s, gap_p99_s, latency_content_s, latency_close_s;
    double input_tokens; /* NAN: unknown */
};

struct ipw_summary_row {
    char task[64]; /* equal for queries of one id: the id, or its beginning and a hash */
    size_t number; /* in the order of ipw_summary_add(), from 0 */
    int epoch;
    uint32_t turns, tools;
    int64_t input_tokens, output_tokens; /* -1: unknown */
    double wall_s, cost_usd;             /* cost: NAN: unknown */
    struct ipw_summary_figure energy[IPW_DOMAIN_COUNT];
    double gpu_w, cpu_w; /* mean over the query; NAN: unknown */
    double judge_gpu_j, judge_cpu_j, judge_gpu_w, judge_cpu_w, judge_wall_s; /* NAN: unknown */
    bool judged;                                                             /* a judge was asked */
    double mbu_avg_pct; /* use of the accelerators' memory bandwidth; NAN: unknown */
    uint8_t not_lm;     /* domains not on the model's machine, bits 1 << domain */
    int8_t resolved;    /* 1, 0, -1 not scored */
    bool unscorable, completed, timed_out;
    bool stopped; /* stopped with the run, without an answer */
};

/* Sums over rows. */
struct ipw_sum {
    double total; /* NAN if a value is unknown, or if there are no rows */
    double known; /* over the known values; NAN if there are none */
    size_t unknown;
    struct ipw_bounds bounds; /* of joules: of `known` */
};

/* Over all queries, in the order in which they were added; unknown for a part of the rows. */
struct ipw_summary_sums {
    struct ipw_sum estimated; /* with estimates for unknown values */
    struct ipw_sum exclusive, marginal, waste, idle_tax;
    double lo_j, hi_j; /* of estimates */
    size_t n_estimates, n_bounded;
};

/* A part of the queries (trace/turn.h), over all of them. */
struct ipw_summary_part {
    enum ipw_part_kind kind;
    char *name; /* of a tool; else NULL */
    size_t queries;
    int64_t calls;
    double seconds;
    double j[IPW_DOMAIN_COUNT], waste_j[IPW_DOMAIN_COUNT]; /* NAN: a query's is unknown */
    struct ipw_bounds bounds[IPW_DOMAIN_COUNT];            /* of j */
};

struct ipw_summary {
    struct ipw_summary_rows kept;
    struct ipw_spill_place place;                      /* folder of the rows, set by the owner */
    struct ipw_spill rows;                             /* in the order of ipw_summary_add() */
    struct ipw_spill calls;                            /* of struct ipw_summary_call */
    size_t first, n;                                   /* the part of the rows that counts */
    bool part;                                         /* there are other rows */
    struct ipw_summary_shown shown[IPW_SUMMARY_SHOWN]; /* the first ones by index */
    size_t n_shown;
    size_t n_answers;  /* without any, no accuracy is known */
    size_t id_columns; /* terminal columns of the longest id */
    struct ipw_summary_sums sums[IPW_DOMAIN_COUNT];
    /* Of the joules of all queries, after ipw_summary_narrow(). */
    struct ipw_bounds narrowed[IPW_DOMAIN_COUNT];
    bool is_narrowed;
    struct ipw_judge_sums judge;
    int64_t retries, malformed, trimmed;    /* trimmed: turns whose context was shortened */
    char reason[IPW_DOMAIN_COUNT][48];      /* of the first query without an energy value, or "" */
    char estimate_by[IPW_DOMAIN_COUNT][24]; /* of the first estimate, or "" */
    struct ipw_device_sums devices;
    struct ipw_summary_part *parts; /* in the order in which they first happened */
    size_t n_parts, cap_parts;
    struct ipw_tool_sums tools;
};
/* The part of the queries in which that tool ran; NULL: unknown. */
const struct ipw_summary_part *ipw_summary_tool_part(const struct ipw_summary *s, const char *name);

/* Valid until the next call. */
static inline const struct ipw_summary_row *ipw_summary_row(const struct ipw_summary *s, size_t i)
{
    return ipw_spill_at(&s->rows, s->first + i);
}

void ipw_summary_init(struct ipw_summary *s); /* it must not be moved afterwards */
void ipw_summary_release(struct ipw_summary *s);
void ipw_summary_add(struct ipw_summary *s, const struct ipw_query_trace *trace,
                     const struct ipw_query_details *details);

/* After the last query: narrows the bounds of the queries' joules by what the run's balance says of
 * all of them together. */
void ipw_summary_narrow(struct ipw_summary *s, const struct ipw_balance *balance);

/* Idle power of the domain; NAN: not measured, or unknown. */
struct ipw_baseline_watts {
    double before_w, after_w;
};
/* Why net joules (gross - baseline x time) are withheld: "no_baseline", "drift" (the two differ by
 * more than 2 W and 10 %); NULL: they are not withheld. */
const char *ipw_summary_baseline_refusal(const struct ipw_baseline_watts *b);

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

/* For a part of the rows the sums of struct ipw_summary_sums are unknown; retries, malformed
 * replies and shortened contexts are always those of the whole. */
struct ipw_totals {
    size_t queries, completed, resolved, unresolved, unscorable, unscored, failed, timed_out;
    size_t interrupted; /* stopped with the run; the others without an answer have failed */
    size_t turns, tools;
    int64_t retries, malformed, trimmed;
    struct ipw_sum input_tokens, output_tokens, total_tokens, cost_usd;
    struct ipw_sum energy[IPW_DOMAIN_COUNT];
    struct ipw_sum estimated[IPW_DOMAIN_COUNT]; /* with estimates for unknown values */
    struct ipw_sum exclusive[IPW_DOMAIN_COUNT], marginal[IPW_DOMAIN_COUNT];
    struct ipw_sum waste[IPW_DOMAIN_COUNT], idle_tax[IPW_DOMAIN_COUNT];
    double wall_s;
    double accuracy; /* resolved / (resolved + unresolved); NAN: nothing was scored or answered */
};
void ipw_summary_totals(struct ipw_totals *out, const struct ipw_summary *s);

/* One line of the balance, ready to print; NAN: unknown. */
enum ipw_ledger_state {
    IPW_LEDGER_UNKNOWN,  /* a part is unknown */
    IPW_LEDGER_BALANCED, /* within 1e-9 of the total and a microjoule for each query */
    IPW_LEDGER_OFF,      /* a bug */
};
struct ipw_summary_balance_line {
    double total_j, idle_j, queries_j, wasted_j, warmup_j, difference_j;
    struct ipw_bounds queries; /* of queries_j */
    enum ipw_ledger_state state;
};
void ipw_summary_balance_line(struct ipw_summary_balance_line *out,
                              const struct ipw_balance *balance, const struct ipw_sum *queries,
                              size_t n_queries);

/* Efficiency over one domain or a set of them (docs/method.md, "Efficiency"). */
struct ipw_efficiency {
    unsigned domains;                       /* bit 1 << domain; 0: unknown */
    size_t queries;                         /* with an energy value */
    double mean_j, mean_w;                  /* per query */
    struct ipw_bounds mean, correct, token; /* of mean_j, j_per_correct, j_per_token */
    bool coarse;                            /* mean_j is too uncertain: it has no efficiency */
    double ipj, ipw;                        /* accuracy / mean_j, accuracy / mean_w */
    double j_per_correct; /* all queries' joules / resolved ones; NAN if any is unknown */
    double j_per_token, tokens_per_j; /* over queries whose joules and output tokens are known */
    double edp_js;                    /* mean of a query's joules times its seconds */
};
void ipw_summary_efficiency(struct ipw_efficiency *out, const struct ipw_summary *s,
                            unsigned domains);
/* The basis of the headline values: the machine's own meter if there is one, else the GPUs and CPUs
 * with energy values, and the memory beside them.  0: none of these is known, or above 0 J.  For a
 * model on another machine only that machine's domains count. */
unsigned ipw_summary_basis(const struct ipw_summary *s);
/* The domains that are on the model's machine in all queries. */
unsigned ipw_summary_lm_domains(const struct ipw_summary *s);
/* "gpu+cpu" for a set; "" for an empty set. */
void ipw_summary_basis_text(struct ipw_buf *out, unsigned domains);

/* Fails if a row could not be read; then all results so far are wrong. */
int ipw_summary_check(const struct ipw_summary *s, struct ipw_err *err);

#endif
