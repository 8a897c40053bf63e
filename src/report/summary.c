#include "report/summary.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/sha256.h"
#include "json/write.h"
#include "script/summary_text.h"
#include "trace/channel_stats.h"

enum { LONGEST_ID = 63, LONGEST_ERROR = 400, FACTS_BYTES = 64 * IPW_MIB };

static const char *const kinds[] = {"failed", "interrupted", "model",       "judge",
                                    "part",   "tool",        "tool_outcome"};

/* ---- the rows ---- */

static double count(int64_t n) { return n < 0 ? (double)NAN : (double)n; }

static double verdict_of(const struct ipw_judgement *judge)
{
    static const char *const words[] = {"correct", "incorrect", "not_attempted"};
    int i = 0;

    if (!judge->verdict) return judge->reason ? 0 : (double)NAN;
    while (i < 3 && strcmp(words[i], judge->verdict) != 0) i++;
    return i + 1; /* a word that is none of them: 4 */
}

static bool is_stopped(const struct ipw_query_trace *q)
{
    return !q->completed && ipw_outcome_is_stop(q->outcome);
}

static double retries_of(const struct ipw_query_trace *q)
{
    double n = 0;

    for (size_t i = 0; i < q->n_turns; i++)
        if (q->turns[i].attempts > 1) n += q->turns[i].attempts - 1;
    return n;
}

static double trimmed_of(const struct ipw_query_trace *q)
{
    double n = 0;

    for (size_t i = 0; i < q->n_turns; i++) n += q->turns[i].context_trimmed_bytes > 0;
    return n;
}

static double known_j(const struct ipw_figure *f) { return f->known ? f->j : (double)NAN; }

static double estimate_j(const struct ipw_figure *f)
{
    return !f->known && f->estimated ? f->estimate_j : (double)NAN;
}

/* A row's columns, each with its value of a query `q`, its details `r` and its `judge`. */
/* clang-format off */
#define ENERGY(COLUMN, name, figure)                                                               \
    COLUMN(name##_j, known_j(figure))                                                              \
    COLUMN(name##_lo_j, ipw_figure_bounds(figure).lo)                                              \
    COLUMN(name##_hi_j, ipw_figure_bounds(figure).hi)                                              \
    COLUMN(name##_u_j, ipw_figure_bounds(figure).u)                                                \
    COLUMN(name##_estimate_j, estimate_j(figure)) /* where the value is unknown */
#define QUERY_COLUMNS(COLUMN)                                                                      \
    COLUMN(completed, q->completed)                                                                \
    COLUMN(cost_usd, r->cost_usd)                                                                  \
    ENERGY(COLUMN, gpu, &q->energy[IPW_DOMAIN_GPU])                                                \
    ENERGY(COLUMN, cpu, &q->energy[IPW_DOMAIN_CPU])                                                \
    ENERGY(COLUMN, dram, &q->energy[IPW_DOMAIN_DRAM])                                              \
    ENERGY(COLUMN, machine, &q->energy[IPW_DOMAIN_MACHINE])                                        \
    COLUMN(cpu_w, q->power_mean_w[IPW_DOMAIN_CPU]) /* means over the query */                      \
    COLUMN(gpu_w, q->power_mean_w[IPW_DOMAIN_GPU])                                                 \
    COLUMN(epoch, r->epoch)                                                                        \
    COLUMN(input_tokens, count(q->input_tokens))                                                   \
    COLUMN(judge_asked, judge->asked > 0)                                                          \
    COLUMN(judge_cost_usd, judge->cost_usd)                                                        \
    COLUMN(judge_cpu_j, judge->cpu_j)                                                              \
    COLUMN(judge_cpu_w, judge->cpu_w)                                                              \
    COLUMN(judge_gpu_j, judge->gpu_j)                                                              \
    COLUMN(judge_gpu_w, judge->gpu_w)                                                              \
    COLUMN(judge_input_tokens, count(judge->input_tokens))                                         \
    COLUMN(judge_output_tokens, count(judge->output_tokens))                                       \
    COLUMN(judge_verdict, verdict_of(judge))                                                       \
    COLUMN(judge_wall_s, judge->wall_s)                                                            \
    COLUMN(malformed, r->n_malformed)                                                              \
    COLUMN(mbu_avg_pct, ipw_channel_stats_mbu(q, NULL))                                            \
    COLUMN(not_lm, (uint8_t)~ipw_turn_lm_domains(q)) /* not on the model's machine: 1 << domain */ \
    COLUMN(output_tokens, count(q->output_tokens))                                                 \
    COLUMN(resolved, r->is_resolved) /* 1, 0, -1: not scored */                                    \
    COLUMN(retries, retries_of(q))                                                                 \
    COLUMN(stopped, is_stopped(q)) /* with the run, without an answer */                           \
    COLUMN(timed_out, q->timed_out)                                                                \
    COLUMN(tools, (double)q->n_tool_calls)                                                         \
    COLUMN(trimmed, trimmed_of(q)) /* turns whose context was shortened */                         \
    COLUMN(turns, (double)q->n_turns)                                                              \
    COLUMN(unscorable, r->is_resolved < 0 && r->unscorable_reason)                                 \
    COLUMN(wall_s, ipw_ns_to_s(q->end_ns - q->start_ns))
/* The latencies of a turn's successful attempt. */
#define CALL_COLUMNS(COLUMN)                                                                       \
    COLUMN(chunk_gap_p50_s, turn->times.gap_p50_s)                                                 \
    COLUMN(chunk_gap_p99_s, turn->times.gap_p99_s)                                                 \
    COLUMN(input_tokens, count(turn->input_tokens))                                                \
    COLUMN(itl_mean_s, turn->times.itl_mean_s)                                                     \
    COLUMN(latency_close_s, turn->times.latency_close_s)                                           \
    COLUMN(latency_content_s, turn->times.latency_content_s)                                       \
    COLUMN(ttfo_s, turn->times.ttfo_s)                                                             \
    COLUMN(ttft_s, turn->ttft_s)
#define NAME(name, value) #name,
#define VALUE(name, value) value,
const char *const ipw_summary_query_columns[] = {QUERY_COLUMNS(NAME) NULL};
const char *const ipw_summary_call_columns[] = {CALL_COLUMNS(NAME) NULL};
/* clang-format on */

static void add_query(struct ipw_summary *s, const struct ipw_query_trace *q,
                      const struct ipw_query_details *r)
{
    const struct ipw_judgement none = IPW_JUDGEMENT_NONE, *judge = r->judge ? r->judge : &none;

    ipw_columns_add(&s->queries, (const double[]){QUERY_COLUMNS(VALUE)});
}

static void add_call(struct ipw_summary *s, const struct ipw_turn *turn)
{
    ipw_columns_add(&s->calls, (const double[]){CALL_COLUMNS(VALUE)});
}

static void add_id(struct ipw_summary *s, const char *id)
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

/* ---- sums by name ---- */

static int by_name(const void *a, const void *b)
{
    const struct ipw_summary_group *x = a, *y = b;
    int order = x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->of, y->of);

    return order ? order : strcmp(x->name, y->name);
}

/* A tree finds it: a run can have as many outcomes as queries. */
static struct ipw_summary_group *group(struct ipw_summary *s, enum ipw_summary_kind kind,
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
static struct ipw_summary_group *call_of(struct ipw_summary *s, enum ipw_summary_kind kind,
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

static void add_tool(struct ipw_summary *s, const struct ipw_span *span)
{
    const char *name = span->name ? span->name : "";
    struct ipw_summary_group *g = call_of(s, IPW_SUMMARY_TOOL, "", name);

    call_of(s, IPW_SUMMARY_TOOL_OUTCOME, name, span->outcome ? span->outcome : "unknown");
    g->seconds += ipw_ns_to_s(span->end_ns - span->start_ns);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_figure f = span->energy ? span->energy[d] : (struct ipw_figure){0};

        add_joules(g, d, known_j(&f), ipw_figure_bounds(&f));
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

static void add_provenance(struct ipw_summary *s, const struct ipw_figure *energy)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (energy[d].known) s->provenance_j[d][energy[d].provenance] += energy[d].j;
}

/* For a turn the last reply's model counts, as in its line. */
static void add_turn(struct ipw_summary *s, const struct ipw_turn *turn)
{
    add_call(s, turn);
    if (!turn->error && turn->model) call_of(s, IPW_SUMMARY_MODEL, "", turn->model);
    for (size_t i = 0; i < turn->n_spans; i++)
        if (turn->spans[i].kind == IPW_SPAN_TOOL) add_tool(s, &turn->spans[i]);
    add_provenance(s, turn->energy);
}

static void add_part(struct ipw_summary *s, const struct ipw_query_part *part)
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

static void add_account(struct ipw_query_account *sum, const struct ipw_query_account *a)
{
    sum->exclusive_j += a->exclusive_j;
    sum->marginal_j += a->marginal_j;
    sum->waste_j += a->waste_j;
    sum->idle_tax_j += a->idle_tax_j;
}

static void add_unanswered(struct ipw_summary *s, const struct ipw_query_trace *q)
{
    const char *outcome = q->outcome ? q->outcome : "unknown";

    call_of(s, is_stopped(q) ? IPW_SUMMARY_INTERRUPTED : IPW_SUMMARY_FAILED, "", outcome);
    *(is_stopped(q) ? &s->stopped : &s->failed) += 1;
    if (s->unanswered_id) return;
    s->unanswered_id = ipw_strdup(q->id ? q->id : "");
    s->unanswered_outcome = ipw_strdup(outcome);
    s->unanswered_error = beginning(q->error);
}

void ipw_summary_init(struct ipw_summary *s)
{
    *s = (struct ipw_summary){0};
    ipw_columns_init(&s->queries, sizeof ipw_summary_query_columns / sizeof(char *) - 1);
    ipw_columns_init(&s->calls, sizeof ipw_summary_call_columns / sizeof(char *) - 1);
}

static void leave(void *group) { (void)group; }

void ipw_summary_release(struct ipw_summary *s)
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
    ipw_device_list_release(&s->devices);
    *s = (struct ipw_summary){0};
}

void ipw_summary_add(struct ipw_summary *s, const struct ipw_query_trace *q,
                     const struct ipw_query_details *r)
{
    add_query(s, q, r);
    add_id(s, q->id ? q->id : "");
    if (!q->completed)
        add_unanswered(s, q);
    else if (r->is_resolved >= 0)
        *(r->is_resolved ? &s->correct : &s->wrong) += 1;
    if (r->judge && r->judge->model && (r->judge->verdict || r->judge->reason))
        call_of(s, IPW_SUMMARY_JUDGE, "", r->judge->model);
    for (size_t i = 0; i < q->n_turns; i++) add_turn(s, &q->turns[i]);
    add_provenance(s, q->energy_before);
    for (size_t i = 0; i < q->n_parts; i++) add_part(s, &q->parts[i]);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) add_account(&s->accounts[d], &q->account[d]);
    ipw_device_list_count(&s->devices, q);
}

/* ---- the facts ---- */

/* An object with a value of each domain: of[domain], each of `size` bytes. */
static void put_domains(struct ipw_jw *w, const char *key, const void *of, size_t size,
                        void (*put)(struct ipw_jw *w, const void *one))
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        ipw_jw_key(w, ipw_domain_name(ipw_domains_by_name[i]));
        put(w, (const char *)of + ipw_domains_by_name[i] * size);
    }
    ipw_jw_obj_end(w);
}

static void put_number(struct ipw_jw *w, const void *j) { ipw_jw_num(w, *(const double *)j); }

static void put_bounds(struct ipw_jw *w, const void *bounds)
{
    const struct ipw_bounds *b = bounds;

    ipw_jw_obj(w);
    ipw_jw_knum(w, "hi", b->hi);
    ipw_jw_knum(w, "lo", b->lo);
    ipw_jw_knum(w, "u", b->u);
    ipw_jw_obj_end(w);
}

static void put_group(struct ipw_jw *w, const struct ipw_summary_group *g)
{
    ipw_jw_obj(w);
    ipw_jw_knum(w, "argument_bytes", g->argument_bytes);
    put_domains(w, "bounds", g->bounds, sizeof *g->bounds, put_bounds);
    ipw_jw_kint(w, "calls", g->calls);
    ipw_jw_knum(w, "child_calls", g->child_calls);
    ipw_jw_knum(w, "child_cpu_s", g->child_cpu_s);
    ipw_jw_knum(w, "child_peak_bytes", g->child_peak_bytes);
    ipw_jw_knum(w, "cut_bytes", g->cut_bytes);
    put_domains(w, "joules", g->j, sizeof *g->j, put_number);
    ipw_jw_kstr(w, "kind", kinds[g->kind]);
    ipw_jw_kstr(w, "name", g->name);
    ipw_jw_kstr(w, "of", g->of);
    ipw_jw_kint(w, "queries", g->queries);
    ipw_jw_knum(w, "result_bytes", g->result_bytes);
    ipw_jw_knum(w, "seconds", g->seconds);
    put_domains(w, "waste_joules", g->waste_j, sizeof *g->waste_j, put_number);
    ipw_jw_obj_end(w);
}

static void put_account(struct ipw_jw *w, const void *account)
{
    const struct ipw_query_account *a = account;

    ipw_jw_obj(w);
    ipw_jw_knum(w, "exclusive_j", a->exclusive_j);
    ipw_jw_knum(w, "idle_tax_j", a->idle_tax_j);
    ipw_jw_knum(w, "marginal_j", a->marginal_j);
    ipw_jw_knum(w, "waste_j", a->waste_j);
    ipw_jw_obj_end(w);
}

static void put_devices(struct ipw_jw *w, const struct ipw_device_list *sums)
{
    ipw_jw_key(w, "devices");
    ipw_jw_arr(w);
    for (size_t i = 0; i < sums->n; i++) {
        ipw_jw_obj(w);
        ipw_jw_key(w, "account");
        put_account(w, &sums->all[i].account);
        ipw_jw_kstr(w, "domain", ipw_domain_name(sums->all[i].domain));
        ipw_jw_knum(w, "j", sums->all[i].j);
        ipw_jw_kstr(w, "name", sums->all[i].name);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_provenance(struct ipw_jw *w, const void *joules)
{
    const double *j = joules;

    ipw_jw_arr(w); /* as the enum has them */
    for (int p = 0; p < IPW_PROV_COUNT; p++) {
        ipw_jw_obj(w);
        ipw_jw_knum(w, "j", j[p]);
        ipw_jw_kstr(w, "name", ipw_provenance_name((enum ipw_provenance)p));
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_figure(struct ipw_jw *w, const char *key, const struct ipw_figure *f)
{
    struct ipw_bounds b = ipw_figure_bounds(f);

    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "coverage", f->coverage);
    ipw_jw_knum(w, "hi", b.hi);
    ipw_jw_knum(w, "j", known_j(f));
    ipw_jw_knum(w, "lo", b.lo);
    ipw_jw_knum(w, "partial_j", f->partial_j);
    ipw_jw_kstr(w, "reason", f->reason);
    ipw_jw_knum(w, "u", b.u);
    ipw_jw_obj_end(w);
}

static void put_balance(struct ipw_jw *w, const void *balance)
{
    const struct ipw_balance *b = balance;

    ipw_jw_obj(w);
    put_figure(w, "idle", &b->idle);
    put_figure(w, "queries", &b->queries);
    put_figure(w, "total", &b->total);
    ipw_jw_key(w, "warmup");
    put_bounds(w, &b->warmup);
    ipw_jw_knum(w, "warmup_j", b->warmup_j);
    ipw_jw_key(w, "wasted");
    put_bounds(w, &b->wasted);
    ipw_jw_knum(w, "wasted_j", b->wasted_j);
    ipw_jw_obj_end(w);
}

static void put_device_balances(struct ipw_jw *w, const struct ipw_device_list *balances)
{
    ipw_jw_key(w, "device_balances");
    ipw_jw_arr(w);
    for (size_t i = 0; balances && i < balances->n; i++) {
        ipw_jw_obj(w);
        ipw_jw_key(w, "balance");
        put_balance(w, &balances->all[i].balance);
        ipw_jw_kstr(w, "domain", ipw_domain_name(balances->all[i].domain));
        ipw_jw_kstr(w, "name", balances->all[i].name);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_watts(struct ipw_jw *w, const void *watts)
{
    const struct ipw_baseline_watts *b = watts;

    ipw_jw_obj(w);
    ipw_jw_knum(w, "after_w", b->after_w);
    ipw_jw_knum(w, "before_w", b->before_w);
    ipw_jw_obj_end(w);
}

void ipw_summary_facts(struct ipw_buf *out, const struct ipw_summary *s,
                       const struct ipw_summary_run *run)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    put_domains(&w, "accounts", s->accounts, sizeof *s->accounts, put_account);
    ipw_jw_kstr(&w, "agent", run->agent);
    ipw_jw_kint(&w, "attempts", run->attempts);
    if (run->have_balance)
        put_domains(&w, "balance", run->balance, sizeof *run->balance, put_balance);
    put_domains(&w, "baseline", run->baseline, sizeof *run->baseline, put_watts);
    ipw_jw_knum(&w, "baseline_s", run->baseline_s);
    ipw_jw_kstr(&w, "config", run->config);
    ipw_jw_kstr(&w, "dataset", run->dataset);
    put_device_balances(&w, run->devices);
    put_devices(&w, &s->devices);
    ipw_jw_kstr(&w, "energy_note", run->energy_note);
    ipw_jw_key(&w, "groups");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < s->n_groups; i++) put_group(&w, s->groups[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "hardware", run->hardware);
    ipw_jw_kstr(&w, "model", run->model);
    ipw_jw_kstr(&w, "note", run->note);
    ipw_jw_knum(&w, "own_joules", run->own_joules);
    ipw_jw_kcount(&w, "planned", run->planned);
    put_domains(&w, "provenance", s->provenance_j, sizeof *s->provenance_j, put_provenance);
    ipw_jw_knum(&w, "runner_cpu_s", run->runner_cpu_s);
    ipw_jw_knum(&w, "sampler_cpu_s", run->sampler_cpu_s);
    ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    ipw_jw_kcount(&w, "sessions", run->sessions ? run->sessions : -1);
    ipw_jw_kstr(&w, "status", run->status);
    ipw_jw_kint(&w, "wall_ns", run->wall_ns);
    ipw_jw_knum(&w, "wall_s", run->wall_s);
    ipw_jw_obj_end(&w);
}

int ipw_summary_write(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, struct ipw_err *err)
{
    struct ipw_buf facts = IPW_BUF(FACTS_BYTES);
    const struct ipw_summary_source source = {.queries = &s->queries,
                                              .calls = &s->calls,
                                              .query_columns = ipw_summary_query_columns,
                                              .call_columns = ipw_summary_call_columns,
                                              .ids = s->ids,
                                              .facts = &facts};
    int rc;

    ipw_summary_facts(&facts, s, run);
    rc = facts.failed ? ipw_fail(err, IPW_ELIMIT, "summary.json: its facts exceed 64 MiB")
                      : ipw_summary_text(out, &source, err);
    ipw_buf_release(&facts);
    return rc;
}
