/* run/results.h: what a run's queries came to, earlier sessions' included.
 *
 * The rows and sums of the summary, and the joules of the warm-up, kept apart from them.  Booking
 * (run/booking.h) adds to it, and so does a run that goes on (run/resume/sessions.h). */
#ifndef IPW_RUN_RESULTS_H
#define IPW_RUN_RESULTS_H

#include "ledger/run_balance.h"
#include "report/summary.h"

struct ipw_results {
    struct ipw_summary summary;
    struct ipw_uncounted warmup; /* of this session */
    size_t n_answered;           /* queries that came to an answer */
    size_t n_failed;             /* of this session: without one, by themselves */
};

void ipw_results_init(struct ipw_results *r);
void ipw_results_release(struct ipw_results *r);

#endif
