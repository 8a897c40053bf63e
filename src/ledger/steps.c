#include "ledger/steps.h"

#include <math.h>
#include <string.h>

#define FIT_SPREAD   0.15 /* relative spread of a phase's power between turns */
#define NEAR_SPREAD  0.04 /* relative spread inside a turn */
#define NEAR_STEPS   4    /* whole steps next to a piece that measure its power */
#define STEPS_BEFORE 8    /* before the first open step, whose power may tell that of its pieces */

void ipw_steps_init(struct ipw_steps *steps, double most_w)
{
    *steps = (struct ipw_steps){.done_ns = INT64_MIN, .fit.most_w = most_w};
}

void ipw_steps_release(struct ipw_steps *steps) { ipw_phase_line_release(&steps->line); }

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
static struct piece piece_at(const struct ipw_steps *steps, const struct ipw_series *s,
                             const struct ipw_series_sample *a,
                             const struct ipw_series_sample *limit, int64_t t_ns, size_t *i)
{
    const struct ipw_series_sample *b = a + 1;
    double watts, spread = FIT_SPREAD;
    struct piece piece;
    int64_t from, to;

    state_span(&steps->line, *i, &from, &to);
    piece.to_ns = to < b->t_ns ? to : b->t_ns;
    if (!(t_ns == a->t_ns && near_w(s, a, false, from, to, &watts, &spread)) &&
        !(piece.to_ns == b->t_ns && b < limit &&
          near_w(s, a, true, from, to < limit->t_ns ? to : limit->t_ns, &watts, &spread)))
        watts = ipw_phase_fit_w(&steps->fit, *i == SIZE_MAX ? NULL : &steps->line.points[*i]);
    piece.uj = watts * (double)(piece.to_ns - t_ns) / 1e3; /* W * ns = nJ */
    piece.spread_uj = piece.uj * spread;
    while (*i + 1 < steps->line.n && steps->line.points[*i + 1].t_ns <= piece.to_ns) ++*i;
    return piece;
}

/* Adds a corner to the step at each change of phase in it.  What the step holds beyond the expected
 * energy is divided by the variance of the pieces: the mean of a normal prior given its sum.  Where
 * that would take more from a piece than it has, all are scaled instead. */
static void split_step(const struct ipw_steps *steps, struct ipw_series *s,
                       const struct ipw_series_sample *a, const struct ipw_series_sample *limit)
{
    size_t first = ipw_phase_line_find(&steps->line, a->t_ns), i = first;
    double step = (double)(a[1].uj - a->uj), expected = 0, weight = 0, steepest = 0, sum = 0, rest;
    struct piece p;
    bool scale;

    for (int64_t t = a->t_ns; t < a[1].t_ns; t = p.to_ns) {
        p = piece_at(steps, s, a, limit, t, &i);
        expected += p.uj;
        weight += p.spread_uj * p.spread_uj;
        if (p.uj > 0) steepest = fmax(steepest, p.spread_uj * p.spread_uj / p.uj);
    }
    if (!(weight > 0)) return;
    rest = step - expected;
    scale = -rest * steepest > weight;
    i = first;
    for (int64_t t = a->t_ns;; t = p.to_ns) {
        p = piece_at(steps, s, a, limit, t, &i);
        if (p.to_ns >= a[1].t_ns) return;
        sum += scale ? p.uj * step / expected : p.uj + rest * p.spread_uj * p.spread_uj / weight;
        ipw_series_bend(s, p.to_ns, a->uj + (int64_t)(sum < step ? sum : step));
    }
}

/* *next: the first point after t0.  Call it with steps in order of time. */
static bool crosses(const struct ipw_phase_line *line, size_t *next, int64_t t0_ns, int64_t t1_ns)
{
    while (*next < line->n && line->points[*next].t_ns <= t0_ns) ++*next;
    return *next < line->n && line->points[*next].t_ns < t1_ns;
}

static bool learn(struct ipw_steps *steps, const struct ipw_series *s, size_t from, size_t to)
{
    bool learned = false;

    for (size_t i = from; i < to && steps->line.n; i++) {
        const struct ipw_series_sample *a = &s->samples[i];

        if (a->chain != a[1].chain) continue;
        ipw_phase_fit_add(&steps->fit, &steps->line, a->t_ns, a[1].t_ns, a[1].uj - a->uj);
        learned = true;
    }
    if (learned) ipw_phase_fit_solve(&steps->fit);
    return ipw_phase_fit_knows(&steps->fit);
}

static void split(const struct ipw_steps *steps, struct ipw_series *s, size_t from, size_t to,
                  int64_t straight_ns)
{
    size_t next = ipw_phase_line_find(&steps->line, s->samples[from].t_ns);

    if (next == SIZE_MAX) next = 0;
    for (size_t i = from; i < to; i++) {
        const struct ipw_series_sample *a = &s->samples[i];

        if (a->chain != a[1].chain || a->uj == a[1].uj || a->t_ns < straight_ns) continue;
        if (crosses(&steps->line, &next, a->t_ns, a[1].t_ns))
            split_step(steps, s, a, &s->samples[to]);
    }
}

void ipw_steps_close(struct ipw_steps *steps, struct ipw_series *s, int64_t t_ns,
                     int64_t straight_ns)
{
    size_t from = s->first, to;

    if (s->n == s->first) return;
    if (steps->done_ns != INT64_MIN) from = ipw_series_find(s, steps->done_ns);
    to = ipw_series_find(s, t_ns);
    if (s->samples[to].t_ns < t_ns && to + 1 < s->n) to++;
    if (s->channel.kind == IPW_CHANNEL_COUNTER && to > from && learn(steps, s, from, to))
        split(steps, s, from, to, straight_ns);
    if (to >= from) steps->done_ns = s->samples[to].t_ns;
}

void ipw_steps_trim(struct ipw_steps *steps, const struct ipw_series *s, int64_t before_ns)
{
    size_t at;

    if (s->n == s->first) return;
    at = ipw_series_find(s, steps->done_ns);
    if (at < s->first + STEPS_BEFORE) return;
    if (s->samples[at - STEPS_BEFORE].t_ns > before_ns)
        before_ns = s->samples[at - STEPS_BEFORE].t_ns;
    ipw_phase_line_trim(&steps->line, before_ns);
}
