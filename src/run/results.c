#include "run/results.h"

void ipw_results_init(struct ipw_results *r)
{
    *r = (struct ipw_results){0};
    ipw_summary_init(&r->summary);
}

void ipw_results_release(struct ipw_results *r)
{
    ipw_summary_release(&r->summary);
    ipw_device_sums_release(&r->warmup_devices);
}

void ipw_results_warmup(struct ipw_results *r, const struct ipw_query_trace *trace)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &trace->energy[d];

        /* Adds to a sum; an unknown part makes the sum unknown. */
        r->warmup_j[d].total += f->known ? f->j : (double)NAN;
    }
    ipw_device_sums_add(&r->warmup_devices, trace);
}
