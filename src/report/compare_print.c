/* Two runs beside each other: as JSON, and for a terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/compare.h"
#include "report/format.h"

static const struct {
    const char *name, *label, *unit; /* unit NULL: a count */
} metrics[IPW_COMPARE_METRICS] = {
    [IPW_COMPARE_ACCURACY] = {"accuracy", "accuracy", "%"},
    [IPW_COMPARE_JOULES] = {"joules", "energy", "J"},
    [IPW_COMPARE_GPU_J] = {"gpu_joules", "  gpu", "J"},
    [IPW_COMPARE_CPU_J] = {"cpu_joules", "  cpu", "J"},
    [IPW_COMPARE_DRAM_J] = {"dram_joules", "  dram", "J"},
    [IPW_COMPARE_MACHINE_J] = {"machine_joules", "  machine", "J"},
    [IPW_COMPARE_SECONDS] = {"seconds", "time", "s"},
    [IPW_COMPARE_INPUT] = {"input_tokens", "tokens in", NULL},
    [IPW_COMPARE_OUTPUT] = {"output_tokens", "tokens out", NULL},
    [IPW_COMPARE_TURNS] = {"turns", "turns", NULL},
    [IPW_COMPARE_TURN_J] = {"turn_joules", "energy", "J"},
    [IPW_COMPARE_TURN_S] = {"turn_seconds", "time", "s"},
    [IPW_COMPARE_TURN_OUTPUT] = {"turn_output_tokens", "tokens out", NULL},
};

/* ---- JSON ---- */

static void write_row(struct ipw_jw *w, const struct ipw_compare_row *r)
{
    ipw_jw_obj(w);
    ipw_jw_knum(w, "a", r->a);
    ipw_jw_knum(w, "a_hi", r->a_hi);
    ipw_jw_knum(w, "a_lo", r->a_lo);
    ipw_jw_knum(w, "b", r->b);
    ipw_jw_knum(w, "b_hi", r->b_hi);
    ipw_jw_knum(w, "b_lo", r->b_lo);
    ipw_jw_key(w, "difference");
    ipw_jw_obj(w);
    ipw_jw_knum(w, "hi", r->difference.hi);
    ipw_jw_knum(w, "lo", r->difference.lo);
    ipw_jw_knum(w, "mean", r->difference.mean);
    ipw_jw_kstr(w, "method", r->difference.method);
    ipw_jw_knum(w, "readings_hi", r->difference_hi);
    ipw_jw_knum(w, "readings_lo", r->difference_lo);
    ipw_jw_obj_end(w);
    ipw_jw_kint(w, "pairs", (int64_t)r->pairs);
    ipw_jw_kint(w, "tasks", (int64_t)r->tasks);
    ipw_jw_kstr(w, "verdict", r->verdict);
    ipw_jw_obj_end(w);
}

static void write_turn(struct ipw_jw *w, const struct ipw_compare_turn *t, unsigned basis)
{
    double lo, hi, j;

    if (!t) {
        ipw_jw_null(w);
        return;
    }
    j = ipw_compare_joules(t->energy, basis, &lo, &hi);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "hi", hi);
    if (t->input_tokens >= 0)
        ipw_jw_kint(w, "input_tokens", t->input_tokens);
    else
        ipw_jw_knull(w, "input_tokens");
    ipw_jw_knum(w, "joules", j);
    ipw_jw_knum(w, "lo", lo);
    if (t->output_tokens >= 0)
        ipw_jw_kint(w, "output_tokens", t->output_tokens);
    else
        ipw_jw_knull(w, "output_tokens");
    ipw_jw_knum(w, "seconds", t->seconds);
    ipw_jw_obj_end(w);
}

static void write_pair(struct ipw_jw *w, const struct ipw_compare *c, size_t i)
{
    const struct ipw_compare_query *a = c->pairs[0][i], *b = c->pairs[1][i];

    ipw_jw_obj(w);
    ipw_jw_kint(w, "epoch", a->epoch);
    ipw_jw_kstr(w, "query_id", a->id);
    ipw_jw_key(w, "turns");
    ipw_jw_arr(w);
    for (size_t k = 0; k < a->n_turns || k < b->n_turns; k++) {
        ipw_jw_obj(w);
        ipw_jw_key(w, "a");
        write_turn(w, k < a->n_turns ? &a->turns[k] : NULL, c->basis);
        ipw_jw_key(w, "b");
        write_turn(w, k < b->n_turns ? &b->turns[k] : NULL, c->basis);
        ipw_jw_kint(w, "turn_index", (int64_t)k);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_jw_obj_end(w);
}

void ipw_compare_write(struct ipw_buf *out, const struct ipw_compare *c, const char *a,
                       const char *b)
{
    static const int sorted[IPW_COMPARE_METRICS] = {
        IPW_COMPARE_ACCURACY, IPW_COMPARE_CPU_J,  IPW_COMPARE_DRAM_J,      IPW_COMPARE_GPU_J,
        IPW_COMPARE_INPUT,    IPW_COMPARE_JOULES, IPW_COMPARE_MACHINE_J,   IPW_COMPARE_OUTPUT,
        IPW_COMPARE_SECONDS,  IPW_COMPARE_TURN_J, IPW_COMPARE_TURN_OUTPUT, IPW_COMPARE_TURN_S,
        IPW_COMPARE_TURNS};
    struct ipw_buf basis = IPW_BUF(256);
    struct ipw_jw w;

    ipw_summary_basis_text(&basis, c->basis);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "a", a);
    ipw_jw_kstr(&w, "b", b);
    ipw_jw_kstr(&w, "basis", c->basis ? ipw_buf_str(&basis) : NULL);
    ipw_jw_knum(&w, "confidence", 0.95);
    ipw_jw_key(&w, "metrics");
    ipw_jw_obj(&w);
    for (int i = 0; i < IPW_COMPARE_METRICS; i++) {
        ipw_jw_key(&w, metrics[sorted[i]].name);
        write_row(&w, &c->rows[sorted[i]]);
    }
    ipw_jw_obj_end(&w);
    ipw_jw_kint(&w, "only_in_a", (int64_t)c->only[0]);
    ipw_jw_kint(&w, "only_in_b", (int64_t)c->only[1]);
    ipw_jw_key(&w, "pairs");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < c->n; i++) write_pair(&w, c, i);
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "queries", (int64_t)c->n);
    ipw_jw_kint(&w, "turns", (int64_t)c->n_turns);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
    ipw_buf_release(&basis);
}

/* ---- a table ---- */

static const char *quantity(char *out, double x, const char *unit)
{
    if (isnan(x)) {
        snprintf(out, 32, "%s", IPW_UNKNOWN_TEXT);
    } else if (!unit) {
        snprintf(out, 32, "%.4g", x);
    } else if (*unit == '%') {
        snprintf(out, 32, "%.1f %%", 100 * x);
    } else if (*unit == 's' && x >= 0) {
        ipw_format_seconds(out, x);
    } else {
        char spaced[8];

        snprintf(spaced, sizeof spaced, " %s", unit);
        ipw_format_si(out, x, spaced);
    }
    return out;
}

static const char *signed_quantity(char *out, double x, const char *unit)
{
    char text[32];

    if (isnan(x)) return quantity(out, x, unit);
    snprintf(out, 34, "%s%s", x < 0 ? "-" : "+", quantity(text, fabs(x), unit));
    return out;
}

static void cell(struct ipw_buf *out, const char *text, size_t columns, bool right)
{
    ipw_format_cell(out, text, columns, right ? IPW_ALIGN_RIGHT : IPW_ALIGN_LEFT);
}

static const char *words(const char *verdict)
{
    static const char *const all[][2] = {{"higher", "higher: real"},
                                         {"lower", "lower: real"},
                                         {"same", "the same"},
                                         {"not_shown", "not shown"},
                                         {"too_few", "too few tasks"}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i][0], verdict) == 0) return all[i][1];
    return "";
}

static void print_row(struct ipw_buf *out, const struct ipw_compare_row *r, int metric, bool colour)
{
    const char *unit = metrics[metric].unit;
    bool real = strcmp(r->verdict, "higher") == 0 || strcmp(r->verdict, "lower") == 0;
    char a[40], b[40], d[40], lo[40], hi[40], interval[90] = "";

    if (!r->pairs) return;
    if (!isnan(r->difference.lo))
        snprintf(interval, sizeof interval, "%s .. %s", signed_quantity(lo, r->difference.lo, unit),
                 signed_quantity(hi, r->difference.hi, unit));
    ipw_buf_adds(out, "  ");
    cell(out, metrics[metric].label, 10, false);
    cell(out, quantity(a, r->a, unit), 10, true);
    cell(out, quantity(b, r->b, unit), 10, true);
    cell(out, signed_quantity(d, r->difference.mean, unit), 11, true);
    ipw_buf_adds(out, "  ");
    cell(out, interval, 22, false);
    ipw_buf_addf(out, "%s%s%s\n", ipw_style(real ? IPW_BOLD : IPW_DIM, colour), words(r->verdict),
                 ipw_style(IPW_PLAIN, colour));
    if (isnan(r->a_lo) || isnan(r->b_lo)) return;
    ipw_buf_addf(out, "%s    by the readings A is within %s .. %s, ", ipw_style(IPW_DIM, colour),
                 quantity(a, r->a_lo, unit), quantity(b, r->a_hi, unit));
    ipw_buf_addf(out, "B within %s .. %s%s\n", quantity(a, r->b_lo, unit),
                 quantity(b, r->b_hi, unit), ipw_style(IPW_PLAIN, colour));
}

static void head(struct ipw_buf *out, const char *title, const char *more)
{
    ipw_buf_adds(out, "\n  ");
    cell(out, title, 10, false);
    cell(out, "A", 10, true);
    cell(out, "B", 10, true);
    cell(out, "B - A", 11, true);
    ipw_buf_addf(out, "  %s\n", more);
}

static void print_turns(struct ipw_buf *out, const struct ipw_compare *c)
{
    head(out, "turn", "by the readings      time A time B");
    for (size_t i = 0; i < c->n; i++) {
        const struct ipw_compare_query *a = c->pairs[0][i], *b = c->pairs[1][i];

        for (size_t k = 0; k < a->n_turns && k < b->n_turns; k++) {
            double alo, ahi, blo, bhi, x, y;
            char text[40], more[96], lo[40], hi[40];

            x = ipw_compare_joules(a->turns[k].energy, c->basis, &alo, &ahi);
            y = ipw_compare_joules(b->turns[k].energy, c->basis, &blo, &bhi);
            snprintf(more, sizeof more, " %zu", k + 1);
            ipw_buf_adds(out, "  ");
            cell(out, a->id, 10 - strlen(more), false);
            ipw_buf_adds(out, more);
            cell(out, quantity(text, x, "J"), 10, true);
            cell(out, quantity(text, y, "J"), 10, true);
            cell(out, signed_quantity(text, y - x, "J"), 11, true);
            more[0] = '\0';
            if (!isnan(alo) && !isnan(blo))
                snprintf(more, sizeof more, "%s .. %s", signed_quantity(lo, blo - ahi, "J"),
                         signed_quantity(hi, bhi - alo, "J"));
            ipw_buf_adds(out, "  ");
            cell(out, more, 20, false);
            cell(out, quantity(text, a->turns[k].seconds, "s"), 7, true);
            cell(out, quantity(text, b->turns[k].seconds, "s"), 7, true);
            ipw_buf_addc(out, '\n');
        }
    }
}

void ipw_compare_print(struct ipw_buf *out, const struct ipw_compare *c, const char *a,
                       const char *b, bool turns, bool colour)
{
    struct ipw_buf basis = IPW_BUF(256);

    ipw_summary_basis_text(&basis, c->basis);
    ipw_buf_adds(out, "\n  A  ");
    ipw_text_printable(out, a, strlen(a), 0);
    ipw_buf_adds(out, "\n  B  ");
    ipw_text_printable(out, b, strlen(b), 0);
    ipw_buf_addc(out, '\n');
    ipw_buf_addf(out, "  %zu quer%s and %zu turn%s in both", c->n, c->n == 1 ? "y" : "ies",
                 c->n_turns, c->n_turns == 1 ? "" : "s");
    if (c->only[0] || c->only[1])
        ipw_buf_addf(out, "; only in A %zu, only in B %zu", c->only[0], c->only[1]);
    if (c->basis)
        ipw_buf_addf(out, "; energy is that of %s\n", ipw_buf_str(&basis));
    else
        ipw_buf_addf(out, "; no device was measured in both\n");
    head(out, "a query", "95 % interval");
    for (int m = 0; m < IPW_COMPARE_TURN_J; m++) print_row(out, &c->rows[m], m, colour);
    head(out, "a turn", "95 % interval");
    for (int m = IPW_COMPARE_TURN_J; m < IPW_COMPARE_METRICS; m++)
        print_row(out, &c->rows[m], m, colour);
    if (turns) print_turns(out, c);
    ipw_buf_addc(out, '\n');
    ipw_buf_release(&basis);
}
