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

void ipw_summary_totals(struct ipw_totals *t, const struct ipw_summary *s)
{
    const struct ipw_columns *queries = &s->kept.queries;
    size_t first = ipw_summary_query_column("gpu_j"); /* five columns a domain */

    *t = (struct ipw_totals){.queries = queries->n};
    for (size_t d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_sum *sum = &t->energy[d];

        for (size_t i = 0; i < queries->n; i++) {
            double j = ipw_columns_at(queries, first + 5 * d, i);
            struct ipw_bounds bounds = {ipw_columns_at(queries, first + 5 * d + 1, i),
                                        ipw_columns_at(queries, first + 5 * d + 2, i),
                                        ipw_columns_at(queries, first + 5 * d + 3, i)};

            ipw_bounds_add(&sum->bounds, sum->total, bounds, j);
            sum->total += j;
        }
        t->account[d] = s->kept.accounts[d];
        if (queries->n) continue;
        sum->total = NAN;
        t->account[d] = (struct ipw_query_account){NAN, NAN, NAN, NAN};
    }
}

void ipw_summary_balance_line(struct ipw_summary_balance_line *out,
                              const struct ipw_balance *balance, const struct ipw_sum *queries,
                              size_t n_queries)
{
    /* Nothing took 0 J of a domain that was read; of one that never was, not even that is known. */
    double none_j = balance->total.known || balance->total.coverage > 0 ? 0 : (double)NAN, slack_j;

    *out = (struct ipw_summary_balance_line){
        .total_j = balance->total.known ? balance->total.j : NAN,
        .idle_j = balance->idle.known ? balance->idle.j : NAN,
        .queries_j = n_queries ? queries->total : none_j,
        .wasted_j = balance->wasted_j + none_j,
        .warmup_j = balance->warmup_j + none_j,
        .queries = queries->bounds,
    };
    out->difference_j = out->total_j - out->idle_j - out->queries_j - out->wasted_j - out->warmup_j;
    if (isnan(out->difference_j)) return;
    slack_j = 1e-9 * fabs(out->total_j) + 1e-6 * (double)(n_queries + 2);
    out->state = fabs(out->difference_j) <= slack_j ? IPW_LEDGER_BALANCED : IPW_LEDGER_OFF;
}
