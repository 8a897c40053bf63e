/* report/table_priv.h: what table.c (rows), table_totals.c (the block below them) and table_energy.c
 * (its lines about joules) share.  A line is gathered in `text` and written under a label. */
#ifndef IPW_REPORT_TABLE_PRIV_H
#define IPW_REPORT_TABLE_PRIV_H

#include "report/format.h"
#include "report/summary.h"

#define IPW_TABLE_LABEL 13 /* where the text of a line begins */
#define IPW_TABLE_DOT   " \xC2\xB7 "

struct ipw_table_block {
    struct ipw_buf *out;
    struct ipw_buf text; /* of the line being gathered */
    size_t width;
    bool colour;
    const struct ipw_summary *s;
    const struct ipw_summary_run *run;
    struct ipw_totals t;
    struct ipw_efficiency e; /* of the headline */
};

/* Writes the gathered text under a label, and empties it; nothing when there is none. */
void ipw_table_line(struct ipw_table_block *b, const char *label);
void ipw_table_styled(struct ipw_table_block *b, enum ipw_style style, const char *text);
/* Between two parts of a line. */
void ipw_table_dot(struct ipw_table_block *b);
const char *ipw_table_joules(char *out, double j);
/* A query has a figure of some domain. */
bool ipw_table_any_known(const struct ipw_table_block *b);
/* energy, of that, net. */
void ipw_table_energy(struct ipw_table_block *b);

const char *ipw_table_mark(const struct ipw_summary_row *row, enum ipw_style *style);
/* The domains that a row of the table can show: a query has a figure of them, or an estimate. */
unsigned ipw_table_domains(const struct ipw_summary *s);
void ipw_table_totals(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, size_t width, bool colour);

#endif
