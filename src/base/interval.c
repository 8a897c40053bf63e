#include "base/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { T_BELOW = 20, LEAST = 3, RESAMPLES = IPW_INTERVAL_RESAMPLES };

const char *const ipw_interval_kinds[] = {"mean", "share", "ratio", NULL};

/* xorshift64*: small, and the same on every machine.  The upper half of its state is multiplied by
 * n, because a division by n costs more than the rest of a resample. */
uint32_t ipw_interval_draw(uint64_t *state, size_t n)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (uint32_t)(((x * UINT64_C(2685821657736338717)) >> 32) * n >> 32);
}

static struct ipw_stats_cluster cluster(const struct ipw_interval_sample *s, size_t i)
{
    return ipw_stats_cluster(&s->clusters, i);
}

/* A ratio may be without a limit in some draws: with more than a few of them it has no interval. */
static void set_bounds(struct ipw_interval *out, double *means)
{
    double lo, hi;

    qsort(means, RESAMPLES, sizeof *means, ipw_stats_by_value);
    lo = ipw_stats_quantile(means, RESAMPLES, 0.025);
    hi = ipw_stats_quantile(means, RESAMPLES, 0.975);
    if (isfinite(lo) && isfinite(hi)) {
        out->lo = lo;
        out->hi = hi;
    } else {
        out->method = "none";
    }
}

static double sum_of(const double *column, const uint32_t *drawn, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) sum += column[drawn[i]];
    return sum;
}

/* All samples of one n together, because they use the same draws.  Each has a column with the
 * clusters' sums and one with their n, which is not read if each n is 1, as without repeats. */
static void bootstrap(struct ipw_interval_sample **all, size_t count, uint64_t seed)
{
    size_t n = all[0]->clusters.n;
    double *columns = ipw_calloc(2 * n * count, sizeof *columns);
    double *means = ipw_calloc(RESAMPLES * count, sizeof *means);
    uint32_t *drawn = ipw_calloc(n, sizeof *drawn);
    uint64_t state = seed;

    for (size_t k = 0; k < 2 * count; k++)
        for (size_t i = 0; i < n; i++)
            columns[k * n + i] = ipw_columns_at(&all[k / 2]->clusters, k % 2, i);
    for (size_t r = 0; r < RESAMPLES; r++) {
        for (size_t i = 0; i < n; i++) drawn[i] = ipw_interval_draw(&state, n);
        for (size_t m = 0; m < count; m++) {
            const struct ipw_columns *c = &all[m]->clusters;
            bool is_one = !c->of[1].values && c->of[1].first == 1;
            double of = is_one ? (double)n : sum_of(columns + (2 * m + 1) * n, drawn, n);
            double sum = sum_of(columns + 2 * m * n, drawn, n);

            means[m * RESAMPLES + r] = of != 0 ? sum / of : INFINITY;
        }
    }
    for (size_t m = 0; m < count; m++) set_bounds(&all[m]->out, means + m * RESAMPLES);
    free(columns);
    free(means);
    free(drawn);
}

static bool is_to_be_drawn(const struct ipw_interval_sample *s)
{
    return strcmp(s->out.method, "bootstrap") == 0 && isnan(s->out.lo);
}

/* Whether every draw has the same mean.  Not if a cluster only adds to the sum, as a wrong answer
 * does to the joules of a correct one. */
static bool is_constant(const struct ipw_interval_sample *s)
{
    if (s->out.min != s->out.max) return false;
    for (size_t i = 0; i < s->clusters.n; i++)
        if (cluster(s, i).n == 0 && cluster(s, i).sum != 0) return false;
    return true;
}

/* The bounds of all bootstrapped samples.  If all means are equal, nothing is drawn. */
static void bootstrap_all(struct ipw_interval_sample *all, size_t count, uint64_t seed)
{
    struct ipw_interval_sample **same_n = ipw_calloc(count, sizeof *same_n);

    for (size_t i = 0; i < count; i++) {
        struct ipw_interval *out = &all[i].out;

        if (is_to_be_drawn(&all[i]) && is_constant(&all[i])) out->lo = out->hi = out->mean;
    }
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;

        if (!is_to_be_drawn(&all[i])) continue;
        for (size_t j = i; j < count; j++)
            if (is_to_be_drawn(&all[j]) && all[j].clusters.n == all[i].clusters.n)
                same_n[k++] = &all[j];
        bootstrap(same_n, k, seed);
    }
    free(same_n);
}

static struct ipw_interval nothing(size_t n)
{
    return (struct ipw_interval){NAN, NAN, NAN, NAN, NAN, n, "none"};
}

/* The number, the mean, the least and the most of the clusters' means; the bounds are unknown. */
static struct ipw_interval begin(const struct ipw_interval_sample *s)
{
    struct ipw_interval out = nothing(s->clusters.n);
    double sum = 0, count = 0;
    bool is_equal;

    for (size_t i = 0; i < out.n; i++) {
        struct ipw_stats_cluster c = cluster(s, i);
        double one = c.n != 0 ? c.sum / c.n : NAN;

        sum += c.sum;
        count += c.n;
        out.min = fmin(out.min, one);
        out.max = fmax(out.max, one);
    }
    if (count == 0) return nothing(out.n);
    is_equal = out.min == out.max && s->kind != IPW_INTERVAL_RATIO;
    out.mean = is_equal ? out.min : sum / count;
    return out;
}

static void bound_mean(struct ipw_interval *out, const struct ipw_stats_clustered *c)
{
    double half;

    if (out->n < LEAST) return;
    half = out->min == out->max ? 0 : ipw_stats_t975(out->n - 1) * c->se;
    out->lo = out->mean - half;
    out->hi = out->mean + half;
    out->method = "t";
}

static void bound_share(struct ipw_interval *out, const struct ipw_stats_clustered *c)
{
    if (isnan(c->effective_n)) return;
    ipw_stats_wilson(&out->lo, &out->hi, c->mean, c->effective_n);
    out->method = "wilson";
}

/* Everything except the bounds of a bootstrap. */
static void make(struct ipw_interval_sample *s)
{
    struct ipw_stats_clustered c = ipw_stats_clustered(&s->clusters);

    s->out = begin(s);
    if (isnan(s->out.mean)) return;
    if (s->kind == IPW_INTERVAL_SHARE)
        bound_share(&s->out, &c);
    else if (s->out.n >= T_BELOW)
        s->out.method = "bootstrap";
    else if (s->kind == IPW_INTERVAL_MEAN)
        bound_mean(&s->out, &c);
}

void ipw_interval_make(struct ipw_interval_sample *samples, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) make(&samples[i]);
    bootstrap_all(samples, count, seed);
}
