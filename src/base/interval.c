#include "base/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { T_BELOW = 20, LEAST = 3, RESAMPLES = IPW_INTERVAL_RESAMPLES, BLOCK = 8192 };

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

static const struct ipw_stats_cluster *cluster(const struct ipw_interval_sample *s, size_t i)
{
    return ipw_spill_at(&s->clusters, i);
}

/* The clusters to draw from: a row of numbers for each, so that a draw is a few additions.  A row
 * has the sums of all samples, then their n, unless each n of all clusters is 1. */
struct rows {
    struct ipw_interval_sample **all;
    size_t count, width;
    double *block; /* rows of a block of clusters */
    double *drawn; /* for each resample the sums of the rows drawn so far */
};

static bool all_are_single(struct ipw_interval_sample *const *all, size_t count)
{
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < all[m]->clusters.n; i++)
            if (cluster(all[m], i)->n != 1) return false;
    return true;
}

static void load(const struct rows *rows, size_t first, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        double *row = rows->block + i * rows->width;

        for (size_t m = 0; m < rows->count; m++) {
            const struct ipw_stats_cluster *c = cluster(rows->all[m], first + i);

            row[m] = c->sum;
            if (rows->width > rows->count) row[rows->count + m] = c->n;
        }
    }
}

static inline uint64_t draw_rows(double *restrict sums, const double *block, size_t width,
                                 size_t size, uint32_t draws, uint64_t state)
{
    for (uint32_t i = 0; i < draws; i++) {
        const double *row = block + ipw_interval_draw(&state, size) * width;

        for (size_t k = 0; k < width; k++) sums[k] += row[k];
    }
    return state;
}

/* Of a run without sensors often one value differs: a known width costs half. */
static void draw_from_block(const struct rows *rows, size_t size, int resample, uint32_t draws,
                            uint64_t *state)
{
    double *sums = rows->drawn + (size_t)resample * rows->width;

    *state = rows->width == 1 ? draw_rows(sums, rows->block, 1, size, draws, *state)
                              : draw_rows(sums, rows->block, rows->width, size, draws, *state);
}

/* How many draws of each resample fall into each block. */
static void draw_blocks(struct ipw_spill *counts, size_t n, size_t blocks, uint64_t *state)
{
    uint32_t *of = ipw_calloc(blocks, sizeof *of);

    for (int r = 0; r < RESAMPLES; r++) {
        memset(of, 0, blocks * sizeof *of);
        for (size_t i = 0; i < n && blocks > 1; i++) of[ipw_interval_draw(state, n) / BLOCK]++;
        if (blocks == 1) of[0] = (uint32_t)n;
        for (size_t b = 0; b < blocks; b++) ipw_spill_add(counts, &of[b]);
    }
    free(of);
}

/* Of the m-th sample. */
static void set_bounds(const struct rows *rows, size_t m)
{
    double *means = ipw_calloc(RESAMPLES, sizeof *means);
    struct ipw_interval_sample *s = rows->all[m];

    for (size_t r = 0; r < RESAMPLES; r++) {
        const double *sums = rows->drawn + r * rows->width;
        double n = rows->width > rows->count ? sums[rows->count + m] : (double)s->clusters.n;

        means[r] = n != 0 ? sums[m] / n : 0;
    }
    qsort(means, RESAMPLES, sizeof *means, ipw_stats_by_value);
    s->out.lo = ipw_stats_quantile(means, RESAMPLES, 0.025);
    s->out.hi = ipw_stats_quantile(means, RESAMPLES, 0.975);
    free(means);
}

/* All samples of one n together, because they use the same draws.  Clusters that do not fit into
 * memory are drawn block by block, after it was drawn how often each block is used. */
static void bootstrap(struct ipw_interval_sample **all, size_t count, uint64_t seed)
{
    struct rows rows = {all, count, all_are_single(all, count) ? count : 2 * count, NULL, NULL};
    uint64_t state = seed;
    size_t n = all[0]->clusters.n, blocks = (n + BLOCK - 1) / BLOCK;
    struct ipw_spill counts;

    ipw_spill_init(&counts, sizeof(uint32_t), all[0]->clusters.place);
    draw_blocks(&counts, n, blocks, &state);
    rows.block = ipw_calloc((n < BLOCK ? n : BLOCK) * rows.width, sizeof *rows.block);
    rows.drawn = ipw_calloc(RESAMPLES * rows.width, sizeof *rows.drawn);
    for (size_t b = 0; b < blocks; b++) {
        size_t size = b + 1 < blocks ? BLOCK : n - b * BLOCK;

        load(&rows, b * BLOCK, size);
        for (int r = 0; r < RESAMPLES; r++) {
            const uint32_t *draws = ipw_spill_at(&counts, (size_t)r * blocks + b);

            draw_from_block(&rows, size, r, *draws, &state);
        }
    }
    for (size_t m = 0; m < count; m++) set_bounds(&rows, m);
    free(rows.block);
    free(rows.drawn);
    ipw_spill_release(&counts);
}

static bool is_to_be_drawn(const struct ipw_interval_sample *s, size_t n)
{
    return s->clusters.n == n && strcmp(s->out.method, "bootstrap") == 0 && isnan(s->out.lo);
}

/* The bounds of all bootstrapped samples.  If all values of a sample are equal, so are all means,
 * and nothing is drawn. */
static void bootstrap_all(struct ipw_interval_sample *all, size_t count, uint64_t seed)
{
    struct ipw_interval_sample **same_n = ipw_calloc(count, sizeof *same_n);

    for (size_t i = 0; i < count; i++) {
        struct ipw_interval *out = &all[i].out;

        if (is_to_be_drawn(&all[i], all[i].clusters.n) && out->min == out->max)
            out->lo = out->hi = out->mean;
    }
    for (size_t i = 0; i < count; i++) {
        size_t n = all[i].clusters.n, k = 0;

        if (!is_to_be_drawn(&all[i], n)) continue;
        for (size_t j = i; j < count; j++)
            if (is_to_be_drawn(&all[j], n)) same_n[k++] = &all[j];
        bootstrap(same_n, k, seed);
    }
    free(same_n);
}

static struct ipw_interval nothing(size_t n)
{
    return (struct ipw_interval){NAN, NAN, NAN, NAN, NAN, n, "none"};
}

/* Everything except the bounds of a bootstrap. */
static void begin_mean(struct ipw_interval_sample *s)
{
    struct ipw_interval *out = &s->out;
    struct ipw_stats_clustered c;
    size_t n = s->clusters.n;
    double half;

    *out = nothing(n);
    for (size_t i = 0; i < n; i++) {
        double mean = cluster(s, i)->sum / cluster(s, i)->n;

        out->min = fmin(out->min, mean);
        out->max = fmax(out->max, mean);
    }
    if (!n) return;
    c = ipw_stats_clustered(&s->clusters);
    out->mean = out->min == out->max ? out->min : c.mean;
    if (n < LEAST) return;
    if (n >= T_BELOW) {
        out->method = "bootstrap";
        return;
    }
    half = out->min == out->max ? 0 : ipw_stats_t975(n - 1) * c.se;
    out->lo = out->mean - half;
    out->hi = out->mean + half;
    out->method = "t";
}

static void begin_share(struct ipw_interval_sample *s)
{
    struct ipw_stats_clustered c = ipw_stats_clustered(&s->clusters);

    begin_mean(s);
    s->out.lo = s->out.hi = NAN;
    s->out.method = "none";
    if (isnan(c.effective_n)) return;
    ipw_stats_wilson(&s->out.lo, &s->out.hi, c.mean, c.effective_n);
    s->out.method = "wilson";
}

static void begin_ratio(struct ipw_interval_sample *s)
{
    size_t n = s->clusters.n;
    double x = 0, y = 0;

    s->out = nothing(n);
    for (size_t i = 0; i < n; i++) {
        const struct ipw_stats_cluster *c = cluster(s, i);
        double one = c->n != 0 ? c->sum / c->n : NAN;

        x += c->sum;
        y += c->n;
        s->out.min = fmin(s->out.min, one);
        s->out.max = fmax(s->out.max, one);
    }
    if (y == 0) {
        s->out = nothing(n);
        return;
    }
    s->out.mean = x / y;
    if (n >= T_BELOW) s->out.method = "bootstrap";
}

void ipw_interval_make(struct ipw_interval_sample *samples, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        switch (samples[i].kind) {
        case IPW_INTERVAL_MEAN: begin_mean(&samples[i]); break;
        case IPW_INTERVAL_SHARE: begin_share(&samples[i]); break;
        case IPW_INTERVAL_RATIO: begin_ratio(&samples[i]); break;
        }
    }
    bootstrap_all(samples, count, seed);
}

struct ipw_interval ipw_interval_of(const double *values, size_t n)
{
    struct ipw_spill_place memory = {0};
    struct ipw_interval_sample s = {.kind = IPW_INTERVAL_MEAN};

    ipw_spill_init(&s.clusters, sizeof(struct ipw_stats_cluster), &memory);
    for (size_t i = 0; i < n; i++)
        ipw_spill_add(&s.clusters, &(struct ipw_stats_cluster){values[i], 1});
    ipw_interval_make(&s, 1, IPW_INTERVAL_SEED);
    ipw_spill_release(&s.clusters);
    return s.out;
}
