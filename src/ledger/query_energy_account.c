/* The accounts of a query: wasted energy, tool-wait energy, energy while the query was alone, and
 * net energy above the idle baseline. */
#include <math.h>

#include "base/mem.h"
#include "ledger/query_energy_priv.h"

/* Whole microjoules, so that the devices' values sum to the domain's. */
static double joules_in(const struct ipw_ledger *ledger, struct ipw_ledger_question ask,
                        const struct ipw_query_tiles *tiles,
                        bool (*counts)(const struct ipw_query_tile *tile))
{
    int64_t uj = 0;

    for (size_t i = 0; i < tiles->n; i++) {
        double j;

        if (!counts(&tiles->all[i])) continue;
        ask.t0_ns = tiles->all[i].from;
        ask.t1_ns = tiles->all[i].to;
        j = ipw_ledger_joules(ledger, ask);
        if (isnan(j)) return NAN;
        uj += llround(j * 1e6);
    }
    return (double)uj / 1e6;
}

static bool is_wasted(const struct ipw_query_tile *tile) { return tile->waste; }

/* Tools run or a retry waits, and no attempt is in progress. */
static bool is_idling(const struct ipw_query_tile *tile)
{
    return tile->kind == IPW_PART_TOOL || tile->kind == IPW_PART_WAIT;
}

/* The accounts of one domain, or of one device. */
static struct ipw_query_account account_of(const struct ipw_ledger *ledger,
                                           struct ipw_ledger_question ask,
                                           const struct ipw_query_trace *q,
                                           const struct ipw_query_tiles *tiles)
{
    struct ipw_query_account a = {NAN, NAN, NAN, NAN};

    if (ask.query >= 0) {
        struct ipw_account told;

        ask.t0_ns = q->start_ns;
        ask.t1_ns = q->end_ns;
        told = ipw_ledger_account(ledger, ask);
        a.exclusive_j = told.exclusive_j;
        a.marginal_j = told.marginal_j;
    }
    /* While a remote model works, the client's own devices do not tell its wasted or tool-wait
     * energy. */
    if (!ipw_query_energy_of_model(q, ask.domain)) return a;
    a.waste_j = joules_in(ledger, ask, tiles, is_wasted);
    a.idle_tax_j = joules_in(ledger, ask, tiles, is_idling);
    return a;
}

void ipw_query_energy_accounts(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                               int64_t query, const struct ipw_query_tiles *tiles)
{
    static const struct ipw_query_account unknown = {NAN, NAN, NAN, NAN};

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_ledger_question ask = {query, (enum ipw_domain)d, .device = IPW_LEDGER_ALL};

        q->account[d] = q->energy[d].known ? account_of(ledger, ask, q, tiles) : unknown;
    }
    if (q->n_devices) q->device_account = ipw_calloc(q->n_devices, sizeof *q->device_account);
    for (size_t k = 0; k < q->n_devices; k++) {
        struct ipw_ledger_question ask = {
            query, q->devices[k].domain, .device = ipw_query_energy_device(ledger, &q->devices[k])};

        /* If a domain's energy is unknown, none of its devices gets an account. */
        q->device_account[k] = q->energy[ask.domain].known && q->device_energy[k].known
                                   ? account_of(ledger, ask, q, tiles)
                                   : unknown;
    }
}
