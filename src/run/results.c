#include "run/results.h"

void ipw_results_init(struct ipw_results *r)
{
    *r = (struct ipw_results){0};
    ipw_summary_init(&r->summary);
}

void ipw_results_release(struct ipw_results *r)
{
    ipw_summary_release(&r->summary);
    ipw_uncounted_release(&r->warmup);
}
