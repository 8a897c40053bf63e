/* The labelled lines below the rows; one function for each line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/pass_at.h"
#include "report/repeats.h"
#include "report/table_priv.h"
#include "report/words.h"
#include "report/write_summary.h"

void ipw_table_line(struct ipw_table_block *b, const char *label)
{
    if (b->text.len) {
        ipw_buf_addf(b->out, " %s%-*s%s", ipw_style(IPW_CYAN, b->colour), IPW_TABLE_LABEL - 1,
                     label, ipw_style(IPW_PLAIN, b->colour));
        ipw_format_wrapped(b->out, ipw_buf_str(&b->text), IPW_TABLE_LABEL, IPW_TABLE_LABEL,
                           b->width);
    }
    ipw_buf_clear(&b->text);
}

void ipw_table_styled(struct ipw_table_block *b, enum ipw_style style, const char *text)
{
    ipw_buf_addf(&b->text, "%s%s%s", ipw_style(style, b->colour), text,
                 ipw_style(IPW_PLAIN, b->colour));
}

void ipw_table_dot(struct ipw_table_block *b)
{
    if (b->text.len) ipw_buf_adds(&b->text, IPW_TABLE_DOT);
}

const char *ipw_table_joules(char *out, double j) { return ipw_format_si(out, j, IPW_TABLE_J); }

/* All digits: "35,026". */
static const char *whole(char *out, size_t size, double n)
{
    char digits[32];
    size_t len, k = 0;

    if (!(n >= 0) || n >= 1e18) return IPW_UNKNOWN_TEXT;
    snprintf(digits, sizeof digits, "%.0f", n);
    len = strlen(digits);
    for (size_t i = 0; i < len && k + 2 < size; i++) {
        if (i && (len - i) % 3 == 0) out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = '\0';
    return out;
}

static void plural(struct ipw_table_block *b, double n, const char *one, const char *many)
{
    char number[40];

    ipw_buf_addf(&b->text, "%s %s", whole(number, sizeof number, n), n == 1 ? one : many);
}

static void put_accuracy(struct ipw_table_block *b)
{
    const struct ipw_totals *t = &b->t;
    char number[40], percent[32];
    size_t failed = 0, wrong = 0, unscored = 0;

    for (size_t i = 0; i < b->s->n; i++) { /* counted as the rows are marked: each in one class */
        const struct ipw_summary_row *row = ipw_summary_row(b->s, i);

        if (row->resolved == 1 || row->stopped) continue;
        failed += !row->completed;
        wrong += row->completed && row->resolved == 0;
        unscored += row->completed && row->resolved < 0;
    }
    if (!isnan(t->accuracy)) {
        ipw_table_styled(b, IPW_BOLD, ipw_format_percent(percent, t->accuracy));
        ipw_buf_addf(&b->text, ": %s", whole(number, sizeof number, (double)t->resolved));
        ipw_buf_addf(&b->text, " of %s correct",
                     whole(number, sizeof number, (double)(t->resolved + t->unresolved)));
        if (wrong)
            ipw_buf_addf(&b->text, ", %s wrong", whole(number, sizeof number, (double)wrong));
    } else {
        ipw_buf_adds(&b->text, !b->s->n           ? "no query has finished"
                               : !b->s->n_answers ? "no query was answered"
                                                  : "nothing was scored");
    }
    if (failed) {
        ipw_buf_adds(&b->text, ", ");
        ipw_table_styled(b, IPW_YELLOW, "!");
        ipw_buf_addf(&b->text, "\xC2\xA0%s failed", whole(number, sizeof number, (double)failed));
        if (t->timed_out)
            ipw_buf_addf(&b->text, " (%s\xC2\xA0timed\xC2\xA0out)",
                         whole(number, sizeof number, (double)t->timed_out));
    }
    if (t->interrupted) {
        ipw_buf_adds(&b->text, ", ");
        ipw_table_styled(b, IPW_DIM, "-");
        ipw_buf_addf(&b->text, "\xC2\xA0%s interrupted",
                     whole(number, sizeof number, (double)t->interrupted));
    }
    if (unscored && !isnan(t->accuracy)) {
        ipw_buf_adds(&b->text, ", ");
        ipw_table_styled(b, IPW_DIM, "\xC2\xB7");
        ipw_buf_addf(&b->text, "\xC2\xA0%s not scored",
                     whole(number, sizeof number, (double)unscored));
    }
    ipw_table_line(b, "accuracy");
}

/* ---- efficiency ---- */

/* Queries were in flight together, so a query's energy is a share of the device's energy. */
static bool is_shared(const struct ipw_table_block *b)
{
    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double all = b->t.energy[d].total, alone = b->t.exclusive[d].total;

        if ((b->e.domains >> d & 1) && alone < all * (1 - 1e-6)) return true;
    }
    return b->t.wall_s > b->run->wall_s + b->run->cut_s;
}

/* Why there is no efficiency, although joules are known. */
static const char *no_efficiency(const struct ipw_table_block *b)
{
    unsigned model = ipw_summary_lm_domains(b->s);
    double sum = 0;
    bool device = false;

    if (b->e.coarse) return "the sensor is too coarse: the joules are not known to half of them";
    if (b->e.queries) return b->s->n_answers ? "nothing was scored" : "no query was answered";
    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!(model >> d & 1) || isnan(b->t.energy[d].known)) continue;
        sum += b->t.energy[d].known;
        device |= d != IPW_DOMAIN_DRAM;
    }
    if (device) return sum > 0 ? "the devices measured 0 J" : "0 J were measured";
    return sum > 0 ? "only the memory was measured"
                   : "no sensor of the model's machine was read (--telemetry stream=URL; through "
                     "a tunnel stream=URL,host=NAME)";
}

static void put_efficiency(struct ipw_table_block *b)
{
    char small[32];

    if (!ipw_table_any_known(b)) return;
    if (isnan(b->e.ipj)) {
        ipw_buf_addf(&b->text, "not known: %s", no_efficiency(b));
        ipw_table_line(b, "efficiency");
        return;
    }
    snprintf(small, sizeof small, "%#.3g", b->e.ipj);
    ipw_table_styled(b, IPW_BOLD, small);
    if (b->e.mean.lo > 0 && b->e.ipj > 0)
        ipw_buf_addf(&b->text, " (%#.3g to %#.3g)", b->t.accuracy / b->e.mean.hi,
                     b->t.accuracy / b->e.mean.lo);
    ipw_buf_adds(&b->text, " accuracy per joule");
    if (!isnan(b->e.ipw)) {
        ipw_table_dot(b);
        snprintf(small, sizeof small, "%#.3g", b->e.ipw);
        ipw_table_styled(b, IPW_BOLD, small);
        ipw_buf_adds(&b->text, " accuracy per watt");
        if (is_shared(b)) ipw_buf_adds(&b->text, " of a query's share");
    }
    ipw_table_line(b, "efficiency");
}

/* ---- work ---- */

static void put_time(struct ipw_table_block *b)
{
    double in_all = isnan(b->run->wall_s) ? b->t.wall_s : b->run->wall_s + b->run->cut_s;
    char number[32];

    if (b->t.queries) {
        ipw_buf_addf(&b->text, "%s per query" IPW_TABLE_DOT,
                     ipw_format_spaced_seconds(number, b->t.wall_s / (double)b->t.queries));
    }
    ipw_buf_addf(&b->text, "%s in total", ipw_format_spaced_seconds(number, in_all));
    ipw_table_line(b, "time");
}

/* p50 and p95 of the model calls; no line for calls of unknown latency. */
static void put_latency(struct ipw_table_block *b)
{
    static const char *const metrics[][2] = {{"ttft_s", "TTFT"},
                                             {"latency_content_s", "end to end"}};
    char p50[32], p95[32];

    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        struct ipw_stats_result r = ipw_summary_latency(b->s, metrics[i][0]);

        if (!r.n) continue;
        ipw_table_dot(b);
        ipw_buf_addf(&b->text, "%s p50 %s, p95 %s", metrics[i][1],
                     ipw_format_spaced_seconds(p50, r.median),
                     ipw_format_spaced_seconds(p95, r.p95));
    }
    ipw_table_line(b, "latency");
}

static void put_tokens(struct ipw_table_block *b)
{
    size_t unknown = b->t.total_tokens.unknown;
    char number[40];

    ipw_buf_addf(&b->text, "%s in", whole(number, sizeof number, b->t.input_tokens.known));
    ipw_buf_addf(&b->text, IPW_TABLE_DOT "%s out",
                 whole(number, sizeof number, b->t.output_tokens.known));
    if (unknown) {
        ipw_buf_addf(&b->text, " (without %zu %s, whose tokens are not known)", unknown,
                     unknown == 1 ? "query" : "queries");
    }
    ipw_table_line(b, "tokens");
}

static void put_calls(struct ipw_table_block *b)
{
    plural(b, (double)b->t.turns, "turn", "turns");
    ipw_table_dot(b);
    plural(b, (double)b->t.tools, "tool call", "tool calls");
    if (b->t.retries) {
        ipw_table_dot(b);
        plural(b, (double)b->t.retries, "retry", "retries");
    }
    if (b->t.malformed) {
        ipw_table_dot(b);
        plural(b, (double)b->t.malformed, "reply did not follow the agent's format",
               "replies did not follow the agent's format");
    }
    if (b->t.trimmed) {
        ipw_table_dot(b);
        plural(b, (double)b->t.trimmed, "shortened context", "shortened contexts");
    }
    ipw_table_line(b, "calls");
}

/* Several models answered; the heading has the name of one. */
static void put_models(struct ipw_table_block *b)
{
    const struct ipw_summary_rows *rows = &b->s->kept;
    size_t models = 0;

    for (size_t i = 0; i < rows->n_groups; i++)
        models += rows->groups[i]->kind == IPW_SUMMARY_MODEL;
    for (size_t i = 0; models > 1 && i < rows->n_groups; i++) {
        const struct ipw_summary_group *g = rows->groups[i];

        if (g->kind != IPW_SUMMARY_MODEL) continue;
        ipw_table_dot(b);
        ipw_text_printable(&b->text, g->name, strlen(g->name), 0);
        ipw_buf_addc(&b->text, ' ');
        plural(b, (double)g->calls, "turn", "turns");
    }
    if (models < 2) return;
    ipw_table_line(b, "models");
}

static void put_cost(struct ipw_table_block *b)
{
    if (isnan(b->t.cost_usd.known)) return;
    ipw_buf_addf(&b->text, "$%.4g", b->t.cost_usd.known);
    ipw_table_line(b, "cost");
}

/* ---- trust ---- */

/* By query, as the marks of the rows are; a turn can have another provenance. */
/* "estimated" is kept for what a model computes. */
static const char *how_known(enum ipw_domain domain, enum ipw_provenance p)
{
    if (p != IPW_PROV_ESTIMATED) return ipw_provenance_name(p);
    return domain == IPW_DOMAIN_MACHINE ? "from a power meter" : "from power readings";
}

static void put_provenance(struct ipw_table_block *b)
{
    const char *label = "how known";
    bool marked = false;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double j[IPW_PROV_COUNT] = {0}, total = 0;
        bool first = true;

        for (size_t i = 0; i < b->s->n; i++) {
            const struct ipw_summary_figure *f = &ipw_summary_row(b->s, i)->energy[d];

            if (!f->known) continue;
            j[f->provenance] += f->j;
            total += f->j;
            marked |= f->provenance >= IPW_PROV_DISTRIBUTED;
        }
        if (total <= 0) continue;
        ipw_buf_adds(&b->text, ipw_words_domain((enum ipw_domain)d));
        for (int p = 0; p < IPW_PROV_COUNT; p++) {
            char percent[32];

            if (j[p] <= 0) continue;
            ipw_buf_addf(&b->text, "%s %s %s", first ? "" : ",",
                         ipw_format_percent(percent, j[p] / total),
                         how_known((enum ipw_domain)d, (enum ipw_provenance)p));
            first = false;
        }
        ipw_table_line(b, label);
        label = "";
    }
    if (!marked) return;
    ipw_table_styled(b, IPW_DIM, "~ not measured for that query alone: divided, or watts x time");
    ipw_table_line(b, "");
}

/* The share of the joules of concurrent queries that was not split by the requested rule. */
static void put_sharing(struct ipw_table_block *b)
{
    char percent[32];

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!(b->run->equal_part[d] >= 0.01) || isnan(b->t.energy[d].known)) continue;
        ipw_buf_addf(&b->text, "%s%s %s", b->text.len ? ", " : "",
                     ipw_words_domain((enum ipw_domain)d),
                     ipw_format_percent(percent, b->run->equal_part[d]));
    }
    if (b->text.len)
        ipw_buf_adds(&b->text,
                     ": queries ran at the same time, and their joules were split equally");
    ipw_table_line(b, "shared");
}

static void put_repeats(struct ipw_table_block *b)
{
    struct ipw_repeats r;
    const struct ipw_interval *a, *j;
    char lo[32], hi[32], mean[32];

    if (ipw_repeats_epochs(b->s) < 2) return;
    ipw_repeats_of(&r, b->s);
    a = &r.metrics[IPW_REPEAT_ACCURACY];
    j = &r.metrics[IPW_REPEAT_JOULES];
    if (!isnan(a->lo)) {
        ipw_buf_addf(&b->text, "accuracy %s [%s, %s]", ipw_format_percent(mean, a->mean),
                     ipw_format_percent(lo, a->lo), ipw_format_percent(hi, a->hi));
    }
    if (!isnan(j->lo)) {
        ipw_table_dot(b);
        ipw_buf_addf(&b->text, "%s per query [%s, %s]", ipw_table_joules(mean, j->mean),
                     ipw_table_joules(lo, j->lo), ipw_table_joules(hi, j->hi));
    }
    if (b->text.len) {
        ipw_buf_addf(&b->text, " (95 %% intervals, %zu tasks, %zu epochs)", r.tasks, r.epochs);
    }
    ipw_table_line(b, "repeats");
}

static void put_pass_at(struct ipw_table_block *b)
{
    struct ipw_pass_at p;
    char percent[32];

    if (ipw_repeats_epochs(b->s) < 2) return;
    ipw_pass_at_fill(&p, b->s);
    for (size_t i = 0; i < p.n; i++)
        ipw_buf_addf(&b->text, "%sk=%zu %s", i ? ", " : "", p.k[i],
                     ipw_format_percent(percent, p.share[i]));
    ipw_table_line(b, "pass@k");
}

/* An unknown total, and its measured part. */
static void put_partial(struct ipw_table_block *b, const char *name, const struct ipw_figure *total)
{
    char number[32], percent[32];

    if (!(total->coverage > 0)) return;
    ipw_buf_addf(&b->text, "%s total not measured (", name);
    if (total->reason) ipw_words_reason(&b->text, total->reason);
    ipw_buf_addf(&b->text, "): %s in %s of the run", ipw_table_joules(number, total->partial_j),
                 ipw_format_percent(percent, total->coverage));
}

static void put_account(struct ipw_table_block *b, const char *before, double j,
                        struct ipw_bounds bounds, const char *name)
{
    struct ipw_bounded_text text;

    ipw_format_bounded(&text, j, IPW_TABLE_J, bounds.lo, bounds.hi, NAN);
    ipw_buf_addf(&b->text, "%s%s%s%s", before, text.value, text.bounds, name);
}

static void put_balance_of(struct ipw_table_block *b, enum ipw_domain d)
{
    const struct ipw_balance *balance = &b->run->balance[d];
    struct ipw_summary_balance_line l;
    char number[32];

    ipw_summary_balance_line(&l, balance, &b->t.energy[d], b->t.queries);
    if (isnan(l.total_j)) {
        put_partial(b, ipw_words_domain(d), &balance->total);
        return;
    }
    ipw_buf_adds(&b->text, ipw_words_domain(d));
    put_account(b, " ", l.total_j, ipw_figure_bounds(&balance->total), "");
    put_account(b, " = ", l.queries_j, l.queries, " queries");
    put_account(b, " + ", l.idle_j, ipw_figure_bounds(&balance->idle), " idle");
    if (l.warmup_j > 0) put_account(b, " + ", l.warmup_j, balance->warmup, " warm-up");
    if (l.wasted_j > 0) put_account(b, " + ", l.wasted_j, balance->wasted, " earlier attempts");
    ipw_buf_adds(&b->text, ": ");
    if (l.state == IPW_LEDGER_BALANCED) {
        ipw_table_styled(b, IPW_GREEN, "balanced");
    } else if (l.state == IPW_LEDGER_OFF) {
        ipw_buf_addf(&b->text, "%soff by %s: a bug, please report it%s",
                     ipw_style(IPW_RED, b->colour), ipw_table_joules(number, l.difference_j),
                     ipw_style(IPW_PLAIN, b->colour));
    } else {
        ipw_table_styled(b, IPW_DIM, "cannot be checked: a query was not measured");
    }
}

static void put_balance(struct ipw_table_block *b)
{
    const char *label = "balance";

    for (int d = 0; b->run->have_balance && d < IPW_DOMAIN_COUNT; d++) {
        put_balance_of(b, (enum ipw_domain)d);
        if (!b->text.len) continue;
        ipw_table_line(b, label);
        label = "";
    }
}

static void put_overhead(struct ipw_table_block *b)
{
    double cpu_s = b->run->runner_cpu_s + b->run->sampler_cpu_s;
    char number[32], share[32];

    if (isnan(cpu_s) || !(b->run->wall_s > 0)) return;
    ipw_buf_addf(&b->text, "%s of one core (%s of CPU time)",
                 ipw_format_percent(share, cpu_s / b->run->wall_s),
                 ipw_format_spaced_seconds(number, cpu_s));
    ipw_table_line(b, "overhead");
}

static void put_text(struct ipw_table_block *b, const char *label, const char *text)
{
    if (!text || !*text) return;
    ipw_text_printable(&b->text, text, strlen(text), 0);
    ipw_table_line(b, label);
}

void ipw_table_totals(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, size_t width, bool colour)
{
    struct ipw_table_block b = {.out = out,
                                .text = IPW_BUF(64 * IPW_KIB),
                                .width = width,
                                .colour = colour,
                                .s = s,
                                .run = run};

    ipw_summary_totals(&b.t, s);
    ipw_summary_efficiency(&b.e, s, ipw_summary_basis(s));
    put_accuracy(&b);
    ipw_judge_sums_say(&b.text, &s->judge);
    ipw_table_line(&b, "judge");
    ipw_table_energy(&b);
    put_efficiency(&b);
    put_time(&b);
    put_latency(&b);
    put_tokens(&b);
    put_calls(&b);
    ipw_table_tools(&b);
    put_models(&b);
    put_cost(&b);
    put_repeats(&b);
    put_pass_at(&b);
    put_provenance(&b);
    put_sharing(&b);
    put_balance(&b);
    put_overhead(&b);
    put_text(&b, "note", run->note);
    put_text(&b, "saved in", run->path);
    ipw_buf_release(&b.text);
}
