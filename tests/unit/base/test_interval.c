#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/interval.h"
#include "unit/unit.h"

#define assert_near(a, b, by) assert_true(fabs((double)(a) - (double)(b)) <= (by))

static struct ipw_interval interval_of(const double *values, size_t n)
{
    struct ipw_interval_sample s = {.kind = IPW_INTERVAL_MEAN};

    ipw_columns_init(&s.clusters, 2);
    for (size_t i = 0; i < n; i++) ipw_columns_add(&s.clusters, (double[]){values[i], 1});
    ipw_interval_make(&s, 1, IPW_INTERVAL_SEED);
    ipw_columns_release(&s.clusters);
    return s.out;
}

static void case_51_two_values_have_no_interval_three_have_t(void **state)
{
    const double v[] = {1, 2, 3};
    struct ipw_interval two = interval_of(v, 2), three = interval_of(v, 3);

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
    assert_true(isnan(interval_of(v, 0).mean));
}

static void from_20_on_the_bootstrap_and_always_the_same(void **state)
{
    double v[40];
    struct ipw_interval t, b, again;

    (void)state;
    for (int i = 0; i < 40; i++) v[i] = (i * 7 % 40) + 0.5;
    t = interval_of(v, 19);
    assert_string_equal(t.method, "t");
    b = interval_of(v, 40);
    again = interval_of(v, 40);
    assert_string_equal(b.method, "bootstrap");
    assert_true(b.lo == again.lo && b.hi == again.hi);
    /* a mean of 20 with a standard error of 1.85: about 16.4 to 23.6 */
    assert_true(b.lo > 15.5 && b.lo < 17.3);
    assert_true(b.hi > 22.7 && b.hi < 24.5);
}

static struct ipw_interval share_of(const struct ipw_stats_cluster *clusters, size_t n)
{
    struct ipw_interval_sample s = {.kind = IPW_INTERVAL_SHARE};

    ipw_columns_init(&s.clusters, 2);
    for (size_t i = 0; i < n; i++)
        ipw_columns_add(&s.clusters, (double[]){clusters[i].sum, clusters[i].n});
    ipw_interval_make(&s, 1, IPW_INTERVAL_SEED);
    ipw_columns_release(&s.clusters);
    return s.out;
}

/* Of one task, however often it was repeated, nothing follows for others; nor of tasks without an
 * observation. */
static void a_share_has_wilsons_interval_or_none(void **state)
{
    const struct ipw_stats_cluster tasks[] = {{1, 3}, {3, 3}, {0, 3}, {2, 3}}, empty[4] = {{0, 0}};
    struct ipw_interval some = share_of(tasks, 4), one = share_of(tasks, 1);
    struct ipw_interval none = share_of(empty, 4);

    (void)state;
    assert_string_equal(some.method, "wilson");
    assert_near(some.mean, 0.5, 1e-12);
    assert_true(some.lo > 0 && some.lo < 0.5 && some.hi > 0.5 && some.hi < 1);
    assert_string_equal(one.method, "none");
    assert_true(isnan(one.lo) && isnan(one.hi));
    assert_string_equal(none.method, "none");
    assert_true(isnan(none.mean) && isnan(none.lo) && isnan(none.hi));
}

/* 1 J each, for the n first of 40 that are right.  With 2 of them 13 % of the draws have none. */
static void a_ratio_without_a_divisor_has_no_limit(void **state)
{
    (void)state;
    for (int right = 2; right <= 10; right += 8) {
        struct ipw_interval_sample s = {.kind = IPW_INTERVAL_RATIO};

        ipw_columns_init(&s.clusters, 2);
        for (int i = 0; i < 40; i++) ipw_columns_add(&s.clusters, (double[]){1, i < right});
        ipw_interval_make(&s, 1, IPW_INTERVAL_SEED);
        ipw_columns_release(&s.clusters);
        assert_near(s.out.mean, 40.0 / right, 0);
        assert_string_equal(s.out.method, right == 2 ? "none" : "bootstrap");
        if (right == 2)
            assert_true(isnan(s.out.lo) && isnan(s.out.hi));
        else
            assert_true(s.out.lo > 2 && s.out.lo < 4 && s.out.hi > 4 && s.out.hi < 14);
    }
}

enum { SAMPLES = 12, CLUSTERS = 300 };

/* Values that are often the same in every cluster, or those of another sample. */
static void some_samples(struct ipw_interval_sample *samples, uint64_t seed)
{
    struct ipw_stats_cluster of[SAMPLES];

    for (int m = 0; m < SAMPLES; m++) {
        samples[m] = (struct ipw_interval_sample){.kind = m % 3 == 2 ? IPW_INTERVAL_RATIO
                                                                     : IPW_INTERVAL_MEAN};
        ipw_columns_init(&samples[m].clusters, 2);
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
            ipw_columns_add(&samples[m].clusters, (double[]){of[m].sum, of[m].n});
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
            struct ipw_stats_cluster c =
                ipw_stats_cluster(&s->clusters, ipw_interval_draw(&state, CLUSTERS));

            sum += c.sum;
            n += c.n;
        }
        means[r] = sum / n;
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

        some_samples(samples, 88 + n);
        ipw_interval_make(samples, n, IPW_INTERVAL_SEED);
        for (size_t m = 0; m < SAMPLES; m++) {
            double lo, hi;

            if (m < n) {
                plain_bootstrap(&lo, &hi, &samples[m]);
                assert_string_equal(samples[m].out.method, "bootstrap");
                assert_near(samples[m].out.lo, lo, 1e-12 * fabs(lo));
                assert_near(samples[m].out.hi, hi, 1e-12 * fabs(hi));
            }
            ipw_columns_release(&samples[m].clusters);
        }
    }
}

UNIT(interval)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_51_two_values_have_no_interval_three_have_t),
        cmocka_unit_test(from_20_on_the_bootstrap_and_always_the_same),
        cmocka_unit_test(a_share_has_wilsons_interval_or_none),
        cmocka_unit_test(a_ratio_without_a_divisor_has_no_limit),
        cmocka_unit_test(samples_that_share_their_draws_have_the_plain_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
