/* Dropping old samples, edges and queries: see ledger/ledger.h and ledger_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_priv.h"

/* Drops the queries that ended before the first live edge, which is settled on every device. */
static void trim_queries(struct ipw_ledger *l)
{
    size_t drop = 0, seen = l->n_ends, looked = l->n_looks;

    for (size_t i = 0; i < l->n_lines; i++) {
        const struct ledger_line *line = &l->lines[i];

        if (line->next_leave < seen) seen = line->next_leave;
        if (line->next_end < seen) seen = line->next_end;
        if (line->next_look < looked) looked = line->next_look;
    }
    while (drop < l->n_queries && l->query_base + (int64_t)drop < l->oldest &&
           l->queries[drop]->t1_ns < l->edges[0].t_ns) {
        ipw_ledger_free_query(l, l->queries[drop++]);
    }
    l->n_queries -= drop;
    l->query_base += (int64_t)drop;
    if (drop) memmove(l->queries, l->queries + drop, l->n_queries * sizeof *l->queries);
    l->n_ends -= seen;
    if (seen) memmove(l->ends, l->ends + seen, l->n_ends * sizeof *l->ends);
    l->n_looks -= looked;
    if (looked) memmove(l->looks, l->looks + looked, l->n_looks * sizeof *l->looks);
    for (size_t i = 0; i < l->n_lines; i++) {
        l->lines[i].next_end -= seen;
        l->lines[i].next_leave -= seen;
        l->lines[i].next_look -= looked;
    }
}

/* Steps that are not closed yet are still needed. */
static int64_t trim_line(struct ipw_ledger *l, struct ledger_line *line, int64_t before_ns)
{
    bool closing = (l->line.n || l->has_gauges) && line->series->n > 0;

    if (closing && line->done_ns < before_ns) before_ns = line->done_ns;
    ipw_series_trim(line->series, before_ns);
    return before_ns;
}

static void trim_series(struct ipw_ledger *l, int64_t before_ns)
{
    int64_t least = before_ns;

    for (size_t i = 0; i < l->n_lines; i++) {
        int64_t t = trim_line(l, &l->lines[i], before_ns);

        if (t < least) least = t;
    }
    for (size_t i = 0; i < l->n_channels; i++) {
        if (l->series[i] && !l->channels[i].summed) ipw_series_trim(l->series[i], least);
    }
    ipw_phase_line_trim(&l->line, least);
}

void ipw_ledger_trim(struct ipw_ledger *l, int64_t before_ns)
{
    size_t drop = ipw_ledger_edge_at(l, before_ns), kinds = ipw_ledger_kinds(l);

    if (l->scopes) ipw_ledger_scopes_trim(l->scopes, before_ns);
    if (drop == SIZE_MAX) return; /* all before the first query; the totals need it */
    trim_series(l, before_ns);
    /* An edge can be dropped only if two later edges have their sums on every device: the effect of
     * the first one's uncertainty is known only when the next is settled. */
    for (size_t i = 0; i < l->n_lines; i++) {
        size_t settled = l->lines[i].settled;

        if (drop + 2 > settled) drop = settled > 2 ? settled - 2 : 0;
    }
    if (!drop || drop < l->n_edges / 4) return; /* too few to move the rest */
    l->trimmed_ns = l->edges[drop - 1].t_ns;
    l->n_edges -= drop;
    l->edge_base += (int64_t)drop;
    memmove(l->edges, l->edges + drop, l->n_edges * sizeof *l->edges);
    for (size_t i = 0; i < l->n_lines; i++) {
        struct ledger_line *line = &l->lines[i];

        line->settled -= drop;
        memmove(line->marks, line->marks + drop, line->settled * sizeof *line->marks);
        memmove(line->sums, line->sums + drop * kinds, line->settled * kinds * sizeof *line->sums);
    }
    trim_queries(l);
}
