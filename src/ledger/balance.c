#include "ledger/balance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* The balance of a domain, or of one of its devices. */
static struct ipw_balance balance_of(const struct ipw_ledger *ledger, enum ipw_domain domain,
                                     size_t device, int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_ledger_question q = {IPW_LEDGER_ANY, domain, device, t0_ns, t1_ns, IPW_LEDGER_TOTAL};
    struct ipw_balance balance = {.total = ipw_ledger_figure(ledger, q),
                                  .seconds = ipw_ns_to_s(t1_ns - t0_ns)};

    q.what = IPW_LEDGER_IDLE;
    balance.idle = ipw_ledger_figure(ledger, q);
    q.what = IPW_LEDGER_QUERIES;
    balance.queries = ipw_ledger_figure(ledger, q);
    ipw_figure_round(&balance.total); /* as files state them */
    ipw_figure_round(&balance.idle);
    ipw_figure_round(&balance.queries);
    return balance;
}

void ipw_balance_fill(struct ipw_balance *balance, const struct ipw_ledger *ledger, int64_t t0_ns,
                      int64_t t1_ns)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        balance[d] = balance_of(ledger, (enum ipw_domain)d, IPW_LEDGER_ALL, t0_ns, t1_ns);
}

static void add_figure(struct ipw_figure *sum, double sum_s, const struct ipw_figure *more,
                       double more_s)
{
    double partial =
        (sum->known ? sum->j : sum->partial_j) + (more->known ? more->j : more->partial_j);
    double coverage = sum->coverage;

    if (more_s > 0) {
        coverage = (sum->coverage * sum_s + more->coverage * more_s) / (sum_s + more_s);
    }
    if (!sum->known || !more->known) {
        if (sum->known) *sum = *more;
        sum->partial_j = partial;
        sum->coverage = coverage;
        return;
    }
    sum->coverage = coverage;
    sum->j = ipw_figure_add_j(sum->j, more->j);
    sum->lo_j += more->lo_j;
    sum->hi_j += more->hi_j;
    sum->u_j += more->u_j;
    sum->samples += more->samples;
    if (more->provenance > sum->provenance) sum->provenance = more->provenance;
}

void ipw_balance_add(struct ipw_balance *sum, const struct ipw_balance *more)
{
    add_figure(&sum->total, sum->seconds, &more->total, more->seconds);
    add_figure(&sum->idle, sum->seconds, &more->idle, more->seconds);
    add_figure(&sum->queries, sum->seconds, &more->queries, more->seconds);
    ipw_bounds_add(&sum->wasted, sum->wasted_j, more->wasted, more->wasted_j);
    ipw_bounds_add(&sum->warmup, sum->warmup_j, more->warmup, more->warmup_j);
    sum->wasted_j += more->wasted_j;
    sum->warmup_j += more->warmup_j;
    sum->seconds += more->seconds;
}

/* ---- devices ---- */

static int by_device(const void *a, const void *b)
{
    const struct ipw_device_item *x = a, *y = b;

    return x->domain != y->domain ? (x->domain > y->domain ? 1 : -1) : strcmp(x->name, y->name);
}

static struct ipw_device_item *find(const struct ipw_device_list *l, enum ipw_domain domain,
                                    const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].domain == domain && !strcmp(l->all[i].name, name)) return &l->all[i];
    return NULL;
}

/* The device's item, which is added if it is new. */
static struct ipw_device_item *item_of(struct ipw_device_list *l, enum ipw_domain domain,
                                       const char *name)
{
    struct ipw_device_item *item = find(l, domain, name);

    if (item) return item;
    IPW_GROW(l->all, l->cap, l->n + 1);
    item = &l->all[l->n++];
    *item = (struct ipw_device_item){.domain = domain};
    snprintf(item->name, sizeof item->name, "%s", name);
    qsort(l->all, l->n, sizeof *l->all, by_device);
    return find(l, domain, name);
}

static bool has_devices(const struct ipw_query_trace *q, enum ipw_domain domain)
{
    for (size_t i = 0; i < q->n_devices; i++) {
        if (q->devices[i].domain == domain) return true;
    }
    return false;
}

void ipw_device_list_count(struct ipw_device_list *s, const struct ipw_query_trace *q)
{
    static const struct ipw_query_account unknown = {NAN, NAN, NAN, NAN};

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (!has_devices(q, (enum ipw_domain)d)) item_of(s, (enum ipw_domain)d, "");
    for (size_t i = 0; i < q->n_devices && q->device_energy; i++) {
        const struct ipw_figure *f = &q->device_energy[i];
        struct ipw_device_item *sum = item_of(s, q->devices[i].domain, q->devices[i].name);
        const struct ipw_query_account *a = q->device_account ? &q->device_account[i] : &unknown;

        sum->j = ipw_figure_add_j(sum->j, f->known ? f->j : NAN);
        sum->account.exclusive_j = ipw_figure_add_j(sum->account.exclusive_j, a->exclusive_j);
        sum->account.marginal_j = ipw_figure_add_j(sum->account.marginal_j, a->marginal_j);
        sum->account.waste_j = ipw_figure_add_j(sum->account.waste_j, a->waste_j);
        sum->account.idle_tax_j = ipw_figure_add_j(sum->account.idle_tax_j, a->idle_tax_j);
    }
}

double ipw_device_list_j(const struct ipw_device_list *l, enum ipw_domain domain, const char *name)
{
    const struct ipw_device_item *item = find(l, domain, name);

    return item ? item->j : 0;
}

void ipw_device_list_fill(struct ipw_device_list *b, const struct ipw_ledger *ledger, int64_t t0_ns,
                          int64_t t1_ns)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        enum ipw_domain domain = (enum ipw_domain)d;
        size_t n = ipw_ledger_devices(ledger, domain);

        if (n < 2) item_of(b, domain, ""); /* the item without a name */
        for (size_t i = 0; n > 1 && i < n; i++)
            item_of(b, domain, ipw_ledger_device_name(ledger, domain, i))->balance =
                balance_of(ledger, domain, i, t0_ns, t1_ns);
    }
}

void ipw_device_list_add(struct ipw_device_list *sum, const struct ipw_device_list *more)
{
    for (size_t i = 0; i < more->n; i++) {
        const struct ipw_device_item *item = &more->all[i];
        struct ipw_device_item *have = find(sum, item->domain, item->name);

        if (have)
            ipw_balance_add(&have->balance, &item->balance);
        else
            *item_of(sum, item->domain, item->name) = *item;
    }
}

bool ipw_device_list_whole(const struct ipw_device_list *b, enum ipw_domain domain)
{
    bool named = false;

    for (size_t i = 0; b && i < b->n; i++) {
        if (b->all[i].domain != domain) continue;
        if (!b->all[i].name[0]) return false;
        named = true;
    }
    return named;
}

/* Of the queries' joules on a device no bounds are kept. */
static void set_apart(double *j, struct ipw_bounds *bounds, const struct ipw_device_list *sums,
                      const struct ipw_device_item *item)
{
    double more = ipw_device_list_j(sums, item->domain, item->name);

    if (more != 0) *bounds = IPW_NO_BOUNDS;
    *j += more;
}

void ipw_device_list_apart(struct ipw_device_list *b, const struct ipw_device_list *warmup,
                           const struct ipw_device_list *wasted)
{
    for (size_t i = 0; i < b->n; i++) {
        struct ipw_device_item *item = &b->all[i];

        if (warmup) set_apart(&item->balance.warmup_j, &item->balance.warmup, warmup, item);
        if (wasted) set_apart(&item->balance.wasted_j, &item->balance.wasted, wasted, item);
    }
}

void ipw_device_list_release(struct ipw_device_list *b)
{
    free(b->all);
    *b = (struct ipw_device_list){0};
}

/* ---- a run ---- */

void ipw_uncounted_add(struct ipw_uncounted *u, const struct ipw_query_trace *trace)
{
    /* No time and no energy: its session was killed before a sensor was read. */
    bool empty = trace->end_ns <= trace->start_ns;

    ipw_device_list_count(&u->devices, trace);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &trace->energy[d];

        if (!empty) ipw_bounds_add(&u->bounds[d], u->j[d], ipw_figure_bounds(f), f->j);
        u->j[d] = ipw_figure_add_j(u->j[d], f->known ? f->j : empty ? 0 : (double)NAN);
    }
}

void ipw_uncounted_put(struct ipw_balance *balance, struct ipw_device_list *devices,
                       const struct ipw_uncounted *warmup, const struct ipw_uncounted *earlier)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_balance *b = &balance[d];

        if (warmup) ipw_bounds_add(&b->warmup, b->warmup_j, warmup->bounds[d], warmup->j[d]);
        if (earlier) ipw_bounds_add(&b->wasted, b->wasted_j, earlier->bounds[d], earlier->j[d]);
        if (warmup) b->warmup_j += warmup->j[d];
        if (earlier) b->wasted_j += earlier->j[d];
    }
    ipw_device_list_apart(devices, warmup ? &warmup->devices : NULL,
                          earlier ? &earlier->devices : NULL);
}

void ipw_uncounted_release(struct ipw_uncounted *u)
{
    ipw_device_list_release(&u->devices);
    *u = (struct ipw_uncounted){0};
}

void ipw_run_balance_session(struct ipw_run_balance *b, const struct ipw_balance *balance,
                             const struct ipw_device_list *devices)
{
    ipw_device_list_add(&b->devices, devices);
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
    ipw_device_list_release(&b->devices);
    ipw_uncounted_release(&b->warmup);
    ipw_uncounted_release(&b->earlier);
    *b = (struct ipw_run_balance){0};
}
