#include "energy/meter_align.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

/* Rows closer than this are averaged first; the required precision is 0.1 s. */
#define BIN_S       0.1
#define INSTANT_S   1e-3 /* the activity at an instant is the mean of so short a time */
#define MOST_WORK   3e8  /* limit of rows visited in the first pass */
#define TOLERANCE_S 0.1
#define LEAST_ROWS  8
#define LEAST_R     0.5
#define NOTHING     1e-9 /* a misfit that is only rounding */
#define SURE        9.0  /* three standard deviations, squared */

struct scene {
    struct ipw_meter_points rows;
    const struct ipw_meter_busy *busy;
    size_t n_busy;
    double from_s, to_s; /* start and end of the run */
    double row_s, margin_s;
};

struct best {
    double offset_s, misfit, correlation;
    size_t rows;
};

/* ---- preparation ---- */

static size_t merge(struct ipw_meter_busy *busy, size_t n)
{
    size_t kept = 0;

    if (n) qsort(busy, n, sizeof *busy, ipw_stats_by_value); /* by t0_s, which is first */
    for (size_t i = 0; i < n; i++) {
        if (!(busy[i].t1_s > busy[i].t0_s)) continue;
        if (kept && busy[i].t0_s <= busy[kept - 1].t1_s) {
            if (busy[i].t1_s > busy[kept - 1].t1_s) busy[kept - 1].t1_s = busy[i].t1_s;
        } else {
            busy[kept++] = busy[i];
        }
    }
    return kept;
}

static double median_distance(const struct ipw_meter_points *p)
{
    double *d = ipw_malloc(p->n * sizeof *d), median;

    for (size_t i = 1; i < p->n; i++) d[i - 1] = p->at[i].t_s - p->at[i - 1].t_s;
    qsort(d, p->n - 1, sizeof *d, ipw_stats_by_value);
    median = d[(p->n - 1) / 2];
    free(d);
    return median;
}

/* Combines rows of a fast log: each bin is the mean up to the stamp of its last row. */
static struct ipw_meter_points bin(const struct ipw_meter_points *p, double row_s)
{
    struct ipw_meter_points out = {.means = p->means};
    size_t each = row_s < BIN_S ? (size_t)ceil(BIN_S / row_s) : 1;

    out.at = ipw_malloc((p->n / each + 1) * sizeof *out.at);
    for (size_t i = 0; i + each <= p->n; i += each) {
        double sum = 0;
        for (size_t k = 0; k < each; k++) sum += p->at[i + k].value;
        out.at[out.n++] = (struct ipw_meter_point){p->at[i + each - 1].t_s, sum / (double)each};
    }
    out.means = p->means || each > 1;
    return out;
}

/* ---- the fit at one offset ---- */

static size_t first_row(const struct scene *s, double t_s)
{
    size_t lo = 0, hi = s->rows.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->rows.at[mid].t_s < t_s) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Seconds of activity before an instant; call it with instants in order. */
struct walk {
    const struct scene *s;
    size_t at;
    double before_s; /* in the intervals passed */
};

static double busy_until(struct walk *w, double t_s)
{
    const struct ipw_meter_busy *b = w->s->busy;

    for (; w->at < w->s->n_busy && b[w->at].t1_s <= t_s; w->at++)
        w->before_s += b[w->at].t1_s - b[w->at].t0_s;
    return w->before_s + (w->at < w->s->n_busy ? fmax(0, t_s - b[w->at].t0_s) : 0);
}

/* 1 - r^2 of the rows around the run against its activity; 1 if the two do not rise together. */
static struct best fit_at(const struct scene *s, double offset_s, bool averages)
{
    double from = s->from_s + offset_s - s->margin_s, to = s->to_s + offset_s + s->margin_s;
    double n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, cov, vx, vy;
    struct best out = {.offset_s = offset_s, .misfit = 1};
    struct walk w = {.s = s};
    size_t i = first_row(s, from);
    double base = i < s->rows.n ? s->rows.at[i].value : 0;

    for (; i < s->rows.n && s->rows.at[i].t_s <= to; i++) {
        double t = s->rows.at[i].t_s - offset_s, y = s->rows.at[i].value - base;
        double since = i ? s->rows.at[i].t_s - s->rows.at[i - 1].t_s : s->row_s, before, x;

        if (since > 3 * s->row_s) since = s->row_s;
        if (!averages) since = fmin(since, INSTANT_S);
        before = busy_until(&w, t - since);
        x = (busy_until(&w, t) - before) / since;
        n += 1, sx += x, sy += y, sxx += x * x, syy += y * y, sxy += x * y;
    }
    out.rows = (size_t)n;
    if (n < LEAST_ROWS) return out;
    cov = sxy - sx * sy / n;
    vx = sxx - sx * sx / n;
    vy = syy - sy * sy / n;
    if (cov <= 0 || vx <= 1e-9 * n || vy <= 1e-12 * (syy + n)) return out;
    out.correlation = cov / sqrt(vx * vy);
    if (out.correlation > 1) out.correlation = 1;
    out.misfit = 1 - out.correlation * out.correlation;
    return out;
}

/* ---- the search ---- */

/* The best of the offsets from + i * step_s, i < n.  Returns the misfit of each, to be freed. */
static double *try_all(const struct scene *s, bool averages, double from, double step_s, size_t n,
                       struct best *best)
{
    double *misfits = ipw_malloc(n * sizeof *misfits);

    for (size_t i = 0; i < n; i++) {
        struct best here = fit_at(s, from + (double)i * step_s, averages);
        misfits[i] = here.misfit;
        if (here.misfit < best->misfit) *best = here;
    }
    return misfits;
}

static double limit_of(const struct best *b)
{
    double spare = b->rows > 3 ? (double)b->rows - 3 : 1;

    return b->misfit * (1 + SURE / spare) + NOTHING;
}

/* What one kind of rows gives. */
struct found {
    struct best best;
    double lo_s, hi_s; /* offsets around the best that fit as well */
    double other_s;    /* one away from it that fits as well; NAN: none */
};

/* Tries the whole range in steps of a quarter of a row or longer, then closely around the best. */
static struct found find(const struct scene *s, bool averages, double min_s, double max_s,
                         double step_s)
{
    struct found out = {.best.misfit = 2, .other_s = NAN};
    double reach = fmax(2 * s->row_s, 4 * step_s), fine = fmin(fmax(s->row_s / 200, 0.001), 0.01);
    size_t n = (size_t)((max_s - min_s) / step_s) + 1, n_fine = (size_t)(2 * reach / fine) + 1;
    double *misfits = try_all(s, averages, min_s, step_s, n, &out.best);
    double from = out.best.offset_s - reach;
    double *near = try_all(s, averages, from, fine, n_fine, &out.best), limit = limit_of(&out.best);

    out.lo_s = out.hi_s = out.best.offset_s;
    for (size_t i = 0; i < n_fine; i++) {
        if (near[i] > limit) continue;
        out.lo_s = fmin(out.lo_s, from + (double)i * fine);
        out.hi_s = fmax(out.hi_s, from + (double)i * fine);
    }
    for (size_t i = 0; i < n && isnan(out.other_s); i++) {
        double offset = min_s + (double)i * step_s;
        if (fabs(offset - out.best.offset_s) > reach && misfits[i] <= limit) out.other_s = offset;
    }
    free(misfits);
    free(near);
    return out;
}

static int search(struct ipw_meter_fit *fit, const struct scene *s, double min_s, double max_s,
                  struct ipw_err *err)
{
    double work = (max_s - min_s) / (s->row_s / 4) *
                  ((s->to_s - s->from_s + 2 * s->margin_s) / s->row_s + (double)s->n_busy);
    double step_s = s->row_s / 4 * fmax(1, work / MOST_WORK);
    struct found mean = find(s, true, min_s, max_s, step_s), instant = {.best.misfit = INFINITY};
    const struct found *f = &mean, *second = &instant;

    if (!s->rows.means) instant = find(s, false, min_s, max_s, step_s);
    if (instant.best.misfit <= mean.best.misfit) f = &instant, second = &mean;
    *fit = (struct ipw_meter_fit){.offset_s = (f->lo_s + f->hi_s) / 2,
                                  .plus_minus_s = (f->hi_s - f->lo_s) / 2,
                                  .correlation = f->best.correlation,
                                  .row_s = s->row_s,
                                  .other_s = NAN,
                                  .averages = f == &mean};
    if (second->best.misfit <= limit_of(&f->best)) fit->other_s = (second->lo_s + second->hi_s) / 2;
    if (f->best.rows < LEAST_ROWS)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "only %zu rows of the log are near the run; %d are needed", f->best.rows,
                        LEAST_ROWS);
    if (f->best.correlation < LEAST_R)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "the log's watts do not follow the run's activity (best correlation %.2f)",
                        f->best.correlation);
    if (!isnan(f->other_s))
        return ipw_fail(
            err, IPW_EUNSUPPORTED,
            "ambiguous: offsets of %.2f s and %.2f s fit equally well (the run repeats itself, "
            "or its edges are lost in the noise)",
            fit->offset_s, f->other_s);
    if (fit->plus_minus_s > TOLERANCE_S)
        return ipw_fail(
            err, IPW_EUNSUPPORTED,
            "ambiguous: every offset from %.2f s to %.2f s fits equally well (too few edges for "
            "rows %.3g s apart)",
            f->lo_s, f->hi_s, s->row_s);
    return 0;
}

int ipw_meter_align(struct ipw_meter_fit *fit, const struct ipw_meter_points *watts,
                    struct ipw_meter_busy *busy, size_t n_busy, double min_s, double max_s,
                    struct ipw_err *err)
{
    struct scene s = {.busy = busy, .n_busy = merge(busy, n_busy)};
    double row_s, run_s;
    int rc;

    *fit = (struct ipw_meter_fit){.other_s = NAN};
    if (s.n_busy == 0)
        return ipw_fail(err, IPW_EUNSUPPORTED, "the run has no activity to align with");
    if (watts->n < LEAST_ROWS) {
        return ipw_fail(err, IPW_EUNSUPPORTED, "the log has %zu rows: %d are needed", watts->n,
                        LEAST_ROWS);
    }
    row_s = median_distance(watts);
    s.rows = bin(watts, row_s);
    s.row_s = row_s < BIN_S && s.rows.n > 1 ? median_distance(&s.rows) : row_s;
    s.from_s = busy[0].t0_s;
    s.to_s = busy[s.n_busy - 1].t1_s;
    run_s = s.to_s - s.from_s;
    s.margin_s = fmin(60, fmax(10 * s.row_s, run_s / 4));
    /* The run must be inside the log. */
    min_s = fmax(min_s, watts->at[0].t_s - s.from_s);
    max_s = fmin(max_s, watts->at[watts->n - 1].t_s - s.to_s);
    if (min_s > max_s) {
        rc = ipw_fail(err, IPW_EUNSUPPORTED,
                      "the log (%.1f s) does not cover the run (%.1f s) at any allowed offset",
                      watts->at[watts->n - 1].t_s - watts->at[0].t_s, run_s);
    } else {
        rc = search(fit, &s, min_s, max_s, err);
    }
    free(s.rows.at);
    return rc;
}
