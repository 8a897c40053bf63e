#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/format.h"
#include "report/table_priv.h"

#define WIDTH_MIN     80
#define ID_MIN        5
#define ID_MAX        24
#define MARK_OK       "\xE2\x9C\x93" /* check mark */
#define MARK_WRONG    "\xE2\x9C\x97" /* ballot x */
#define MARK_FAILED   "!"
#define MARK_UNSCORED "\xC2\xB7" /* middle dot */

/* The columns between the id and the answer; each is preceded by a blank. */
enum { W_LEVEL = 3, W_TURNS = 5, W_TOOLS = 5, W_TOKENS = 6, W_TIME = 6, W_ENERGY = 7 };

struct layout {
    size_t id, answer;
    bool level;
    unsigned energy[2]; /* the two domains shown */
};

const char *ipw_table_mark(const struct ipw_summary_row *row, enum ipw_style *style)
{
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

static bool any_known(const struct ipw_summary *s, unsigned domain)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->rows[i].energy[domain].known) return true;
    }
    return false;
}

static struct layout lay_out(const struct ipw_summary *s, size_t width)
{
    struct layout l = {.id = ID_MIN, .energy = {IPW_DOMAIN_GPU, IPW_DOMAIN_CPU}};
    size_t fixed, id_max;

    for (size_t i = 0; i < s->n; i++) {
        size_t n = ipw_format_width(s->rows[i].id, strlen(s->rows[i].id));

        if (n > l.id) l.id = n;
        if (s->rows[i].level && *s->rows[i].level) l.level = true;
    }
    /* A machine's own meter is more telling than a device that has none. */
    if (any_known(s, IPW_DOMAIN_MACHINE)) {
        if (!any_known(s, IPW_DOMAIN_CPU)) {
            l.energy[1] = IPW_DOMAIN_MACHINE;
        } else if (!any_known(s, IPW_DOMAIN_GPU)) {
            l.energy[0] = IPW_DOMAIN_CPU;
            l.energy[1] = IPW_DOMAIN_MACHINE;
        }
    }
    id_max = 8 + (width - WIDTH_MIN) / 4; /* a wide terminal's columns go mostly to the answer */
    if (id_max > ID_MAX) id_max = ID_MAX;
    if (l.id > id_max) l.id = id_max;
    fixed = 3 + l.id + (l.level ? W_LEVEL + 1 : 0) + W_TURNS + W_TOOLS + 2 * W_TOKENS + W_TIME +
            2 * W_ENERGY + 7 + 2;
    l.answer = width - fixed;
    return l;
}

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
    static const char *const names[IPW_DOMAIN_COUNT] = {"GPU", "CPU", "DRAM", "machine"};

    ipw_buf_adds(out, ipw_style(IPW_BOLD, colour));
    ipw_buf_adds(out, "   ");
    ipw_format_cell(out, "query", l->id, IPW_ALIGN_LEFT);
    if (l->level) cell(out, "lvl", W_LEVEL);
    cell(out, "turns", W_TURNS);
    cell(out, "tools", W_TOOLS);
    cell(out, "tok in", W_TOKENS);
    cell(out, "out", W_TOKENS);
    cell(out, "time", W_TIME);
    cell(out, names[l->energy[0]], W_ENERGY);
    cell(out, names[l->energy[1]], W_ENERGY);
    ipw_buf_adds(out, "  answer");
    ipw_buf_adds(out, ipw_style(IPW_PLAIN, colour));
    ipw_buf_addc(out, '\n');
    rule(out, width, colour);
}

static void put_joules(struct ipw_buf *out, const struct ipw_summary_figure *f)
{
    char text[40] = "", number[32];

    if (f->known && f->provenance >= IPW_PROV_DISTRIBUTED) strcpy(text, "~");
    strcat(text, ipw_format_si(number, f->known ? f->j : NAN, "J"));
    cell(out, text, W_ENERGY);
}

static void put_answer(struct ipw_buf *out, const struct ipw_summary_row *row, size_t columns)
{
    struct ipw_buf text = IPW_BUF(4096);

    if (!row->completed) {
        ipw_buf_adds(&text, row->outcome);
        if (row->error && *row->error) ipw_buf_addf(&text, ": %s", row->error);
    } else if (row->answer) {
        ipw_buf_adds(&text, row->answer);
    }
    ipw_buf_adds(out, "  ");
    ipw_format_cell(out, ipw_buf_str(&text), columns, IPW_ALIGN_NONE);
    ipw_buf_release(&text);
}

static void put_row(struct ipw_buf *out, const struct ipw_summary_row *row, const struct layout *l,
                    bool colour)
{
    enum ipw_style style;
    const char *mark = ipw_table_mark(row, &style);
    char number[32];

    ipw_buf_addf(out, " %s%s%s ", ipw_style(style, colour), mark, ipw_style(IPW_PLAIN, colour));
    ipw_format_cell(out, row->id, l->id, IPW_ALIGN_LEFT);
    if (l->level) cell(out, row->level && *row->level ? row->level : IPW_UNKNOWN_TEXT, W_LEVEL);
    cell(out, ipw_format_count(number, (int64_t)row->turns), W_TURNS);
    cell(out, ipw_format_count(number, (int64_t)row->tools), W_TOOLS);
    cell(out, ipw_format_count(number, row->input_tokens), W_TOKENS);
    cell(out, ipw_format_count(number, row->output_tokens), W_TOKENS);
    cell(out, ipw_format_seconds(number, row->wall_s), W_TIME);
    put_joules(out, &row->energy[l->energy[0]]);
    put_joules(out, &row->energy[l->energy[1]]);
    put_answer(out, row, l->answer);
    ipw_buf_addc(out, '\n');
}

static int by_index(const void *a, const void *b)
{
    const struct ipw_summary_row *x = *(struct ipw_summary_row *const *)a;
    const struct ipw_summary_row *y = *(struct ipw_summary_row *const *)b;

    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return x->epoch < y->epoch ? -1 : x->epoch > y->epoch;
}

static void put_rows(struct ipw_buf *out, const struct ipw_summary *s, size_t max_rows,
                     size_t width, bool colour)
{
    struct layout l = lay_out(s, width);
    const struct ipw_summary_row **order = ipw_calloc(s->n + 1, sizeof *order);
    size_t shown = max_rows && max_rows < s->n ? max_rows : s->n;

    for (size_t i = 0; i < s->n; i++) order[i] = &s->rows[i];
    qsort(order, s->n, sizeof *order, by_index);
    put_head(out, &l, width, colour);
    for (size_t i = 0; i < shown; i++) put_row(out, order[i], &l, colour);
    if (shown < s->n) {
        ipw_buf_addf(out, "   %s\xE2\x80\xA6 and %zu more in traces.jsonl%s\n",
                     ipw_style(IPW_DIM, colour), s->n - shown, ipw_style(IPW_PLAIN, colour));
    }
    rule(out, width, colour);
    free(order);
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
            ipw_buf_addf(out, ": %zu of %lld queries done", s->n, (long long)run->planned);
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
