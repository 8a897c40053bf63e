#include "report/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "trace/stats.h"

#define TEXT_KEPT 400 /* bytes of an answer or an error that a table may show */

const char ipw_definition_ipj[] =
    "intelligence_per_joule = accuracy / mean joules per query, over the devices named in basis; "
    "accuracy = resolved / (resolved + unresolved); failed queries keep their joules in the mean. "
    "ipj is upstream's: accuracy / total GPU joules, which falls as the run grows.";
const char ipw_definition_ipw[] =
    "intelligence_per_watt = accuracy / mean watts per query, watts = a query's joules / its wall "
    "time, over the devices named in basis. ipw is upstream's: accuracy / mean GPU power, here "
    "weighted by time.";

const char ipw_definition_j_per_correct[] =
    "joules_per_correct_answer = joules of all queries, wrong and failed ones included / queries "
    "resolved.";
const char ipw_definition_j_per_token[] =
    "joules_per_output_token = joules / output tokens, over the queries of which both are known.";
const char ipw_definition_tokens_per_j[] = "tokens_per_joule = 1 / joules_per_output_token.";
const char ipw_definition_edp[] =
    "energy_delay_product = mean over queries of joules x wall seconds (joule-seconds).";
const char ipw_definition_net[] =
    "marginal_j (net) = joules above the idle baseline, which is the median power with no query in "
    "flight before the run; may be negative; withheld when the baseline after the run differs by "
    "more than 2 W and 10 %.";
const char ipw_definition_waste[] =
    "waste_j = joules in failed, timed out and cancelled attempts and in replies that the agent "
    "could not use; part of the queries' joules.";
const char ipw_definition_idle_tax[] =
    "idle_tax_j = joules while a query's tools ran or a retry waited and the model did nothing for "
    "it; part of the queries' joules.";

void ipw_summary_init(struct ipw_summary *s) { *s = (struct ipw_summary){0}; }

void ipw_summary_release(struct ipw_summary *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct ipw_summary_row *row = &s->rows[i];

        free(row->id);
        free(row->level);
        free(row->answer);
        free(row->outcome);
        free(row->error);
    }
    free(s->rows);
    ipw_device_sums_release(&s->devices);
    *s = (struct ipw_summary){0};
}

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

/* The data set's word for how hard the task is: text or a number. */
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

static void book_provenance(struct ipw_summary *s, const struct ipw_figure *energy)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (energy[d].known) s->provenance_j[d][energy[d].provenance] += energy[d].j;
    }
}

void ipw_summary_add(struct ipw_summary *s, const struct ipw_query_trace *q,
                     const struct ipw_query_record *r)
{
    struct ipw_summary_row *row;

    IPW_GROW(s->rows, s->cap, s->n + 1);
    row = &s->rows[s->n++];
    *row = (struct ipw_summary_row){
        .id = ipw_strdup(q->id ? q->id : ""),
        .level = level_of(r->metadata),
        .answer = shortened(r->answer      ? r->answer
                            : q->completed ? r->response_text
                                           : NULL),
        .outcome = ipw_strdup(q->outcome ? q->outcome : "unknown"),
        .error = shortened(q->error),
        .index = q->index,
        .epoch = r->epoch,
        .completed = q->completed,
        .timed_out = q->timed_out,
        .resolved = r->is_resolved,
        .unscorable = r->is_resolved < 0 && r->unscorable_reason,
        .turns = q->n_turns,
        .tools = q->n_tool_calls,
        .malformed = r->n_malformed,
        .input_tokens = q->input_tokens,
        .output_tokens = q->output_tokens,
        .wall_s = ipw_ns_to_s(q->end_ns - q->start_ns),
        .cost_usd = r->cost_usd,
    };
    for (size_t i = 0; i < q->n_turns; i++) {
        if (q->turns[i].attempts > 1) row->retries += q->turns[i].attempts - 1;
        book_provenance(s, q->turns[i].energy);
    }
    book_provenance(s, q->energy_before);
    memcpy(row->account, q->account, sizeof row->account);
    ipw_device_sums_add(&s->devices, q);
    row->mbu_avg_pct = ipw_query_mbu(q, NULL);
    row->lm_remote = ipw_query_lm_unmeasured(q);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *reason = q->energy[d].reason;

        row->energy[d] = (struct ipw_summary_figure){.j = q->energy[d].j,
                                                     .estimate_j = q->energy[d].estimate_j,
                                                     .provenance = (uint8_t)q->energy[d].provenance,
                                                     .known = q->energy[d].known,
                                                     .estimated = q->energy[d].estimated};
        row->power_w[d] = q->power_mean_w[d];
        if (!q->energy[d].known && reason && !s->reason[d][0]) {
            snprintf(s->reason[d], sizeof s->reason[d], "%s", reason);
        }
    }
}

/* Totals. */

static void sum_start(struct ipw_sum *sum) { *sum = (struct ipw_sum){.total = NAN, .known = NAN}; }

static void sum_add(struct ipw_sum *sum, double x)
{
    if (isnan(x)) {
        sum->unknown++;
    } else {
        sum->known = isnan(sum->known) ? x : sum->known + x;
    }
}

static void sum_end(struct ipw_sum *sum) { sum->total = sum->unknown ? NAN : sum->known; }

static double count(int64_t n) { return n < 0 ? NAN : (double)n; }

void ipw_summary_totals(struct ipw_totals *t, const struct ipw_summary *s)
{
    *t = (struct ipw_totals){.queries = s->n, .accuracy = NAN};
    sum_start(&t->input_tokens);
    sum_start(&t->output_tokens);
    sum_start(&t->total_tokens);
    sum_start(&t->cost_usd);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        sum_start(&t->energy[d]);
        sum_start(&t->estimated[d]);
        sum_start(&t->exclusive[d]);
        sum_start(&t->marginal[d]);
        sum_start(&t->waste[d]);
        sum_start(&t->idle_tax[d]);
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_summary_row *row = ipw_summary_row(s, i);

        t->completed += row->completed;
        t->failed += !row->completed;
        t->timed_out += row->timed_out;
        t->resolved += row->resolved == 1;
        t->unresolved += row->resolved == 0;
        t->unscorable += row->unscorable;
        t->unscored += row->resolved < 0 && !row->unscorable;
        t->turns += row->turns;
        t->tools += row->tools;
        t->retries += row->retries;
        t->malformed += row->malformed;
        t->wall_s += row->wall_s;
        sum_add(&t->input_tokens, count(row->input_tokens));
        sum_add(&t->output_tokens, count(row->output_tokens));
        sum_add(&t->total_tokens, count(row->input_tokens) + count(row->output_tokens));
        sum_add(&t->cost_usd, row->cost_usd);
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            const struct ipw_summary_figure *f = &row->energy[d];

            sum_add(&t->energy[d], f->known ? f->j : NAN);
            sum_add(&t->estimated[d], f->known ? f->j : f->estimated ? f->estimate_j : NAN);
            sum_add(&t->exclusive[d], row->account[d].exclusive_j);
            sum_add(&t->marginal[d], row->account[d].marginal_j);
            sum_add(&t->waste[d], row->account[d].waste_j);
            sum_add(&t->idle_tax[d], row->account[d].idle_tax_j);
        }
    }
    if (!s->n) { /* no query, no token: that much is known */
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
    if (t->resolved + t->unresolved) {
        t->accuracy = (double)t->resolved / (double)(t->resolved + t->unresolved);
    }
}

void ipw_ledger_line(struct ipw_ledger_line *out, const struct ipw_balance *balance,
                     const struct ipw_sum *queries, size_t n_queries)
{
    double slack_j;

    *out = (struct ipw_ledger_line){
        .total_j = balance->total.known ? balance->total.j : NAN,
        .idle_j = balance->idle.known ? balance->idle.j : NAN,
        .queries_j = n_queries              ? queries->total
                     : balance->total.known ? 0
                                            : NAN,
        .wasted_j = balance->wasted_j,
        .warmup_j = balance->warmup_j,
    };
    out->difference_j = out->total_j - out->idle_j - out->queries_j - out->wasted_j - out->warmup_j;
    if (isnan(out->difference_j)) return;
    slack_j = 1e-9 * fabs(out->total_j) + 1e-6 * (double)(n_queries + 2);
    out->state = fabs(out->difference_j) <= slack_j ? IPW_LEDGER_BALANCED : IPW_LEDGER_OFF;
}

const char *ipw_baseline_refusal(const struct ipw_baseline_watts *b)
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

/* A client's joules are not those of a model that runs elsewhere. */
static bool lm_remote(const struct ipw_summary *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (ipw_summary_row(s, i)->lm_remote) return true;
    }
    return false;
}

void ipw_summary_efficiency(struct ipw_efficiency *out, const struct ipw_summary *s,
                            unsigned domains)
{
    struct ipw_totals t;
    double total_j = 0, total_w = 0, token_j = 0, tokens = 0, edp = 0;
    size_t n_w = 0;

    if (lm_remote(s)) domains = 0;
    *out = (struct ipw_efficiency){.domains = domains,
                                   .mean_j = NAN,
                                   .mean_w = NAN,
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
        total_j += j;
        edp += j * row->wall_s;
        if (row->output_tokens > 0) {
            token_j += j;
            tokens += (double)row->output_tokens;
        }
        if (row->wall_s > 0) {
            total_w += j / row->wall_s;
            n_w++;
        }
    }
    if (out->queries) out->mean_j = total_j / (double)out->queries;
    if (out->queries) out->edp_js = edp / (double)out->queries;
    if (tokens > 0) out->j_per_token = token_j / tokens;
    if (token_j > 0) out->tokens_per_j = tokens / token_j;
    if (n_w) out->mean_w = total_w / (double)n_w;
    if (out->mean_j > 0) out->ipj = t.accuracy / out->mean_j; /* NAN stays NAN */
    if (out->mean_w > 0) out->ipw = t.accuracy / out->mean_w;
    if (s->n && out->queries == s->n && t.resolved) {
        out->j_per_correct = total_j / (double)t.resolved;
    }
}

unsigned ipw_summary_basis(const struct ipw_summary *s)
{
    size_t known[IPW_DOMAIN_COUNT] = {0}, most = 0;
    unsigned domains = 0;

    if (lm_remote(s)) return 0;
    for (size_t i = 0; i < s->n; i++) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
            known[d] += ipw_summary_row(s, i)->energy[d].known;
    }
    if (known[IPW_DOMAIN_MACHINE]) return 1u << IPW_DOMAIN_MACHINE;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (known[d] > most) most = known[d];
    }
    /* A device with fewer figures than another would take those queries out of the mean. */
    for (int d = 0; most && d < IPW_DOMAIN_COUNT; d++) {
        if (known[d] == most) domains |= 1u << d;
    }
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
