#include "report/repeats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/stats.h"

enum { T_BELOW = 20, LEAST = 3, RESAMPLES = 2000, BLOCK = 8192 };

/* xorshift64*: small, and the same on every machine.  The upper half of its state is multiplied by
 * n, because a division by n costs more than the rest of a resample. */
static uint32_t draw(uint64_t *state, size_t n)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (uint32_t)(((x * UINT64_C(2685821657736338717)) >> 32) * n >> 32);
}

/* Of the sorted means of all resamples. */
static double quantile(const double *sorted, double p)
{
    double at = p * (RESAMPLES - 1);
    size_t i = (size_t)at;

    if (i + 1 >= RESAMPLES) return sorted[RESAMPLES - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* A metric, by cluster. */
struct sample {
    struct ipw_spill clusters; /* of struct ipw_stats_cluster; of a ratio: dividend and divisor */
    struct ipw_interval out;
};

static const struct ipw_stats_cluster *cluster(const struct sample *s, size_t i)
{
    return ipw_spill_at(&s->clusters, i);
}

/* The clusters to draw from: a row of numbers for each, so that a draw is a few additions.  A row
 * has the sums of all samples, then their n, unless each n of all clusters is 1. */
struct rows {
    struct sample **all;
    size_t count, width;
    double *block,
        *drawn; /* rows of a block; for each resample the sums of the rows drawn so far */
};

static bool all_are_single(struct sample *const *all, size_t count)
{
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < all[m]->clusters.n; i++)
            if (cluster(all[m], i)->n != 1) return false;
    return true;
}

static void load(struct rows *rows, size_t first, size_t size)
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

static void draw_from_block(const struct rows *rows, size_t size, int resample, uint32_t draws,
                            uint64_t *state)
{
    size_t width = rows->width;
    double sums[2 * IPW_REPEAT_METRICS], *to = rows->drawn + (size_t)resample * width;

    memcpy(sums, to, width * sizeof *sums);
    for (uint32_t i = 0; i < draws; i++) {
        const double *row = rows->block + draw(state, size) * width;

        for (size_t k = 0; k < width; k++) sums[k] += row[k];
    }
    memcpy(to, sums, width * sizeof *sums);
}

/* How many draws of each resample fall into each block. */
static void draw_blocks(struct ipw_spill *counts, size_t n, size_t blocks, uint64_t *state)
{
    uint32_t *of = ipw_calloc(blocks, sizeof *of);

    for (int r = 0; r < RESAMPLES; r++) {
        memset(of, 0, blocks * sizeof *of);
        for (size_t i = 0; i < n && blocks > 1; i++) of[draw(state, n) / BLOCK]++;
        if (blocks == 1) of[0] = (uint32_t)n;
        for (size_t b = 0; b < blocks; b++) ipw_spill_add(counts, &of[b]);
    }
    free(of);
}

/* Of the m-th sample. */
static void set_bounds(const struct rows *rows, size_t m)
{
    double *means = ipw_calloc(RESAMPLES, sizeof *means);
    struct sample *s = rows->all[m];

    for (size_t r = 0; r < RESAMPLES; r++) {
        const double *sums = rows->drawn + r * rows->width;
        double n = rows->width > rows->count ? sums[rows->count + m] : (double)s->clusters.n;

        means[r] = n != 0 ? sums[m] / n : 0;
    }
    qsort(means, RESAMPLES, sizeof *means, ipw_stats_by_value);
    s->out.lo = quantile(means, 0.025);
    s->out.hi = quantile(means, 0.975);
    free(means);
}

/* All samples of one n together, because they use the same draws.  Clusters that do not fit into
 * memory are drawn block by block, after it was drawn how often each block is used. */
static void bootstrap(struct sample **all, size_t count)
{
    struct rows rows = {all, count, all_are_single(all, count) ? count : 2 * count, NULL, NULL};
    uint64_t state = IPW_REPEATS_SEED;
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

/* The bounds of all bootstrapped samples.  If all values of a sample are equal, so are all means,
 * and nothing is drawn. */
static void bootstrap_all(struct sample *all, size_t count)
{
    struct sample *same_n[IPW_REPEAT_METRICS];

    for (size_t i = 0; i < count; i++) {
        struct ipw_interval *out = &all[i].out;
        size_t k = 0;

        if (strcmp(out->method, "bootstrap") || !isnan(out->lo)) continue;
        if (out->min == out->max) {
            out->lo = out->hi = out->mean;
            continue;
        }
        for (size_t j = i; j < count; j++) {
            const struct ipw_interval *other = &all[j].out;

            if (all[j].clusters.n == all[i].clusters.n && strcmp(other->method, "bootstrap") == 0 &&
                isnan(other->lo) && other->min != other->max)
                same_n[k++] = &all[j];
        }
        bootstrap(same_n, k);
    }
}

static struct ipw_interval nothing(size_t n)
{
    return (struct ipw_interval){NAN, NAN, NAN, NAN, NAN, n, "none"};
}

/* Everything except the bounds of a bootstrap. */
static void begin(struct sample *s)
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

static void begin_share(struct sample *s)
{
    struct ipw_stats_clustered c = ipw_stats_clustered(&s->clusters);

    begin(s);
    s->out.lo = s->out.hi = NAN;
    s->out.method = "none";
    if (isnan(c.effective_n)) return;
    ipw_stats_wilson(&s->out.lo, &s->out.hi, c.mean, c.effective_n);
    s->out.method = "wilson";
}

static void begin_ratio(struct sample *s)
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

struct ipw_interval ipw_interval_of(const double *values, size_t n)
{
    struct ipw_spill_place memory = {0};
    struct sample s;

    ipw_spill_init(&s.clusters, sizeof(struct ipw_stats_cluster), &memory);
    for (size_t i = 0; i < n; i++)
        ipw_spill_add(&s.clusters, &(struct ipw_stats_cluster){values[i], 1});
    begin(&s);
    bootstrap_all(&s, 1);
    ipw_spill_release(&s.clusters);
    return s.out;
}

/* ---- intervals of a run ---- */

static double count(int64_t n) { return n < 0 ? NAN : (double)n; }

static double joules(const struct ipw_summary_row *r, unsigned domains)
{
    double sum = domains ? 0 : NAN;

    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (domains >> d & 1) sum += r->energy[d].known ? r->energy[d].j : NAN;
    }
    return sum;
}

/* Ratios take two values from each row: the accuracy and its divisor. */
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

static int by_number(const struct ipw_summary_row *x, const struct ipw_summary_row *y)
{
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_task(const void *a, const void *b)
{
    const struct ipw_summary_row *x = a, *y = b;
    int order = strcmp(x->task, y->task);

    return order ? order : by_number(x, y);
}

static int by_epoch(const void *a, const void *b)
{
    const struct ipw_summary_row *x = a, *y = b;

    return x->epoch != y->epoch ? (x->epoch < y->epoch ? -1 : 1) : by_number(x, y);
}

static bool is_same(const struct ipw_summary_row *x, const struct ipw_summary_row *y,
                    ipw_spill_order *order)
{
    return order == by_epoch ? x->epoch == y->epoch : !strcmp(x->task, y->task);
}

static size_t count_groups(const struct ipw_spill *sorted, ipw_spill_order *order)
{
    struct ipw_summary_row before = {0};
    size_t count = 0;

    for (size_t i = 0; i < sorted->n; i++) {
        const struct ipw_summary_row *row = ipw_spill_at(sorted, i);

        count += i == 0 || !is_same(&before, row, order);
        before = *row;
    }
    return count;
}

/* Adds the group that begins with row `i`, unless all of its values are unknown; returns the first
 * row of the next group. */
static size_t add_cluster(struct sample *s, const struct ipw_spill *sorted, size_t i,
                          ipw_spill_order *order, int metric, unsigned basis)
{
    bool ratio = metric == IPW_REPEAT_IPJ || metric == IPW_REPEAT_IPW;
    struct ipw_summary_row first = *(const struct ipw_summary_row *)ipw_spill_at(sorted, i);
    double sum = 0, scored = 0;
    size_t known = 0;

    for (; i < sorted->n; i++) {
        const struct ipw_summary_row *row = ipw_spill_at(sorted, i);
        double v = value_of(row, metric, basis), a = value_of(row, IPW_REPEAT_ACCURACY, basis);

        if (!is_same(&first, row, order)) break;
        if (isnan(v) || (ratio && isnan(a))) continue;
        sum += v;
        scored += a;
        known++;
    }
    if (known)
        ipw_spill_add(&s->clusters, &(struct ipw_stats_cluster){ratio ? scored : sum,
                                                                ratio ? sum : (double)known});
    return i;
}

void ipw_repeats_of(struct ipw_repeats *out, const struct ipw_summary *s)
{
    struct sample samples[IPW_REPEAT_METRICS];
    unsigned basis = ipw_summary_basis(s);
    ipw_spill_order *order = by_task;
    struct ipw_spill sorted;

    ipw_spill_sort(&sorted, &s->rows, by_task);
    *out = (struct ipw_repeats){.tasks = count_groups(&sorted, by_task),
                                .epochs = ipw_repeats_epochs(s)};
    if (out->tasks < LEAST && out->epochs >= LEAST) {
        order = by_epoch;
        ipw_spill_release(&sorted);
        ipw_spill_sort(&sorted, &s->rows, by_epoch);
    }
    out->by = order == by_epoch ? "epoch" : "task";
    for (int m = 0; m < IPW_REPEAT_METRICS; m++) {
        struct sample *sample = &samples[m];

        ipw_spill_init(&sample->clusters, sizeof(struct ipw_stats_cluster), s->rows.place);
        for (size_t i = 0; i < sorted.n;) i = add_cluster(sample, &sorted, i, order, m, basis);
        if (m == IPW_REPEAT_IPJ || m == IPW_REPEAT_IPW)
            begin_ratio(sample);
        else if (m == IPW_REPEAT_ACCURACY)
            begin_share(sample);
        else
            begin(sample);
    }
    ipw_spill_release(&sorted);
    bootstrap_all(samples, IPW_REPEAT_METRICS);
    for (int m = 0; m < IPW_REPEAT_METRICS; m++) {
        out->metrics[m] = samples[m].out;
        ipw_spill_release(&samples[m].clusters);
    }
}

size_t ipw_repeats_epochs(const struct ipw_summary *s)
{
    struct ipw_spill epochs, sorted;
    size_t n = 0;

    ipw_spill_init(&epochs, sizeof(double), s->rows.place);
    for (size_t i = 0; i < s->n; i++) ipw_stats_add(&epochs, (double)ipw_summary_row(s, i)->epoch);
    ipw_spill_sort(&sorted, &epochs, ipw_stats_by_value);
    ipw_spill_release(&epochs);
    for (size_t i = 0; i < sorted.n; i++)
        n += i == 0 || ipw_stats_at(&sorted, i - 1) != ipw_stats_at(&sorted, i);
    ipw_spill_release(&sorted);
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
