/* report/table.h: a run on one screen.
 *
 * One row a query, then labelled lines: accuracy and energy first, then time and work, then how far
 * to trust it (provenance, the ledger's balance, the program's own overhead), and where the files
 * are.  A column has one unit, which stands in its heading.  A domain that nothing measures has no
 * column; one line gives the reason.  A query without a figure is shown as an en dash, or as its
 * estimate in brackets, which is in no total.  `~` marks what is distributed or estimated, counted by
 * query in the rows and in the provenance line.  Fitted to the terminal's width (80 at least); text
 * from outside is made harmless first. */
#ifndef IPW_REPORT_TABLE_H
#define IPW_REPORT_TABLE_H

#include "base/buf.h"
#include "report/summary.h"

struct ipw_table_options {
    unsigned width;  /* columns of the terminal; 0 or less than 80: 80 */
    bool colour;     /* only when asked */
    size_t max_rows; /* of the first IPW_SUMMARY_SHOWN no more than these; 0: all of them */
};

void ipw_table_write(struct ipw_buf *out, const struct ipw_summary *s,
                     const struct ipw_summary_run *run, const struct ipw_table_options *options);

#endif
