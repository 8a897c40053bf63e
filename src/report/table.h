/* report/table.h: a run on one screen.
 *
 * One row for each query, then labelled lines: accuracy and energy, time and work, how far to trust
 * the numbers (provenance, the ledger's balance, the program's overhead), and the folder.  A column
 * has one unit, in its heading.  A domain without measurements has no column; one line gives the
 * reason.  A query without an energy value is an en dash, or its estimate in brackets, which is in
 * no total.  `~` marks distributed and estimated values; rows and the provenance line count by
 * query.  The table fits the terminal's width (80 at least).  Text from outside is made harmless
 * first. */
#ifndef IPW_REPORT_TABLE_H
#define IPW_REPORT_TABLE_H

#include "base/buf.h"
#include "report/summary.h"

struct ipw_table_options {
    unsigned width;  /* columns of the terminal; 0 or less than 80: 80 */
    bool colour;     /* only if requested */
    size_t max_rows; /* at most so many of the first IPW_SUMMARY_SHOWN; 0: all of them */
};

void ipw_table_write(struct ipw_buf *out, const struct ipw_summary *s,
                     const struct ipw_summary_run *run, const struct ipw_table_options *options);

#endif
