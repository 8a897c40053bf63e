/* audit/ledger_check.h: the trace lines of a run beside the recomputed ones.
 *
 * For each recomputed query the line that the run wrote is found, what the ledger does not know
 * (texts, score, cost) is taken from it, and the line is written again: it must come out the same,
 * byte for byte.  Owns its files.  Of a line only its place is kept: the lines of earlier attempts,
 * which are gone through at the start, and those that are passed over are read again when their turn
 * comes. */
#ifndef IPW_AUDIT_LEDGER_CHECK_H
#define IPW_AUDIT_LEDGER_CHECK_H

#include "ledger/recompute.h"
#include "trace/schema.h"

enum ipw_check_verdict {
    IPW_CHECK_SAME,
    IPW_CHECK_DIFFERS,
    IPW_CHECK_MISSING,   /* the run wrote no such line */
    IPW_CHECK_UNWRITTEN, /* nor could it: it was killed before; the query will be run again */
};

struct ipw_check;

/* *out is NULL, without an error, when RUN has no traces.jsonl. */
int ipw_check_open(struct ipw_check **out, const char *run, struct ipw_err *err);
/* Looks for the line of a query of `segment`, among those of earlier attempts, too.  `loaded`
 * receives the run's own query (released by the caller) unless there is none; `what` (may be NULL)
 * the first place at which they differ, such as "turns[2].energy.gpu.joules: 1.5, now 1.6". */
int ipw_check_query(struct ipw_check *c, const struct ipw_recompute_segment *segment,
                    const struct ipw_recompute_query *query, enum ipw_check_verdict *verdict,
                    struct ipw_query_loaded *loaded, struct ipw_buf *what, struct ipw_err *err);
/* How many lines of the run were not asked for.  One that is in traces.jsonl and among the earlier
 * attempts as well, as a crash between the two leaves it, counts once. */
int ipw_check_left(struct ipw_check *c, size_t *left, struct ipw_err *err);
void ipw_check_close(struct ipw_check *c); /* NULL is fine */

#endif
