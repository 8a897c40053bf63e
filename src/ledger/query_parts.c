/* The parts of a query: prefill, decode, each tool, waits and the agent tile its time, and so its
 * energy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/query_energy_priv.h"

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
        bool two_phases = ipw_query_energy_two_phases(turn);
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

static int by_instant(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return a < b ? -1 : a > b;
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
    qsort(edges, n, sizeof *edges, by_instant);
    for (size_t i = 1; i < n; i++)
        if (edges[i] != edges[kept - 1]) edges[kept++] = edges[i];
    *out = edges;
    return kept;
}

static void add_tool(struct ipw_query_tiles *tiles, struct ipw_query_tile *tile, size_t tool)
{
    for (size_t i = 0; i < tile->n_tools; i++)
        if (tiles->tools[tile->tools + i] == tool) return;
    IPW_GROW(tiles->tools, tiles->cap_tools, tiles->n_tools + 1);
    tiles->tools[tiles->n_tools++] = tool;
    tile->n_tools++;
}

/* Finds the part of a tile; `active`: indexes of the activities that go on. */
static void classify(struct ipw_query_tiles *tiles, struct ipw_query_tile *tile,
                     const struct activities *a, const size_t *active, size_t n)
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

static void walk(struct ipw_query_tiles *tiles, const struct activities *a,
                 const struct ipw_query_trace *q)
{
    size_t *active = ipw_calloc(a->n + 1, sizeof *active), n_active = 0, next = 0;
    int64_t *edges;
    size_t n = list_edges(&edges, a, q);

    IPW_GROW(tiles->all, tiles->cap, n);
    for (size_t i = 0; i + 1 < n; i++) {
        struct ipw_query_tile tile = {.from = edges[i], .to = edges[i + 1]};
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

void ipw_query_tiles_make(struct ipw_query_tiles *out, struct ipw_query_trace *q)
{
    struct activities a = {0};
    size_t cap = 0;

    *out = (struct ipw_query_tiles){0};
    IPW_GROW(q->parts, cap, IPW_PART_KINDS);
    for (; q->n_parts < IPW_PART_KINDS; q->n_parts++)
        q->parts[q->n_parts] = (struct ipw_query_part){.kind = (enum ipw_part_kind)q->n_parts};
    gather(&a, q, &cap);
    if (a.n) qsort(a.all, a.n, sizeof *a.all, by_from);
    walk(out, &a, q);
    free(a.all);
}

void ipw_query_tiles_free(struct ipw_query_tiles *tiles)
{
    free(tiles->all);
    free(tiles->tools);
    *tiles = (struct ipw_query_tiles){0};
}

/* ---- time and energy ---- */

/* The parts to which a tile belongs: one, or several tools. */
static size_t parts_of(size_t **out, size_t *only, const struct ipw_query_tiles *tiles,
                       const struct ipw_query_tile *tile)
{
    *only = tile->kind;
    *out = tile->kind == IPW_PART_TOOL ? &tiles->tools[tile->tools] : only;
    return tile->kind == IPW_PART_TOOL ? tile->n_tools : 1;
}

static void book_seconds(struct ipw_query_trace *q, const struct ipw_query_tiles *tiles)
{
    for (size_t i = 0; i < tiles->n; i++) {
        const struct ipw_query_tile *tile = &tiles->all[i];
        size_t only, *parts, n = parts_of(&parts, &only, tiles, tile);

        for (size_t k = 0; k < n; k++)
            q->parts[parts[k]].seconds += ipw_ns_to_s(tile->to - tile->from) / (double)n;
    }
}

static void book_joules(struct ipw_query_trace *q, const struct ipw_query_tiles *tiles,
                        const struct ipw_ledger *ledger, struct ipw_ledger_question ask)
{
    for (size_t i = 0; i < tiles->n; i++) {
        const struct ipw_query_tile *tile = &tiles->all[i];
        size_t only, *parts, n = parts_of(&parts, &only, tiles, tile);
        struct ipw_figure f;
        struct ipw_bounds each;

        ask.t0_ns = tile->from;
        ask.t1_ns = tile->to;
        f = ipw_ledger_figure(ledger, ask);
        if (!f.known) f.j = NAN;
        f.j /= (double)n;
        each = ipw_bounds_times(ipw_figure_bounds(&f), 1 / (double)n);
        for (size_t k = 0; k < n; k++) {
            struct ipw_query_part *part = &q->parts[parts[k]];

            ipw_bounds_add(&part->bounds[ask.domain], part->j[ask.domain], each, f.j);
            part->j[ask.domain] += f.j;
            if (tile->waste) part->waste_j[ask.domain] += f.j;
        }
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

static int by_kind(const void *x, const void *y)
{
    const struct ipw_query_part *a = x, *b = y;

    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    return a->name && b->name ? strcmp(a->name, b->name) : 0;
}

void ipw_query_energy_parts(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                            int64_t query, const struct ipw_query_tiles *tiles)
{
    size_t kept = 0;

    book_seconds(q, tiles);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_ledger_question ask = {query, (enum ipw_domain)d, .device = IPW_LEDGER_ALL};
        /* While a remote model works, the client's own devices do not tell its energy. */
        bool known = q->energy[d].known && ipw_query_energy_of_model(q, ask.domain);

        if (known) book_joules(q, tiles, ledger, ask);
        for (size_t i = 0; i < q->n_parts; i++) settle(&q->parts[i], ask.domain, known);
    }
    for (size_t i = 0; i < q->n_parts; i++) {
        const struct ipw_query_part *part = &q->parts[i];

        if (part->calls || part->seconds > 0) q->parts[kept++] = *part; /* else it did not happen */
    }
    q->n_parts = kept;
    qsort(q->parts, q->n_parts, sizeof *q->parts, by_kind);
}
