#include "ledger/phase.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/upto.h"

#define BASE        0
#define ANY_LM      1
#define FIRST_PHASE 2
#define MEMORY_S    120.0 /* older steps weigh 1/e: contexts grow, devices warm up */
#define RIDGE       1e-6  /* separates terms that always occur together */
/* An agent or a tool gets this much assumed time without power: see is_away(). */
#define AWAY_S      4.0
#define MOST_SWEEPS 400
#define LONG_STEP_S 1.0 /* a longer step weighs no more than this */

bool ipw_phase_is_lm(enum ipw_phase phase)
{
    return phase == IPW_PHASE_PREFILL || phase == IPW_PHASE_DECODE || phase == IPW_PHASE_LM;
}

void ipw_phase_line_release(struct ipw_phase_line *line)
{
    free(line->points);
    *line = (struct ipw_phase_line){0};
}

size_t ipw_phase_line_find(const struct ipw_phase_line *line, int64_t t_ns)
{
    size_t n = line->n;

    if (!n) return SIZE_MAX;
    if (line->points[n - 1].t_ns <= t_ns) return n - 1;                      /* the usual case */
    return ipw_upto(&line->points->t_ns, n, sizeof *line->points, t_ns) - 1; /* 0 - 1: SIZE_MAX */
}

/* The index of a point at exactly t; adds one if there is none. */
static size_t point_at(struct ipw_phase_line *line, int64_t t_ns)
{
    size_t before = ipw_phase_line_find(line, t_ns), i = before == SIZE_MAX ? 0 : before + 1;
    struct ipw_phase_point fresh = {.t_ns = t_ns};

    if (before != SIZE_MAX) {
        if (line->points[before].t_ns == t_ns) return before;
        fresh = line->points[before];
        fresh.t_ns = t_ns;
    }
    IPW_GROW(line->points, line->cap, line->n + 1);
    memmove(line->points + i + 1, line->points + i, (line->n - i) * sizeof *line->points);
    line->points[i] = fresh;
    line->n++;
    return i;
}

void ipw_phase_line_add(struct ipw_phase_line *line, enum ipw_phase phase, int64_t t0_ns,
                        int64_t t1_ns, int change)
{
    size_t from, to;

    if (t1_ns <= t0_ns || phase >= IPW_PHASE_COUNT) return;
    from = point_at(line, t0_ns);
    to = t1_ns == INT64_MAX ? line->n : point_at(line, t1_ns);
    for (size_t i = from; i < to; i++) line->points[i].count[phase] += change;
}

void ipw_phase_line_trim(struct ipw_phase_line *line, int64_t before_ns)
{
    size_t drop = ipw_phase_line_find(line, before_ns);

    if (drop == SIZE_MAX || drop < 64 || drop < line->n / 2) return; /* too few to move the rest */
    line->n -= drop;
    memmove(line->points, line->points + drop, line->n * sizeof *line->points);
}

static int32_t calls_of(const int32_t *count)
{
    return count[IPW_PHASE_PREFILL] + count[IPW_PHASE_DECODE] + count[IPW_PHASE_LM];
}

static bool any_lm(const struct ipw_phase_point *p) { return calls_of(p->count) > 0; }

/* The share of a step during which each term applied. */
static void terms_of(double *x, const struct ipw_phase_line *line, size_t i, int64_t t0_ns,
                     int64_t t1_ns)
{
    double length = (double)(t1_ns - t0_ns);

    memset(x, 0, IPW_PHASE_TERMS * sizeof *x);
    x[BASE] = 1;
    for (i = i == SIZE_MAX ? 0 : i; i < line->n && line->points[i].t_ns < t1_ns; i++) {
        const struct ipw_phase_point *p = &line->points[i];
        int64_t from = p->t_ns > t0_ns ? p->t_ns : t0_ns;
        int64_t to = i + 1 < line->n && p[1].t_ns < t1_ns ? p[1].t_ns : t1_ns;
        double part = (double)(to - from) / length;

        if (any_lm(p)) x[ANY_LM] += part;
        for (int k = 0; k < IPW_PHASE_COUNT; k++) x[FIRST_PHASE + k] += part * p->count[k];
    }
}

static void forget(struct ipw_phase_fit *fit, double seconds)
{
    double keep = exp(-seconds / MEMORY_S);

    for (int i = 0; i < IPW_PHASE_TERMS; i++) {
        fit->b[i] *= keep;
        for (int k = 0; k < IPW_PHASE_TERMS; k++) fit->a[i][k] *= keep;
    }
}

/* Is point i the last at or before t? */
static bool holds(const struct ipw_phase_line *line, size_t i, int64_t t_ns)
{
    return i < line->n && line->points[i].t_ns <= t_ns &&
           (i + 1 == line->n || line->points[i + 1].t_ns > t_ns);
}

void ipw_phase_fit_add(struct ipw_phase_fit *fit, const struct ipw_phase_line *line, int64_t t0_ns,
                       int64_t t1_ns, int64_t uj)
{
    double x[IPW_PHASE_TERMS], seconds = (double)(t1_ns - t0_ns) / 1e9, weight, watts;
    int used[IPW_PHASE_TERMS], n = 0;

    if (t1_ns <= t0_ns) return;
    if (!holds(line, fit->at, t0_ns)) {
        fit->at = holds(line, fit->at + 1, t0_ns) ? fit->at + 1 : ipw_phase_line_find(line, t0_ns);
    }
    terms_of(x, line, fit->at, t0_ns, t1_ns);
    weight = seconds < LONG_STEP_S ? seconds : LONG_STEP_S;
    watts = (double)uj / 1e6 / seconds;
    for (int i = 0; i < IPW_PHASE_TERMS; i++) {
        if (x[i] > 0) used[n++] = i;
    }
    /* Forget once a second, not at each step: forgetting costs as much as a step. */
    if (fit->upto_ns && t1_ns - fit->upto_ns > 1000000000) {
        forget(fit, (double)(t1_ns - fit->upto_ns) / 1e9);
        fit->upto_ns = t1_ns;
    }
    if (!fit->upto_ns) fit->upto_ns = t1_ns;
    fit->steps++;
    for (int i = 0; i < n; i++) {
        double wx = weight * x[used[i]];
        fit->b[used[i]] += wx * watts;
        for (int k = 0; k < n; k++) fit->a[used[i]][used[k]] += wx * x[used[k]];
    }
}

/* Energy that the fit cannot separate from the base belongs to the base.  An agent, a tool or a
 * pause must show power of its own before it gets any. */
static bool is_away(int term)
{
    return term >= FIRST_PHASE && !ipw_phase_is_lm((enum ipw_phase)(term - FIRST_PHASE));
}

/* Cyclic coordinate descent from the last solution: the terms are few and move little. */
void ipw_phase_fit_solve(struct ipw_phase_fit *fit)
{
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        double moved = 0, scale = 0;

        for (int i = 0; i < IPW_PHASE_TERMS; i++) {
            double rest = fit->b[i], w, by;

            if (!(fit->a[i][i] > 1e-9)) continue;
            for (int k = 0; k < IPW_PHASE_TERMS; k++) {
                if (k != i) rest -= fit->a[i][k] * fit->w[k];
            }
            w = rest / (fit->a[i][i] * (1 + RIDGE) + (is_away(i) ? AWAY_S : 0));
            if (w < 0) w = 0;
            if (fit->most_w > 0 && w > fit->most_w) w = fit->most_w;
            by = fabs(w - fit->w[i]);
            if (by > moved) moved = by;
            if (w > scale) scale = w;
            fit->w[i] = w;
        }
        if (moved <= 1e-5 * scale) break;
    }
}

double ipw_phase_fit_w(const struct ipw_phase_fit *fit, const struct ipw_phase_point *point)
{
    double w = fit->w[BASE];

    if (point) {
        if (any_lm(point)) w += fit->w[ANY_LM];
        for (int k = 0; k < IPW_PHASE_COUNT; k++) w += fit->w[FIRST_PHASE + k] * point->count[k];
    }
    return fit->most_w > 0 && w > fit->most_w ? fit->most_w : w;
}

bool ipw_phase_fit_knows(const struct ipw_phase_fit *fit)
{
    int64_t terms = 0;

    /* "Any model call" is not a separate term while calls come one at a time. */
    for (int i = 0; i < IPW_PHASE_TERMS; i++) terms += i != ANY_LM && fit->a[i][i] > 1e-9;
    return fit->steps > 0 && fit->steps >= terms;
}

double ipw_phase_fit_part_w(const struct ipw_phase_fit *fit, enum ipw_phase phase,
                            const int32_t count[IPW_PHASE_COUNT])
{
    int32_t calls = calls_of(count);

    return fit->w[FIRST_PHASE + phase] +
           (ipw_phase_is_lm(phase) && calls > 0 ? fit->w[ANY_LM] / calls : 0);
}

double ipw_phase_fit_base_w(const struct ipw_phase_fit *fit) { return fit->w[BASE]; }
