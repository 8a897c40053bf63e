/* The accounts of a query: wasted energy, tool-wait energy, energy while the query was alone, and
 * net energy above the idle baseline. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/query_energy_priv.h"

struct cut {
    int64_t from, to;
};

struct cuts {
    struct cut *all;
    size_t n, cap;
};

static void add_cut(struct cuts *c, int64_t from, int64_t to)
{
    if (to <= from) return;
    IPW_GROW(c->all, c->cap, c->n + 1);
    c->all[c->n++] = (struct cut){from, to};
}

static int by_from(const void *a, const void *b)
{
    const struct cut *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

/* Makes the union of overlapping windows, in order of time. */
static void unite(struct cuts *c)
{
    size_t n = 0;

    if (c->n) qsort(c->all, c->n, sizeof *c->all, by_from);
    for (size_t i = 0; i < c->n; i++) {
        if (n && c->all[i].from <= c->all[n - 1].to) {
            if (c->all[i].to > c->all[n - 1].to) c->all[n - 1].to = c->all[i].to;
        } else {
            c->all[n++] = c->all[i];
        }
    }
    c->n = n;
}

/* The parts of `a` outside `b`; both are unions. */
static struct cuts outside(const struct cuts *a, const struct cuts *b)
{
    struct cuts out = {0};
    size_t k = 0;

    for (size_t i = 0; i < a->n; i++) {
        int64_t from = a->all[i].from;

        while (k < b->n && b->all[k].to <= from) k++;
        for (size_t m = k; m < b->n && b->all[m].from < a->all[i].to; m++) {
            add_cut(&out, from, b->all[m].from);
            if (b->all[m].to > from) from = b->all[m].to;
        }
        add_cut(&out, from, a->all[i].to);
    }
    return out;
}

/* An attempt is wasted if it failed, or if it is the last of a turn whose reply could not be used.
 * A query waits (idling) while tools run or a retry waits and no attempt is in progress. */
static void gather_cuts(const struct ipw_query_trace *q, struct cuts *wasted, struct cuts *idling)
{
    struct cuts model = {0}, other = {0};

    for (size_t i = 0; i < q->n_turns; i++) {
        const struct ipw_turn *turn = &q->turns[i];
        int64_t attempt_end_ns = INT64_MAX;

        for (size_t k = 0; k < turn->n_spans; k++) {
            const struct ipw_span *span = &turn->spans[k];
            bool ok = span->outcome && !strcmp(span->outcome, "ok");

            if (span->kind == IPW_SPAN_TOOL) add_cut(&other, span->start_ns, span->end_ns);
            if (span->kind != IPW_SPAN_LM) continue;
            add_cut(&other, attempt_end_ns, span->start_ns);
            add_cut(&model, span->start_ns, span->end_ns);
            if (!ok || turn->malformed) add_cut(wasted, span->start_ns, span->end_ns);
            attempt_end_ns = span->end_ns;
        }
    }
    unite(&model);
    unite(&other);
    unite(wasted);
    *idling = outside(&other, &model);
    free(model.all);
    free(other.all);
}

/* Whole microjoules, so that the devices' values sum to the domain's. */
static double joules_in(const struct ipw_ledger *ledger, struct ipw_ledger_question ask,
                        const struct cuts *c)
{
    int64_t uj = 0;

    for (size_t i = 0; i < c->n; i++) {
        struct ipw_figure f;

        ask.t0_ns = c->all[i].from;
        ask.t1_ns = c->all[i].to;
        f = ipw_ledger_figure(ledger, ask);
        if (!f.known) return NAN;
        uj += llround(f.j * 1e6);
    }
    return (double)uj / 1e6;
}

/* The accounts of one domain, or of one device. */
static struct ipw_query_account account_of(const struct ipw_ledger *ledger,
                                           struct ipw_ledger_question ask,
                                           const struct ipw_query_trace *q,
                                           const struct cuts *wasted, const struct cuts *idling)
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
    a.waste_j = joules_in(ledger, ask, wasted);
    a.idle_tax_j = joules_in(ledger, ask, idling);
    return a;
}

void ipw_query_energy_accounts(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                               int64_t query)
{
    static const struct ipw_query_account unknown = {NAN, NAN, NAN, NAN};
    struct cuts wasted = {0}, idling = {0};

    gather_cuts(q, &wasted, &idling);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_ledger_question ask = {query, (enum ipw_domain)d, .device = IPW_LEDGER_ALL};

        q->account[d] = q->energy[d].known ? account_of(ledger, ask, q, &wasted, &idling) : unknown;
    }
    if (q->n_devices) q->device_account = ipw_calloc(q->n_devices, sizeof *q->device_account);
    for (size_t k = 0; k < q->n_devices; k++) {
        struct ipw_ledger_question ask = {
            query, q->devices[k].domain, .device = ipw_query_energy_device(ledger, &q->devices[k])};

        /* If a domain's energy is unknown, none of its devices gets an account. */
        q->device_account[k] = q->energy[ask.domain].known && q->device_energy[k].known
                                   ? account_of(ledger, ask, q, &wasted, &idling)
                                   : unknown;
    }
    free(wasted.all);
    free(idling.all);
}
