#include "report/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "data/sha256.h"
#include "report/format.h"
#include "trace/channel_stats.h"

#define TEXT_KEPT 400       /* bytes of an answer or an error that a table can show */
#define UNKNOWN   "unknown" /* an outcome that a file does not have */

void ipw_summary_init(struct ipw_summary *s)
{
    *s = (struct ipw_summary){0};
    ipw_summary_rows_init(&s->kept);
    ipw_spill_init(&s->rows, sizeof(struct ipw_summary_row), &s->place);
    ipw_spill_init(&s->calls, sizeof(struct ipw_summary_call), &s->place);
}

static void free_shown(struct ipw_summary_shown *shown)
{
    free(shown->id);
    free(shown->outcome);
    free(shown->level);
    free(shown->answer);
    free(shown->error);
}

void ipw_summary_release(struct ipw_summary *s)
{
    for (size_t i = 0; i < s->n_shown; i++) free_shown(&s->shown[i]);
    for (size_t i = 0; i < s->n_parts; i++) free(s->parts[i].name);
    free(s->parts);
    ipw_tool_sums_release(&s->tools);
    ipw_device_sums_release(&s->devices);
    ipw_spill_release(&s->rows);
    ipw_summary_rows_release(&s->kept);
    ipw_spill_release(&s->calls);
    *s = (struct ipw_summary){0};
}

int ipw_summary_check(const struct ipw_summary *s, struct ipw_err *err)
{
    const struct ipw_spill_place *place = s->rows.place;

    if (!place || !place->error) return 0;
    return ipw_fail(err, IPW_EIO,
                    "%s: the temporary file of the queries' figures cannot be read: %s; they stand "
                    "in traces.jsonl, from which repair makes summary.json again",
                    place->folder, strerror(place->error));
}

/* A long id is shortened to its beginning and a hash. */
static void name_task(char out[64], const char *id)
{
    char hex[65];
    size_t n = strlen(id);

    if (n < 64) {
        memcpy(out, id, n + 1);
    } else {
        ipw_sha256_hex(hex, id, n);
        snprintf(out, 64, "%.23s%.40s", id, hex);
    }
}

/* ---- texts for the table ---- */

static char *shortened(const char *text)
{
    size_t n;

    if (!text) return NULL;
    n = strlen(text);
    if (n > TEXT_KEPT) {
        n = TEXT_KEPT;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    }
    return ipw_memdup(text, n);
}

/* The dataset's level of difficulty: text or a number. */
static char *level_of(const char *metadata)
{
    struct ipw_json *doc;
    const struct ipw_json *level;
    char *text = NULL;

    if (!metadata || ipw_json_parse(&doc, metadata, strlen(metadata), NULL, NULL) < 0) return NULL;
    level = ipw_json_get(doc, "level");
    if (ipw_json_kind(level) == IPW_JSON_STR) {
        text = ipw_strdup(ipw_json_str(level, ""));
    } else if (ipw_json_kind(level) == IPW_JSON_INT) {
        text = ipw_asprintf("%lld", (long long)ipw_json_int(level, 0));
    }
    ipw_json_free(doc);
    return text;
}

static bool is_before(const struct ipw_summary_shown *a, const struct ipw_summary_shown *b)
{
    return a->index != b->index ? a->index < b->index : a->epoch < b->epoch;
}

/* The place for the texts of a query; NULL: it is not among the first.  It may push out the last of
 * them. */
static struct ipw_summary_shown *place_of(struct ipw_summary *s,
                                          const struct ipw_summary_shown *newest)
{
    struct ipw_summary_shown *last = &s->shown[0];

    if (s->n_shown < IPW_SUMMARY_SHOWN) return &s->shown[s->n_shown++];
    for (size_t i = 1; i < s->n_shown; i++)
        if (is_before(last, &s->shown[i])) last = &s->shown[i];
    if (!is_before(newest, last)) return NULL;
    free_shown(last);
    return last;
}

static void keep_texts(struct ipw_summary_shown *shown, const struct ipw_query_trace *q,
                       const struct ipw_query_details *r)
{
    shown->id = ipw_strdup(q->id ? q->id : "");
    shown->outcome = ipw_strdup(q->outcome ? q->outcome : UNKNOWN);
    shown->level = level_of(r->metadata);
    shown->answer = shortened(r->answer ? r->answer : q->completed ? r->response_text : NULL);
    shown->error = shortened(q->error);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        shown->lo_j[d] = q->energy[d].lo_j;
        shown->hi_j[d] = q->energy[d].hi_j;
    }
}

static void add_shown(struct ipw_summary *s, const struct ipw_query_trace *q,
                      const struct ipw_query_details *r)
{
    struct ipw_summary_shown newest = {.row = s->n - 1, .index = q->index, .epoch = r->epoch};
    struct ipw_summary_shown *place = place_of(s, &newest);
    size_t columns = q->id ? ipw_format_width(q->id, strlen(q->id)) : 0;

    if (columns > s->id_columns) s->id_columns = columns;
    if (!place) return;
    *place = newest;
    keep_texts(place, q, r);
}

/* ---- sums ---- */

static void sum_start(struct ipw_sum *sum) { *sum = (struct ipw_sum){.total = NAN, .known = NAN}; }

static void sum_add(struct ipw_sum *sum, double x)
{
    if (isnan(x)) {
        sum->unknown++;
    } else {
        sum->known = isnan(sum->known) ? x : sum->known + x;
    }
}

static void sum_joules(struct ipw_sum *sum, const struct ipw_summary_figure *f)
{
    if (f->known) ipw_bounds_add(&sum->bounds, isnan(sum->known) ? 0 : sum->known, f->bounds, f->j);
    sum_add(sum, f->known ? f->j : NAN);
}

static void sum_end(struct ipw_sum *sum) { sum->total = sum->unknown ? NAN : sum->known; }

static void sums_start(struct ipw_summary_sums *sums)
{
    *sums = (struct ipw_summary_sums){0};
    sum_start(&sums->estimated);
    sum_start(&sums->exclusive);
    sum_start(&sums->marginal);
    sum_start(&sums->waste);
    sum_start(&sums->idle_tax);
}

static void sums_add(struct ipw_summary_sums *sums, const struct ipw_figure *f,
                     const struct ipw_query_account *a)
{
    sum_add(&sums->estimated, f->known ? f->j : f->estimated ? f->estimate_j : NAN);
    sum_add(&sums->exclusive, a->exclusive_j);
    sum_add(&sums->marginal, a->marginal_j);
    sum_add(&sums->waste, a->waste_j);
    sum_add(&sums->idle_tax, a->idle_tax_j);
    if (!f->estimated) return;
    sums->lo_j += f->lo_j;
    sums->hi_j += f->hi_j;
    sums->n_estimates++;
    sums->n_bounded += f->lo_j != 0 || f->hi_j != 0;
}

static double count(int64_t n) { return n < 0 ? NAN : (double)n; }

static struct ipw_summary_part *part_like(struct ipw_summary *s, const struct ipw_query_part *like)
{
    const char *name = like->kind == IPW_PART_TOOL && like->name ? like->name : NULL;

    for (size_t i = 0; i < s->n_parts; i++) {
        const struct ipw_summary_part *part = &s->parts[i];

        if (part->kind == like->kind && (!name || strcmp(part->name, name) == 0))
            return &s->parts[i];
    }
    IPW_GROW(s->parts, s->cap_parts, s->n_parts + 1);
    s->parts[s->n_parts] = (struct ipw_summary_part){
        .kind = like->kind,
        .name = like->kind == IPW_PART_TOOL ? ipw_strdup(name ? name : "") : NULL};
    return &s->parts[s->n_parts++];
}

const struct ipw_summary_part *ipw_summary_tool_part(const struct ipw_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i].kind == IPW_PART_TOOL && strcmp(s->parts[i].name, name) == 0)
            return &s->parts[i];
    return NULL;
}

static void add_parts(struct ipw_summary *s, const struct ipw_query_trace *q)
{
    for (size_t i = 0; i < q->n_parts; i++) {
        const struct ipw_query_part *of = &q->parts[i];
        struct ipw_summary_part *part = part_like(s, of);

        part->queries++;
        part->calls += of->calls;
        part->seconds += of->seconds;
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            ipw_bounds_add(&part->bounds[d], part->j[d], of->bounds[d], of->j[d]);
            part->j[d] += of->j[d];
            part->waste_j[d] += of->waste_j[d];
        }
    }
}

static void add_call(struct ipw_summary *s, const struct ipw_turn *turn)
{
    struct ipw_summary_call call = {.ttft_s = turn->ttft_s,
                                    .ttfo_s = turn->times.ttfo_s,
                                    .itl_mean_s = turn->times.itl_mean_s,
                                    .gap_p50_s = turn->times.gap_p50_s,
                                    .gap_p99_s = turn->times.gap_p99_s,
                                    .latency_content_s = turn->times.latency_content_s,
                                    .latency_close_s = turn->times.latency_close_s,
                                    .input_tokens = count(turn->input_tokens)};

    ipw_spill_add(&s->calls, &call);
}

void ipw_summary_add(struct ipw_summary *s, const struct ipw_query_trace *q,
                     const struct ipw_query_details *r)
{
    const struct ipw_judgement none = IPW_JUDGEMENT_NONE, *judge = r->judge ? r->judge : &none;
    struct ipw_summary_row row = {
        .judge_gpu_j = judge->gpu_j,
        .judge_cpu_j = judge->cpu_j,
        .judge_gpu_w = judge->gpu_w,
        .judge_cpu_w = judge->cpu_w,
        .judge_wall_s = judge->wall_s,
        .judged = judge->asked > 0,
        .number = s->n++,
        .epoch = r->epoch,
        .completed = q->completed,
        .timed_out = q->timed_out,
        .stopped = !q->completed && ipw_outcome_is_stop(q->outcome),
        .resolved = (int8_t)r->is_resolved,
        .unscorable = r->is_resolved < 0 && r->unscorable_reason,
        .turns = (uint32_t)q->n_turns,
        .tools = (uint32_t)q->n_tool_calls,
        .input_tokens = q->input_tokens,
        .output_tokens = q->output_tokens,
        .wall_s = ipw_ns_to_s(q->end_ns - q->start_ns),
        .cost_usd = r->cost_usd,
        .gpu_w = q->power_mean_w[IPW_DOMAIN_GPU],
        .cpu_w = q->power_mean_w[IPW_DOMAIN_CPU],
        .mbu_avg_pct = ipw_channel_stats_mbu(q, NULL),
        .not_lm = (uint8_t)~ipw_turn_lm_domains(q),
    };

    ipw_summary_rows_add(&s->kept, q, r);
    name_task(row.task, q->id ? q->id : "");
    add_shown(s, q, r);
    s->n_answers += row.completed || row.resolved == 1;
    s->malformed += r->n_malformed;
    ipw_judge_sums_add(&s->judge, r->judge);
    for (size_t i = 0; i < q->n_turns; i++) {
        if (q->turns[i].attempts > 1) s->retries += q->turns[i].attempts - 1;
        s->trimmed += q->turns[i].context_trimmed_bytes > 0;
        add_call(s, &q->turns[i]);
    }
    add_parts(s, q);
    ipw_tool_sums_add(&s->tools, q);
    ipw_device_sums_add(&s->devices, q);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &q->energy[d];
        const char *reason = f->reason;

        if (s->n == 1) sums_start(&s->sums[d]);
        sums_add(&s->sums[d], f, &q->account[d]);
        row.energy[d] = (struct ipw_summary_figure){.bounds = ipw_figure_bounds(f),
                                                    .j = f->known       ? f->j
                                                         : f->estimated ? f->estimate_j
                                                                        : 0,
                                                    .provenance = (uint8_t)f->provenance,
                                                    .known = f->known,
                                                    .estimated = f->estimated};
        if (!q->energy[d].known && reason && !s->reason[d][0]) {
            snprintf(s->reason[d], sizeof s->reason[d], "%s", reason);
        }
        if (!q->energy[d].known && q->energy[d].estimated && !s->estimate_by[d][0]) {
            snprintf(s->estimate_by[d], sizeof s->estimate_by[d], "%s",
                     q->energy[d].estimate_by ? q->energy[d].estimate_by : "");
        }
    }
    ipw_spill_add(&s->rows, &row);
}

/* Totals. */

void ipw_summary_totals(struct ipw_totals *t, const struct ipw_summary *s)
{
    *t = (struct ipw_totals){.queries = s->n,
                             .retries = s->retries,
                             .malformed = s->malformed,
                             .trimmed = s->trimmed,
                             .accuracy = NAN};
    sum_start(&t->input_tokens);
    sum_start(&t->output_tokens);
    sum_start(&t->total_tokens);
    sum_start(&t->cost_usd);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_summary_sums sums;

        sums_start(&sums);
        if (s->n && !s->part) sums = s->sums[d];
        sum_start(&t->energy[d]);
        t->estimated[d] = sums.estimated;
        t->exclusive[d] = sums.exclusive;
        t->marginal[d] = sums.marginal;
        t->waste[d] = sums.waste;
        t->idle_tax[d] = sums.idle_tax;
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_summary_row *row = ipw_summary_row(s, i);

        t->completed += row->completed;
        t->failed += !row->completed && !row->stopped;
        t->interrupted += row->stopped;
        t->timed_out += row->timed_out;
        t->resolved += row->resolved == 1;
        t->unresolved += row->resolved == 0;
        t->unscorable += row->unscorable;
        t->unscored += row->resolved < 0 && !row->unscorable;
        t->turns += row->turns;
        t->tools += row->tools;
        t->wall_s += row->wall_s;
        sum_add(&t->input_tokens, count(row->input_tokens));
        sum_add(&t->output_tokens, count(row->output_tokens));
        sum_add(&t->total_tokens, count(row->input_tokens) + count(row->output_tokens));
        sum_add(&t->cost_usd, row->cost_usd);
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            sum_joules(&t->energy[d], &row->energy[d]);
        }
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT && s->is_narrowed && !s->part; d++)
        t->energy[d].bounds = s->narrowed[d];
    if (!s->n) { /* no query, so no token: the sums are known */
        t->input_tokens.known = t->output_tokens.known = t->total_tokens.known = 0;
    }
    sum_end(&t->input_tokens);
    sum_end(&t->output_tokens);
    sum_end(&t->total_tokens);
    sum_end(&t->cost_usd);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        sum_end(&t->energy[d]);
        sum_end(&t->estimated[d]);
        sum_end(&t->exclusive[d]);
        sum_end(&t->marginal[d]);
        sum_end(&t->waste[d]);
        sum_end(&t->idle_tax[d]);
    }
    if (s->n_answers && t->resolved + t->unresolved) {
        t->accuracy = (double)t->resolved / (double)(t->resolved + t->unresolved);
    }
}

void ipw_summary_narrow(struct ipw_summary *s, const struct ipw_balance *balance)
{
    struct ipw_totals t;

    s->is_narrowed = false;
    ipw_summary_totals(&t, s);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        s->narrowed[d] = ipw_balance_narrow(&balance[d], t.energy[d].bounds, t.energy[d].total);
    s->is_narrowed = true;
}

void ipw_summary_balance_line(struct ipw_summary_balance_line *out,
                              const struct ipw_balance *balance, const struct ipw_sum *queries,
                              size_t n_queries)
{
    /* Nothing took 0 J of a domain that was read; of one that never was, not even that is known. */
    double none_j = balance->total.known || balance->total.coverage > 0 ? 0 : (double)NAN, slack_j;

    *out = (struct ipw_summary_balance_line){
        .total_j = balance->total.known ? balance->total.j : NAN,
        .idle_j = balance->idle.known ? balance->idle.j : NAN,
        .queries_j = n_queries ? queries->total : none_j,
        .wasted_j = balance->wasted_j + none_j,
        .warmup_j = balance->warmup_j + none_j,
        .queries = queries->bounds,
    };
    out->difference_j = out->total_j - out->idle_j - out->queries_j - out->wasted_j - out->warmup_j;
    if (isnan(out->difference_j)) return;
    slack_j = 1e-9 * fabs(out->total_j) + 1e-6 * (double)(n_queries + 2);
    out->state = fabs(out->difference_j) <= slack_j ? IPW_LEDGER_BALANCED : IPW_LEDGER_OFF;
}

const char *ipw_summary_baseline_refusal(const struct ipw_baseline_watts *b)
{
    double drift = fabs(b->after_w - b->before_w);

    if (isnan(drift)) return "no_baseline";
    return drift > fmax(2, 0.1 * fabs(b->before_w)) ? "drift" : NULL;
}

/* Efficiency. */

static double joules(const struct ipw_summary_row *row, unsigned domains)
{
    double sum = domains ? 0 : NAN;

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (domains >> d & 1) sum += row->energy[d].known ? row->energy[d].j : NAN;
    }
    return sum;
}

/* Over several domains, whose sensors may err together. */
static void add_bounds(struct ipw_bounds *sum, struct ipw_bounds more)
{
    sum->lo += more.lo;
    sum->hi += more.hi;
    sum->u += more.u;
}

static struct ipw_bounds row_bounds(const struct ipw_summary_row *row, unsigned domains)
{
    struct ipw_bounds sum = {0};

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (domains >> d & 1) add_bounds(&sum, row->energy[d].bounds);
    return sum;
}

static struct ipw_bounds whole_bounds(const struct ipw_totals *t, unsigned domains)
{
    struct ipw_bounds sum = {0};

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (domains >> d & 1) add_bounds(&sum, t->energy[d].bounds);
    return sum;
}

/* If the model runs on another machine, the client's joules are not the model's. */
unsigned ipw_summary_lm_domains(const struct ipw_summary *s)
{
    unsigned domains = (1u << IPW_DOMAIN_COUNT) - 1;

    for (size_t i = 0; i < s->n; i++) domains &= ~ipw_summary_row(s, i)->not_lm;
    return domains;
}

static void set_means(struct ipw_efficiency *out, double total_j, struct ipw_bounds total,
                      double edp)
{
    double n = (double)out->queries;

    out->mean_j = total_j / n;
    out->mean = ipw_bounds_times(total, 1 / n);
    out->coarse = ipw_bounds_coarse(total, total_j);
    out->edp_js = edp / n;
}

void ipw_summary_efficiency(struct ipw_efficiency *out, const struct ipw_summary *s,
                            unsigned domains)
{
    struct ipw_totals t;
    double total_j = 0, total_w = 0, token_j = 0, tokens = 0, edp = 0;
    struct ipw_bounds total = {0}, of_tokens = {0};
    size_t n_w = 0, n_tokens = 0;

    if (domains & ~ipw_summary_lm_domains(s)) domains = 0;
    *out = (struct ipw_efficiency){.domains = domains,
                                   .mean_j = NAN,
                                   .mean_w = NAN,
                                   .mean = IPW_NO_BOUNDS,
                                   .correct = IPW_NO_BOUNDS,
                                   .token = IPW_NO_BOUNDS,
                                   .ipj = NAN,
                                   .ipw = NAN,
                                   .j_per_correct = NAN,
                                   .j_per_token = NAN,
                                   .tokens_per_j = NAN,
                                   .edp_js = NAN};
    ipw_summary_totals(&t, s);
    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_summary_row *row = ipw_summary_row(s, i);
        double j = joules(row, domains);

        if (isnan(j)) continue;
        out->queries++;
        ipw_bounds_add(&total, total_j, row_bounds(row, domains), j);
        total_j += j;
        edp += j * row->wall_s;
        if (row->output_tokens > 0) {
            ipw_bounds_add(&of_tokens, token_j, row_bounds(row, domains), j);
            n_tokens++;
            token_j += j;
            tokens += (double)row->output_tokens;
        }
        if (row->wall_s > 0) {
            total_w += j / row->wall_s;
            n_w++;
        }
    }
    if (out->queries == s->n) total = whole_bounds(&t, domains);
    if (n_tokens == s->n) of_tokens = total;
    if (out->queries) set_means(out, total_j, total, edp);
    if (tokens > 0 && token_j > 0) {
        out->j_per_token = token_j / tokens;
        out->token = ipw_bounds_times(of_tokens, 1 / tokens);
    }
    if (n_w) out->mean_w = total_w / (double)n_w;
    if (s->n && out->queries == s->n && t.resolved && total_j > 0) {
        out->j_per_correct = total_j / (double)t.resolved;
        out->correct = ipw_bounds_times(total, 1 / (double)t.resolved);
    }
    if (out->coarse) return;
    if (token_j > 0) out->tokens_per_j = tokens / token_j;
    if (out->mean_j > 0) out->ipj = t.accuracy / out->mean_j; /* NAN stays NAN */
    if (out->mean_w > 0) out->ipw = t.accuracy / out->mean_w;
}

/* The number of queries with an energy value of the domain.  0 if the domain cannot be a basis: it
 * is not on the model's machine, or all its values are 0 J, which cannot be a divisor. */
static size_t usable(const struct ipw_summary *s, enum ipw_domain d)
{
    size_t known = 0;
    double sum = 0;

    if (!(ipw_summary_lm_domains(s) >> d & 1)) return 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_summary_figure *f = &ipw_summary_row(s, i)->energy[d];

        known += f->known;
        sum += f->known ? f->j : 0;
    }
    return sum > 0 ? known : 0;
}

unsigned ipw_summary_basis(const struct ipw_summary *s)
{
    size_t gpu = usable(s, IPW_DOMAIN_GPU), cpu = usable(s, IPW_DOMAIN_CPU);
    size_t most = gpu > cpu ? gpu : cpu;
    unsigned domains = 0;

    if (usable(s, IPW_DOMAIN_MACHINE)) return 1u << IPW_DOMAIN_MACHINE;
    if (!most) return 0; /* memory alone is too small a part */
    /* A device with fewer energy values than the other would take these queries out of the mean. */
    if (gpu == most) domains |= 1u << IPW_DOMAIN_GPU;
    if (cpu == most) domains |= 1u << IPW_DOMAIN_CPU;
    if (usable(s, IPW_DOMAIN_DRAM) >= most) domains |= 1u << IPW_DOMAIN_DRAM;
    return domains;
}

void ipw_summary_basis_text(struct ipw_buf *out, unsigned domains)
{
    bool first = true;

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!(domains >> d & 1)) continue;
        if (!first) ipw_buf_addc(out, '+');
        ipw_buf_adds(out, ipw_domain_name((enum ipw_domain)d));
        first = false;
    }
}
