#include "ledger/query_energy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/query_tiles.h"

/* One walk over a query: its windows before, turn 1, turn 2, ... and its tiles, for a domain or for
 * one of its devices. */
struct walk {
    struct ipw_query_trace *q;
    const struct ipw_ledger *ledger;
    struct ipw_query_tiles tiles;
    int64_t *edges;           /* of those windows */
    struct ipw_figure *parts; /* their figures */
    struct ipw_ledger_question ask;
    size_t device; /* index of the trace's device; IPW_LEDGER_ALL: the domain */
};

static struct ipw_figure *cell(const struct walk *w, struct ipw_figure *domains,
                               struct ipw_figure *devices)
{
    return w->device == IPW_LEDGER_ALL ? &domains[w->ask.domain] : &devices[w->device];
}

/* Does the model run on the domain's devices? */
static bool is_of_model(const struct walk *w)
{
    return !w->q->lm_remote || (w->q->lm_domains >> w->ask.domain & 1);
}

/* A phase whose window does not hold what it is named for has no energy of its own. */
static bool is_no_phase(const struct ipw_turn *turn, const struct ipw_span *span)
{
    if (span->kind == IPW_SPAN_DECODE && span->end_ns == span->start_ns) return true;
    return (span->kind == IPW_SPAN_PREFILL || span->kind == IPW_SPAN_DECODE) &&
           !ipw_query_two_phases(turn);
}

/* A domain only: who asks for one device's part in a span can ask the ledger. */
static void fill_spans(const struct walk *w, struct ipw_turn *turn)
{
    for (size_t k = 0; w->device == IPW_LEDGER_ALL && k < turn->n_spans; k++) {
        struct ipw_span *span = &turn->spans[k];
        struct ipw_figure *f = &span->energy[w->ask.domain];
        struct ipw_ledger_question ask = w->ask;

        if (turn->remote && !is_of_model(w) && span->kind <= IPW_SPAN_DECODE) {
            /* The client's own devices do not tell what a remote model costs. */
            *f = (struct ipw_figure){.reason = "remote"};
            continue;
        }
        ask.what = IPW_LEDGER_SPAN;
        ask.t0_ns = span->start_ns;
        ask.t1_ns = span->end_ns;
        *f = ipw_ledger_figure(w->ledger, ask);
        if (f->known && is_no_phase(turn, span)) *f = (struct ipw_figure){.reason = "one_event"};
    }
}

/* The windows tile the query.  The query's joules are therefore their sum, not a second answer that
 * was rounded separately.  The rest of the figure describes the whole window. */
static void fill_turns(const struct walk *w, const struct ipw_figure *all)
{
    struct ipw_query_trace *q = w->q;
    struct ipw_figure *whole = cell(w, q->energy, q->device_energy);
    size_t n = q->n_turns + 1, known = 0;
    double sum = 0;

    ipw_ledger_figures(w->ledger, w->ask, w->edges, n, w->parts);
    for (; known < n && w->parts[known].known; known++)
        sum = ipw_figure_add_j(sum, w->parts[known].j);
    *whole = *all;
    if (all->known && known == n) whole->j = sum;
    *cell(w, q->energy_before, q->device_before) = w->parts[0];
    fill_spans(w, &q->before);
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        *cell(w, turn->energy, turn->devices) = w->parts[i + 1];
        fill_spans(w, turn);
    }
}

static void fill_power(const struct walk *w)
{
    struct ipw_query_trace *q = w->q;
    struct ipw_ledger_question ask = w->ask;

    ipw_ledger_power(w->ledger, ask, &q->power[ask.domain]);
    q->power_mean_w[ask.domain] = q->power[ask.domain].avg_w;
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        ask.t0_ns = turn->start_ns;
        ask.t1_ns = turn->end_ns;
        ipw_ledger_mean_power(w->ledger, ask, &turn->power_mean_w[ask.domain],
                              &turn->power_peak_w[ask.domain]);
    }
}

/* ---- accounts and parts: what the query did when ---- */

static void book_tile(const struct walk *w, const struct ipw_query_tile *tile,
                      const struct ipw_figure *f)
{
    enum ipw_domain d = w->ask.domain;
    const size_t *parts;
    size_t n = ipw_query_tile_parts(&parts, &w->tiles, tile);
    double j = f->known ? f->j / (double)n : (double)NAN;
    struct ipw_bounds each = ipw_bounds_times(ipw_figure_bounds(f), 1 / (double)n);

    for (size_t k = 0; k < n; k++) {
        struct ipw_query_part *part = &w->q->parts[parts[k]];

        ipw_bounds_add(&part->bounds[d], part->j[d], each, j);
        part->j[d] += j;
        if (tile->waste) part->waste_j[d] += j;
    }
}

/* The wasted energy, the energy while tools ran or a retry waited and no attempt was in progress,
 * and for a domain the energy of the parts.  Whole microjoules, so that the devices' values sum to
 * the domain's. */
static void book_tiles(const struct walk *w, struct ipw_query_account *a)
{
    bool domain = w->device == IPW_LEDGER_ALL;

    a->waste_j = a->idle_tax_j = 0;
    for (size_t i = 0; i < w->tiles.n; i++) {
        const struct ipw_query_tile *tile = &w->tiles.all[i];
        bool idling = tile->kind == IPW_PART_TOOL || tile->kind == IPW_PART_WAIT;
        struct ipw_ledger_question ask = w->ask;
        struct ipw_figure f;
        double j;

        if (!domain && !tile->waste && !idling) continue;
        ask.t0_ns = tile->from;
        ask.t1_ns = tile->to;
        f = ipw_ledger_figure(w->ledger, ask);
        j = f.known ? f.j : (double)NAN;
        if (tile->waste) a->waste_j = ipw_figure_add_j(a->waste_j, j);
        if (idling) a->idle_tax_j = ipw_figure_add_j(a->idle_tax_j, j);
        if (domain) book_tile(w, tile, &f);
    }
}

/* Microjoules, as all energy values of a line. */
static void settle(struct ipw_query_part *part, enum ipw_domain d, bool known)
{
    struct ipw_bounds *b = &part->bounds[d];
    struct ipw_figure f = {
        .known = known, .j = part->j[d], .lo_j = b->lo, .hi_j = b->hi, .u_j = b->u};

    ipw_figure_round(&f);
    *b = known && !isnan(b->lo) ? ipw_figure_bounds(&f) : IPW_NO_BOUNDS;
    part->j[d] = known ? nearbyint(part->j[d] * 1e6) / 1e6 : (double)NAN;
    part->waste_j[d] = known ? nearbyint(part->waste_j[d] * 1e6) / 1e6 : (double)NAN;
}

static void fill_column(struct walk *w)
{
    struct ipw_query_trace *q = w->q;
    struct ipw_account told;
    struct ipw_query_account *a;
    bool known;

    w->ask.t0_ns = q->start_ns;
    w->ask.t1_ns = q->end_ns;
    told = ipw_ledger_account(w->ledger, w->ask);
    fill_turns(w, &told.attributed);
    a = w->device == IPW_LEDGER_ALL ? &q->account[w->ask.domain] : &q->device_account[w->device];
    *a = (struct ipw_query_account){NAN, NAN, NAN, NAN};
    /* If a domain's energy is unknown, none of its devices gets an account. */
    known = told.attributed.known && q->energy[w->ask.domain].known;
    if (known && w->ask.query >= 0) {
        a->exclusive_j = told.exclusive_j;
        a->marginal_j = told.marginal_j;
    }
    /* While a remote model works, the client's own devices do not tell where its energy went. */
    known = known && is_of_model(w);
    if (known) book_tiles(w, a);
    for (size_t i = 0; w->device == IPW_LEDGER_ALL && i < q->n_parts; i++)
        settle(&q->parts[i], w->ask.domain, known);
}

static int by_kind(const void *x, const void *y)
{
    const struct ipw_query_part *a = x, *b = y;

    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    return a->name && b->name ? strcmp(a->name, b->name) : 0;
}

/* Leaves out the parts that did not happen. */
static void sort_parts(struct ipw_query_trace *q)
{
    size_t kept = 0;

    for (size_t i = 0; i < q->n_parts; i++) {
        const struct ipw_query_part *part = &q->parts[i];

        if (part->calls || part->seconds > 0) q->parts[kept++] = *part;
    }
    q->n_parts = kept;
    qsort(q->parts, q->n_parts, sizeof *q->parts, by_kind);
}

/* ---- each device separately, where a domain has several ---- */

static int by_name(const void *a, const void *b)
{
    const struct ipw_device *x = a, *y = b;

    return x->domain != y->domain ? (x->domain > y->domain ? 1 : -1) : strcmp(x->name, y->name);
}

static void list_devices(struct ipw_query_trace *q, const struct ipw_ledger *ledger, int64_t query)
{
    size_t cap = 0;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        size_t n = ipw_ledger_devices(ledger, (enum ipw_domain)d);

        for (size_t i = 0; n > 1 && i < n; i++) {
            if (!ipw_ledger_query_sees(ledger, query, (enum ipw_domain)d, i)) continue;
            IPW_GROW(q->devices, cap, q->n_devices + 1);
            q->devices[q->n_devices++] = (struct ipw_device){
                ipw_strdup(ipw_ledger_device_name(ledger, (enum ipw_domain)d, i)),
                (enum ipw_domain)d};
        }
    }
    if (!q->n_devices) return;
    qsort(q->devices, q->n_devices, sizeof *q->devices, by_name);
    q->device_energy = ipw_calloc(q->n_devices, sizeof *q->device_energy);
    q->device_before = ipw_calloc(q->n_devices, sizeof *q->device_before);
    q->device_account = ipw_calloc(q->n_devices, sizeof *q->device_account);
    for (size_t i = 0; i < q->n_turns; i++)
        q->turns[i].devices = ipw_calloc(q->n_devices, sizeof *q->turns[i].devices);
}

/* The ledger's index of a device within its domain. */
static size_t find_device(const struct ipw_ledger *ledger, const struct ipw_device *device)
{
    size_t i = 0;

    while (strcmp(ipw_ledger_device_name(ledger, device->domain, i), device->name)) i++;
    return i;
}

void ipw_query_energy_fill(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                           int64_t query)
{
    size_t n = q->n_turns;
    struct walk w = {.q = q,
                     .ledger = ledger,
                     .edges = ipw_calloc(n + 2, sizeof *w.edges),
                     .parts = ipw_calloc(n + 1, sizeof *w.parts)};

    w.edges[0] = q->start_ns;
    for (size_t i = 0; i < n; i++) w.edges[i + 1] = q->turns[i].start_ns;
    w.edges[n + 1] = q->end_ns;
    ipw_query_tiles_make(&w.tiles, q);
    list_devices(q, ledger, query);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        w.ask = (struct ipw_ledger_question){query, (enum ipw_domain)d, .device = IPW_LEDGER_ALL};
        w.device = IPW_LEDGER_ALL;
        fill_column(&w);
        fill_power(&w);
    }
    for (size_t k = 0; k < q->n_devices; k++) {
        const struct ipw_device *device = &q->devices[k];

        w.ask = (struct ipw_ledger_question){query, device->domain,
                                             .device = find_device(ledger, device)};
        w.device = k;
        fill_column(&w);
    }
    sort_parts(q);
    ipw_query_trace_round(q);
    ipw_query_tiles_free(&w.tiles);
    free(w.edges);
    free(w.parts);
}
