/* The devices of a balance, as `ledger --json` and summary.json have them. */
#include "report/write_summary.h"

#include <string.h>

static void put_ledger_bounds(struct ipw_jw *w, const struct ipw_summary_balance_line *line,
                              const struct ipw_balance *balance)
{
    ipw_jw_key(w, "bounds");
    ipw_jw_obj(w);
    if (!isnan(line->idle_j)) ipw_bounds_write(w, "idle_j", ipw_figure_bounds(&balance->idle));
    if (!isnan(line->queries_j)) ipw_bounds_write(w, "queries_j", line->queries);
    if (!isnan(line->total_j)) ipw_bounds_write(w, "total_j", ipw_figure_bounds(&balance->total));
    if (!isnan(line->warmup_j)) ipw_bounds_write(w, "warmup_j", balance->warmup);
    if (!isnan(line->wasted_j)) ipw_bounds_write(w, "wasted_j", balance->wasted);
    ipw_jw_obj_end(w);
}

static void put_balanced(struct ipw_jw *w, const struct ipw_summary_balance_line *line)
{
    if (line->state == IPW_LEDGER_UNKNOWN) {
        ipw_jw_knull(w, "balanced");
    } else {
        ipw_jw_kbool(w, "balanced", line->state == IPW_LEDGER_BALANCED);
    }
}

static void put_parts(struct ipw_jw *w, const struct ipw_summary_balance_line *line,
                      const struct ipw_balance *balance)
{
    /* If one of several devices has no readings, the energy of the others is still a part. */
    bool partial =
        !balance->total.known && (balance->total.coverage > 0 || balance->total.partial_j > 0);

    ipw_jw_kmicro(w, "difference_j", line->difference_j);
    ipw_jw_kmicro(w, "idle_j", line->idle_j);
    ipw_jw_knum(w, "partial_coverage", partial ? balance->total.coverage : NAN);
    ipw_jw_kmicro(w, "partial_j", partial ? balance->total.partial_j : NAN);
    ipw_jw_kmicro(w, "queries_j", line->queries_j);
    ipw_jw_kstr(w, "reason", balance->total.known ? NULL : balance->total.reason);
    ipw_jw_kmicro(w, "total_j", line->total_j);
    ipw_jw_kmicro(w, "warmup_j", line->warmup_j);
    ipw_jw_kmicro(w, "wasted_j", line->wasted_j);
}

/* Of the queries on a device only the ledger knows bounds: of all together. */
static struct ipw_sum device_sum(const struct ipw_device_sums *queries,
                                 const struct ipw_device_balance *item)
{
    double j = ipw_device_sums_get(queries, item->domain, item->name);
    struct ipw_bounds own = IPW_NO_BOUNDS;

    return (struct ipw_sum){.total = j, .bounds = ipw_balance_narrow(&item->balance, own, j)};
}

void ipw_summary_put_devices(struct ipw_jw *w, const struct ipw_device_balances *balances,
                             enum ipw_domain domain, const struct ipw_device_sums *queries,
                             size_t n_queries)
{
    if (!ipw_device_balances_whole(balances, domain)) return;
    ipw_jw_key(w, "devices");
    ipw_jw_obj(w);
    for (size_t i = 0; i < balances->n; i++) {
        const struct ipw_device_balance *item = &balances->all[i];
        struct ipw_sum sum = device_sum(queries, item);
        struct ipw_summary_balance_line line;

        if (item->domain != domain) continue;
        ipw_summary_balance_line(&line, &item->balance, &sum, n_queries);
        ipw_jw_key_any(w, item->name, strlen(item->name));
        ipw_jw_obj(w);
        put_balanced(w, &line);
        put_ledger_bounds(w, &line, &item->balance);
        put_parts(w, &line, &item->balance);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}
