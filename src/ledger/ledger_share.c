/* Shares a cell's energy between queries: see ledger/ledger_priv.h and docs/method.md, "Sharing
 * between queries". */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ledger/fair_share.h"
#include "ledger/ledger_priv.h"

#define LEAST_FREE_S  0.5 /* time without a model call that is needed to know the idle power */
#define PREFILL_PRIOR 1.5 /* power of a prefill relative to a decode where neither was seen alone */
#define FEW           16  /* up to this many queries a search is faster than a sort */

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

int64_t ipw_ledger_idle_part(const struct ledger_line *line, int64_t uj, int64_t length_ns)
{
    double idle = idle_w(line) * (double)length_ns / 1e3; /* W * ns = nJ */

    if (isnan(idle) || idle <= 0) return 0;
    return idle < (double)uj ? (int64_t)idle : uj;
}

/* The mark after `from`, with `in_flight` queries in between. */
static struct ledger_mark step(const struct ledger_line *line, struct ledger_mark from,
                               int64_t t_ns, int64_t in_flight)
{
    struct ledger_mark to = from;
    int64_t uj = ipw_series_at(line->series, t_ns), cell = uj - from.uj;

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
        mark = line->marks[i];
    } else {
        k = line->settled;
        mark = k ? line->marks[k - 1] : mark_before_edges(line, l->edges[0].t_ns);
        for (k = k ? k : 1; k <= i; k++) {
            mark = step(line, mark, l->edges[k].t_ns, l->edges[k - 1].in_flight);
        }
    }
    return t_ns == mark.t_ns ? mark : step(line, mark, t_ns, l->edges[i].in_flight);
}

/* The query's phase at t; of overlapping spans the one told last. */
static const struct ledger_phase *phase_at(const struct ledger_query *q, int64_t t_ns)
{
    for (size_t i = q->n_phases; i-- > 0;) {
        if (q->phases[i].t0_ns <= t_ns && t_ns < q->phases[i].t1_ns) return &q->phases[i];
    }
    return NULL;
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
static bool fair_of(const struct ledger_line *line, struct ipw_fair *fair)
{
    double sum = 0;

    if (!ipw_phase_fit_knows(ipw_lag_fit(&line->lag))) return false;
    fair->cap_w = line->peak_w - idle_w(line);
    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        fair->single_w[p] = single_w(line, (enum ipw_phase)p);
        sum += fair->single_w[p];
        if (fair->cap_w < fair->single_w[p]) fair->cap_w = fair->single_w[p];
    }
    return sum > 0;
}

/* The first tokens that end after t; of overlapping ones the first. */
static size_t tokens_after(const struct ledger_query *q, int64_t t_ns)
{
    size_t lo = 0, hi = q->tokens_overlap ? 0 : q->n_tokens;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (q->tokens[mid].t1_ns <= t_ns) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

double ipw_ledger_token_weight(const struct ipw_ledger *l, const struct ledger_query *q,
                               int64_t t0_ns, int64_t t1_ns)
{
    double weight = 0;

    for (size_t i = tokens_after(q, t0_ns); i < q->n_tokens; i++) {
        const struct ledger_tokens *x = &q->tokens[i];
        int64_t from = x->t0_ns > t0_ns ? x->t0_ns : t0_ns;
        int64_t to = x->t1_ns < t1_ns ? x->t1_ns : t1_ns;

        if (x->t0_ns >= t1_ns && !q->tokens_overlap) break;
        if (to <= from) continue;
        weight += (l->alpha * x->prefilled + x->decoded) * (double)(to - from) /
                  (double)(x->t1_ns - x->t0_ns);
    }
    return weight;
}

struct due {
    struct ledger_slice *slice;
    double weight;
    enum ipw_phase phase;
    int64_t uj;
};

static int by_deficit(const void *a, const void *b)
{
    const struct due *x = a, *y = b;

    if (x->slice->deficit != y->slice->deficit)
        return x->slice->deficit > y->slice->deficit ? -1 : 1;
    return x->slice->from < y->slice->from ? -1 : x->slice->from > y->slice->from;
}

static struct due *owed_most(struct due *due, size_t n)
{
    struct due *most = due;

    for (size_t i = 1; i < n; i++) {
        if (by_deficit(&due[i], most) < 0) most = &due[i];
    }
    return most;
}

static void give_one(struct due *due)
{
    due->uj++;
    due->slice->deficit -= 1;
}

/* Hands out the whole microjoules of a cell; the rest goes to the queries with the largest
 * deficits. */
static void hand_out(struct due *due, size_t n, int64_t cell, int64_t idle)
{
    double sum = 0;
    int64_t rest = cell;

    for (size_t i = 0; i < n; i++) sum += due[i].weight;
    for (size_t i = 0; i < n; i++) {
        double part = sum > 0 ? due[i].weight / sum : 1.0 / (double)n;
        double uj = (double)idle / (double)n + (double)(cell - idle) * part;

        due[i].uj = (int64_t)uj;
        if (due[i].uj > rest) due[i].uj = rest;
        rest -= due[i].uj;
        due[i].slice->deficit += uj - (double)due[i].uj;
    }
    if (n <= FEW) {
        for (; rest > 0; rest--) give_one(owed_most(due, n));
    } else if (rest > 0) {
        qsort(due, n, sizeof *due, by_deficit);
        for (size_t i = 0; rest > 0; i = (i + 1) % n, rest--) give_one(&due[i]);
    }
    for (size_t i = 0; i < n; i++) {
        struct ledger_slice *s = due[i].slice;
        int64_t before = s->n ? s->uj[s->n - 1] : 0;

        IPW_GROW(s->uj, s->cap, s->n + 1);
        s->uj[s->n++] = before + due[i].uj;
    }
}

/* Brings the list of queries in flight to the cell that starts at t. */
static void bring_up(const struct ipw_ledger *l, struct ledger_line *line, int64_t t_ns,
                     int64_t edge)
{
    struct ledger_query *q;
    size_t kept = 0, device = (size_t)(line - l->lines);

    for (size_t i = 0; i < line->n_active; i++) {
        q = ipw_ledger_query(l, line->active[i]);
        if (q->t1_ns > t_ns) line->active[kept++] = line->active[i];
    }
    line->n_active = kept;
    while ((q = ipw_ledger_query(l, line->next_query)) && q->t0_ns <= t_ns) {
        if (q->t1_ns > t_ns) {
            struct ledger_slice *s = &q->slices[device];

            s->from = edge;
            IPW_GROW(s->uj, s->cap, 1);
            s->uj[0] = 0;
            s->n = 1;
            IPW_GROW(line->active, line->cap_active, line->n_active + 1);
            line->active[line->n_active++] = line->next_query;
        }
        line->next_query++;
    }
}

/* Weights of the queries in flight by their phases; equal while the fit does not know them. */
static void weigh_by_phase(const struct ipw_ledger *l, struct ledger_line *line, int64_t t_ns,
                           int64_t cell, struct due *due)
{
    int32_t count[IPW_PHASE_COUNT] = {0};
    double weights[IPW_PHASE_COUNT];
    struct ipw_fair fair;

    if (!fair_of(line, &fair)) {
        line->equal_j += (double)cell / 1e6;
        return;
    }
    for (size_t i = 0; i < line->n_active; i++) {
        const struct ledger_phase *phase = phase_at(ipw_ledger_query(l, line->active[i]), t_ns);

        due[i].phase = phase ? phase->phase : IPW_PHASE_AGENT;
        count[due[i].phase]++;
    }
    ipw_fair_weights(&fair, count, weights);
    for (size_t i = 0; i < line->n_active; i++) due[i].weight = weights[due[i].phase];
}

/* The cell between edge k - 1 and edge k. */
static void share_cell(const struct ipw_ledger *l, struct ledger_line *line, size_t k)
{
    int64_t t0 = l->edges[k - 1].t_ns, t1 = l->edges[k].t_ns;
    int64_t cell = line->marks[k].uj - line->marks[k - 1].uj;
    size_t device = (size_t)(line - l->lines);
    struct due few[64], *due = few;

    bring_up(l, line, t0, l->edge_base + (int64_t)k - 1);
    if (!line->n_active) return;
    if (line->n_active > 64) due = ipw_calloc(line->n_active, sizeof *due);
    for (size_t i = 0; i < line->n_active; i++) {
        struct ledger_query *q = ipw_ledger_query(l, line->active[i]);

        due[i] = (struct due){.slice = &q->slices[device], .weight = 1};
        if (l->share == IPW_SHARE_TOKENS) due[i].weight = ipw_ledger_token_weight(l, q, t0, t1);
    }
    if (line->n_active > 1) {
        line->crowded_j += (double)cell / 1e6;
        if (l->share == IPW_SHARE_PHASE) weigh_by_phase(l, line, t0, cell, due);
    }
    hand_out(due, line->n_active, cell, ipw_ledger_idle_part(line, cell, t1 - t0));
    if (due != few) free(due);
}

void ipw_ledger_share_until(struct ipw_ledger *l, struct ledger_line *line, int64_t until_ns)
{
    while (line->settled < l->n_edges && l->edges[line->settled].t_ns <= until_ns) {
        size_t k = line->settled;
        struct ledger_mark *mark;

        IPW_GROW(line->marks, line->cap, k + 1);
        mark = &line->marks[k];
        *mark = k ? step(line, mark[-1], l->edges[k].t_ns, l->edges[k - 1].in_flight)
                  : mark_before_edges(line, l->edges[0].t_ns);
        ipw_series_bounds(line->series, l->edges[k].t_ns, &mark->below, &mark->above);
        line->settled++;
        if (k) share_cell(l, line, k);
    }
}

/* Energy by equal slices between two instants. */
static int64_t equal_part(const struct ipw_ledger *l, const struct ledger_line *line, int64_t t0_ns,
                          int64_t t1_ns)
{
    return (int64_t)((ipw_ledger_mark_at(l, line, t1_ns).share -
                      ipw_ledger_mark_at(l, line, t0_ns).share) >>
                     32);
}

int64_t ipw_ledger_due_at(const struct ipw_ledger *l, const struct ledger_query *q,
                          const struct ledger_line *line, int64_t t_ns)
{
    const struct ledger_slice *s = &q->slices[line - l->lines];
    size_t i, k;
    int64_t cell, part;

    if (t_ns <= q->t0_ns || q->t1_ns <= q->t0_ns) return 0;
    if (t_ns > q->t1_ns) t_ns = q->t1_ns;
    i = ipw_ledger_edge_at(l, t_ns);
    if (!s->n || i == SIZE_MAX || l->edge_base + (int64_t)i < s->from) {
        return equal_part(l, line, q->t0_ns, t_ns);
    }
    k = (size_t)(l->edge_base + (int64_t)i - s->from);
    if (k + 1 < s->n) {
        const struct ledger_mark *a = &line->marks[i];

        cell = a[1].uj - a->uj;
        part = ipw_series_at(line->series, t_ns) - a->uj;
        if (cell <= 0 || part <= 0) return s->uj[k];
        return s->uj[k] + (int64_t)((__int128)(s->uj[k + 1] - s->uj[k]) * part / cell);
    }
    if (k < s->n && l->edges[i].t_ns == t_ns) return s->uj[k];
    /* Not settled yet: equal slices from the last settled edge on. */
    k = (size_t)(s->from + (int64_t)s->n - 1 - l->edge_base);
    return s->uj[s->n - 1] + equal_part(l, line, l->edges[k].t_ns, t_ns);
}
