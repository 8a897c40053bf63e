/* report/table_priv.h: internal to table.c (rows), table_totals.c (the lines below them),
 * table_energy.c (the lines about joules) and table_tools.c (the lines about tools).  A line is
 * built in `text` and printed under a label. */
#ifndef IPW_REPORT_TABLE_PRIV_H
#define IPW_REPORT_TABLE_PRIV_H

#include "report/format.h"
#include "report/summary.h"

#define IPW_TABLE_LABEL 13 /* where the text of a line begins */
#define IPW_TABLE_DOT   " \xC2\xB7 "
#define IPW_TABLE_J     "\xC2\xA0J" /* with a blank where lines are not broken */

struct ipw_table_block {
    struct ipw_buf *out;
    struct ipw_buf text; /* of the line that is being built */
    size_t width;
    bool colour;
    const struct ipw_summary *s;
    const struct ipw_summary_run *run;
    struct ipw_totals t;
    struct ipw_efficiency e; /* over the basis */
};

/* Prints the text under a label and empties it; prints nothing without text. */
void ipw_table_line(struct ipw_table_block *b, const char *label);
void ipw_table_styled(struct ipw_table_block *b, enum ipw_style style, const char *text);
/* The separator between two parts of a line. */
void ipw_table_dot(struct ipw_table_block *b);
const char *ipw_table_joules(char *out, double j);
/* Whether a query has an energy value of some domain. */
bool ipw_table_any_known(const struct ipw_table_block *b);
/* The lines energy, of that, net. */
void ipw_table_energy(struct ipw_table_block *b);
/* The domain of the model's machine, else the first known domain; -1: none is known. */
int ipw_table_account_domain(const struct ipw_totals *t);
/* The tools by name, if there were calls. */
void ipw_table_tools(struct ipw_table_block *b);

const char *ipw_table_mark(const struct ipw_summary_row *row, enum ipw_style *style);
/* The domains that a row can show: a query has an energy value of them, or an estimate. */
unsigned ipw_table_domains(const struct ipw_summary *s);
void ipw_table_totals(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, size_t width, bool colour);

#endif
