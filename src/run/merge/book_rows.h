/* run/merge/book_rows.h: a power meter's readings among the readings of a saved run.
 *
 * Writes power.jsonl anew: each session has its own sensors and, as one more source for each column
 * of the meter, the meter's rows around it, in the order of time on the session's clock.  The
 * meter is the machine's sum; another sensor of the machine leaves it.
 *
 * A row of watts is a gauge.  Its period is the usual distance of rows and how far the two clocks
 * may be apart, so that the ledger's bounds (docs/method.md) have both in them.  The ledger takes a
 * gauge's value for half a period and half a window old, so the row is stamped so much later than
 * what it tells.  Cumulative energy is a counter, stamped as it was read.  The most that the
 * machine can draw, which bounds need, is taken to be twice the highest power of the log. */
#ifndef IPW_RUN_MERGE_BOOK_ROWS_H
#define IPW_RUN_MERGE_BOOK_ROWS_H

#include "audit/meter_report.h"
#include "run/merge/shard_run.h"

#define IPW_BOOK_SOURCE "meter"

/* Writes FOLDER/power.jsonl for the sessions of `run`, whose own readings are in its folder, and
 * sets its n_added. */
int ipw_book_rows_write(const char *folder, struct ipw_shard_run *run,
                        const struct ipw_metered_run *meter, struct ipw_err *err);
/* Appends the manifest's "hardware" with the meter's channels. */
void ipw_book_hardware_put(struct ipw_buf *out, const struct ipw_json *hardware,
                           const struct ipw_metered_run *meter);
/* The usual distance of a log's rows in seconds. */
double ipw_book_row_s(const struct ipw_metered_run_input *log);

#endif
