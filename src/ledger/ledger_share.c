/* Shares a cell's energy between queries: see ledger/ledger_priv.h and docs/method.md, "Sharing
 * between queries". */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/fair_share.h"
#include "ledger/ledger_priv.h"

#define KEPT_MARKS    256 /* room for instants that are told a little late */
#define LEAST_FREE_S  0.5 /* time without a model call that is needed to know the idle power */
#define PREFILL_PRIOR 1.5 /* power of a prefill relative to a decode where neither was seen alone */

const char *ipw_share_name(enum ipw_share share)
{
    switch (share) {
    case IPW_SHARE_EQUAL: return "equal";
    case IPW_SHARE_TOKENS: return "tokens";
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

/* The device's idle power: measured, else from the fits.  The fit of single calls can separate a
 * call's power from the device's own only if there was time without a call. */
static double idle_w(const struct ledger_line *line)
{
    const struct ipw_phase_fit *all = ipw_lag_fit(&line->lag), *alone = &line->alone;

    if (!isnan(line->baseline_w)) return line->baseline_w;
    if (!line->idle_by_fit) return 0;
    if (ipw_phase_fit_knows(alone) && ipw_phase_fit_free_s(alone) > LEAST_FREE_S)
        return ipw_phase_fit_base_w(alone);
    return ipw_phase_fit_knows(all) ? ipw_phase_fit_base_w(all) : 0;
}

static int64_t idle_part(double idle_w, int64_t uj, int64_t length_ns)
{
    double idle = idle_w * (double)length_ns / 1e3; /* W * ns = nJ */

    if (isnan(idle) || idle <= 0) return 0;
    return idle < (double)uj ? (int64_t)idle : uj;
}

int64_t ipw_ledger_idle_part(const struct ledger_line *line, int64_t uj, int64_t length_ns)
{
    return idle_part(idle_w(line), uj, length_ns);
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

/* Power of one query in this phase above idle: by the fit of single calls, else by the fit of all
 * steps.  On a saturated device the fit of all steps cannot separate the phases well. */
static double single_w(const struct ledger_line *line, enum ipw_phase phase)
{
    double w = ipw_phase_fit_single_w(&line->alone, phase);
    double all = ipw_phase_fit_single_w(ipw_lag_fit(&line->lag), phase);

    if (!isnan(w) && ipw_phase_fit_knows(&line->alone)) {
        /* The sum of base and call is known, even if the fit divides it wrongly. */
        if (ipw_phase_is_lm(phase)) w += ipw_phase_fit_base_w(&line->alone) - idle_w(line);
        return w > 0 ? w : 0;
    }
    if (isnan(all)) return 0;
    return phase == IPW_PHASE_PREFILL ? all * PREFILL_PRIOR : all;
}

/* The power of the phases, and how the device saturates; false: not known yet. */
static bool find_fair(const struct ledger_line *line, double idle_w, struct ipw_fair *fair)
{
    double sum = 0;

    if (!ipw_phase_fit_knows(ipw_lag_fit(&line->lag))) return false;
    fair->cap_w = line->peak_w - idle_w;
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        fair->single_w[p] = single_w(line, (enum ipw_phase)p);
        sum += fair->single_w[p];
        if (fair->cap_w < fair->single_w[p]) fair->cap_w = fair->single_w[p];
    }
    return sum > 0;
}

static struct ledger_fair *fair_of(const struct ledger_line *line)
{
    struct ledger_fair *f = line->fair;

    if (f->fresh) return f;
    f->fresh = true;
    f->idle_w = idle_w(line);
    f->known = find_fair(line, f->idle_w, &f->fair);
    f->round++;
    return f;
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
    size_t kinds = l->share == IPW_SHARE_TOKENS ? LEDGER_TOKENS : ipw_ledger_kinds(l);

    for (size_t i = 0; i < kinds; i++) cell->sums[i].due += all / n;
    line->rest = all % n;
}

static bool share_by_tokens(struct ledger_line *line, const struct cell *cell)
{
    unsigned __int128 idle = fixed(cell->idle), n = (unsigned __int128)line->n_active;
    unsigned __int128 rest = fixed(cell->uj - cell->idle) + line->rest;

    if (!line->rate) return false;
    rest = (rest << 32) + line->rest_tokens;
    cell->sums[0].due += idle / n;
    cell->sums[LEDGER_TOKENS].due += rest / line->rate;
    line->rest = idle % n;
    line->rest_tokens = rest % line->rate;
    return true;
}

static void find_weights(const struct ipw_fair *fair, struct ledger_weights *w)
{
    double exact[IPW_PHASE_COUNT], most = 0;

    ipw_fair_weights(fair, w->count, exact);
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        if (w->count[p] && exact[p] > most) most = exact[p];
    }
    w->sum = 0;
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        w->each[p] = exact[p] > 0 && w->count[p] ? (uint64_t)(exact[p] / most * UINT32_MAX) : 0;
        w->sum += w->each[p] * (uint64_t)w->count[p];
    }
}

/* The same numbers of queries in the phases come again and again. */
static const struct ledger_weights *weights_of(struct ledger_fair *f, const int32_t *count)
{
    struct ledger_weights *w;
    uint64_t hash = 0;

    for (int p = 0; p < IPW_PHASE_COUNT; p++)
        hash = (hash + (uint32_t)count[p]) * UINT64_C(0x9E3779B97F4A7C15);
    w = &f->weights[(hash >> 32) % LEDGER_WEIGHTS];
    if (w->round == f->round && !memcmp(w->count, count, sizeof w->count)) return w;
    w->round = f->round;
    memcpy(w->count, count, sizeof w->count);
    find_weights(&f->fair, w);
    return w;
}

static bool share_by_phase(struct ledger_line *line, const struct cell *cell)
{
    unsigned __int128 idle = fixed(cell->idle) / (unsigned __int128)line->n_active;
    unsigned __int128 all = fixed(cell->uj) + line->rest, due = all - fixed(cell->idle);
    struct ledger_fair *fair = fair_of(line);
    const struct ledger_weights *weights;

    if (line->n_active < 2) return false;
    if (!fair->known) {
        line->equal_j += (double)cell->uj / 1e6;
        return false;
    }
    weights = weights_of(fair, line->count);
    if (!weights->sum) return false;
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        unsigned __int128 each = idle + due * weights->each[p] / weights->sum;

        if (!line->count[p]) continue;
        cell->sums[p].due += each;
        all -= each * (unsigned __int128)line->count[p];
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
    cell.idle = idle_part(fair_of(line)->idle_w, cell.uj, l->edges[k].t_ns - l->edges[k - 1].t_ns);
    if (line->n_active > 1) line->crowded_j += (double)cell.uj / 1e6;
    if (l->share == IPW_SHARE_PHASE && share_by_phase(line, &cell)) return;
    if (l->share == IPW_SHARE_TOKENS && share_by_tokens(line, &cell)) return;
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

/* Queries in flight have stamps of what lies further back.  Only a call in progress may still tell
 * an instant since it began: when it was sent, and its last token. */
static void drop_marks(struct ipw_ledger *l, struct ledger_line *line)
{
    size_t kinds = ipw_ledger_kinds(l), n = line->settled - line->first, called, drop;

    if (!l->keeps_told || n < 2 * KEPT_MARKS || n % KEPT_MARKS) return;
    called = ipw_ledger_edge_at(l, ipw_ledger_calls_ns(l));
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
