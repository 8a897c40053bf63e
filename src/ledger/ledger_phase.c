/* The line between samples: see ledger/ledger.h, ledger_priv.h and docs/method.md, "Splitting a
 * step".
 *
 * Steps are closed when a query has ended and the device's counter has a sample after that.  First
 * the fit learns from all closed steps.  Then each step that crosses a change of phase gets
 * corners.  The expected power of a piece is the power measured next to it in the same phases, if
 * there are whole steps in them; else it is the fit's.  The difference between measured and
 * expected energy is spread by the variance of each piece (the mean of a normal prior given its
 * sum). */
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
#define DEAD_NS       (3500 * IPW_NS_PER_MS)
#define GIVE_UP_NS    (3 * IPW_NS_PER_S)
#define LEAST_PEAK_NS (40 * IPW_NS_PER_MS)
#define LEAST_CHANGES 2 /* a gauge with this many changes within a step gives its shape */

struct piece {
    int64_t to_ns;
    double uj, spread_uj; /* expected energy, and its standard deviation */
};

struct pieces {
    struct piece few[32], *all;
    size_t n, cap;
    bool guessed; /* the fit supplied the power of at least one piece */
};

static struct piece *add_piece(struct pieces *p)
{
    if (p->n == p->cap) {
        size_t cap = p->cap * 2;
        struct piece *more = ipw_calloc(cap, sizeof *more);
        memcpy(more, p->all, p->n * sizeof *more);
        if (p->all != p->few) free(p->all);
        p->all = more;
        p->cap = cap;
    }
    return &p->all[p->n++];
}

/* No piece holds more than the device can draw in its time (or the step's own power, if that is
 * higher).  The excess goes to the pieces with room. */
static void hold_to_most(const struct ipw_series *s, const struct ipw_series_sample *a,
                         struct pieces *p)
{
    double over = 0, room = 0, most_w = (double)ipw_series_most_w(s);
    double step_w = (double)(a[1].uj - a->uj) * 1e3 / (double)(a[1].t_ns - a->t_ns);
    int64_t from = a->t_ns;

    if (step_w > most_w) most_w = step_w;
    for (size_t i = 0; i < p->n; from = p->all[i++].to_ns) {
        double left = most_w * (double)(p->all[i].to_ns - from) / 1e3 - p->all[i].uj;

        if (left < 0) {
            over -= left;
        } else {
            room += left;
        }
    }
    if (!(over > 0) || !(room > 0)) return;
    from = a->t_ns;
    for (size_t i = 0; i < p->n; from = p->all[i++].to_ns) {
        double left = most_w * (double)(p->all[i].to_ns - from) / 1e3 - p->all[i].uj;

        p->all[i].uj += left < 0 ? left : left * over / room;
    }
}

/* Adds corners so that the pieces of the step hold its energy: `uj` each, in order. */
static void bend(struct ipw_series *s, const struct ipw_series_sample *a, struct pieces *p)
{
    double sum = 0;

    hold_to_most(s, a, p);
    for (size_t i = 0; i + 1 < p->n; i++) {
        int64_t uj;

        sum += p->all[i].uj;
        uj = a->uj + (int64_t)sum;
        if (uj < a->uj) uj = a->uj;
        if (uj > a[1].uj) uj = a[1].uj;
        if (s->n_knots && s->knots[s->n_knots - 1].t_ns > a->t_ns &&
            uj < s->knots[s->n_knots - 1].uj) {
            uj = s->knots[s->n_knots - 1].uj;
        }
        ipw_series_bend(s, p->all[i].to_ns, uj);
    }
}

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

static bool same_state(const struct ipw_phase_point *a, const struct ipw_phase_point *b)
{
    return !memcmp(a->count, b->count, sizeof a->count);
}

/* The time around point i with the same phases, moved `lag` later; i may be SIZE_MAX (before the
 * first). */
static void state_span(const struct ipw_phase_line *line, size_t i, int64_t lag_ns, int64_t *from,
                       int64_t *to)
{
    size_t k = i == SIZE_MAX ? 0 : i + 1;

    *from = INT64_MIN;
    *to = INT64_MAX;
    if (i != SIZE_MAX) {
        size_t b = i;
        while (b > 0 && same_state(&line->points[b - 1], &line->points[i])) b--;
        *from = line->points[b].t_ns + lag_ns;
        while (k < line->n && same_state(&line->points[k], &line->points[i])) k++;
    }
    if (k < line->n) *to = line->points[k].t_ns + lag_ns;
}

/* Cuts the step into pieces of constant phases, with the expected energy of each. */
static void cut_step(const struct ipw_ledger *l, const struct ledger_line *line,
                     const struct ipw_series_sample *a, const struct ipw_series_sample *limit,
                     struct pieces *p)
{
    const struct ipw_series_sample *b = a + 1;
    int64_t t = a->t_ns, lag_ns = line->lag.lag_ns;
    size_t i = ipw_phase_line_find(&l->line, t - lag_ns);

    while (t < b->t_ns) {
        int64_t from, to, end;
        double watts, spread = FIT_SPREAD;
        struct piece *piece;

        state_span(&l->line, i, lag_ns, &from, &to);
        end = to < b->t_ns ? to : b->t_ns;
        if (!(t == a->t_ns && near_w(line->series, a, false, from, to, &watts, &spread)) &&
            !(end == b->t_ns && b < limit &&
              near_w(line->series, a, true, from, to < limit->t_ns ? to : limit->t_ns, &watts,
                     &spread))) {
            watts =
                ipw_phase_fit_w(ipw_lag_fit(&line->lag), i == SIZE_MAX ? NULL : &l->line.points[i]);
            p->guessed = true;
        }
        piece = add_piece(p);
        piece->to_ns = end;
        piece->uj = watts * (double)(end - t) / 1e3;
        piece->spread_uj = piece->uj * spread;
        t = end;
        while (i + 1 < l->line.n && l->line.points[i + 1].t_ns + lag_ns <= t)
            i++; /* SIZE_MAX + 1 is 0 */
    }
}

/* Makes the pieces sum to `uj`; false if no piece has an expected energy or a spread. */
static bool fit_to_sum(struct pieces *p, double uj)
{
    double expected = 0, weight = 0, rest;
    bool negative = false;

    for (size_t i = 0; i < p->n; i++) {
        expected += p->all[i].uj;
        weight += p->all[i].spread_uj * p->all[i].spread_uj;
    }
    if (!(expected > 0) || !(weight > 0)) return false;
    rest = uj - expected;
    for (size_t i = 0; i < p->n; i++) {
        double w = p->all[i].spread_uj * p->all[i].spread_uj / weight;
        if (p->all[i].uj + rest * w < 0) negative = true;
    }
    for (size_t i = 0; i < p->n; i++) {
        double w = p->all[i].spread_uj * p->all[i].spread_uj / weight;
        p->all[i].uj = negative ? p->all[i].uj * uj / expected : p->all[i].uj + rest * w;
    }
    return true;
}

/* While the fit knows too little, the energy above the baseline is split by the tokens of all
 * queries. False: no tokens are known, and the step stays a straight line. */
static bool fit_to_tokens(const struct ipw_ledger *l, const struct ledger_line *line,
                          const struct ipw_series_sample *a, struct pieces *p)
{
    double uj = (double)(a[1].uj - a->uj), sum = 0, length = (double)(a[1].t_ns - a->t_ns);
    double idle = (double)ipw_ledger_idle_part(line, a[1].uj - a->uj, a[1].t_ns - a->t_ns);
    int64_t from = a->t_ns;

    for (size_t i = 0; i < p->n; i++) {
        p->all[i].uj = 0;
        for (size_t k = 0; k < l->n_queries; k++) {
            p->all[i].uj += ipw_ledger_token_weight(l, l->queries[k], from, p->all[i].to_ns);
        }
        sum += p->all[i].uj;
        from = p->all[i].to_ns;
    }
    if (!(sum > 0)) return false;
    from = a->t_ns;
    for (size_t i = 0; i < p->n; i++) {
        p->all[i].uj =
            (uj - idle) * p->all[i].uj / sum + idle * (double)(p->all[i].to_ns - from) / length;
        from = p->all[i].to_ns;
    }
    return true;
}

static void shape_by_phase(const struct ipw_ledger *l, struct ledger_line *line,
                           const struct ipw_series_sample *a, const struct ipw_series_sample *limit)
{
    struct pieces p;

    p.all = p.few;
    p.n = 0;
    p.guessed = false;
    p.cap = sizeof p.few / sizeof *p.few;
    cut_step(l, line, a, limit, &p);
    if (p.n > 1 && (!p.guessed || ipw_phase_fit_knows(ipw_lag_fit(&line->lag))
                        ? fit_to_sum(&p, (double)(a[1].uj - a->uj))
                        : fit_to_tokens(l, line, a, &p))) {
        bend(line->series, a, &p);
    }
    if (p.all != p.few) free(p.all);
}

/* Uses the gauge's integral as the shape of a step, if the gauge moved within it. */
static bool shape_by_gauge(struct ledger_line *line, const struct ipw_series_sample *a)
{
    const struct ipw_series *g = line->gauge;
    const struct ipw_series_sample *b = a + 1, *x;
    double sum = 0, step = (double)(b->uj - a->uj);
    struct pieces p;
    size_t first, changes = 0;

    if (!g || g->n - g->first < 2 || g->samples[g->first].t_ns > a->t_ns) return false;
    /* Its averaging window is too long. */
    if (g->channel.period_ns > (b->t_ns - a->t_ns) / 2) return false;
    if (g->last.t_ns < b->t_ns) return false;
    first = ipw_series_find(g, a->t_ns);
    for (size_t i = first + 1; i < g->n && g->samples[i].t_ns < b->t_ns; i++) {
        if (g->samples[i].chain != g->samples[first].chain) return false;
        if (g->samples[i].raw != g->samples[i - 1].raw) changes++;
    }
    if (changes < LEAST_CHANGES) return false;
    p.all = p.few;
    p.n = 0;
    p.cap = sizeof p.few / sizeof *p.few;
    for (size_t i = first + 1;; i++) {
        int64_t from = p.n ? p.all[p.n - 1].to_ns : a->t_ns, to;
        struct piece *piece = add_piece(&p);

        x = i < g->n ? &g->samples[i] : &g->last;
        to = i < g->n && x->t_ns < b->t_ns ? x->t_ns : b->t_ns;
        piece->to_ns = to;
        piece->uj = (double)(ipw_series_straight(g, to) - ipw_series_straight(g, from));
        sum += piece->uj;
        if (to == b->t_ns) break;
    }
    for (size_t i = 0; i < p.n && sum > 0; i++) p.all[i].uj *= step / sum;
    if (sum > 0) bend(line->series, a, &p);
    if (p.all != p.few) free(p.all);
    return sum > 0;
}

/* *next: the first point after t0.  Call it with steps in order of time. */
static bool crosses(const struct ipw_phase_line *line, size_t *next, int64_t t0_ns, int64_t t1_ns)
{
    while (*next < line->n && line->points[*next].t_ns <= t0_ns) ++*next;
    return *next < line->n && line->points[*next].t_ns < t1_ns;
}

/* Learns from the step from a to a[1]. */
static void learn_step(const struct ipw_ledger *l, struct ledger_line *line,
                       const struct ipw_series_sample *a)
{
    int64_t length = a[1].t_ns - a->t_ns, lag_ns = line->lag.lag_ns, uj = a[1].uj - a->uj;
    double watts = (double)uj * 1e3 / (double)length; /* uJ / ns = kW */

    ipw_lag_add(&line->lag, &l->line, a->t_ns, a[1].t_ns, uj);
    if (l->share != IPW_SHARE_PHASE) return;
    if (length >= LEAST_PEAK_NS && watts > line->peak_w) line->peak_w = watts;
    if (ipw_phase_line_most_lm(&l->line, a->t_ns - lag_ns, a[1].t_ns - lag_ns) <= 1)
        ipw_phase_fit_add(&line->alone, &l->line, a->t_ns - lag_ns, a[1].t_ns - lag_ns, uj);
}

/* Closes the steps up to the first sample at or after t; returns that sample's time.  Steps that
 * were settled before any phase was told stay straight lines. */
static int64_t close_line(const struct ipw_ledger *l, struct ledger_line *line, int64_t t_ns,
                          int64_t settled_ns)
{
    struct ipw_series *s = line->series;
    size_t from = s->first, to, next;
    int64_t lag_ns = 0;
    bool learned = false;

    if (s->n == s->first) {
        line->done_ns = line->lost_ns >= t_ns ? t_ns : INT64_MIN;
        return line->done_ns;
    }
    if (line->done_ns != INT64_MIN) from = ipw_series_find(s, line->done_ns);
    to = ipw_series_find(s, t_ns);
    if (s->samples[to].t_ns < t_ns && to + 1 < s->n) to++;
    if ((s->channel.kind == IPW_CHANNEL_COUNTER || s->channel.undo_window) && to > from) {
        line->lag.learns |= ipw_series_is_slow(s);
        for (size_t i = from; i < to && l->line.n; i++) {
            const struct ipw_series_sample *a = &s->samples[i];
            if (a->chain != a[1].chain) continue;
            learn_step(l, line, a);
            learned = true;
        }
        if (learned) ipw_lag_solve(&line->lag);
        line->fair->fresh &= !learned;
        s->doubt_ns = line->lag.doubt_ns;
        if (learned && line->alone.steps) ipw_phase_fit_solve(&line->alone);
        lag_ns = line->lag.lag_ns;
        next = ipw_phase_line_find(&l->line, s->samples[from].t_ns - lag_ns);
        if (next == SIZE_MAX) next = 0;
        for (size_t i = from; i < to; i++) {
            const struct ipw_series_sample *a = &s->samples[i];
            if (a->chain != a[1].chain || a->uj == a[1].uj || a->t_ns < settled_ns) continue;
            if (shape_by_gauge(line, a)) continue;
            if (crosses(&l->line, &next, a->t_ns - lag_ns, a[1].t_ns - lag_ns)) {
                shape_by_phase(l, line, a, &s->samples[to]);
            }
        }
    }
    if (to >= from) line->done_ns = s->samples[to].t_ns;
    /* No later sample will come. */
    if (line->lost_ns >= t_ns && line->done_ns < t_ns) line->done_ns = t_ns;
    return line->done_ns;
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

void ipw_ledger_note_call(struct ipw_ledger *l, struct ledger_query *q)
{
    int64_t since_ns = in_call_since(q);
    size_t i = l->calls.n;

    if ((l->share != IPW_SHARE_TOKENS && !l->keeps_told) || since_ns == q->call_ns) return;
    q->call_ns = since_ns;
    if (since_ns == INT64_MAX) return;
    if (l->calls.first > l->calls.n / 2) {
        l->calls.n -= l->calls.first;
        memmove(l->calls.all, l->calls.all + l->calls.first, l->calls.n * sizeof *l->calls.all);
        l->calls.first = 0;
        i = l->calls.n;
    }
    IPW_GROW(l->calls.all, l->calls.cap, l->calls.n + 1);
    while (i > l->calls.first && l->calls.all[i - 1].t_ns > since_ns) i--;
    memmove(l->calls.all + i + 1, l->calls.all + i, (l->calls.n++ - i) * sizeof *l->calls.all);
    l->calls.all[i] = (struct ledger_look){since_ns, q->ordinal};
}

int64_t ipw_ledger_calls_ns(struct ipw_ledger *l)
{
    for (; l->calls.first < l->calls.n; l->calls.first++) {
        const struct ledger_look *call = &l->calls.all[l->calls.first];
        struct ledger_query *q = ipw_ledger_query(l, call->query);

        /* The query has ended, or its call began at another time. */
        if (!q || q->call_ns != call->t_ns) continue;
        if (in_call_since(q) == call->t_ns) return call->t_ns;
        q->call_ns = INT64_MAX;
    }
    return INT64_MAX;
}

void ipw_ledger_find_complete(struct ipw_ledger *l)
{
    if (l->share == IPW_SHARE_TOKENS) l->complete_ns = ipw_ledger_calls_ns(l);
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
        int64_t until;

        look_for_loss(l, line);
        look_for_silence(l, line);
        until = ipw_ledger_settled_ns(line);
        if (until == line->until_ns && !l->told) continue;
        line->until_ns = until;
        settle(l, line, until < l->complete_ns ? until : l->complete_ns);
    }
    l->told = false;
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
