#include "ledger/query_energy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/upto.h"

/* ---- what a query did when, as tiles that follow each other from its start to its end ---- */

/* A piece of a query that belongs to one part. */
struct tile {
    int64_t from, to;
    enum ipw_part_kind kind;
    bool waste;            /* in an attempt that failed, or whose reply could not be used */
    size_t tools, n_tools; /* of IPW_PART_TOOL: the first of its parts in the list `tools` */
};
struct tiles {
    struct tile *all;
    size_t n, cap;
    size_t *tools; /* indexes of parts */
    size_t n_tools, cap_tools;
};
/* Are prefill and decode two times of the turn?  Not if the reply came in one event, or in less
 * than half of the time that the server says it decoded: then the first token was held back, and
 * the time before it has the decoding in it.  A reply of one token is prefill alone. */
static bool two_phases_in(const struct ipw_turn *turn)
{
    bool at_once = turn->decode_s == 0 || 2 * turn->decode_s < turn->times.server_decode_s;

    return turn->output_tokens == 1 || !at_once;
}

/* A time in which something goes on; several may overlap. */
struct activity {
    int64_t from, to;
    enum ipw_part_kind kind;
    size_t tool; /* index of the part of a tool; else 0 */
    bool waste;
};

struct activities {
    struct activity *all;
    size_t n, cap;
};

static size_t part_named(struct ipw_query_trace *q, size_t *cap, const char *name)
{
    for (size_t i = IPW_PART_KINDS; i < q->n_parts; i++)
        if (strcmp(q->parts[i].name, name) == 0) return i;
    IPW_GROW(q->parts, *cap, q->n_parts + 1);
    q->parts[q->n_parts] = (struct ipw_query_part){.kind = IPW_PART_TOOL, .name = ipw_strdup(name)};
    return q->n_parts++;
}

static void add(struct activities *a, struct activity one)
{
    if (one.to <= one.from) return;
    IPW_GROW(a->all, a->cap, a->n + 1);
    a->all[a->n++] = one;
}

/* An attempt, and the wait before it.  It is wasted if it failed, or if it is one of a turn whose
 * reply could not be used. */
static void add_attempt(struct activities *a, struct ipw_query_trace *q,
                        const struct ipw_turn *turn, const struct ipw_span *span,
                        int64_t *attempt_end_ns)
{
    bool ok = span->outcome && strcmp(span->outcome, "ok") == 0;

    if (*attempt_end_ns < span->start_ns) {
        add(a, (struct activity){*attempt_end_ns, span->start_ns, IPW_PART_WAIT, 0, false});
        q->parts[IPW_PART_WAIT].calls++;
    }
    add(a, (struct activity){span->start_ns, span->end_ns, IPW_PART_LM, 0, !ok || turn->malformed});
    q->parts[IPW_PART_LM].calls++;
    *attempt_end_ns = span->end_ns;
}

static void gather(struct activities *a, struct ipw_query_trace *q, size_t *cap)
{
    for (size_t i = 0; i < q->n_turns; i++) {
        const struct ipw_turn *turn = &q->turns[i];
        bool two_phases = two_phases_in(turn);
        int64_t attempt_end_ns = INT64_MAX;

        for (size_t k = 0; k < turn->n_spans; k++) {
            const struct ipw_span *span = &turn->spans[k];
            bool prefill = span->kind == IPW_SPAN_PREFILL;
            size_t tool = 0;

            if (span->kind == IPW_SPAN_LM) {
                add_attempt(a, q, turn, span, &attempt_end_ns);
            } else if (two_phases && (prefill || span->kind == IPW_SPAN_DECODE)) {
                enum ipw_part_kind kind = prefill ? IPW_PART_PREFILL : IPW_PART_DECODE;

                add(a, (struct activity){span->start_ns, span->end_ns, kind, 0, turn->malformed});
                q->parts[kind].calls++;
            } else if (span->kind == IPW_SPAN_TOOL) {
                tool = part_named(q, cap, span->name ? span->name : "");
                q->parts[tool].calls++;
                add(a, (struct activity){span->start_ns, span->end_ns, IPW_PART_TOOL, tool, false});
            }
        }
    }
}

static int by_from(const void *x, const void *y)
{
    const struct activity *a = x, *b = y;

    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->to > b->to) - (a->to < b->to);
}

/* The instants at which an activity of the query begins or ends, in order, each once. */
static size_t list_edges(int64_t **out, const struct activities *a, const struct ipw_query_trace *q)
{
    int64_t *edges = ipw_calloc(2 * a->n + 2, sizeof *edges);
    size_t n = 0, kept = 1;

    edges[n++] = q->start_ns;
    edges[n++] = q->end_ns;
    for (size_t i = 0; i < a->n; i++) {
        if (a->all[i].from > q->start_ns && a->all[i].from < q->end_ns) edges[n++] = a->all[i].from;
        if (a->all[i].to > q->start_ns && a->all[i].to < q->end_ns) edges[n++] = a->all[i].to;
    }
    qsort(edges, n, sizeof *edges, ipw_by_int64);
    for (size_t i = 1; i < n; i++)
        if (edges[i] != edges[kept - 1]) edges[kept++] = edges[i];
    *out = edges;
    return kept;
}

static void add_tool(struct tiles *tiles, struct tile *tile, size_t tool)
{
    for (size_t i = 0; i < tile->n_tools; i++)
        if (tiles->tools[tile->tools + i] == tool) return;
    IPW_GROW(tiles->tools, tiles->cap_tools, tiles->n_tools + 1);
    tiles->tools[tiles->n_tools++] = tool;
    tile->n_tools++;
}

/* Finds the part of a tile; `active`: indexes of the activities that go on. */
static void classify(struct tiles *tiles, struct tile *tile, const struct activities *a,
                     const size_t *active, size_t n)
{
    tile->kind = IPW_PART_AGENT;
    for (size_t i = 0; i < n; i++) {
        const struct activity *one = &a->all[active[i]];

        tile->waste |= one->waste;
        if (one->kind < tile->kind) tile->kind = one->kind; /* in the order of precedence */
    }
    if (tile->kind != IPW_PART_TOOL) return;
    tile->tools = tiles->n_tools;
    for (size_t i = 0; i < n; i++) {
        const struct activity *one = &a->all[active[i]];

        if (one->kind == IPW_PART_TOOL) add_tool(tiles, tile, one->tool);
    }
}

static void lay_tiles(struct tiles *tiles, const struct activities *a,
                      const struct ipw_query_trace *q)
{
    size_t *active = ipw_calloc(a->n + 1, sizeof *active), n_active = 0, next = 0;
    int64_t *edges;
    size_t n = list_edges(&edges, a, q);

    IPW_GROW(tiles->all, tiles->cap, n);
    for (size_t i = 0; i + 1 < n; i++) {
        struct tile tile = {.from = edges[i], .to = edges[i + 1]};
        size_t kept = 0;

        while (next < a->n && a->all[next].from <= edges[i]) active[n_active++] = next++;
        for (size_t k = 0; k < n_active; k++)
            if (a->all[active[k]].to > edges[i]) active[kept++] = active[k];
        n_active = kept;
        classify(tiles, &tile, a, active, n_active);
        tiles->all[tiles->n++] = tile;
    }
    free(active);
    free(edges);
}

/* The parts to which a tile belongs, as indexes: one, or several tools.  Returns their number. */
static size_t parts_of_tile(const size_t **out, const struct tiles *tiles, const struct tile *tile)
{
    /* The parts of the other kinds come first in a trace's list, in their order. */
    static const size_t first[IPW_PART_KINDS] = {0, 1, 2, 3, 4, 5};

    *out = tile->kind == IPW_PART_TOOL ? &tiles->tools[tile->tools] : &first[tile->kind];
    return tile->kind == IPW_PART_TOOL ? tile->n_tools : 1;
}

/* Also lists the trace's parts, with their calls and seconds. */
static void make_tiles(struct tiles *out, struct ipw_query_trace *q)
{
    struct activities a = {0};
    size_t cap = 0;

    *out = (struct tiles){0};
    IPW_GROW(q->parts, cap, IPW_PART_KINDS);
    for (; q->n_parts < IPW_PART_KINDS; q->n_parts++)
        q->parts[q->n_parts] = (struct ipw_query_part){.kind = (enum ipw_part_kind)q->n_parts};
    gather(&a, q, &cap);
    if (a.n) qsort(a.all, a.n, sizeof *a.all, by_from);
    lay_tiles(out, &a, q);
    free(a.all);
    for (size_t i = 0; i < out->n; i++) {
        const struct tile *tile = &out->all[i];
        const size_t *parts;
        size_t n = parts_of_tile(&parts, out, tile);

        for (size_t k = 0; k < n; k++)
            q->parts[parts[k]].seconds += ipw_ns_to_s(tile->to - tile->from) / (double)n;
    }
}

/* ---- its figures ---- */

/* One walk over a query: its windows before, turn 1, turn 2, ... and its tiles, for a domain or for
 * one of its devices. */
struct walk {
    struct ipw_query_trace *q;
    const struct ipw_ledger *ledger;
    struct tiles tiles;
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
           !two_phases_in(turn);
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

static void book_tile(const struct walk *w, const struct tile *tile, const struct ipw_figure *f)
{
    enum ipw_domain d = w->ask.domain;
    const size_t *parts;
    size_t n = parts_of_tile(&parts, &w->tiles, tile);
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
        const struct tile *tile = &w->tiles.all[i];
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
    make_tiles(&w.tiles, q);
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
    free(w.tiles.all);
    free(w.tiles.tools);
    free(w.edges);
    free(w.parts);
}
