#include "report/summary.h"

void ipw_summary_init(struct ipw_summary *s)
{
    *s = (struct ipw_summary){0};
    ipw_summary_rows_init(&s->kept);
}

void ipw_summary_release(struct ipw_summary *s)
{
    ipw_summary_rows_release(&s->kept);
    *s = (struct ipw_summary){0};
}

void ipw_summary_add(struct ipw_summary *s, const struct ipw_query_trace *trace,
                     const struct ipw_query_details *details)
{
    ipw_summary_rows_add(&s->kept, trace, details);
}
