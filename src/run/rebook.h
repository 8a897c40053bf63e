/* run/rebook.h: writes lines of the present session again, after one of its sensors lost its trust.
 *
 * A verdict of energy/trust.h holds for the whole session, but lines may have been written before
 * it.  They are computed again from the run's events and readings (ledger/recompute.h), which know
 * the verdict, and the files with lines that differ are rewritten. */
#ifndef IPW_RUN_REBOOK_H
#define IPW_RUN_REBOOK_H

#include "ledger/balance.h"
#include "trace/rundir.h"

/* All is on disk, also the session's run_end.  *warmup gets the session's warm-up queries anew. */
int ipw_rebook_session(struct ipw_rundir *dir, int segment, struct ipw_uncounted *warmup,
                       struct ipw_err *err);

#endif
