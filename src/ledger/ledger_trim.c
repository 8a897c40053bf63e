/* The list of queries, and dropping old samples, edges and queries: see ledger/ledger.h and
 * ledger_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/upto.h"
#include "ledger/ledger_priv.h"

#define STEPS_BEFORE 8    /* before the first open step, whose power may tell that of its pieces */
#define LEAST_KNOTS  1024 /* fewer are not worth a search */

struct ledger_query *ipw_ledger_query(const struct ipw_ledger *l, int64_t query)
{
    int64_t n = (int64_t)l->n_queries, lo = n - (l->next_query - query), hi = n - 1;

    if (query >= l->next_query || !n) return NULL;
    if (lo >= 0 && l->queries[lo]->ordinal == query) return l->queries[lo]; /* none was dropped */
    if (lo < 0) lo = 0;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo + 1) / 2;

        if (l->queries[mid]->ordinal <= query) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    return l->queries[lo]->ordinal == query ? l->queries[lo] : NULL;
}

void ipw_ledger_free_query(const struct ipw_ledger *l, struct ledger_query *q)
{
    if (!q) return;
    for (size_t i = 0; i < l->n_lines; i++) {
        free(q->slices[i].pieces);
        free(q->slices[i].stamps.all);
    }
    free(q->instants);
    free(q->slices);
    free(q->phases);
    free(q);
}

/* Has the query gone from the sums of every device? */
static bool has_passed(const struct ipw_ledger *l, const struct ledger_query *q)
{
    if (q->t1_ns == INT64_MAX) return false;
    for (size_t i = 0; i < l->n_lines; i++) {
        size_t settled = l->lines[i].settled;

        if (!settled || l->edges[settled - 1].t_ns <= q->t1_ns) return false;
    }
    return true;
}

static bool is_needed(const struct ipw_ledger *l, const struct ledger_query *q)
{
    if (l->keeps_told) return !q->forgotten || !has_passed(l, q);
    /* The first live edge is settled on every device. */
    return q->t1_ns >= l->edges[0].t_ns;
}

static void trim_queries(struct ipw_ledger *l)
{
    size_t kept = 0, seen = l->n_ends, looked = l->n_looks;

    for (size_t i = 0; i < l->n_lines; i++) {
        const struct ledger_line *line = &l->lines[i];

        if (line->next_leave < seen) seen = line->next_leave;
        if (line->next_end < seen) seen = line->next_end;
        if (line->next_look < looked) looked = line->next_look;
        if (line->next_stamp < looked) looked = line->next_stamp;
    }
    for (size_t i = 0; i < l->n_queries; i++) {
        if (is_needed(l, l->queries[i])) {
            l->queries[kept++] = l->queries[i];
        } else {
            ipw_ledger_free_query(l, l->queries[i]);
        }
    }
    l->n_queries = kept;
    l->n_ends -= seen;
    if (seen) memmove(l->ends, l->ends + seen, l->n_ends * sizeof *l->ends);
    l->n_looks -= looked;
    if (looked) memmove(l->looks, l->looks + looked, l->n_looks * sizeof *l->looks);
    for (size_t i = 0; i < l->n_lines; i++) {
        l->lines[i].next_end -= seen;
        l->lines[i].next_leave -= seen;
        l->lines[i].next_look -= looked;
        l->lines[i].next_stamp -= looked;
    }
}

/* Does closing further steps of the line still need their phases, or a gauge? */
static bool is_closing(const struct ipw_ledger *l, const struct ledger_line *line)
{
    return (l->line.n || l->has_gauges) && line->series->n > 0;
}

/* Steps that are not closed yet are still needed. */
static int64_t trim_line(struct ipw_ledger *l, struct ledger_line *line, int64_t before_ns)
{
    if (is_closing(l, line) && line->done_ns < before_ns) before_ns = line->done_ns;
    if (ipw_ledger_gap_ns(l, line) < before_ns) before_ns = ipw_ledger_gap_ns(l, line);
    ipw_series_trim(line->series, before_ns);
    return before_ns;
}

/* Up to here no step of any line is open, with room for its delay and the steps next to it. */
static int64_t phases_from(const struct ipw_ledger *l)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < l->n_lines; i++) {
        const struct ipw_series *s = l->lines[i].series;
        size_t at = ipw_series_find(s, l->lines[i].done_ns);
        int64_t t = INT64_MIN;

        if (!is_closing(l, &l->lines[i])) continue;
        if (at >= s->first + STEPS_BEFORE) t = s->samples[at - STEPS_BEFORE].t_ns;
        if (t < least) least = t;
    }
    return least < INT64_MAX ? least : INT64_MIN;
}

static void trim_series(struct ipw_ledger *l, int64_t before_ns)
{
    int64_t least = before_ns, from;

    for (size_t i = 0; i < l->n_lines; i++) {
        int64_t t = trim_line(l, &l->lines[i], before_ns);

        if (t < least) least = t;
    }
    for (size_t i = 0; i < l->n_channels; i++) {
        if (l->series[i] && !l->channels[i].summed) ipw_series_trim(l->series[i], least);
    }
    from = l->keeps_told ? phases_from(l) : least;
    ipw_phase_line_trim(&l->line, from > least ? from : least);
}

/* The instants that are told of the queries, in order; the caller frees them. */
static int64_t *list_instants(const struct ipw_ledger *l, size_t *n)
{
    int64_t *all = NULL;
    size_t cap = 0;

    *n = 0;
    for (size_t i = 0; i < l->n_queries; i++) {
        const struct ledger_query *q = l->queries[i];

        IPW_GROW(all, cap, *n + q->n_instants);
        for (size_t k = 0; k < q->n_instants; k++) all[(*n)++] = q->instants[k].t_ns;
    }
    if (*n) qsort(all, *n, sizeof *all, ipw_by_int64);
    return all;
}

/* Drops the corners before the line's marks that are not next to one of the instants. */
static void drop_knots(const struct ipw_ledger *l, struct ledger_line *line,
                       const int64_t *instants, size_t n)
{
    struct ipw_series *s = line->series;
    size_t kept = 0, at = 0;
    int64_t before_ns = INT64_MIN;

    for (size_t i = 0; i < s->n_knots; i++) {
        struct ipw_series_knot knot = s->knots[i];

        while (at < n && instants[at] < before_ns) at++;
        if (knot.t_ns >= l->edges[line->first].t_ns || i + 1 == s->n_knots ||
            (at < n && instants[at] <= s->knots[i + 1].t_ns))
            s->knots[kept++] = knot;
        before_ns = knot.t_ns;
    }
    s->n_knots = line->kept_knots = kept;
}

static void trim_knots(struct ipw_ledger *l)
{
    int64_t *instants = NULL;
    size_t n = 0;

    for (size_t i = 0; i < l->n_lines; i++) {
        struct ledger_line *line = &l->lines[i];

        if (line->series->n_knots < LEAST_KNOTS + 2 * line->kept_knots || !line->settled) continue;
        if (!instants) instants = list_instants(l, &n);
        drop_knots(l, line, instants, n);
    }
    free(instants);
}

static void drop_edges(struct ipw_ledger *l, size_t drop)
{
    size_t kinds = ipw_ledger_kinds(l);

    l->trimmed_ns = l->edges[drop - 1].t_ns;
    l->n_edges -= drop;
    l->edge_base += (int64_t)drop;
    memmove(l->edges, l->edges + drop, l->n_edges * sizeof *l->edges);
    for (size_t i = 0; i < l->n_lines; i++) {
        struct ledger_line *line = &l->lines[i];
        size_t gone = drop > line->first ? drop - line->first : 0;

        line->first = drop > line->first ? 0 : line->first - drop;
        line->settled -= drop;
        if (!gone) continue;
        memmove(line->marks, line->marks + gone, line->settled * sizeof *line->marks);
        memmove(line->sums, line->sums + gone * kinds, line->settled * kinds * sizeof *line->sums);
    }
}

/* The edges that no line has a mark of. */
static size_t unmarked(const struct ipw_ledger *l)
{
    size_t least = SIZE_MAX;

    for (size_t i = 0; i < l->n_lines; i++)
        if (l->lines[i].first < least) least = l->lines[i].first;
    return least < SIZE_MAX ? least : 0;
}

static void trim(struct ipw_ledger *l, int64_t before_ns)
{
    size_t drop = ipw_ledger_edge_at(l, before_ns);

    if (drop == SIZE_MAX && !(l->keeps_told && l->n_edges))
        return; /* all before the first query; the totals need it */
    trim_series(l, before_ns);
    if (drop == SIZE_MAX || drop < unmarked(l)) drop = unmarked(l);
    /* An edge can be dropped only if two later edges have their sums on every device: the effect of
     * the first one's uncertainty is known only when the next is settled. */
    for (size_t i = 0; i < l->n_lines; i++) {
        size_t settled = l->lines[i].settled;

        if (drop + 2 > settled) drop = settled > 2 ? settled - 2 : 0;
    }
    if (!drop || drop < l->n_edges / 2) return; /* too few to move the rest */
    drop_edges(l, drop);
    trim_queries(l);
    if (l->keeps_told) trim_knots(l);
}

void ipw_ledger_trim(struct ipw_ledger *l, int64_t before_ns)
{
    for (struct ledger_each e = {.all = l, .query = IPW_LEDGER_ANY}; ipw_ledger_each(&e);)
        trim(e.l, before_ns);
    if (l->scopes) ipw_ledger_scopes_trim(l->scopes);
}

void ipw_ledger_keep_told(struct ipw_ledger *l)
{
    l->keeps_told = true;
    for (struct ledger_each e = {.all = l, .query = IPW_LEDGER_ANY}; ipw_ledger_each(&e);)
        e.l->keeps_told = true;
}

void ipw_ledger_instant(struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    for (struct ledger_each e = {.all = l, .query = query}; ipw_ledger_each(&e);) {
        const struct ledger_query *q = ipw_ledger_query(e.l, e.own);

        if (q && t_ns > q->t0_ns && t_ns < q->t1_ns) ipw_ledger_look(e.l, e.own, t_ns);
    }
}

void ipw_ledger_forget(struct ipw_ledger *l, int64_t query)
{
    for (struct ledger_each e = {.all = l, .query = query}; ipw_ledger_each(&e);) {
        struct ledger_query *q = ipw_ledger_query(e.l, e.own);

        if (q) q->forgotten = true;
    }
}
