/* Shares a cell's energy between queries: see ledger/ledger_priv.h and docs/method.md, "Sharing
 * between queries". */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/ledger_priv.h"

#define KEPT_MARKS 256 /* room for instants that are told a little late */
/* A prefill counts at least so many times a decode.  Where calls were never alone, the steps of a
 * device at its limit do not show how they differ. */
#define PREFILL_LEAST 1.5

const char *ipw_share_name(enum ipw_share share)
{
    switch (share) {
    case IPW_SHARE_EQUAL: return "equal";
    case IPW_SHARE_PHASE: return "phase";
    }
    return "none";
}

/* Each query's part of the idle baseline in a cell, in 2^-32 microjoules.  It is not limited to the
 * energy of the cell: net energy may be negative. */
static __int128 idle_each(const struct ledger_line *line, int64_t length_ns, int64_t in_flight)
{
    double idle = line->baseline_w * (double)length_ns / 1e3; /* W * ns = nJ */

    return isnan(idle) ? 0 : (__int128)(idle * 4294967296.0) / in_flight;
}

/* The device's idle power: measured, else by the fit. */
static double idle_w(const struct ledger_line *line)
{
    if (!isnan(line->baseline_w)) return line->baseline_w;
    return line->idle_by_fit && ipw_phase_fit_knows(&line->fit) ? ipw_phase_fit_base_w(&line->fit)
                                                                : 0;
}

/* The part of a cell's energy that the device would have used with no query in flight. */
static int64_t idle_part(const struct ledger_line *line, int64_t uj, int64_t length_ns)
{
    double idle = idle_w(line) * (double)length_ns / 1e3; /* W * ns = nJ */

    if (!(idle > 0)) return 0;
    return idle < (double)uj ? (int64_t)idle : uj;
}

/* The mark after `from`, with `in_flight` queries in between; `uj`: the energy there. */
static struct ledger_mark step_to(const struct ledger_line *line, struct ledger_mark from,
                                  int64_t t_ns, int64_t uj, int64_t in_flight)
{
    struct ledger_mark to = from;
    int64_t cell = uj - from.uj;

    to.t_ns = t_ns;
    to.uj = uj;
    if (in_flight == 0) {
        to.idle += cell;
    } else {
        to.share += ((__int128)cell << 32) / in_flight;
        to.base += idle_each(line, t_ns - from.t_ns, in_flight);
        if (in_flight == 1) to.alone += cell;
    }
    return to;
}

static struct ledger_mark step(const struct ledger_line *line, struct ledger_mark from,
                               int64_t t_ns, int64_t in_flight)
{
    return step_to(line, from, t_ns, ipw_series_at(line->series, t_ns), in_flight);
}

/* Before the first edge no query is in flight: all energy is idle. */
static struct ledger_mark mark_before_edges(const struct ledger_line *line, int64_t t_ns)
{
    struct ledger_mark origin = {.t_ns = t_ns};

    return step(line, origin, t_ns, 0);
}

struct ledger_mark ipw_ledger_mark_at(const struct ipw_ledger *l, const struct ledger_line *line,
                                      int64_t t_ns)
{
    size_t i = ipw_ledger_edge_at(l, t_ns), k;
    struct ledger_mark mark;

    if (i == SIZE_MAX) return mark_before_edges(line, t_ns);
    if (i < line->settled) {
        mark = *ipw_ledger_mark(line, i > line->first ? i : line->first);
    } else {
        k = line->settled;
        mark = k ? *ipw_ledger_mark(line, k - 1) : mark_before_edges(line, l->edges[0].t_ns);
        for (k = k ? k : 1; k <= i; k++) {
            mark = step(line, mark, l->edges[k].t_ns, l->edges[k - 1].in_flight);
        }
    }
    return t_ns == mark.t_ns ? mark : step(line, mark, t_ns, l->edges[i].in_flight);
}

/* A cell of one device, shared among the queries in flight in it. */
struct cell {
    int64_t uj, idle;        /* its energy, and the idle part of it */
    struct ledger_sum *sums; /* the sums at its end */
};

static unsigned __int128 fixed(int64_t uj) { return (unsigned __int128)uj << 32; }

static void share_equally(const struct ipw_ledger *l, struct ledger_line *line,
                          const struct cell *cell)
{
    unsigned __int128 all = fixed(cell->uj) + line->rest, n = (unsigned __int128)line->n_active;

    for (size_t i = 0; i < ipw_ledger_kinds(l); i++) cell->sums[i].due += all / n;
    line->rest = all % n;
}

/* The weight of one query in each phase, the largest 2^32 - 1; returns the sum over the queries. */
static uint64_t find_weights(const struct ledger_line *line, uint64_t each[IPW_PHASE_COUNT])
{
    double watts[IPW_PHASE_COUNT], most = 0;
    uint64_t sum = 0;

    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        watts[p] = ipw_phase_fit_part_w(&line->fit, (enum ipw_phase)p, line->count);
    }
    watts[IPW_PHASE_PREFILL] =
        fmax(watts[IPW_PHASE_PREFILL], PREFILL_LEAST * watts[IPW_PHASE_DECODE]);
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        if (line->count[p] && watts[p] > most) most = watts[p];
    }
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        each[p] = line->count[p] && most > 0 ? (uint64_t)(watts[p] / most * UINT32_MAX) : 0;
        sum += each[p] * (uint64_t)line->count[p];
    }
    return sum;
}

static bool share_by_phase(struct ledger_line *line, const struct cell *cell)
{
    unsigned __int128 idle = fixed(cell->idle) / (unsigned __int128)line->n_active;
    unsigned __int128 all = fixed(cell->uj) + line->rest, due = all - fixed(cell->idle);
    uint64_t each[IPW_PHASE_COUNT], sum;

    if (line->n_active < 2) return false;
    if (!ipw_phase_fit_knows(&line->fit)) {
        line->equal_j += (double)cell->uj / 1e6;
        return false;
    }
    sum = find_weights(line, each);
    if (!sum) return false;
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        unsigned __int128 part = idle + due * each[p] / sum;

        if (!line->count[p]) continue;
        cell->sums[p].due += part;
        all -= part * (unsigned __int128)line->count[p];
    }
    line->rest = all;
    return true;
}

/* The cell between edge k - 1 and edge k. */
static void share_cell(const struct ipw_ledger *l, struct ledger_line *line, size_t k)
{
    struct cell cell = {.uj = ipw_ledger_mark(line, k)->uj - ipw_ledger_mark(line, k - 1)->uj,
                        .sums = &line->sums[(k - line->first) * ipw_ledger_kinds(l)]};

    ipw_ledger_bring_up(l, line, k - 1);
    if (!line->n_active) return;
    cell.idle = idle_part(line, cell.uj, l->edges[k].t_ns - l->edges[k - 1].t_ns);
    if (line->n_active > 1) line->crowded_j += (double)cell.uj / 1e6;
    if (l->share == IPW_SHARE_PHASE && share_by_phase(line, &cell)) return;
    share_equally(l, line, &cell);
}

/* Copies the sums of the edge before to edge k, before its cell is shared. */
static void carry_sums(const struct ipw_ledger *l, struct ledger_line *line, size_t k)
{
    size_t kinds = ipw_ledger_kinds(l), at = (k - line->first) * kinds;
    struct ledger_sum *to;

    IPW_GROW(line->sums, line->cap_sums, at + kinds);
    to = &line->sums[at];
    if (k) {
        memcpy(to, to - kinds, kinds * sizeof *to);
    } else {
        memset(to, 0, kinds * sizeof *to);
    }
}

/* Since when the query has been in model phases without a break; INT64_MAX: it is in no model
 * phase. */
static int64_t in_call_since(const struct ledger_query *q)
{
    const struct ledger_phase *p = q->n_phases ? &q->phases[q->n_phases - 1] : NULL;

    if (!p || p->t1_ns != INT64_MAX || !ipw_phase_is_lm(p->phase)) return INT64_MAX;
    while (p > q->phases && ipw_phase_is_lm(p[-1].phase) && p[-1].t1_ns == p->t0_ns &&
           p[-1].t1_ns > p[-1].t0_ns) {
        p--;
    }
    return p->t0_ns;
}

/* Since when the oldest call in progress runs; INT64_MAX: none does. */
static int64_t oldest_call_ns(const struct ipw_ledger *l)
{
    int64_t oldest = INT64_MAX;

    for (size_t i = 0; i < l->n_queries; i++) {
        int64_t since_ns = in_call_since(l->queries[i]);

        if (since_ns < oldest) oldest = since_ns;
    }
    return oldest;
}

/* Queries in flight have stamps of what lies further back.  Only a call in progress may still tell
 * an instant since it began: when it was sent, and its last token. */
static void drop_marks(const struct ipw_ledger *l, struct ledger_line *line)
{
    size_t kinds = ipw_ledger_kinds(l), n = line->settled - line->first, called, drop;

    if (!l->keeps_told || n < 2 * KEPT_MARKS || n % KEPT_MARKS) return;
    called = ipw_ledger_edge_at(l, oldest_call_ns(l));
    if (called == SIZE_MAX || called < line->first + KEPT_MARKS) return;
    drop = called - line->first < n ? called - line->first - 2 : n - 2;
    if (drop > n - KEPT_MARKS) drop = n - KEPT_MARKS;
    if (drop < n / 4) return; /* too few to move the rest */
    line->first += drop;
    n -= drop;
    memmove(line->marks, line->marks + drop, n * sizeof *line->marks);
    memmove(line->sums, line->sums + drop * kinds, n * kinds * sizeof *line->sums);
}

void ipw_ledger_share_until(struct ipw_ledger *l, struct ledger_line *line, int64_t until_ns)
{
    ipw_ledger_let_go(l, line); /* a query may have ended at an edge that was settled before */
    while (line->settled < l->n_edges && l->edges[line->settled].t_ns <= until_ns) {
        size_t k = line->settled;
        int64_t t_ns = l->edges[k].t_ns, below_uj, above_uj;
        int64_t uj = ipw_ledger_bounds(l, line, t_ns, &below_uj, &above_uj);
        struct ledger_mark origin = {.t_ns = t_ns}, *mark;

        drop_marks(l, line);
        IPW_GROW(line->marks, line->cap, k + 1 - line->first);
        mark = ipw_ledger_mark(line, k);
        *mark = step_to(line, k ? mark[-1] : origin, t_ns, uj, k ? l->edges[k - 1].in_flight : 0);
        mark->below = below_uj;
        mark->above = above_uj;
        carry_sums(l, line, k);
        line->settled++;
        if (k) {
            share_cell(l, line, k);
            ipw_ledger_widen(l, line, k - 1);
            ipw_ledger_stamp(l, line, k - 1);
            ipw_ledger_note_gap(l, line, k - 1);
        }
        ipw_ledger_let_go(l, line);
    }
}
