/* The lines of the table about tools, by name: those that took most first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/table_priv.h"
#include "report/words.h"

/* The numbers of a row have as many columns as put_row() prints. */
enum { NAME_COLUMNS = 20, COLUMNS = 80, NUMBER_COLUMNS = 23, ROWS_MAX = 12 };

static const char joules_head[] = " while it ran";

/* The columns of the joules: as wide as their head. */
static int joule_columns(int domain)
{
    return domain < 0
               ? 0
               : (int)(strlen(ipw_words_domain((enum ipw_domain)domain)) + sizeof joules_head - 1);
}

struct row {
    const struct ipw_tool_sum *tool;
    double j; /* of the queries while it ran; NAN: unknown */
};

static int by_weight(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->j != y->j && !isnan(x->j) && !isnan(y->j)) return x->j < y->j ? 1 : -1;
    if (x->tool->seconds != y->tool->seconds) return x->tool->seconds < y->tool->seconds ? 1 : -1;
    return strcmp(x->tool->name, y->tool->name);
}

static int name_columns(const struct ipw_tool_sums *tools, int domain)
{
    int most =
        COLUMNS - IPW_TABLE_LABEL - NUMBER_COLUMNS - (domain >= 0 ? 1 + joule_columns(domain) : 0);
    int n = NAME_COLUMNS;

    for (size_t i = 0; i < tools->n; i++) {
        int width = (int)ipw_format_width(tools->list[i].name, strlen(tools->list[i].name));

        if (width > n) n = width;
    }
    return n < most ? n : most;
}

/* A name that is too long loses its middle: tools of one MCP server differ in their ends. */
static void put_name(struct ipw_table_block *b, const char *name, size_t columns)
{
    size_t n = strlen(name), head = columns / 3;

    if (n <= columns || ipw_format_width(name, n) != n) {
        ipw_format_cell(b->out, name, columns, IPW_ALIGN_LEFT);
        return;
    }
    ipw_format_cell(b->out, name, head + 1, IPW_ALIGN_LEFT);
    ipw_format_cell(b->out, name + n - (columns - head - 1), columns - head - 1, IPW_ALIGN_LEFT);
}

static void put_head(struct ipw_table_block *b, int domain, int columns)
{
    ipw_buf_addf(b->out, " %s%-*s%-*s %6s %6s %8s", ipw_style(IPW_CYAN, b->colour),
                 IPW_TABLE_LABEL - 1, "tools", columns, "", "calls", "failed", "time");
    if (domain >= 0) {
        ipw_buf_addf(b->out, " %s%s", ipw_words_domain((enum ipw_domain)domain), joules_head);
    }
    ipw_buf_addf(b->out, "%s\n", ipw_style(IPW_PLAIN, b->colour));
}

static void put_cell(struct ipw_table_block *b, double j, int columns)
{
    char number[32];

    ipw_buf_addc(b->out, ' ');
    ipw_format_cell(b->out, isnan(j) ? IPW_UNKNOWN_TEXT : ipw_table_joules(number, j),
                    (size_t)columns, IPW_ALIGN_RIGHT);
}

static void put_row(struct ipw_table_block *b, const struct row *row, int domain, int columns)
{
    char seconds[32];

    ipw_buf_addf(b->out, " %*s", IPW_TABLE_LABEL - 1, "");
    put_name(b, row->tool->name, (size_t)columns);
    ipw_buf_addf(b->out, " %6lld %6lld %8s", (long long)row->tool->calls,
                 (long long)row->tool->failed,
                 ipw_format_spaced_seconds(seconds, row->tool->seconds));
    if (domain >= 0) put_cell(b, row->j, joule_columns(domain));
    ipw_buf_addc(b->out, '\n');
}

void ipw_table_tools(struct ipw_table_block *b)
{
    const struct ipw_tool_sums *tools = &b->s->tools;
    int domain = ipw_table_account_domain(&b->t), columns = name_columns(tools, domain);
    struct row *rows;

    if (!tools->n) return;
    rows = ipw_calloc(tools->n, sizeof *rows);
    for (size_t i = 0; i < tools->n; i++) {
        const struct ipw_summary_part *part = ipw_summary_tool_part(b->s, tools->list[i].name);

        rows[i] = (struct row){&tools->list[i], NAN};
        if (domain >= 0 && part) rows[i].j = part->j[domain];
    }
    qsort(rows, tools->n, sizeof *rows, by_weight);
    put_head(b, domain, columns);
    for (size_t i = 0; i < tools->n && i < ROWS_MAX; i++) put_row(b, &rows[i], domain, columns);
    if (tools->n > ROWS_MAX)
        ipw_buf_addf(b->out, " %*s%zu more: `tools` of summary.json\n", IPW_TABLE_LABEL - 1, "",
                     tools->n - ROWS_MAX);
    free(rows);
}
