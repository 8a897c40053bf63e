/* The block below the rows: one labelled line a question. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/repeats.h"
#include "report/table_priv.h"

#define LABEL 12
#define DOT   " \xC2\xB7 "

struct block {
    struct ipw_buf *out;
    struct ipw_buf text; /* of the line being gathered */
    size_t width;
    bool colour;
};

static const char *const domain_names[IPW_DOMAIN_COUNT] = {"GPU", "CPU", "DRAM", "machine"};

/* Writes the gathered text under a label, and empties it. */
static void line(struct block *b, const char *label)
{
    if (b->text.len) {
        ipw_buf_addf(b->out, " %s%-*s%s", ipw_style(IPW_CYAN, b->colour), LABEL - 1, label,
                     ipw_style(IPW_PLAIN, b->colour));
        ipw_format_wrapped(b->out, ipw_buf_str(&b->text), LABEL, LABEL, b->width);
    }
    ipw_buf_clear(&b->text);
}

static void styled(struct block *b, enum ipw_style style, const char *text)
{
    ipw_buf_addf(&b->text, "%s%s%s", ipw_style(style, b->colour), text,
                 ipw_style(IPW_PLAIN, b->colour));
}

static void counted(struct block *b, enum ipw_style style, const char *mark, size_t n,
                    const char *what)
{
    char number[32];

    if (!n) return;
    if (b->text.len) ipw_buf_adds(&b->text, "\xC2\xA0 ");
    styled(b, style, mark);
    ipw_buf_addf(&b->text, "\xC2\xA0%s %s", ipw_format_count(number, (int64_t)n), what);
}

static void put_score(struct block *b, const struct ipw_summary *s, const struct ipw_totals *t)
{
    char percent[32], number[32];
    size_t failed = 0, wrong = 0, unscored = 0;

    for (size_t i = 0; i < s->n; i++) { /* as the rows are marked: each in one class only */
        const struct ipw_summary_row *row = &s->rows[i];

        if (row->resolved == 1) continue;
        if (!row->completed) {
            failed++;
        } else if (row->resolved == 0) {
            wrong++;
        } else {
            unscored++;
        }
    }
    if (!isnan(t->accuracy)) {
        ipw_format_percent(percent, t->accuracy);
        styled(b, IPW_BOLD, percent);
        ipw_buf_addf(&b->text, " of %s scored",
                     ipw_format_count(number, (int64_t)(t->resolved + t->unresolved)));
    } else if (s->n) {
        ipw_buf_adds(&b->text, "nothing was scored");
    } else {
        ipw_buf_adds(&b->text, "no query has finished");
    }
    counted(b, IPW_GREEN, "\xE2\x9C\x93", t->resolved, "correct");
    counted(b, IPW_RED, "\xE2\x9C\x97", wrong, "wrong");
    counted(b, IPW_YELLOW, "!", failed, "failed");
    if (t->timed_out) {
        ipw_buf_addf(&b->text, " (%s\xC2\xA0timed\xC2\xA0out)",
                     ipw_format_count(number, (int64_t)t->timed_out));
    }
    counted(b, IPW_DIM, "\xC2\xB7", unscored, "not scored");
    line(b, "score");
}

static void put_tokens(struct block *b, const struct ipw_sum *sum, const char *what)
{
    char number[32];

    ipw_buf_addf(&b->text, "%s tokens %s",
                 ipw_format_count(number, isnan(sum->known) ? -1 : (int64_t)sum->known), what);
}

static void plural(struct block *b, size_t n, const char *one, const char *many)
{
    char number[32];

    ipw_buf_addf(&b->text, "%s %s", ipw_format_count(number, (int64_t)n), n == 1 ? one : many);
}

static void put_work(struct block *b, const struct ipw_totals *t)
{
    size_t unknown = t->total_tokens.unknown;

    plural(b, t->turns, "turn", "turns");
    ipw_buf_adds(&b->text, DOT);
    plural(b, t->tools, "tool call", "tool calls");
    ipw_buf_adds(&b->text, DOT);
    put_tokens(b, &t->input_tokens, "in");
    ipw_buf_adds(&b->text, DOT);
    put_tokens(b, &t->output_tokens, "out");
    if (unknown) {
        ipw_buf_addf(&b->text, " (not counting %zu %s that told none)", unknown,
                     unknown == 1 ? "query" : "queries");
    }
    if (t->retries) {
        ipw_buf_adds(&b->text, DOT);
        plural(b, (size_t)t->retries, "retry", "retries");
    }
    if (t->malformed) {
        ipw_buf_adds(&b->text, DOT);
        plural(b, (size_t)t->malformed, "malformed reply", "malformed replies");
    }
    line(b, "work");
}

static void put_time(struct block *b, const struct ipw_totals *t, const struct ipw_summary_run *run)
{
    char number[32];

    ipw_buf_addf(&b->text, "%s in queries", ipw_format_seconds(number, t->wall_s));
    if (!isnan(run->wall_s)) {
        ipw_buf_addf(&b->text, DOT "%s on the clock",
                     ipw_format_seconds(number, run->wall_s + run->cut_s));
    }
    if (t->queries) {
        ipw_buf_addf(&b->text, DOT "%s a query",
                     ipw_format_seconds(number, t->wall_s / (double)t->queries));
    }
    if (!isnan(t->cost_usd.known)) ipw_buf_addf(&b->text, DOT "$%.4g", t->cost_usd.known);
    line(b, "time");
}

static void put_energy(struct block *b, const struct ipw_summary *s, const struct ipw_totals *t)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_sum *sum = &t->energy[d];
        char number[32];

        if (d == IPW_DOMAIN_MACHINE && isnan(sum->known)) continue;
        if (b->text.len) ipw_buf_adds(&b->text, DOT);
        ipw_buf_addf(&b->text, "%s ", domain_names[d]);
        styled(b, isnan(sum->known) ? IPW_PLAIN : IPW_BOLD,
               ipw_format_si(number, sum->known, "\xC2\xA0J"));
        if (!isnan(sum->known) && sum->unknown) {
            ipw_buf_addf(&b->text, " (%zu of %zu queries without%s", sum->unknown, t->queries,
                         s->reason[d][0] ? ": " : "");
            ipw_text_printable(&b->text, s->reason[d], strlen(s->reason[d]), 0);
            ipw_buf_addc(&b->text, ')');
        }
    }
    line(b, "energy");
}

/* Does the note of those who looked for sensors say why? */
static bool is_noted(const struct ipw_summary_run *run, const char *reason)
{
    return run->energy_note && (!strcmp(reason, "no_sensor") || !strcmp(reason, "permission") ||
                                !strcmp(reason, "switched_off"));
}

/* Why a figure is missing, in the words of who looked for it. */
static void put_why(struct block *b, const struct ipw_summary *s, const struct ipw_totals *t,
                    const struct ipw_summary_run *run)
{
    static const char none[] = "no energy sensor";
    bool any = false, measured = false;

    if (run->energy_note) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            measured |= !isnan(t->energy[d].known);
            measured |= s->reason[d][0] && !is_noted(run, s->reason[d]); /* it was, or is lost */
        }
        if (!measured && strncmp(run->energy_note, none, sizeof none - 1) != 0) {
            ipw_buf_addf(&b->text, "%s readable: ", none);
        }
        ipw_text_printable(&b->text, run->energy_note, strlen(run->energy_note), 0);
        line(b, "");
    }
    for (int d = 0; d < IPW_DOMAIN_MACHINE; d++) {
        if (!s->reason[d][0] || !isnan(t->energy[d].known) || is_noted(run, s->reason[d])) continue;
        ipw_buf_addf(&b->text, "%s%s (",
                     any ? ", " : IPW_UNKNOWN_TEXT " is not known: ", domain_names[d]);
        ipw_text_printable(&b->text, s->reason[d], strlen(s->reason[d]), 0);
        ipw_buf_addc(&b->text, ')');
        any = true;
    }
    line(b, "");
}

static void put_provenance(struct block *b, const struct ipw_summary *s)
{
    const char *label = "obtained";
    bool shared_out = false;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double total = 0;
        bool first = true;

        for (int p = 0; p < IPW_PROV_COUNT; p++) total += s->provenance_j[d][p];
        if (total <= 0) continue;
        ipw_buf_addf(&b->text, "%s", domain_names[d]);
        for (int p = 0; p < IPW_PROV_COUNT; p++) {
            char percent[32];

            if (s->provenance_j[d][p] <= 0) continue;
            ipw_buf_addf(&b->text, "%s %s %s", first ? "" : ",",
                         ipw_provenance_name((enum ipw_provenance)p),
                         ipw_format_percent(percent, s->provenance_j[d][p] / total));
            first = false;
        }
        line(b, label);
        label = "";
    }
    for (size_t i = 0; i < s->n; i++) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            shared_out |= s->rows[i].energy[d].known &&
                          s->rows[i].energy[d].provenance >= IPW_PROV_DISTRIBUTED;
        }
    }
    if (!shared_out) return;
    styled(b, IPW_DIM, "~ shared out or estimated, not measured for that query alone");
    line(b, "");
}

static void put_efficiency(struct block *b, const struct ipw_summary *s, const struct ipw_totals *t)
{
    struct ipw_efficiency e;
    struct ipw_buf basis = IPW_BUF(64);
    char number[32], percent[32], small[32];

    ipw_summary_efficiency(&e, s, ipw_summary_basis(s));
    if (!e.queries) {
        ipw_buf_release(&basis);
        return;
    }
    ipw_summary_basis_text(&basis, e.domains);
    ipw_format_percent(percent, t->accuracy);
    if (!isnan(e.ipj)) {
        snprintf(small, sizeof small, "%.3g", e.ipj);
        styled(b, IPW_BOLD, small);
        ipw_buf_addf(&b->text, " accuracy per joule (%s at %s a query, %s)", percent,
                     ipw_format_si(number, e.mean_j, " J"), ipw_buf_str(&basis));
    } else {
        ipw_buf_addf(&b->text, "%s a query, %s (nothing scored, so no accuracy per joule)",
                     ipw_format_si(number, e.mean_j, " J"), ipw_buf_str(&basis));
    }
    line(b, "efficiency");
    if (!isnan(e.ipw)) {
        snprintf(small, sizeof small, "%.3g", e.ipw);
        styled(b, IPW_BOLD, small);
        ipw_buf_addf(&b->text, " accuracy per watt (%s at %s a query)", percent,
                     ipw_format_si(number, e.mean_w, " W"));
        line(b, "");
    }
    if (!isnan(e.j_per_correct)) {
        ipw_format_si(number, e.j_per_correct, " J");
        styled(b, IPW_BOLD, number);
        ipw_buf_adds(&b->text, " per correct answer, wrong and failed queries included");
        line(b, "");
    }
    ipw_buf_release(&basis);
}

/* Of the domain that the model runs on, else of the first that is known. */
static int account_domain(const struct ipw_totals *t)
{
    static const int first[] = {IPW_DOMAIN_GPU, IPW_DOMAIN_CPU, IPW_DOMAIN_MACHINE};

    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        if (!isnan(t->waste[first[i]].total)) return first[i];
    }
    return -1;
}

static void put_accounts(struct block *b, const struct ipw_totals *t,
                         const struct ipw_summary_run *run)
{
    int d = account_domain(t);
    const char *refusal;
    char number[32];

    if (d < 0) return;
    if (t->waste[d].total > 0) {
        ipw_buf_addf(&b->text, "%s wasted in attempts of no use",
                     ipw_format_si(number, t->waste[d].total, "\xC2\xA0J"));
    }
    if (t->idle_tax[d].total > 0) {
        ipw_buf_addf(&b->text, "%s%s while tools ran (idle tax)", b->text.len ? DOT : "",
                     ipw_format_si(number, t->idle_tax[d].total, "\xC2\xA0J"));
    }
    if (run->baseline_s > 0) {
        refusal = ipw_baseline_refusal(&run->baseline[d]);
        if (b->text.len) ipw_buf_adds(&b->text, DOT);
        if (refusal) {
            ipw_buf_addf(&b->text, "net withheld: %s",
                         strcmp(refusal, "drift") ? "no baseline" : "the idle machine drifted");
        } else {
            ipw_buf_addf(&b->text, "%s above idle (net)",
                         ipw_format_si(number, t->marginal[d].total, "\xC2\xA0J"));
        }
    }
    if (b->text.len) ipw_buf_addf(&b->text, " (%s)", domain_names[d]);
    line(b, "of it");
}

static void put_repeats(struct block *b, const struct ipw_summary *s)
{
    struct ipw_repeats r;
    const struct ipw_interval *a, *j;
    char lo[32], hi[32], mean[32];

    if (ipw_repeats_epochs(s) < 2) return;
    ipw_repeats_of(&r, s);
    a = &r.metrics[IPW_REPEAT_ACCURACY];
    j = &r.metrics[IPW_REPEAT_JOULES];
    if (!isnan(a->lo)) {
        ipw_buf_addf(&b->text, "accuracy %s [%s, %s]", ipw_format_percent(mean, a->mean),
                     ipw_format_percent(lo, a->lo), ipw_format_percent(hi, a->hi));
    }
    if (!isnan(j->lo)) {
        ipw_buf_addf(&b->text, "%s%s a query [%s, %s]", b->text.len ? DOT : "",
                     ipw_format_si(mean, j->mean, "\xC2\xA0J"),
                     ipw_format_si(lo, j->lo, "\xC2\xA0J"), ipw_format_si(hi, j->hi, "\xC2\xA0J"));
    }
    if (b->text.len) {
        ipw_buf_addf(&b->text, " (95 %%, %s over %zu %ss, %zu epochs)",
                     isnan(j->lo) ? a->method : j->method, isnan(j->lo) ? a->n : j->n, r.by,
                     r.epochs);
    }
    line(b, "repeats");
}

/* A total that is not known, and what was measured of it: not the total. */
static void put_partial(struct block *b, const char *name, const struct ipw_figure *total)
{
    char number[32], percent[32];

    if (!(total->coverage > 0)) return;
    ipw_buf_addf(&b->text, "%s total not known (", name);
    if (total->reason) ipw_text_printable(&b->text, total->reason, strlen(total->reason), 0);
    ipw_buf_addf(&b->text, "): %s measured in part, %s of the run",
                 ipw_format_si(number, total->partial_j, "\xC2\xA0J"),
                 ipw_format_percent(percent, total->coverage));
}

static void put_ledger(struct block *b, const struct ipw_totals *t,
                       const struct ipw_summary_run *run)
{
    const char *label = "ledger";
    size_t before = b->out->len;

    for (int d = 0; run->have_balance && d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_ledger_line l;
        char number[32];

        ipw_ledger_line(&l, &run->balance[d], &t->energy[d], t->queries);
        if (isnan(l.total_j)) {
            put_partial(b, domain_names[d], &run->balance[d].total);
            line(b, label);
            label = b->out->len > before ? "" : label;
            continue;
        }
        ipw_buf_addf(&b->text, "%s %s =", domain_names[d],
                     ipw_format_si(number, l.total_j, "\xC2\xA0J"));
        ipw_buf_addf(&b->text, " %s queries", ipw_format_si(number, l.queries_j, "\xC2\xA0J"));
        ipw_buf_addf(&b->text, " + %s idle", ipw_format_si(number, l.idle_j, "\xC2\xA0J"));
        if (l.warmup_j > 0) {
            ipw_buf_addf(&b->text, " + %s warm-up", ipw_format_si(number, l.warmup_j, "\xC2\xA0J"));
        }
        if (l.wasted_j > 0) {
            ipw_buf_addf(&b->text, " + %s in attempts cut down",
                         ipw_format_si(number, l.wasted_j, "\xC2\xA0J"));
        }
        ipw_buf_adds(&b->text, DOT);
        if (l.state == IPW_LEDGER_BALANCED) {
            styled(b, IPW_GREEN, "balanced");
        } else if (l.state == IPW_LEDGER_OFF) {
            ipw_format_si(number, l.difference_j, "\xC2\xA0J");
            ipw_buf_addf(&b->text, "%soff by %s: a bug, please report it%s",
                         ipw_style(IPW_RED, b->colour), number, ipw_style(IPW_PLAIN, b->colour));
        } else {
            styled(b, IPW_DIM, "cannot be checked: a query's part is not known");
        }
        line(b, label);
        label = "";
    }
}

static void put_overhead(struct block *b, const struct ipw_summary_run *run)
{
    double cpu_s = run->runner_cpu_s + run->sampler_cpu_s;
    char number[32], share[32], sampler[32];

    if (isnan(cpu_s) || !(run->wall_s > 0)) return;
    ipw_buf_addf(&b->text, "%s of CPU time, %s of one core (sampling %s)",
                 ipw_format_seconds(number, cpu_s), ipw_format_percent(share, cpu_s / run->wall_s),
                 ipw_format_seconds(sampler, run->sampler_cpu_s));
    line(b, "own load");
}

static void put_text(struct block *b, const char *label, const char *text)
{
    if (!text || !*text) return;
    ipw_text_printable(&b->text, text, strlen(text), 0);
    line(b, label);
}

void ipw_table_totals(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, size_t width, bool colour)
{
    struct block b = {.out = out, .text = IPW_BUF(64 * IPW_KIB), .width = width, .colour = colour};
    struct ipw_totals t;
    bool missing = false;

    ipw_summary_totals(&t, s);
    put_score(&b, s, &t);
    put_work(&b, &t);
    put_time(&b, &t, run);
    put_energy(&b, s, &t);
    for (int d = 0; d < IPW_DOMAIN_MACHINE; d++) missing |= isnan(t.energy[d].known);
    if (missing) put_why(&b, s, &t, run);
    put_provenance(&b, s);
    put_accounts(&b, &t, run);
    put_efficiency(&b, s, &t);
    put_repeats(&b, s);
    put_ledger(&b, &t, run);
    put_overhead(&b, run);
    put_text(&b, "note", run->note);
    put_text(&b, "files", run->path);
    ipw_buf_release(&b.text);
}
