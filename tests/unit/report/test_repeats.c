#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/stats.h"
#include "report/repeats.h"
#include "unit/unit.h"

#define assert_near(a, b, by) assert_true(fabs((double)(a) - (double)(b)) <= (by))

static void case_51_two_values_have_no_interval_three_have_t(void **state)
{
    const double v[] = {1, 2, 3};
    struct ipw_interval two = ipw_interval_of(v, 2), three = ipw_interval_of(v, 3);

    (void)state;
    assert_string_equal(two.method, "none");
    assert_true(isnan(two.lo) && isnan(two.hi));
    assert_near(two.mean, 1.5, 0);
    assert_string_equal(three.method, "t");
    /* mean 2, deviation 1, t(2) 4.302653 */
    assert_near(three.lo, 2 - 4.302653 / sqrt(3), 1e-5);
    assert_near(three.hi, 2 + 4.302653 / sqrt(3), 1e-5);
    assert_near(three.min, 1, 0);
    assert_near(three.max, 3, 0);
    assert_true(isnan(ipw_interval_of(v, 0).mean));
}

static void from_20_on_the_bootstrap_and_always_the_same(void **state)
{
    double v[40];
    struct ipw_interval t, b, again;

    (void)state;
    for (int i = 0; i < 40; i++) v[i] = (i * 7 % 40) + 0.5;
    t = ipw_interval_of(v, 19);
    assert_string_equal(t.method, "t");
    b = ipw_interval_of(v, 40);
    again = ipw_interval_of(v, 40);
    assert_string_equal(b.method, "bootstrap");
    assert_true(b.lo == again.lo && b.hi == again.hi);
    /* a mean of 20 with a standard error of 1.85: about 16.4 to 23.6 */
    assert_true(b.lo > 15.5 && b.lo < 17.3);
    assert_true(b.hi > 22.7 && b.hi < 24.5);
}

static void add(struct ipw_summary *s, const char *id, int epoch, int resolved, double j)
{
    char name[16];
    struct ipw_query_trace q = {.id = name,
                                .outcome = "answered",
                                .completed = true,
                                .output_tokens = 10,
                                .end_ns = 2 * IPW_NS_PER_S};
    struct ipw_query_details r = {.epoch = epoch, .is_resolved = resolved, .cost_usd = NAN};

    snprintf(name, sizeof name, "%s", id);
    q.energy[IPW_DOMAIN_CPU] = (struct ipw_figure){.known = true, .j = j};
    ipw_summary_add(s, &q, &r);
}

static void repeats_of_a_task_are_averaged_first(void **state)
{
    struct ipw_summary s;
    struct ipw_repeats r;
    char id[8];

    (void)state;
    ipw_summary_init(&s);
    for (int epoch = 0; epoch < 3; epoch++) {
        for (int i = 0; i < 4; i++) {
            snprintf(id, sizeof id, "q%d", i);
            add(&s, id, epoch, i < 2, 10 * i + epoch);
        }
    }
    ipw_repeats_of(&r, &s);
    assert_int_equal(r.tasks, 4);
    assert_int_equal(r.epochs, 3);
    assert_string_equal(r.by, "task");
    assert_int_equal(r.metrics[IPW_REPEAT_CPU_J].n, 4);
    assert_near(r.metrics[IPW_REPEAT_CPU_J].mean, 16, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_CPU_J].min, 1, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_ACCURACY].mean, 0.5, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_IPJ].mean, 0.5 / 16, 1e-12);
    assert_int_equal(r.metrics[IPW_REPEAT_GPU_J].n, 0);
    ipw_summary_release(&s);
}

static void one_task_over_and_over_is_taken_by_epoch(void **state)
{
    struct ipw_summary s;
    struct ipw_repeats r;

    (void)state;
    ipw_summary_init(&s);
    for (int epoch = 0; epoch < 5; epoch++) add(&s, "q", epoch, epoch != 2, 10 + epoch);
    ipw_repeats_of(&r, &s);
    assert_string_equal(r.by, "epoch");
    assert_int_equal(r.metrics[IPW_REPEAT_JOULES].n, 5);
    assert_string_equal(r.metrics[IPW_REPEAT_JOULES].method, "t");
    assert_near(r.metrics[IPW_REPEAT_JOULES].mean, 12, 1e-12);
    assert_near(r.metrics[IPW_REPEAT_ACCURACY].mean, 0.8, 1e-12);
    ipw_summary_release(&s);
}

/* The interval of an accuracy read "80 % to 107 %": it is Wilson's, so that it stays a
 * proportion. */
static void an_accuracy_stays_within_0_and_1(void **state)
{
    for (int tasks = 3; tasks <= 30; tasks += 3) {
        for (int wrong = 0; wrong <= tasks; wrong++) {
            struct ipw_summary s;
            struct ipw_repeats r;
            const struct ipw_interval *a = &r.metrics[IPW_REPEAT_ACCURACY];

            ipw_summary_init(&s);
            for (int i = 0; i < 2 * tasks; i++) {
                char id[8];

                snprintf(id, sizeof id, "q%d", i / 2);
                add(&s, id, i % 2, i / 2 >= wrong, 1);
            }
            ipw_repeats_of(&r, &s);
            assert_string_equal(a->method, "wilson");
            assert_true(a->lo >= 0 && a->lo <= a->mean && a->mean <= a->hi && a->hi <= 1);
            assert_true(a->hi - a->lo > 0.05); /* all right is not certainty */
            ipw_summary_release(&s);
        }
    }
    (void)state;
}

/* With one query a task it is the plain interval; the same answers once more change it little: they
 * are no new tasks. */
static void repeats_are_no_new_tasks(void **state)
{
    struct ipw_interval once, thrice, joules_once, joules_thrice;
    double plain_lo, plain_hi;

    (void)state;
    for (int epochs = 1; epochs <= 3; epochs += 2) {
        struct ipw_summary s;
        struct ipw_repeats r;

        ipw_summary_init(&s);
        for (int i = 0; i < 8 * epochs; i++) {
            char id[8];

            snprintf(id, sizeof id, "q%d", i % 8);
            add(&s, id, i / 8, i % 8 < 6, 10 + i % 8);
        }
        ipw_repeats_of(&r, &s);
        *(epochs == 1 ? &once : &thrice) = r.metrics[IPW_REPEAT_ACCURACY];
        *(epochs == 1 ? &joules_once : &joules_thrice) = r.metrics[IPW_REPEAT_JOULES];
        ipw_summary_release(&s);
    }
    ipw_stats_wilson(&plain_lo, &plain_hi, 0.75, 8);
    assert_near(once.lo, plain_lo, 1e-12);
    assert_near(once.hi, plain_hi, 1e-12);
    assert_near(thrice.mean, 0.75, 1e-12);
    assert_true(thrice.hi - thrice.lo >= once.hi - once.lo);
    /* s of 10..17 is sqrt(6), n 8, t(7) 2.3646243; whole copies of the tasks leave it as it is */
    assert_near(joules_once.lo, 13.5 - 2.3646243 * sqrt(6.0 / 8), 1e-6);
    assert_near(joules_thrice.lo, joules_once.lo, 1e-9);
    assert_near(joules_thrice.hi, joules_once.hi, 1e-9);
}

static struct ipw_repeats of_tasks(int n, const char *folder)
{
    struct ipw_summary s;
    struct ipw_repeats r;

    ipw_summary_init(&s);
    s.place.folder = folder;
    for (int i = 0; i < n; i++) {
        char id[12];

        snprintf(id, sizeof id, "q%d", i);
        add(&s, id, 0, i % 4 != 0, 10 + i % 7);
    }
    ipw_repeats_of(&r, &s);
    assert_int_equal(s.place.error, 0);
    ipw_summary_release(&s);
    return r;
}

static void ratios_are_bootstrapped_or_have_no_interval(void **state)
{
    struct ipw_repeats few = of_tasks(19, NULL), r = of_tasks(56, NULL);
    const struct ipw_interval *ratio = &r.metrics[IPW_REPEAT_IPJ];

    (void)state;
    assert_string_equal(few.metrics[IPW_REPEAT_IPJ].method, "none");
    assert_true(isnan(few.metrics[IPW_REPEAT_IPJ].lo));
    assert_string_equal(ratio->method, "bootstrap");
    assert_near(ratio->mean, 0.75 / 13, 1e-12);
    assert_near(ratio->min, 0, 0);
    assert_near(ratio->max, 0.1, 0);
    /* 0.75 has a standard error of 0.058, 13 one of 0.27: 0.0046 of the ratio */
    assert_true(ratio->lo > 0.0457 && ratio->lo < 0.0527);
    assert_true(ratio->hi > 0.0627 && ratio->hi < 0.0697);
}

/* Of more tasks than one block holds the interval is as wide as the formula says, and a file makes
 * no difference to it. */
static void many_tasks_are_drawn_block_by_block(void **state)
{
    enum { N = 3 * 8192 + 100 };
    struct ipw_repeats memory = of_tasks(N, NULL), file = of_tasks(N, "/tmp");
    const struct ipw_interval *j = &memory.metrics[IPW_REPEAT_JOULES];
    double half = 1.959964 * 2 / sqrt(N); /* the deviation of 10 to 16 is 2 */

    (void)state;
    assert_int_equal(memory.tasks, N);
    assert_string_equal(j->method, "bootstrap");
    assert_near(j->lo, j->mean - half, 0.1 * half);
    assert_near(j->hi, j->mean + half, 0.1 * half);
    for (int m = 0; m < IPW_REPEAT_METRICS; m++) {
        const struct ipw_interval *a = &memory.metrics[m], *b = &file.metrics[m];

        assert_int_equal(a->n, b->n);
        assert_true(isnan(a->lo) ? isnan(b->lo) : a->lo == b->lo && a->hi == b->hi);
    }
}

enum { SAMPLES = 12, CLUSTERS = 300 };

/* Values that are often the same in every cluster, or those of another sample. */
static void some_samples(struct ipw_interval_sample *samples, struct ipw_spill_place *place,
                         uint64_t seed)
{
    struct ipw_stats_cluster of[SAMPLES];

    for (int m = 0; m < SAMPLES; m++) {
        samples[m] = (struct ipw_interval_sample){.kind = m % 3 == 2 ? IPW_INTERVAL_RATIO
                                                                     : IPW_INTERVAL_MEAN};
        ipw_spill_init(&samples[m].clusters, sizeof *of, place);
    }
    for (int i = 0; i < CLUSTERS; i++) {
        for (int m = 0; m < SAMPLES; m++) {
            double random = ipw_interval_draw(&seed, 1000) / 8.0;

            of[m] = (struct ipw_stats_cluster){random, m % 3 == 2 ? 1 + random / 3 : 1 + m % 4};
            if (m % 5 == 1) of[m].sum = of[m - 1].sum;
            if (m % 4 == 3) of[m].n = of[m - 3].n;
            if (m % 6 == 4) of[m].sum = 2;
            if (m % 6 == 5) of[m].n = of[m - 1].sum;
            if (i == CLUSTERS - 1 && m == 10) of[m].sum = 7;
            ipw_spill_add(&samples[m].clusters, &of[m]);
        }
    }
}

/* The definition: each resample draws as many clusters, and the bounds are quantiles of the
 * means. */
static void plain_bootstrap(double *lo, double *hi, const struct ipw_interval_sample *s)
{
    double means[IPW_INTERVAL_RESAMPLES];
    uint64_t state = IPW_INTERVAL_SEED;

    for (int r = 0; r < IPW_INTERVAL_RESAMPLES; r++) {
        double sum = 0, n = 0;

        for (int i = 0; i < CLUSTERS; i++) {
            const struct ipw_stats_cluster *c =
                ipw_spill_at(&s->clusters, ipw_interval_draw(&state, CLUSTERS));

            sum += c->sum;
            n += c->n;
        }
        means[r] = n != 0 ? sum / n : 0;
    }
    qsort(means, IPW_INTERVAL_RESAMPLES, sizeof *means, ipw_stats_by_value);
    *lo = ipw_stats_quantile(means, IPW_INTERVAL_RESAMPLES, 0.025);
    *hi = ipw_stats_quantile(means, IPW_INTERVAL_RESAMPLES, 0.975);
}

static void samples_that_share_their_draws_have_the_plain_bounds(void **state)
{
    (void)state;
    for (size_t n = 1; n <= SAMPLES; n++) {
        struct ipw_interval_sample samples[SAMPLES];
        struct ipw_spill_place memory = {0};

        some_samples(samples, &memory, 88 + n);
        ipw_interval_make(samples, n, IPW_INTERVAL_SEED);
        for (size_t m = 0; m < SAMPLES; m++) {
            double lo, hi;

            if (m < n) {
                plain_bootstrap(&lo, &hi, &samples[m]);
                assert_string_equal(samples[m].out.method, "bootstrap");
                assert_near(samples[m].out.lo, lo, 1e-12 * fabs(lo));
                assert_near(samples[m].out.hi, hi, 1e-12 * fabs(hi));
            }
            ipw_spill_release(&samples[m].clusters);
        }
    }
}

UNIT(repeats)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_51_two_values_have_no_interval_three_have_t),
        cmocka_unit_test(from_20_on_the_bootstrap_and_always_the_same),
        cmocka_unit_test(repeats_of_a_task_are_averaged_first),
        cmocka_unit_test(one_task_over_and_over_is_taken_by_epoch),
        cmocka_unit_test(an_accuracy_stays_within_0_and_1),
        cmocka_unit_test(repeats_are_no_new_tasks),
        cmocka_unit_test(ratios_are_bootstrapped_or_have_no_interval),
        cmocka_unit_test(many_tasks_are_drawn_block_by_block),
        cmocka_unit_test(samples_that_share_their_draws_have_the_plain_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
