#include "report/repeats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/stats.h"

enum { T_BELOW = 20, LEAST = 3, RESAMPLES = 2000 };

/* xorshift64*: small, and the same everywhere.  Its upper half times n, for a division by n would
 * cost more than all the rest of a resample. */
static uint32_t draw(uint64_t *state, size_t n)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (uint32_t)(((x * UINT64_C(2685821657736338717)) >> 32) * n >> 32);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t i = (size_t)at;

    if (i + 1 >= n) return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

struct sample {
    const double *above,
        *below; /* `below` NULL: the mean of `above`; else the ratio of the two means */
    size_t n;
    struct ipw_interval *out;
    double *means; /* of the resamples */
};

static double sum(const double *values, const uint32_t *drawn, size_t n)
{
    double x = 0;

    for (size_t i = 0; i < n; i++) x += values[drawn[i]];
    return x;
}

/* All samples of one n together: what is drawn is the same for each of them. */
static void bootstrap(struct sample *all, size_t count)
{
    uint64_t state = IPW_REPEATS_SEED;
    size_t n = all[0].n;
    uint32_t *drawn = ipw_calloc(n, sizeof *drawn);

    for (size_t m = 0; m < count; m++) all[m].means = ipw_calloc(RESAMPLES, sizeof(double));
    for (int r = 0; r < RESAMPLES; r++) {
        for (size_t i = 0; i < n; i++) drawn[i] = draw(&state, n);
        for (size_t m = 0; m < count; m++) {
            double x = sum(all[m].above, drawn, n);
            double y = all[m].below ? sum(all[m].below, drawn, n) : (double)n;

            all[m].means[r] = y != 0 ? x / y : 0;
        }
    }
    for (size_t m = 0; m < count; m++) {
        struct ipw_interval *out = all[m].out;

        qsort(all[m].means, RESAMPLES, sizeof(double), by_value);
        out->lo = quantile(all[m].means, RESAMPLES, 0.025);
        out->hi = quantile(all[m].means, RESAMPLES, 0.975);
        free(all[m].means);
    }
    free(drawn);
}

/* The bounds of those that are to be bootstrapped.  Where all values are the same, so are all means:
 * nothing is drawn for them. */
static void bootstrap_all(struct sample *all, size_t count)
{
    struct sample same_n[IPW_REPEAT_METRICS];

    for (size_t i = 0; i < count; i++) {
        struct ipw_interval *out = all[i].out;
        size_t k = 0;

        if (strcmp(out->method, "bootstrap") || !isnan(out->lo)) continue;
        if (out->min == out->max) {
            out->lo = out->hi = out->mean;
            continue;
        }
        for (size_t j = i; j < count; j++) {
            const struct ipw_interval *other = all[j].out;

            if (all[j].n == all[i].n && strcmp(other->method, "bootstrap") == 0 &&
                isnan(other->lo) && other->min != other->max)
                same_n[k++] = all[j];
        }
        bootstrap(same_n, k);
    }
}

static struct ipw_interval nothing(size_t n)
{
    return (struct ipw_interval){NAN, NAN, NAN, NAN, NAN, n, "none"};
}

/* All but a bootstrap's bounds.  `counts` NULL: one observation a cluster. */
static struct ipw_interval begin(const double *sums, const double *counts, size_t n)
{
    struct ipw_interval out = nothing(n);
    struct ipw_stats_cluster *clusters;
    struct ipw_stats_clustered c;
    double half;

    if (!n) return out;
    clusters = ipw_calloc(n, sizeof *clusters);
    for (size_t i = 0; i < n; i++) {
        double mean;

        clusters[i] = (struct ipw_stats_cluster){sums[i], counts ? counts[i] : 1};
        mean = sums[i] / clusters[i].n;
        out.min = fmin(out.min, mean);
        out.max = fmax(out.max, mean);
    }
    c = ipw_stats_clustered(clusters, n);
    free(clusters);
    out.mean = out.min == out.max ? out.min : c.mean;
    if (n < LEAST) return out;
    if (n >= T_BELOW) {
        out.method = "bootstrap";
        return out;
    }
    half = out.min == out.max ? 0 : ipw_stats_t975(n - 1) * c.se;
    out.lo = out.mean - half;
    out.hi = out.mean + half;
    out.method = "t";
    return out;
}

static struct ipw_interval of_share(const double *sums, const double *counts, size_t n)
{
    struct ipw_stats_cluster *clusters = ipw_calloc(n + 1, sizeof *clusters);
    struct ipw_interval out = begin(sums, counts, n);
    struct ipw_stats_clustered c;

    for (size_t i = 0; i < n; i++) clusters[i] = (struct ipw_stats_cluster){sums[i], counts[i]};
    c = ipw_stats_clustered(clusters, n);
    free(clusters);
    out.lo = out.hi = NAN;
    out.method = "none";
    if (isnan(c.effective_n)) return out;
    ipw_stats_wilson(&out.lo, &out.hi, c.mean, c.effective_n);
    out.method = "wilson";
    return out;
}

static struct ipw_interval begin_ratio(const double *above, const double *below, size_t n)
{
    struct ipw_interval out = nothing(n);
    double x = 0, y = 0;

    for (size_t i = 0; i < n; i++) {
        double one = below[i] != 0 ? above[i] / below[i] : NAN;

        x += above[i];
        y += below[i];
        out.min = fmin(out.min, one);
        out.max = fmax(out.max, one);
    }
    if (y == 0) return nothing(n);
    out.mean = x / y;
    if (n >= T_BELOW) out.method = "bootstrap";
    return out;
}

struct ipw_interval ipw_interval_of(const double *values, size_t n)
{
    struct ipw_interval out = begin(values, NULL, n);
    struct sample one = {.above = values, .n = n, .out = &out};

    bootstrap_all(&one, 1);
    return out;
}

struct ipw_interval ipw_interval_of_ratio(const double *above, const double *below, size_t n)
{
    struct ipw_interval out = begin_ratio(above, below, n);
    struct sample one = {.above = above, .below = below, .n = n, .out = &out};

    bootstrap_all(&one, 1);
    return out;
}

/* ---- a run's ---- */

static double count(int64_t n) { return n < 0 ? NAN : (double)n; }

static double joules(const struct ipw_summary_row *r, unsigned domains)
{
    double sum = domains ? 0 : NAN;

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (domains >> d & 1) sum += r->energy[d].known ? r->energy[d].j : NAN;
    }
    return sum;
}

/* Ratios take two values a row: the accuracy, and what it is divided by. */
static double value_of(const struct ipw_summary_row *r, int metric, unsigned basis)
{
    double j = joules(r, basis);

    switch (metric) {
    case IPW_REPEAT_ACCURACY: return count(r->resolved);
    case IPW_REPEAT_CPU_J: return joules(r, 1u << IPW_DOMAIN_CPU);
    case IPW_REPEAT_GPU_J: return joules(r, 1u << IPW_DOMAIN_GPU);
    case IPW_REPEAT_IPJ:
    case IPW_REPEAT_JOULES: return j;
    case IPW_REPEAT_IPW: return r->wall_s > 0 ? j / r->wall_s : NAN;
    case IPW_REPEAT_OUTPUT_TOKENS: return count(r->output_tokens);
    case IPW_REPEAT_TURNS: return (double)r->turns;
    case IPW_REPEAT_WALL_S: return r->wall_s;
    default: return NAN;
    }
}

struct member { /* a row and the group that it is averaged with */
    const char *id;
    int epoch;
    const struct ipw_summary_row *row;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->id, ((const struct member *)b)->id);
}

static int by_epoch(const void *a, const void *b)
{
    return ((const struct member *)a)->epoch - ((const struct member *)b)->epoch;
}

static size_t groups(struct member *all, size_t n, int (*order)(const void *, const void *))
{
    size_t count = 0;

    if (n) qsort(all, n, sizeof *all, order);
    for (size_t i = 0; i < n; i++) count += i == 0 || order(&all[i - 1], &all[i]) != 0;
    return count;
}

/* Two sums a group: of the values and of how many they are, or, of a ratio, of what is divided and
 * of what it is divided by.  Groups of which nothing is known are left out. */
static size_t sums(double *x, double *y, const struct member *all, size_t n,
                   int (*order)(const void *, const void *), int metric, unsigned basis)
{
    bool ratio = metric == IPW_REPEAT_IPJ || metric == IPW_REPEAT_IPW;
    size_t out = 0;

    for (size_t i = 0; i < n;) {
        double sum = 0, scored = 0;
        size_t known = 0, k = i;

        for (; k < n && order(&all[i], &all[k]) == 0; k++) {
            double v = value_of(all[k].row, metric, basis);
            double a = value_of(all[k].row, IPW_REPEAT_ACCURACY, basis);

            if (isnan(v) || (ratio && isnan(a))) continue;
            sum += v;
            scored += a;
            known++;
        }
        i = k;
        if (!known) continue;
        x[out] = ratio ? scored : sum;
        y[out++] = ratio ? sum : (double)known;
    }
    return out;
}

void ipw_repeats_of(struct ipw_repeats *out, const struct ipw_summary *s)
{
    struct member *all = ipw_calloc(s->n + 1, sizeof *all);
    double *values = ipw_calloc(2 * IPW_REPEAT_METRICS * (s->n + 1), sizeof *values),
           *next = values;
    struct sample samples[IPW_REPEAT_METRICS];
    unsigned basis = ipw_summary_basis(s);
    int (*order)(const void *, const void *);

    for (size_t i = 0; i < s->n; i++) {
        all[i] = (struct member){s->rows[i].id, s->rows[i].epoch, &s->rows[i]};
    }
    *out = (struct ipw_repeats){.epochs = groups(all, s->n, by_epoch)};
    out->tasks = groups(all, s->n, by_id);
    order = out->tasks < LEAST && out->epochs >= LEAST ? by_epoch : by_id;
    out->by = order == by_epoch ? "epoch" : "task";
    groups(all, s->n, order);
    for (int m = 0; m < IPW_REPEAT_METRICS; m++) {
        double *x = next, *y = next + s->n;
        size_t n = sums(x, y, all, s->n, order, m, basis);
        bool ratio = m == IPW_REPEAT_IPJ || m == IPW_REPEAT_IPW;

        next = y + s->n;
        out->metrics[m] = ratio                      ? begin_ratio(x, y, n)
                          : m == IPW_REPEAT_ACCURACY ? of_share(x, y, n)
                                                     : begin(x, y, n);
        samples[m] = (struct sample){x, y, n, &out->metrics[m], NULL};
    }
    bootstrap_all(samples, IPW_REPEAT_METRICS);
    free(all);
    free(values);
}

size_t ipw_repeats_epochs(const struct ipw_summary *s)
{
    struct member *all = ipw_calloc(s->n + 1, sizeof *all);
    size_t n;

    for (size_t i = 0; i < s->n; i++) all[i].epoch = s->rows[i].epoch;
    n = groups(all, s->n, by_epoch);
    free(all);
    return n;
}

void ipw_repeats_write(struct ipw_jw *w, const struct ipw_summary *s)
{
    static const char *const names[IPW_REPEAT_METRICS] = {
        [IPW_REPEAT_ACCURACY] = "accuracy",           [IPW_REPEAT_CPU_J] = "cpu_energy_joules",
        [IPW_REPEAT_GPU_J] = "gpu_energy_joules",     [IPW_REPEAT_IPJ] = "intelligence_per_joule",
        [IPW_REPEAT_IPW] = "intelligence_per_watt",   [IPW_REPEAT_JOULES] = "joules",
        [IPW_REPEAT_OUTPUT_TOKENS] = "output_tokens", [IPW_REPEAT_TURNS] = "turns",
        [IPW_REPEAT_WALL_S] = "wall_clock_s",
    };
    struct ipw_repeats r;

    ipw_repeats_of(&r, s);
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "by", r.by);
    ipw_jw_knum(w, "confidence", 0.95);
    ipw_jw_kint(w, "epochs", (int64_t)r.epochs);
    ipw_jw_key(w, "metrics");
    ipw_jw_obj(w);
    for (int m = 0; m < IPW_REPEAT_METRICS; m++) {
        const struct ipw_interval *i = &r.metrics[m];

        ipw_jw_key(w, names[m]);
        ipw_jw_obj(w);
        ipw_jw_knum(w, "hi", i->hi);
        ipw_jw_knum(w, "lo", i->lo);
        ipw_jw_knum(w, "max", i->max);
        ipw_jw_knum(w, "mean", i->mean);
        ipw_jw_kstr(w, "method", i->method);
        ipw_jw_knum(w, "min", i->min);
        ipw_jw_kint(w, "n", (int64_t)i->n);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
    ipw_jw_kint(w, "seed", IPW_REPEATS_SEED);
    ipw_jw_kint(w, "tasks", (int64_t)r.tasks);
    ipw_jw_obj_end(w);
}
