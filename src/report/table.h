/* report/table.h: a run on one screen.
 *
 * One row a query, then what a person wants to know in one glance: score, work, time, energy and
 * how it was obtained, efficiency, the ledger's balance, the program's own load, where the files
 * are.  Fitted to the terminal's width (80 at least); text from outside is made harmless first.
 * Unknown is shown as an en dash and explained in one line. */
#ifndef IPW_REPORT_TABLE_H
#define IPW_REPORT_TABLE_H

#include "base/buf.h"
#include "report/summary.h"

struct ipw_table_options {
    unsigned width;  /* columns of the terminal; 0 or less than 80: 80 */
    bool colour;     /* only when asked */
    size_t max_rows; /* rows shown at most (first ones, then failures are counted); 0: all */
};

void ipw_table_write(struct ipw_buf *out, const struct ipw_summary *s,
                     const struct ipw_summary_run *run, const struct ipw_table_options *options);

#endif
