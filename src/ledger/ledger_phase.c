/* The line between samples: see ledger/ledger.h, ledger_priv.h and docs/method.md, "Splitting a
 * step".
 *
 * Steps are closed when a query has ended and the device's counter has a sample after that.  First
 * the fit learns from all closed steps.  Then each step that crosses a change of phase gets
 * corners.  The expected power of a piece is the power measured next to it in the same phases, if
 * there are whole steps in them; else it is the fit's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/ledger_priv.h"

#define FIT_SPREAD     0.15 /* relative spread of a phase's power between turns */
#define NEAR_SPREAD    0.04 /* relative spread inside a turn */
#define NEAR_STEPS     4    /* whole steps next to a piece that measure its power */
#define LOST_NS        (30 * IPW_NS_PER_S)
#define LEAST_GAUGE_MW 1000 /* a gauge above this shows that its device is awake */
/* Plus three times the allowed silence, so at least 5 s. */
#define DEAD_NS    (3500 * IPW_NS_PER_MS)
#define GIVE_UP_NS (3 * IPW_NS_PER_S)

/* A piece of a step in which no phase changes: the energy that it is expected to hold, and the
 * standard deviation of that. */
struct piece {
    int64_t to_ns;
    double uj, spread_uj;
};

/* Power of the whole steps in [from, to] before or after the step from a to a[1], and its relative
 * spread; false if there are none. */
static bool near_w(const struct ipw_series *s, const struct ipw_series_sample *a, bool after,
                   int64_t from_ns, int64_t to_ns, double *watts, double *spread)
{
    const struct ipw_series_sample *x = after ? a + 1 : a, *end = x;
    const struct ipw_series_sample *first = s->samples + s->first, *last = s->samples + s->n - 1;
    double length, loose;

    for (int i = 0; i < NEAR_STEPS; i++) {
        const struct ipw_series_sample *next = after ? end + 1 : end - 1;
        if (after ? end >= last : end <= first) break;
        if (next->chain != a->chain || next->t_ns > to_ns || next->t_ns < from_ns) break;
        end = next;
    }
    if (end == x) return false;
    length = fabs((double)(end->t_ns - x->t_ns));
    *watts = fabs((double)(end->uj - x->uj)) * 1e3 / length; /* uJ / ns = kW */
    /* The time of publication is known to an interval: a uniform error at each end. */
    loose = ((double)x->early_ns + x->late_ns + end->early_ns + end->late_ns) / (4 * length);
    *spread = sqrt(loose * loose + NEAR_SPREAD * NEAR_SPREAD);
    return true;
}

/* The time around point i with the same phases; i may be SIZE_MAX (before the first). */
static void state_span(const struct ipw_phase_line *line, size_t i, int64_t *from, int64_t *to)
{
    const struct ipw_phase_point *p = line->points;
    size_t k = i + 1; /* SIZE_MAX + 1 is 0 */

    *from = INT64_MIN;
    if (i != SIZE_MAX) {
        const int32_t *count = p[i].count;

        while (i > 0 && !memcmp(p[i - 1].count, count, sizeof p->count)) i--;
        while (k < line->n && !memcmp(p[k].count, count, sizeof p->count)) k++;
        *from = p[i].t_ns;
    }
    *to = k < line->n ? p[k].t_ns : INT64_MAX;
}

/* The piece of the step that begins at t, where the phases are those of point *i; then *i is that
 * of its end.  Whole steps are known up to `limit`. */
static struct piece piece_at(const struct ipw_ledger *l, const struct ledger_line *line,
                             const struct ipw_series_sample *a,
                             const struct ipw_series_sample *limit, int64_t t_ns, size_t *i)
{
    const struct ipw_series_sample *b = a + 1;
    double watts, spread = FIT_SPREAD;
    struct piece piece;
    int64_t from, to;

    state_span(&l->line, *i, &from, &to);
    piece.to_ns = to < b->t_ns ? to : b->t_ns;
    if (!(t_ns == a->t_ns && near_w(line->series, a, false, from, to, &watts, &spread)) &&
        !(piece.to_ns == b->t_ns && b < limit &&
          near_w(line->series, a, true, from, to < limit->t_ns ? to : limit->t_ns, &watts,
                 &spread)))
        watts = ipw_phase_fit_w(&line->fit, *i == SIZE_MAX ? NULL : &l->line.points[*i]);
    piece.uj = watts * (double)(piece.to_ns - t_ns) / 1e3; /* W * ns = nJ */
    piece.spread_uj = piece.uj * spread;
    while (*i + 1 < l->line.n && l->line.points[*i + 1].t_ns <= piece.to_ns) ++*i;
    return piece;
}

/* Adds a corner to the step at each change of phase in it.  What the step holds beyond the expected
 * energy is divided by the variance of the pieces: the mean of a normal prior given its sum.  Where
 * that would take more from a piece than it has, all are scaled instead. */
static void split_step(const struct ipw_ledger *l, struct ledger_line *line,
                       const struct ipw_series_sample *a, const struct ipw_series_sample *limit)
{
    size_t first = ipw_phase_line_find(&l->line, a->t_ns), i = first;
    double step = (double)(a[1].uj - a->uj), expected = 0, weight = 0, steepest = 0, sum = 0, rest;
    struct piece p;
    bool scale;

    for (int64_t t = a->t_ns; t < a[1].t_ns; t = p.to_ns) {
        p = piece_at(l, line, a, limit, t, &i);
        expected += p.uj;
        weight += p.spread_uj * p.spread_uj;
        if (p.uj > 0) steepest = fmax(steepest, p.spread_uj * p.spread_uj / p.uj);
    }
    if (!(weight > 0)) return;
    rest = step - expected;
    scale = -rest * steepest > weight;
    i = first;
    for (int64_t t = a->t_ns;; t = p.to_ns) {
        p = piece_at(l, line, a, limit, t, &i);
        if (p.to_ns >= a[1].t_ns) return;
        sum += scale ? p.uj * step / expected : p.uj + rest * p.spread_uj * p.spread_uj / weight;
        ipw_series_bend(line->series, p.to_ns, a->uj + (int64_t)(sum < step ? sum : step));
    }
}

/* *next: the first point after t0.  Call it with steps in order of time. */
static bool crosses(const struct ipw_phase_line *line, size_t *next, int64_t t0_ns, int64_t t1_ns)
{
    while (*next < line->n && line->points[*next].t_ns <= t0_ns) ++*next;
    return *next < line->n && line->points[*next].t_ns < t1_ns;
}

/* Closes the steps up to the first sample at or after t; returns that sample's time.  Steps that
 * were settled before any phase was told stay straight lines. */
static int64_t close_line(const struct ipw_ledger *l, struct ledger_line *line, int64_t t_ns,
                          int64_t settled_ns)
{
    struct ipw_series *s = line->series;
    size_t from = s->first, to, next;
    bool learned = false;

    if (s->n == s->first) {
        line->done_ns = line->lost_ns >= t_ns ? t_ns : INT64_MIN;
        return line->done_ns;
    }
    if (line->done_ns != INT64_MIN) from = ipw_series_find(s, line->done_ns);
    to = ipw_series_find(s, t_ns);
    if (s->samples[to].t_ns < t_ns && to + 1 < s->n) to++;
    if (s->channel.kind == IPW_CHANNEL_COUNTER && to > from) {
        for (size_t i = from; i < to && l->line.n; i++) {
            const struct ipw_series_sample *a = &s->samples[i];
            if (a->chain != a[1].chain) continue;
            ipw_phase_fit_add(&line->fit, &l->line, a->t_ns, a[1].t_ns, a[1].uj - a->uj);
            learned = true;
        }
        if (learned) ipw_phase_fit_solve(&line->fit);
        next = ipw_phase_line_find(&l->line, s->samples[from].t_ns);
        if (next == SIZE_MAX) next = 0;
        for (size_t i = from; i < to && ipw_phase_fit_knows(&line->fit); i++) {
            const struct ipw_series_sample *a = &s->samples[i];
            if (a->chain != a[1].chain || a->uj == a[1].uj || a->t_ns < settled_ns) continue;
            if (crosses(&l->line, &next, a->t_ns, a[1].t_ns))
                split_step(l, line, a, &s->samples[to]);
        }
    }
    if (to >= from) line->done_ns = s->samples[to].t_ns;
    /* No later sample will come. */
    if (line->lost_ns >= t_ns && line->done_ns < t_ns) line->done_ns = t_ns;
    return line->done_ns;
}

int64_t ipw_ledger_settled_ns(const struct ledger_line *line)
{
    int64_t t = ipw_series_settled_ns(line->series);

    return line->lost_ns > t ? line->lost_ns : t;
}

/* Marks a device as lost if it was silent for too long or was reported lost.  Its sums continue
 * without energy, and a later reading begins a new chain. */
static void look_for_loss(const struct ipw_ledger *l, struct ledger_line *line)
{
    struct ipw_series *s = line->series;
    int64_t heard_ns = s->n ? s->last.t_ns : l->first_row_ns, limit_ns = LOST_NS;
    bool silent;

    if (5 * s->pace.spacing_ns > limit_ns) limit_ns = 5 * s->pace.spacing_ns;
    if (5 * s->channel.period_ns > limit_ns) limit_ns = 5 * s->channel.period_ns;
    silent = l->newest_row_ns - heard_ns >= limit_ns;
    if (!silent && !s->lost) {
        line->lost_ns = INT64_MIN;
        return;
    }
    if (line->lost_ns == INT64_MIN) ipw_series_cut(s, "lost");
    /* A row that its sensor read earlier may still arrive and show the device again. */
    line->lost_ns = silent ? l->newest_row_ns : s->last_failed_ns;
}

/* Did the silence make a query's figure unknown?  It does if no sample came for GIVE_UP_NS after
 * the query's end. */
static bool is_finished_in_silence(const struct ipw_ledger *l, const struct ipw_series *s)
{
    for (size_t i = l->n_ends; i-- > 0 && l->ends[i].t_ns > s->pace.last_change_ns;) {
        if (s->last.t_ns - l->ends[i].t_ns >= GIVE_UP_NS) return true;
    }
    return false;
}

/* Handles a counter that stands still for long.  If the device's gauge shows that it is awake, the
 * gauge replaces the counter from its next reading on.  Otherwise the next change covers the
 * silence. But if a query already got its figures during the silence, the change begins a new
 * chain: otherwise the balance would count joules that no query was charged with. */
static void look_for_silence(const struct ipw_ledger *l, struct ledger_line *line)
{
    struct ipw_series *s = line->series;
    const struct ipw_series *g = line->gauge;

    if (s->channel.kind != IPW_CHANNEL_COUNTER || !ipw_series_is_stuck(s)) return;
    if (g && g->n && g->last.raw > LEAST_GAUGE_MW && s->last.t_ns - g->last.t_ns < IPW_NS_PER_S &&
        ipw_series_silence_ns(s) > DEAD_NS + 3 * ipw_series_quiet_ns(s)) {
        line->handed_over_ns = g->last.t_ns;
        ipw_series_hand_over(s, &g->channel, "stuck");
    } else if (ipw_series_has_moved(s) && is_finished_in_silence(l, s)) {
        ipw_series_cut(s, "stuck");
    }
}

static void settle(struct ipw_ledger *l, struct ledger_line *line, int64_t until)
{
    if (!l->line.n && !l->has_gauges) {
        ipw_ledger_share_until(l, line, until);
        line->next_end = l->n_ends;
        return;
    }
    while (line->next_end < l->n_ends && l->ends[line->next_end].t_ns <= until) {
        int64_t end = l->ends[line->next_end++].t_ns;
        int64_t settled =
            line->settled ? ipw_ledger_mark(line, line->settled - 1)->t_ns : INT64_MIN;

        if (end > line->closed_ns) line->closed_ns = close_line(l, line, end, settled);
        ipw_ledger_share_until(l, line, line->closed_ns < until ? line->closed_ns : until);
    }
}

void ipw_ledger_settle(struct ipw_ledger *l)
{
    for (size_t i = 0; i < l->n_lines; i++) {
        struct ledger_line *line = &l->lines[i];

        look_for_loss(l, line);
        look_for_silence(l, line);
        settle(l, line, ipw_ledger_settled_ns(line));
    }
}

void ipw_ledger_settle_all(struct ipw_ledger *l, int64_t t_ns)
{
    ipw_ledger_settle(l);
    for (size_t i = 0; i < l->n_lines; i++) {
        struct ledger_line *line = &l->lines[i];

        settle(l, line, t_ns);
        ipw_ledger_share_until(l, line, t_ns);
    }
}
