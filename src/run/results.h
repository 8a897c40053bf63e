/* run/results.h: the results of a run's queries, including those of earlier sessions.
 *
 * The rows and sums of the summary, and separately the joules of the warm-up.  Booking
 * (run/finished_queries.h) adds to it, and so does a resumed run (run/resume/sessions.h). */
#ifndef IPW_RUN_RESULTS_H
#define IPW_RUN_RESULTS_H

#include "ledger/balance.h"
#include "report/summary.h"

struct ipw_results {
    struct ipw_summary summary;
    struct ipw_uncounted warmup; /* of this session */
    size_t n_answered;           /* queries with an answer */
    size_t n_failed;             /* queries of this session that failed by themselves */
};

void ipw_results_init(struct ipw_results *r);
void ipw_results_release(struct ipw_results *r);
/* Makes the summary anew from the lines of the run (a folder), which were changed. */
int ipw_results_recount(struct ipw_results *r, const char *run, struct ipw_err *err);

#endif
