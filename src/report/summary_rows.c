#include "report/summary_rows.h"

#include <assert.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/sha256.h"
#include "trace/channel_stats.h"

enum { LONGEST_ID = 63, LONGEST_ERROR = 400 };

const char *const ipw_summary_kinds[] = {"failed", "interrupted", "model",       "judge",
                                         "part",   "tool",        "tool_outcome"};

/* ---- the rows ---- */

/* The energy value of a query in one domain. */
struct energy {
    double j;               /* NAN: unknown */
    double lo_j, hi_j, u_j; /* its bounds and uncertainty */
    double estimate_j;      /* where the value is unknown */
};

struct query {
    double completed, cost_usd;
    struct energy energy[IPW_DOMAIN_COUNT];
    double cpu_w, gpu_w; /* means over the query */
    double epoch, input_tokens;
    double judge_asked, judge_cost_usd, judge_cpu_j, judge_cpu_w, judge_gpu_j, judge_gpu_w,
        judge_input_tokens, judge_output_tokens, judge_verdict, judge_wall_s;
    double malformed, mbu_avg_pct;
    double not_lm; /* domains not on the model's machine, as bits 1 << domain */
    double output_tokens;
    double resolved; /* 1, 0, -1: not scored */
    double retries;
    double stopped; /* with the run, without an answer */
    double timed_out, tools;
    double trimmed; /* turns whose context was shortened */
    double turns, unscorable, wall_s;
};
/* clang-format off */
#define ENERGY(domain) domain "_j", domain "_lo_j", domain "_hi_j", domain "_u_j", domain "_estimate_j"
const char *const ipw_summary_query_columns[] = {
    "completed", "cost_usd",
    ENERGY("gpu"), ENERGY("cpu"), ENERGY("dram"), ENERGY("machine"),
    "cpu_w", "gpu_w", "epoch", "input_tokens",
    "judge_asked", "judge_cost_usd", "judge_cpu_j", "judge_cpu_w", "judge_gpu_j", "judge_gpu_w",
    "judge_input_tokens", "judge_output_tokens", "judge_verdict", "judge_wall_s",
    "malformed", "mbu_avg_pct", "not_lm", "output_tokens", "resolved", "retries", "stopped",
    "timed_out", "tools", "trimmed", "turns", "unscorable", "wall_s",
    NULL,
};
/* clang-format on */
static_assert(IPW_DOMAIN_GPU == 0 && IPW_DOMAIN_CPU == 1 && IPW_DOMAIN_DRAM == 2 &&
                  IPW_DOMAIN_MACHINE == 3 && IPW_DOMAIN_COUNT == 4,
              "the order of the names");
enum { QUERY_COLUMNS = sizeof ipw_summary_query_columns / sizeof(char *) - 1 };
static_assert(sizeof(struct query) == QUERY_COLUMNS * sizeof(double), "a name for each member");

/* The latencies of a turn's successful attempt. */
struct call {
    double chunk_gap_p50_s, chunk_gap_p99_s, input_tokens, itl_mean_s, latency_close_s,
        latency_content_s, ttfo_s, ttft_s;
};
const char *const ipw_summary_call_columns[] = {
    "chunk_gap_p50_s",   "chunk_gap_p99_s", "input_tokens", "itl_mean_s", "latency_close_s",
    "latency_content_s", "ttfo_s",          "ttft_s",       NULL};
enum { CALL_COLUMNS = sizeof ipw_summary_call_columns / sizeof(char *) - 1 };
static_assert(sizeof(struct call) == CALL_COLUMNS * sizeof(double), "a name for each member");

static double count(int64_t n) { return n < 0 ? (double)NAN : (double)n; }

static double verdict_of(const struct ipw_judgement *judge)
{
    static const char *const words[] = {"correct", "incorrect", "not_attempted"};
    int i = 0;

    if (!judge->verdict) return judge->reason ? 0 : (double)NAN;
    while (i < 3 && strcmp(words[i], judge->verdict) != 0) i++;
    return i + 1; /* a word that is none of them: 4 */
}

static struct query query_of(const struct ipw_query_trace *q, const struct ipw_query_details *r)
{
    const struct ipw_judgement none = IPW_JUDGEMENT_NONE, *judge = r->judge ? r->judge : &none;
    struct query row = {
        .completed = q->completed,
        .cost_usd = r->cost_usd,
        .cpu_w = q->power_mean_w[IPW_DOMAIN_CPU],
        .gpu_w = q->power_mean_w[IPW_DOMAIN_GPU],
        .epoch = r->epoch,
        .input_tokens = count(q->input_tokens),
        .judge_asked = judge->asked > 0,
        .judge_cost_usd = judge->cost_usd,
        .judge_cpu_j = judge->cpu_j,
        .judge_cpu_w = judge->cpu_w,
        .judge_gpu_j = judge->gpu_j,
        .judge_gpu_w = judge->gpu_w,
        .judge_input_tokens = count(judge->input_tokens),
        .judge_output_tokens = count(judge->output_tokens),
        .judge_verdict = verdict_of(judge),
        .judge_wall_s = judge->wall_s,
        .malformed = r->n_malformed,
        .mbu_avg_pct = ipw_channel_stats_mbu(q, NULL),
        .not_lm = (uint8_t)~ipw_turn_lm_domains(q),
        .output_tokens = count(q->output_tokens),
        .resolved = r->is_resolved,
        .stopped = !q->completed && ipw_outcome_is_stop(q->outcome),
        .timed_out = q->timed_out,
        .tools = (double)q->n_tool_calls,
        .turns = (double)q->n_turns,
        .unscorable = r->is_resolved < 0 && r->unscorable_reason,
        .wall_s = ipw_ns_to_s(q->end_ns - q->start_ns),
    };

    for (size_t i = 0; i < q->n_turns; i++) {
        if (q->turns[i].attempts > 1) row.retries += q->turns[i].attempts - 1;
        row.trimmed += q->turns[i].context_trimmed_bytes > 0;
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &q->energy[d];
        struct ipw_bounds bounds = ipw_figure_bounds(f);

        row.energy[d] =
            (struct energy){.j = f->known ? f->j : (double)NAN,
                            .lo_j = bounds.lo,
                            .hi_j = bounds.hi,
                            .u_j = bounds.u,
                            .estimate_j = !f->known && f->estimated ? f->estimate_j : (double)NAN};
    }
    return row;
}

static void add_id(struct ipw_summary_rows *s, const char *id)
{
    char shortened[LONGEST_ID + 1], hex[65];
    size_t n = strlen(id);

    if (n > LONGEST_ID) {
        ipw_sha256_hex(hex, id, n);
        n = (size_t)snprintf(shortened, sizeof shortened, "%.23s%.40s", id, hex);
        id = shortened;
    }
    IPW_GROW(s->ids, s->id_cap, s->id_bytes + n + 1);
    memcpy(s->ids + s->id_bytes, id, n + 1);
    s->id_bytes += n + 1;
}

/* Of a text, cut between two characters. */
static char *beginning(const char *text)
{
    size_t n = text ? strlen(text) : 0;

    if (n > LONGEST_ERROR) {
        n = LONGEST_ERROR;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    }
    return text ? ipw_memdup(text, n) : NULL;
}

static void add_calls(struct ipw_summary_rows *s, const struct ipw_query_trace *q)
{
    for (size_t i = 0; i < q->n_turns; i++) {
        const struct ipw_turn_times *t = &q->turns[i].times;
        struct call row = {.chunk_gap_p50_s = t->gap_p50_s,
                           .chunk_gap_p99_s = t->gap_p99_s,
                           .input_tokens = count(q->turns[i].input_tokens),
                           .itl_mean_s = t->itl_mean_s,
                           .latency_close_s = t->latency_close_s,
                           .latency_content_s = t->latency_content_s,
                           .ttfo_s = t->ttfo_s,
                           .ttft_s = q->turns[i].ttft_s};

        ipw_columns_add(&s->calls, (const double *)&row);
    }
}

/* ---- sums by name ---- */

static int by_name(const void *a, const void *b)
{
    const struct ipw_summary_group *x = a, *y = b;
    int order = x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->of, y->of);

    return order ? order : strcmp(x->name, y->name);
}

/* A tree finds it: a run can have as many outcomes as queries. */
static struct ipw_summary_group *group(struct ipw_summary_rows *s, enum ipw_summary_kind kind,
                                       const char *of, const char *name)
{
    const struct ipw_summary_group like = {
        .kind = kind, .of = (char *)of, .name = (char *)(name ? name : "")};
    struct ipw_summary_group **found = tfind(&like, &s->by_name, by_name), *made;

    if (found) return *found;
    made = ipw_calloc(1, sizeof *made);
    *made = like;
    made->of = ipw_strdup(of);
    made->name = ipw_strdup(like.name);
    IPW_GROW(s->groups, s->cap_groups, s->n_groups + 1);
    s->groups[s->n_groups++] = made;
    if (!tsearch(made, &s->by_name, by_name)) abort(); /* out of memory */
    return made;
}

/* Returns it with one call more, and one query more if it is the first call of its query. */
static struct ipw_summary_group *call_of(struct ipw_summary_rows *s, enum ipw_summary_kind kind,
                                         const char *of, const char *name)
{
    struct ipw_summary_group *g = group(s, kind, of, name);

    g->queries += g->last != s->queries.n;
    g->last = s->queries.n;
    g->calls++;
    return g;
}

static void add_joules(struct ipw_summary_group *g, int d, double j, struct ipw_bounds bounds)
{
    ipw_bounds_add(&g->bounds[d], g->j[d], bounds, j);
    g->j[d] += j;
}

static void add_tool(struct ipw_summary_rows *s, const struct ipw_span *span)
{
    const char *name = span->name ? span->name : "";
    struct ipw_summary_group *g = call_of(s, IPW_SUMMARY_TOOL, "", name);

    call_of(s, IPW_SUMMARY_TOOL_OUTCOME, name, span->outcome ? span->outcome : "unknown");
    g->seconds += ipw_ns_to_s(span->end_ns - span->start_ns);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_figure f = span->energy ? span->energy[d] : (struct ipw_figure){0};

        add_joules(g, d, f.known ? f.j : (double)NAN, ipw_figure_bounds(&f));
    }
    /* A call always has arguments: without their size nothing told these members. */
    g->argument_bytes += span->argument_bytes > 0 ? (double)span->argument_bytes : (double)NAN;
    g->cut_bytes += span->argument_bytes > 0 ? (double)span->cut_bytes : (double)NAN;
    g->result_bytes += count(span->result_bytes);
    if (!span->child_provenance) return;
    g->child_calls++;
    g->child_cpu_s += span->child_cpu_s;
    g->child_peak_bytes = fmax(g->child_peak_bytes, (double)span->child_peak_bytes);
}

/* For a turn the last reply's model counts, as in its line. */
static void add_turn(struct ipw_summary_rows *s, const struct ipw_turn *turn)
{
    if (!turn->error && turn->model) call_of(s, IPW_SUMMARY_MODEL, "", turn->model);
    for (size_t i = 0; i < turn->n_spans; i++)
        if (turn->spans[i].kind == IPW_SPAN_TOOL) add_tool(s, &turn->spans[i]);
}

static void add_part(struct ipw_summary_rows *s, const struct ipw_query_part *part)
{
    struct ipw_summary_group *g = group(s, IPW_SUMMARY_PART, ipw_part_kind_words[part->kind],
                                        part->kind == IPW_PART_TOOL ? part->name : NULL);

    g->queries++;
    g->calls += part->calls;
    g->seconds += part->seconds;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        add_joules(g, d, part->j[d], part->bounds[d]);
        g->waste_j[d] += part->waste_j[d];
    }
}

static void add_provenance(struct ipw_summary_rows *s, const struct ipw_figure *energy)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (energy[d].known) s->provenance_j[d][energy[d].provenance] += energy[d].j;
}

static void add_accounts(struct ipw_summary_rows *s, const struct ipw_query_trace *q)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        s->accounts[d].exclusive_j += q->account[d].exclusive_j;
        s->accounts[d].marginal_j += q->account[d].marginal_j;
        s->accounts[d].waste_j += q->account[d].waste_j;
        s->accounts[d].idle_tax_j += q->account[d].idle_tax_j;
        if (!q->energy[d].known && q->energy[d].reason && !s->reason[d][0])
            snprintf(s->reason[d], sizeof s->reason[d], "%s", q->energy[d].reason);
    }
}

/* ---- */

void ipw_summary_rows_init(struct ipw_summary_rows *s)
{
    *s = (struct ipw_summary_rows){0};
    ipw_columns_init(&s->queries, QUERY_COLUMNS);
    ipw_columns_init(&s->calls, CALL_COLUMNS);
}

static void leave(void *group) { (void)group; }

void ipw_summary_rows_release(struct ipw_summary_rows *s)
{
    tdestroy(s->by_name, leave);
    for (size_t i = 0; i < s->n_groups; i++) {
        free(s->groups[i]->of);
        free(s->groups[i]->name);
        free(s->groups[i]);
    }
    free(s->groups);
    free(s->ids);
    free(s->unanswered_id);
    free(s->unanswered_outcome);
    free(s->unanswered_error);
    ipw_columns_release(&s->queries);
    ipw_columns_release(&s->calls);
    ipw_device_sums_release(&s->devices);
    *s = (struct ipw_summary_rows){0};
}

void ipw_summary_rows_add(struct ipw_summary_rows *s, const struct ipw_query_trace *q,
                          const struct ipw_query_details *r)
{
    struct query row = query_of(q, r);
    const char *outcome = q->outcome ? q->outcome : "unknown";

    ipw_columns_add(&s->queries, (const double *)&row);
    add_id(s, q->id ? q->id : "");
    add_calls(s, q);
    if (!q->completed)
        call_of(s, row.stopped ? IPW_SUMMARY_INTERRUPTED : IPW_SUMMARY_FAILED, "", outcome);
    if (!q->completed && !s->unanswered_id) {
        s->unanswered_id = ipw_strdup(q->id ? q->id : "");
        s->unanswered_outcome = ipw_strdup(outcome);
        s->unanswered_error = beginning(q->error);
    }
    if (r->judge && r->judge->model && !isnan(row.judge_verdict))
        call_of(s, IPW_SUMMARY_JUDGE, "", r->judge->model);
    for (size_t i = 0; i < q->n_turns; i++) {
        add_turn(s, &q->turns[i]);
        add_provenance(s, q->turns[i].energy);
    }
    add_provenance(s, q->energy_before);
    for (size_t i = 0; i < q->n_parts; i++) add_part(s, &q->parts[i]);
    add_accounts(s, q);
    ipw_device_sums_add(&s->devices, q);
}

size_t ipw_summary_query_column(const char *name)
{
    size_t i = 0;

    while (i < QUERY_COLUMNS && strcmp(ipw_summary_query_columns[i], name) != 0) i++;
    if (i == QUERY_COLUMNS) abort();
    return i;
}
