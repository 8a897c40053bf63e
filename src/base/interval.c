#include "base/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { T_BELOW = 20, LEAST = 3, RESAMPLES = IPW_INTERVAL_RESAMPLES, BLOCK = 8192 };

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

/* The clusters to draw from: a row of numbers for each, so that a draw is a few additions.  The
 * sums of all samples and their n would be its columns.  Most are the same number in every row, or
 * another column again: these are left out. */
struct rows {
    struct ipw_interval_sample **all;
    size_t count, width;
    struct column {    /* 2 for each sample: sum, n */
        double first;  /* in the first row */
        bool constant; /* and in all others */
        size_t like;   /* the first column that is the same; SIZE_MAX: none */
        size_t at;     /* place in the row */
    } * columns;
    double *block; /* rows of a block of clusters */
    double *drawn; /* for each resample the sums of the rows drawn so far */
};

static double value_at(const struct rows *rows, size_t column, size_t i)
{
    return ipw_columns_at(&rows->all[column / 2]->clusters, column % 2, i);
}

static bool is_like(const struct rows *rows, size_t a, size_t b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (value_at(rows, a, i) != value_at(rows, b, i)) return false;
    return true;
}

static void choose_columns(struct rows *rows)
{
    size_t n = rows->all[0]->clusters.n, count = 2 * rows->count;

    rows->columns = ipw_calloc(count, sizeof *rows->columns);
    for (size_t k = 0; k < count; k++) {
        struct column *c = &rows->columns[k];

        *c = (struct column){.first = value_at(rows, k, 0), .like = SIZE_MAX, .at = rows->width};
        c->constant = !rows->all[k / 2]->clusters.of[k % 2].values;
        for (size_t j = 0; j < k && !c->constant && c->like == SIZE_MAX; j++)
            if (!rows->columns[j].constant && is_like(rows, j, k, n)) c->like = j;
        if (c->like != SIZE_MAX) c->at = rows->columns[c->like].at;
        rows->width += !c->constant && c->like == SIZE_MAX;
    }
    rows->width += rows->width > 1 && rows->width % 2; /* even rows are added two by two */
}

static void load(const struct rows *rows, size_t first, size_t size)
{
    for (size_t k = 0; k < 2 * rows->count; k++) {
        const struct column *c = &rows->columns[k];

        if (c->constant || c->like != SIZE_MAX) continue;
        for (size_t i = 0; i < size; i++)
            rows->block[i * rows->width + c->at] = value_at(rows, k, first + i);
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

/* The same where the width is a constant: the sums stay in registers. */
#define DRAW_ROWS(width)                                                                           \
    case width: {                                                                                  \
        double at[width];                                                                          \
                                                                                                   \
        memcpy(at, sums, sizeof at);                                                               \
        *state = draw_rows(at, rows->block, width, size, draws, *state);                           \
        memcpy(sums, at, sizeof at);                                                               \
        break;                                                                                     \
    }

static void draw_from_block(const struct rows *rows, size_t size, size_t resample, uint32_t draws,
                            uint64_t *state)
{
    double *sums = rows->drawn + resample * rows->width;

    switch (rows->width) {
        DRAW_ROWS(1)
        DRAW_ROWS(2)
        DRAW_ROWS(4)
        DRAW_ROWS(6)
        DRAW_ROWS(8)
    default: *state = draw_rows(sums, rows->block, rows->width, size, draws, *state);
    }
}

/* How many draws of each resample fall into each block. */
static uint32_t *draw_blocks(size_t n, size_t blocks, uint64_t *state)
{
    uint32_t *counts = ipw_calloc(RESAMPLES * blocks, sizeof *counts);

    for (size_t r = 0; r < RESAMPLES; r++) {
        uint32_t *of = counts + r * blocks;

        for (size_t i = 0; i < n && blocks > 1; i++) of[ipw_interval_draw(state, n) / BLOCK]++;
        if (blocks == 1) of[0] = (uint32_t)n;
    }
    return counts;
}

static double drawn_sum(const struct rows *rows, size_t resample, size_t column)
{
    const struct column *c = &rows->columns[column];

    return c->constant ? (double)rows->all[0]->clusters.n * c->first
                       : rows->drawn[resample * rows->width + c->at];
}

/* Of the m-th sample. */
static void set_bounds(const struct rows *rows, size_t m)
{
    double *means = ipw_calloc(RESAMPLES, sizeof *means);
    struct ipw_interval_sample *s = rows->all[m];

    for (size_t r = 0; r < RESAMPLES; r++) {
        double n = drawn_sum(rows, r, 2 * m + 1);

        means[r] = n != 0 ? drawn_sum(rows, r, 2 * m) / n : 0;
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
    struct rows rows = {.all = all, .count = count};
    uint64_t state = seed;
    size_t n = all[0]->clusters.n, blocks = (n + BLOCK - 1) / BLOCK;
    uint32_t *counts = draw_blocks(n, blocks, &state);

    choose_columns(&rows);
    rows.block = ipw_calloc((n < BLOCK ? n : BLOCK) * rows.width, sizeof *rows.block);
    rows.drawn = ipw_calloc(RESAMPLES * rows.width, sizeof *rows.drawn);
    for (size_t b = 0; b < blocks; b++) {
        size_t size = b + 1 < blocks ? BLOCK : n - b * BLOCK;

        load(&rows, b * BLOCK, size);
        for (size_t r = 0; r < RESAMPLES; r++)
            draw_from_block(&rows, size, r, counts[r * blocks + b], &state);
    }
    for (size_t m = 0; m < count; m++) set_bounds(&rows, m);
    free(rows.columns);
    free(rows.block);
    free(rows.drawn);
    free(counts);
}

static bool is_to_be_drawn(const struct ipw_interval_sample *s, size_t n)
{
    return s->clusters.n == n && strcmp(s->out.method, "bootstrap") == 0 && isnan(s->out.lo);
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

        if (is_to_be_drawn(&all[i], all[i].clusters.n) && is_constant(&all[i]))
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
        double mean = cluster(s, i).sum / cluster(s, i).n;

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
        struct ipw_stats_cluster c = cluster(s, i);
        double one = c.n != 0 ? c.sum / c.n : NAN;

        x += c.sum;
        y += c.n;
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
    struct ipw_interval_sample s = {.kind = IPW_INTERVAL_MEAN};

    ipw_columns_init(&s.clusters, 2);
    for (size_t i = 0; i < n; i++) ipw_columns_add(&s.clusters, (double[]){values[i], 1});
    ipw_interval_make(&s, 1, IPW_INTERVAL_SEED);
    ipw_columns_release(&s.clusters);
    return s.out;
}
