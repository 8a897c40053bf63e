#include "ledger/query_tiles.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/upto.h"

bool ipw_query_two_phases(const struct ipw_turn *turn)
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
        bool two_phases = ipw_query_two_phases(turn);
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

size_t ipw_query_tile_parts(const size_t **out, const struct ipw_query_tiles *tiles,
                            const struct ipw_query_tile *tile)
{
    /* The parts of the other kinds come first in a trace's list, in their order. */
    static const size_t first[IPW_PART_KINDS] = {0, 1, 2, 3, 4, 5};

    *out = tile->kind == IPW_PART_TOOL ? &tiles->tools[tile->tools] : &first[tile->kind];
    return tile->kind == IPW_PART_TOOL ? tile->n_tools : 1;
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
    for (size_t i = 0; i < out->n; i++) {
        const struct ipw_query_tile *tile = &out->all[i];
        const size_t *parts;
        size_t n = ipw_query_tile_parts(&parts, out, tile);

        for (size_t k = 0; k < n; k++)
            q->parts[parts[k]].seconds += ipw_ns_to_s(tile->to - tile->from) / (double)n;
    }
}

void ipw_query_tiles_free(struct ipw_query_tiles *tiles)
{
    free(tiles->all);
    free(tiles->tools);
    *tiles = (struct ipw_query_tiles){0};
}
