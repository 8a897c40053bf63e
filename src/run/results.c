#include "run/results.h"

#include "trace/rundir.h"

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

static int count_query(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    (void)err;
    ipw_summary_add(ud, &q->trace, &q->details);
    return 0;
}

int ipw_results_recount(struct ipw_results *r, const char *run, struct ipw_err *err)
{
    ipw_summary_release(&r->summary);
    ipw_summary_init(&r->summary);
    return ipw_rundir_each_query(run, count_query, &r->summary, NULL, err);
}
