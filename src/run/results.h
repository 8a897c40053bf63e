/* run/results.h: what a run's queries came to, earlier sessions' included.
 *
 * The rows and sums of the summary, and the joules of the warm-up, kept apart from them.  Booking
 * (run/booking.h) adds to it, and so does a run that goes on (run/resume/sessions.h). */
#ifndef IPW_RUN_RESULTS_H
#define IPW_RUN_RESULTS_H

#include "report/summary.h"

struct ipw_results {
    struct ipw_summary summary;
    struct ipw_sum warmup_j[IPW_DOMAIN_COUNT];
    struct ipw_device_sums warmup_devices;
    size_t n_answered; /* queries that came to an answer */
    size_t n_failed;   /* of this session: without one, by themselves */
};

void ipw_results_init(struct ipw_results *r);
void ipw_results_release(struct ipw_results *r);
void ipw_results_warmup(struct ipw_results *r, const struct ipw_query_trace *trace);

#endif
