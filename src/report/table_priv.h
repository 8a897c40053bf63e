/* report/table_priv.h: what table.c (rows) and table_totals.c (the block below them) share. */
#ifndef IPW_REPORT_TABLE_PRIV_H
#define IPW_REPORT_TABLE_PRIV_H

#include "report/format.h"
#include "report/summary.h"

const char *ipw_table_mark(const struct ipw_summary_row *row, enum ipw_style *style);
void ipw_table_totals(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, size_t width, bool colour);

#endif
