#include "ledger/run_balance.h"

#include <math.h>

void ipw_uncounted_add(struct ipw_uncounted *u, const struct ipw_query_trace *trace)
{
    /* No time and no energy: its session was killed before a sensor was read. */
    bool empty = trace->end_ns <= trace->start_ns;

    ipw_device_sums_add(&u->devices, trace);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &trace->energy[d];

        if (!empty) ipw_bounds_add(&u->bounds[d], u->j[d], ipw_figure_bounds(f), f->j);
        u->j[d] = ipw_figure_add_j(u->j[d], f->known ? f->j : empty ? 0 : (double)NAN);
    }
}

void ipw_uncounted_put(struct ipw_balance *balance, struct ipw_device_balances *devices,
                       const struct ipw_uncounted *warmup, const struct ipw_uncounted *earlier)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_balance *b = &balance[d];

        if (warmup) ipw_bounds_add(&b->warmup, b->warmup_j, warmup->bounds[d], warmup->j[d]);
        if (earlier) ipw_bounds_add(&b->wasted, b->wasted_j, earlier->bounds[d], earlier->j[d]);
        if (warmup) b->warmup_j += warmup->j[d];
        if (earlier) b->wasted_j += earlier->j[d];
    }
    ipw_device_balances_apart(devices, warmup ? &warmup->devices : NULL,
                              earlier ? &earlier->devices : NULL);
}

void ipw_uncounted_release(struct ipw_uncounted *u)
{
    ipw_device_sums_release(&u->devices);
    *u = (struct ipw_uncounted){0};
}

void ipw_run_balance_session(struct ipw_run_balance *b, const struct ipw_balance *balance,
                             const struct ipw_device_balances *devices)
{
    ipw_device_balances_add(&b->devices, devices);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (b->n_sessions)
            ipw_balance_add(&b->balance[d], &balance[d]);
        else
            b->balance[d] = balance[d];
    }
    b->n_sessions++;
}

void ipw_run_balance_close(struct ipw_run_balance *b)
{
    ipw_uncounted_put(b->balance, &b->devices, &b->warmup, &b->earlier);
}

void ipw_run_balance_release(struct ipw_run_balance *b)
{
    ipw_device_balances_release(&b->devices);
    ipw_uncounted_release(&b->warmup);
    ipw_uncounted_release(&b->earlier);
    *b = (struct ipw_run_balance){0};
}
