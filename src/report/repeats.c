#include "report/repeats.h"

#include <math.h>
#include <string.h>

enum { LEAST = 3 };

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

static enum ipw_interval_kind kind_of(int metric)
{
    switch (metric) {
    case IPW_REPEAT_ACCURACY: return IPW_INTERVAL_SHARE;
    case IPW_REPEAT_IPJ:
    case IPW_REPEAT_IPW: return IPW_INTERVAL_RATIO;
    default: return IPW_INTERVAL_MEAN;
    }
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
static size_t add_cluster(struct ipw_interval_sample *s, const struct ipw_spill *sorted, size_t i,
                          ipw_spill_order *order, int metric, unsigned basis)
{
    bool ratio = kind_of(metric) == IPW_INTERVAL_RATIO;
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
        ipw_columns_add(&s->clusters,
                        (double[]){ratio ? scored : sum, ratio ? sum : (double)known});
    return i;
}

void ipw_repeats_of(struct ipw_repeats *out, const struct ipw_summary *s)
{
    struct ipw_interval_sample samples[IPW_REPEAT_METRICS];
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
        struct ipw_interval_sample *sample = &samples[m];
        bool known = s->n_answers || kind_of(m) == IPW_INTERVAL_MEAN; /* others need an accuracy */

        sample->kind = kind_of(m);
        ipw_columns_init(&sample->clusters, 2);
        for (size_t i = 0; known && i < sorted.n;)
            i = add_cluster(sample, &sorted, i, order, m, basis);
    }
    ipw_spill_release(&sorted);
    ipw_interval_make(samples, IPW_REPEAT_METRICS, IPW_INTERVAL_SEED);
    for (int m = 0; m < IPW_REPEAT_METRICS; m++) {
        out->metrics[m] = samples[m].out;
        ipw_columns_release(&samples[m].clusters);
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
