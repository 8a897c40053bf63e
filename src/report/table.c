#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "report/format.h"
#include "report/table_priv.h"
#include "report/words.h"

#define WIDTH_MIN     80
#define ID_MIN        5
#define ID_MAX        24
#define MARK_OK       "\xE2\x9C\x93" /* check mark */
#define MARK_WRONG    "\xE2\x9C\x97" /* ballot x */
#define MARK_FAILED   "!"
#define MARK_STOPPED  "-"
#define MARK_UNSCORED "\xC2\xB7" /* middle dot */

/* The columns between the id and the answer.  A blank is before each; a column is as wide as its
 * widest cell, at least this wide. */
enum column_kind { EPOCH, LEVEL, TURNS, TOOLS, INPUT, OUTPUT, TIME, ENERGY };
static const size_t least[] = {5, 5, 5, 5, 5, 4, 7, 6};

enum { MAX_COLUMNS = ENERGY + IPW_DOMAIN_COUNT, ANSWER_MIN = 8, ALL_DOMAINS_FROM = 100 };

/* A column has one unit, in its heading, so that its numbers can be compared by eye. */
struct column {
    enum column_kind kind;
    enum ipw_domain domain; /* of ENERGY */
    const char *unit;
    double size; /* of the unit */
    size_t width;
};

/* The query of a row's cells. */
struct cells {
    const struct ipw_summary_row *row;
    const struct ipw_summary_shown *shown; /* empty: the row is not printed */
};

struct layout {
    size_t id, answer, n;
    struct column columns[MAX_COLUMNS];
};

const char *ipw_table_mark(const struct ipw_summary_row *row, enum ipw_style *style)
{
    if (row->stopped) {
        *style = IPW_DIM;
        return MARK_STOPPED;
    }
    if (!row->completed && row->resolved != 1) {
        *style = IPW_YELLOW;
        return MARK_FAILED;
    }
    if (row->resolved == 1) {
        *style = IPW_GREEN;
        return MARK_OK;
    }
    if (row->resolved == 0) {
        *style = IPW_RED;
        return MARK_WRONG;
    }
    *style = IPW_DIM;
    return MARK_UNSCORED;
}

static bool is_shown(const struct ipw_summary *s, unsigned domain)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_summary_figure *f = &ipw_summary_row(s, i)->energy[domain];

        if (f->known || f->estimated) return true;
    }
    return false;
}

unsigned ipw_table_domains(const struct ipw_summary *s)
{
    unsigned domains = 0;

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) domains |= (unsigned)is_shown(s, d) << d;
    return domains;
}

/* ---- cells ---- */

/* Three digits, without a unit. */
static void put_number(char *out, size_t size, double x)
{
    if (x == 0) {
        snprintf(out, size, "0");
    } else if (x < 0.0005) {
        snprintf(out, size, "<0.001");
    } else {
        snprintf(out, size, "%.*f", x < 0.9995 ? 3 : x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x);
    }
}

enum { CELL = 80 }; /* bytes of a cell's text */

/* An estimate is in no total, so it is in brackets, with its bounds, to two digits. */
static void put_estimate(char *out, const struct cells *of, enum ipw_domain d, double unit)
{
    double lo_j = of->shown->lo_j[d], hi_j = of->shown->hi_j[d];
    char mid[24], lo[24], hi[24];

    ipw_format_two_digits(mid, of->row->energy[d].j / unit);
    if (lo_j == 0 && hi_j == 0) {
        snprintf(out, CELL, "(~%s)", mid);
    } else {
        snprintf(out, CELL, "(~%s, %s-%s)", mid, ipw_format_two_digits(lo, lo_j / unit),
                 ipw_format_two_digits(hi, hi_j / unit));
    }
}

static void put_count(char *out, int64_t n, double unit)
{
    if (n < 0) {
        snprintf(out, CELL, "%s", IPW_UNKNOWN_TEXT);
    } else if (unit == 1) {
        snprintf(out, CELL, "%lld", (long long)n);
    } else {
        put_number(out, CELL, (double)n / unit);
    }
}

static void put_joules(char *out, const struct cells *of, enum ipw_domain d, double unit)
{
    const struct ipw_summary_figure *f = &of->row->energy[d];
    char number[32];

    if (f->known) {
        put_number(number, sizeof number, f->j / unit);
        snprintf(out, CELL, "%s%s", f->provenance >= IPW_PROV_DISTRIBUTED ? "~" : "", number);
    } else if (f->estimated) {
        put_estimate(out, of, d, unit);
    } else {
        snprintf(out, CELL, "%s", IPW_UNKNOWN_TEXT);
    }
}

static bool has_level(const struct ipw_summary_shown *shown)
{
    return shown->level && *shown->level;
}

static const char *cell_text(char *out, const struct column *c, const struct cells *of)
{
    const struct ipw_summary_row *row = of->row;

    switch (c->kind) {
    case EPOCH: put_count(out, row->epoch, 1); break;
    case LEVEL: return has_level(of->shown) ? of->shown->level : IPW_UNKNOWN_TEXT;
    case TURNS: put_count(out, (int64_t)row->turns, 1); break;
    case TOOLS: put_count(out, (int64_t)row->tools, 1); break;
    case INPUT: put_count(out, row->input_tokens, c->size); break;
    case OUTPUT: put_count(out, row->output_tokens, c->size); break;
    case TIME: put_number(out, CELL, row->wall_s / c->size); break;
    case ENERGY: put_joules(out, of, c->domain, c->size); break;
    }
    return out;
}

static void head_text(char *out, size_t size, const struct column *c)
{
    static const char *const names[] = {"epoch", "level", "turns", "tools", "in", "out", "time"};
    const char *name = c->kind == ENERGY ? ipw_words_domain(c->domain) : names[c->kind];

    snprintf(out, size, "%s%s%s", name, c->unit[0] ? " " : "", c->unit);
}

/* ---- columns ---- */

static double value_of(const struct column *c, const struct ipw_summary_row *row)
{
    const struct ipw_summary_figure *f = &row->energy[c->domain];

    if (c->kind == INPUT) return (double)row->input_tokens;
    if (c->kind == OUTPUT) return (double)row->output_tokens;
    if (c->kind == TIME) return row->wall_s;
    return f->known || f->estimated ? f->j : 0;
}

/* The unit that suits the median, so that one long query does not make the others 0.00.  Tokens are
 * counted one by one as long as they fit. */
static void choose_unit(struct column *c, const struct ipw_summary *s)
{
    static const struct {
        const char *name[3]; /* tokens, seconds, joules */
        double size;
    } units[] = {{{"", "ms", "mJ"}, 1e-3},
                 {{"", "s", "J"}, 1},
                 {{"k", "s", "kJ"}, 1e3},
                 {{"M", "s", "MJ"}, 1e6}};
    bool tokens = c->kind == INPUT || c->kind == OUTPUT;
    struct ipw_spill values, sorted;
    double middle = 1;
    size_t n, unit = 1;

    ipw_spill_init(&values, sizeof(double), s->rows.place);
    for (size_t i = 0; i < s->n; i++) {
        double value = value_of(c, ipw_summary_row(s, i));

        if (value > 0) ipw_stats_add(&values, value);
    }
    ipw_spill_sort(&sorted, &values, ipw_stats_by_value);
    ipw_spill_release(&values);
    n = sorted.n;
    if (n) middle = ipw_stats_at(&sorted, tokens ? n - 1 : n / 2);
    ipw_spill_release(&sorted);
    if (tokens) {
        unit = middle < 1e6 ? 1 : middle < 1e9 ? 2 : 3;
    } else if (middle < 0.5) {
        unit = 0;
    } else if (c->kind == ENERGY) {
        unit = middle < 1e4 ? 1 : middle < 1e7 ? 2 : 3;
    }
    c->unit = units[unit].name[tokens ? 0 : c->kind == TIME ? 1 : 2];
    c->size = units[unit].size;
}

static void widen(struct column *c, const struct cells *of)
{
    char text[CELL];
    const char *cell = cell_text(text, c, of);
    size_t n = ipw_format_width(cell, strlen(cell));

    if (n > c->width) c->width = n;
}

/* As wide as the widest of all queries, also of those that are not printed. */
static void add_column(struct layout *l, const struct ipw_summary *s, struct column c)
{
    static const struct ipw_summary_shown none;
    char text[CELL];

    c.unit = "";
    c.size = 1;
    if (c.kind >= INPUT) choose_unit(&c, s);
    head_text(text, sizeof text, &c);
    c.width = ipw_format_width(text, strlen(text));
    if (c.width < least[c.kind]) c.width = least[c.kind];
    if (c.kind != LEVEL) { /* which is text from outside, so it is cut */
        for (size_t i = 0; i < s->n; i++) widen(&c, &(struct cells){ipw_summary_row(s, i), &none});
        for (size_t i = 0; i < s->n_shown; i++)
            widen(&c, &(struct cells){ipw_summary_row(s, s->shown[i].row), &s->shown[i]});
    }
    l->columns[l->n++] = c;
}

/* Two domains fit beside a short answer.  If the devices are measured, memory and a meter of the
 * whole machine are left out first. */
static void add_energy(struct layout *l, const struct ipw_summary *s, size_t width)
{
    static const enum ipw_domain order[] = {IPW_DOMAIN_GPU, IPW_DOMAIN_CPU, IPW_DOMAIN_MACHINE,
                                            IPW_DOMAIN_DRAM};
    unsigned all = ipw_table_domains(s), chosen = 0;
    size_t n = 0, most = width < ALL_DOMAINS_FROM ? 2 : IPW_DOMAIN_COUNT;

    for (int i = 0; i < IPW_DOMAIN_COUNT && n < most; i++) {
        if (!(all >> order[i] & 1)) continue;
        chosen |= 1u << order[i];
        n++;
    }
    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (chosen >> d & 1)
            add_column(l, s, (struct column){.kind = ENERGY, .domain = (enum ipw_domain)d});
    }
}

static size_t taken(const struct layout *l)
{
    size_t sum = 3 + l->id + 2; /* the mark, the id, and the blanks before the answer */

    for (size_t i = 0; i < l->n; i++) sum += 1 + l->columns[i].width;
    return sum;
}

static struct layout lay_out(const struct ipw_summary *s, size_t width)
{
    struct layout l = {.id = ID_MIN};
    size_t id_max =
        8 + (width - WIDTH_MIN) / 4; /* a wide terminal gives most columns to the answer */
    bool level = false, epochs = false;

    for (size_t i = 0; i < s->n_shown; i++) level |= has_level(&s->shown[i]);
    for (size_t i = 0; i < s->n; i++) epochs |= ipw_summary_row(s, i)->epoch > 0;
    if (s->id_columns > l.id) l.id = s->id_columns;
    if (id_max > ID_MAX) id_max = ID_MAX;
    if (l.id > id_max) l.id = id_max;
    for (enum column_kind kind = EPOCH; kind < ENERGY; kind++)
        if ((kind != EPOCH || epochs) && (kind != LEVEL || level))
            add_column(&l, s, (struct column){.kind = kind});
    add_energy(&l, s, width);
    while (taken(&l) + ANSWER_MIN > width && l.columns[l.n - 1].kind == ENERGY &&
           l.columns[l.n - 2].kind == ENERGY) {
        l.n--;
    }
    while (taken(&l) + ANSWER_MIN > width && l.id > ID_MIN) l.id--;
    l.answer = width - taken(&l);
    return l;
}

/* ---- rows ---- */

static void cell(struct ipw_buf *out, const char *text, size_t columns)
{
    ipw_buf_addc(out, ' ');
    ipw_format_cell(out, text, columns, IPW_ALIGN_RIGHT);
}

static void rule(struct ipw_buf *out, size_t width, bool colour)
{
    ipw_buf_adds(out, ipw_style(IPW_DIM, colour));
    for (size_t i = 0; i < width; i++) ipw_buf_adds(out, "\xE2\x94\x80");
    ipw_buf_adds(out, ipw_style(IPW_PLAIN, colour));
    ipw_buf_addc(out, '\n');
}

static void put_head(struct ipw_buf *out, const struct layout *l, size_t width, bool colour)
{
    ipw_buf_adds(out, ipw_style(IPW_BOLD, colour));
    ipw_buf_adds(out, "   ");
    ipw_format_cell(out, "query", l->id, IPW_ALIGN_LEFT);
    for (size_t i = 0; i < l->n; i++) {
        char text[CELL];

        head_text(text, sizeof text, &l->columns[i]);
        cell(out, text, l->columns[i].width);
    }
    ipw_buf_adds(out, "  answer");
    ipw_buf_adds(out, ipw_style(IPW_PLAIN, colour));
    ipw_buf_addc(out, '\n');
    rule(out, width, colour);
}

static void put_answer(struct ipw_buf *out, const struct cells *of, size_t columns)
{
    const struct ipw_summary_shown *shown = of->shown;
    struct ipw_buf text = IPW_BUF(4096);

    if (!of->row->completed) {
        const char *error = shown->error ? shown->error : "";
        /* The column is narrow, and the mark shows that it failed, so the reason comes first. */
        bool plain = *error && (!strcmp(shown->outcome, "error") || !strcmp(shown->outcome, error));

        ipw_buf_addf(&text, "%s%s%s", plain ? "" : ipw_words_outcome(shown->outcome),
                     plain || !*error ? "" : ": ", ipw_words_outcome(error));
    } else if (shown->answer) {
        ipw_buf_adds(&text, shown->answer);
    }
    ipw_buf_adds(out, "  ");
    ipw_format_cell(out, ipw_buf_str(&text), columns, IPW_ALIGN_NONE);
    ipw_buf_release(&text);
}

static void put_row(struct ipw_buf *out, const struct cells *of, const struct layout *l,
                    bool colour)
{
    enum ipw_style style;
    const char *mark = ipw_table_mark(of->row, &style);

    ipw_buf_addf(out, " %s%s%s ", ipw_style(style, colour), mark, ipw_style(IPW_PLAIN, colour));
    ipw_format_cell(out, of->shown->id, l->id, IPW_ALIGN_LEFT);
    for (size_t i = 0; i < l->n; i++) {
        char text[CELL];

        cell(out, cell_text(text, &l->columns[i], of), l->columns[i].width);
    }
    put_answer(out, of, l->answer);
    ipw_buf_addc(out, '\n');
}

static int by_index(const void *a, const void *b)
{
    const struct ipw_summary_shown *x = *(const struct ipw_summary_shown *const *)a;
    const struct ipw_summary_shown *y = *(const struct ipw_summary_shown *const *)b;

    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return x->epoch < y->epoch ? -1 : x->epoch > y->epoch;
}

static void put_rows(struct ipw_buf *out, const struct ipw_summary *s, size_t max_rows,
                     size_t width, bool colour)
{
    struct layout l = lay_out(s, width);
    const struct ipw_summary_shown *order[IPW_SUMMARY_SHOWN];
    size_t shown = max_rows && max_rows < s->n_shown ? max_rows : s->n_shown;

    for (size_t i = 0; i < s->n_shown; i++) order[i] = &s->shown[i];
    qsort(order, s->n_shown, sizeof *order, by_index);
    put_head(out, &l, width, colour);
    for (size_t i = 0; i < shown; i++)
        put_row(out, &(struct cells){ipw_summary_row(s, order[i]->row), order[i]}, &l, colour);
    if (shown < s->n) {
        ipw_buf_addf(out, "   %s\xE2\x80\xA6 and %zu more in traces.jsonl%s\n",
                     ipw_style(IPW_DIM, colour), s->n - shown, ipw_style(IPW_PLAIN, colour));
    }
    rule(out, width, colour);
}

static void put_title(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, size_t width, bool colour)
{
    const char *parts[] = {run->agent, run->model, run->dataset};
    struct ipw_buf title = IPW_BUF(4096);

    for (int i = 0; i < 3; i++) {
        if (!parts[i]) continue;
        if (title.len) ipw_buf_adds(&title, " \xC2\xB7 ");
        ipw_buf_adds(&title, parts[i]);
    }
    ipw_buf_addf(out, "\n %s", ipw_style(IPW_BOLD, colour));
    ipw_format_cell(out, ipw_buf_str(&title), width - 1, IPW_ALIGN_NONE);
    ipw_buf_adds(out, ipw_style(IPW_PLAIN, colour));
    ipw_buf_addc(out, '\n');
    if (run->status && strcmp(run->status, "complete") != 0) {
        ipw_buf_addf(out, " %s%s", ipw_style(IPW_YELLOW, colour), run->status);
        if (run->planned >= 0) {
            size_t stopped = 0;

            for (size_t i = 0; i < s->n; i++) stopped += ipw_summary_row(s, i)->stopped;
            ipw_buf_addf(out, ": %zu of %lld queries done", s->n - stopped,
                         (long long)run->planned);
        }
        ipw_buf_addf(out, "%s\n", ipw_style(IPW_PLAIN, colour));
    }
    ipw_buf_addc(out, '\n');
    ipw_buf_release(&title);
}

void ipw_table_write(struct ipw_buf *out, const struct ipw_summary *s,
                     const struct ipw_summary_run *run, const struct ipw_table_options *options)
{
    size_t width = options->width < WIDTH_MIN ? WIDTH_MIN : options->width;

    put_title(out, s, run, width, options->colour);
    if (s->n) put_rows(out, s, options->max_rows, width, options->colour);
    ipw_table_totals(out, s, run, width, options->colour);
}
