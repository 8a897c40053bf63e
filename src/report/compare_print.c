/* Prints a comparison of two runs, as JSON and for a terminal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
    [IPW_COMPARE_OUTPUT_J] = {"joules_per_output_token", "J/tok out", "J"},
    [IPW_COMPARE_TOKEN_J] = {"joules_per_token", "J/token", "J"},
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

/* The settings of both runs, in the order of their keys. */
static const struct {
    int setting;
    const char *key, *label;
} settings[IPW_COMPARE_SETTINGS] = {
    {IPW_COMPARE_AGENT, "agent", "agent"},
    {IPW_COMPARE_CONCURRENCY, "concurrency", "concurrency"},
    {IPW_COMPARE_DATASET, "dataset", "dataset"},
    {IPW_COMPARE_MODEL, "model", "model"},
};

static void write_settings(struct ipw_jw *w, const struct ipw_compare *c)
{
    bool version;

    ipw_jw_key(w, "settings");
    ipw_jw_obj(w);
    for (int side = 0; side < 2; side++) {
        ipw_jw_key(w, side ? "b" : "a");
        ipw_jw_obj(w);
        for (int i = 0; i < IPW_COMPARE_SETTINGS; i++) {
            const char *value = c->runs[side]->settings[settings[i].setting];

            if (value && settings[i].setting == IPW_COMPARE_CONCURRENCY)
                ipw_jw_kint(w, settings[i].key, strtoll(value, NULL, 10));
            else
                ipw_jw_kstr(w, settings[i].key, value);
        }
        ipw_jw_obj_end(w);
    }
    ipw_jw_key(w, "differ");
    ipw_jw_arr(w);
    for (int i = 0; i < IPW_COMPARE_SETTINGS; i++)
        if (ipw_compare_differ(c, settings[i].setting, &version)) ipw_jw_str(w, settings[i].key);
    ipw_jw_arr_end(w);
    ipw_jw_obj_end(w);
}

void ipw_compare_write(struct ipw_buf *out, const struct ipw_compare *c, const char *a,
                       const char *b)
{
    static const int sorted[IPW_COMPARE_METRICS] = {
        IPW_COMPARE_ACCURACY,    IPW_COMPARE_CPU_J,  IPW_COMPARE_DRAM_J,   IPW_COMPARE_GPU_J,
        IPW_COMPARE_INPUT,       IPW_COMPARE_JOULES, IPW_COMPARE_OUTPUT_J, IPW_COMPARE_TOKEN_J,
        IPW_COMPARE_MACHINE_J,   IPW_COMPARE_OUTPUT, IPW_COMPARE_SECONDS,  IPW_COMPARE_TURN_J,
        IPW_COMPARE_TURN_OUTPUT, IPW_COMPARE_TURN_S, IPW_COMPARE_TURNS};
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
    write_settings(&w, c);
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
        snprintf(out, 32, x >= 1e4 && x < 1e9 ? "%.0f" : "%.4g", x);
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

static const char *signed_joules(char *out, double j)
{
    char text[32];

    if (isnan(j)) return quantity(out, j, "J");
    snprintf(out, 34, "%s%s", j < 0 ? "-" : "+", quantity(text, fabs(j), "J"));
    return out;
}

static void cell(struct ipw_buf *out, const char *text, size_t columns, bool right)
{
    ipw_format_cell(out, text, columns, right ? IPW_ALIGN_RIGHT : IPW_ALIGN_LEFT);
}

static const char *words(const char *verdict)
{
    static const char *const all[][2] = {{"higher", "significant"},
                                         {"lower", "significant"},
                                         {"same", "the same"},
                                         {"not_shown", "no significant difference"},
                                         {"too_few", "too few tasks"}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i][0], verdict) == 0) return all[i][1];
    return "";
}

/* A difference and its interval are compared by eye: all three have the same unit and the same
 * number of decimal places, chosen by the largest of them. */
struct scale {
    double size;
    char unit[8];
    int places;
};

static struct scale scale_of(const struct ipw_interval *d, const char *unit)
{
    static const struct {
        double size;
        const char *prefix;
    } steps[] = {{1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}};
    double most = fmax(fabs(d->mean), isnan(d->lo) ? 0 : fmax(fabs(d->lo), fabs(d->hi)));
    bool percent = unit && *unit == '%', prefixed = unit && !percent;
    struct scale s = {.size = percent ? 0.01 : 1};
    size_t i = 0;

    while (i + 1 < sizeof steps / sizeof *steps && most < 0.9995 * steps[i].size) i++;
    if (most > 0 && (prefixed || (!unit && most >= 1e5))) s.size = steps[i].size;
    snprintf(s.unit, sizeof s.unit, "%s%s%s", unit || s.size > 1 ? " " : "",
             most > 0 && (prefixed || s.size > 1) ? steps[i].prefix : "", unit ? unit : "");
    most /= s.size;
    s.places = most >= 99.95 ? 0 : most >= 9.995 ? 1 : 2;
    if (percent && s.places == 2) s.places = 1;
    return s;
}

/* "[+112, +124]" */
static const char *interval_of(char *out, size_t size, const struct ipw_interval *d,
                               const struct scale *s)
{
    out[0] = '\0';
    if (!isnan(d->lo))
        snprintf(out, size, "[%+.*f, %+.*f]", s->places, d->lo / s->size, s->places,
                 d->hi / s->size);
    return out;
}

/* The bounds of the joules, which come on top of the interval. */
static void print_bounds(struct ipw_buf *out, const struct ipw_compare_row *r, const char *unit,
                         bool colour)
{
    char lo[40], hi[40];

    if (isnan(r->a_lo) || isnan(r->b_lo)) return;
    if (r->a_lo == r->a_hi && r->b_lo == r->b_hi) return;
    ipw_buf_addf(out, "%s    sensor bounds: A %s to %s, ", ipw_style(IPW_DIM, colour),
                 quantity(lo, r->a_lo, unit), quantity(hi, r->a_hi, unit));
    ipw_buf_addf(out, "B %s to %s%s\n", quantity(lo, r->b_lo, unit), quantity(hi, r->b_hi, unit),
                 ipw_style(IPW_PLAIN, colour));
}

enum { LABEL = 10, QUANTITY = 9, INTERVAL = 14 };

static void print_row(struct ipw_buf *out, const struct ipw_compare_row *r, int metric, bool colour)
{
    const char *unit = metrics[metric].unit;
    bool significant = strcmp(r->verdict, "higher") == 0 || strcmp(r->verdict, "lower") == 0;
    struct scale scale = scale_of(&r->difference, unit);
    char text[40], interval[90];

    if (!r->pairs) return;
    ipw_buf_adds(out, "  ");
    cell(out, metrics[metric].label, LABEL, false);
    cell(out, quantity(text, r->a, unit), QUANTITY, true);
    cell(out, quantity(text, r->b, unit), QUANTITY, true);
    snprintf(text, sizeof text, "%+.*f%s", scale.places, r->difference.mean / scale.size,
             scale.unit);
    cell(out, isnan(r->difference.mean) ? IPW_UNKNOWN_TEXT : text, QUANTITY, true);
    ipw_buf_addf(out, " %-*s %s%s%s\n", INTERVAL,
                 interval_of(interval, sizeof interval, &r->difference, &scale),
                 ipw_style(significant ? IPW_BOLD : IPW_DIM, colour), words(r->verdict),
                 ipw_style(IPW_PLAIN, colour));
    print_bounds(out, r, unit, colour);
}

static void head(struct ipw_buf *out, const char *title)
{
    ipw_buf_adds(out, "\n  ");
    cell(out, title, LABEL, false);
    cell(out, "A", QUANTITY, true);
    cell(out, "B", QUANTITY, true);
    cell(out, "B - A", QUANTITY, true);
    ipw_buf_adds(out, " 95 % interval\n");
}

static void print_turns(struct ipw_buf *out, const struct ipw_compare *c)
{
    ipw_buf_adds(out, "\n  turn               A         B      B - A  sensor bounds        "
                      "time A time B\n");
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
            cell(out, signed_joules(text, y - x), 11, true);
            more[0] = '\0';
            if (!isnan(alo) && !isnan(blo))
                snprintf(more, sizeof more, "%s .. %s", signed_joules(lo, blo - ahi),
                         signed_joules(hi, bhi - alo));
            ipw_buf_adds(out, "  ");
            cell(out, more, 20, false);
            cell(out, quantity(text, a->turns[k].seconds, "s"), 7, true);
            cell(out, quantity(text, b->turns[k].seconds, "s"), 7, true);
            ipw_buf_addc(out, '\n');
        }
    }
}

/* One run: its folder, and below it its settings. */
static void print_side(struct ipw_buf *out, const struct ipw_compare *c, int side, const char *path)
{
    const char *between = "\n     ";

    ipw_buf_addf(out, "\n  %c  ", "AB"[side]);
    ipw_text_printable(out, path, strlen(path), 0);
    for (int i = 0; i < IPW_COMPARE_SETTINGS; i++) {
        const char *value = c->runs[side]->settings[i];

        if (!value) continue;
        ipw_buf_addf(out, "%s%s", between, i == IPW_COMPARE_CONCURRENCY ? "concurrency " : "");
        ipw_text_printable(out, value, strlen(value), 40);
        between = " \xC2\xB7 ";
    }
}

/* The settings that differ.  If the model is not the only difference, the joules are not those of
 * the model alone. */
static void print_differences(struct ipw_buf *out, const struct ipw_compare *c, bool colour)
{
    struct ipw_buf text = IPW_BUF(1024);
    bool version;

    for (int i = 0; i < IPW_COMPARE_SETTINGS; i++) {
        if (!ipw_compare_differ(c, settings[i].setting, &version)) continue;
        ipw_buf_addf(&text, "%s%s%s", text.len ? ", " : "", settings[i].label,
                     version ? " (another version of it)" : "");
    }
    if (text.len)
        ipw_buf_addf(out, "  %swarning: the runs differ in %s%s\n", ipw_style(IPW_YELLOW, colour),
                     ipw_buf_str(&text), ipw_style(IPW_PLAIN, colour));
    ipw_buf_release(&text);
}

void ipw_compare_print(struct ipw_buf *out, const struct ipw_compare *c, const char *a,
                       const char *b, bool turns, bool colour)
{
    struct ipw_buf basis = IPW_BUF(256);

    ipw_summary_basis_text(&basis, c->basis);
    print_side(out, c, 0, a);
    print_side(out, c, 1, b);
    ipw_buf_addc(out, '\n');
    print_differences(out, c, colour);
    ipw_buf_addf(out, "  %zu quer%s and %zu turn%s in both", c->n, c->n == 1 ? "y" : "ies",
                 c->n_turns, c->n_turns == 1 ? "" : "s");
    if (c->only[0] || c->only[1])
        ipw_buf_addf(out, "; only in A %zu, only in B %zu", c->only[0], c->only[1]);
    if (c->basis)
        ipw_buf_addf(out, "; energy is that of %s\n", ipw_buf_str(&basis));
    else
        ipw_buf_addf(out, "; no device was measured in both\n");
    head(out, "per query");
    for (int m = 0; m < IPW_COMPARE_TURN_J; m++) print_row(out, &c->rows[m], m, colour);
    head(out, "per turn");
    for (int m = IPW_COMPARE_TURN_J; m < IPW_COMPARE_METRICS; m++)
        print_row(out, &c->rows[m], m, colour);
    if (turns) print_turns(out, c);
    ipw_buf_addc(out, '\n');
    ipw_buf_release(&basis);
}
