#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/stats.h"
#include "unit/unit.h"

static void known_sets(void **state)
{
    static const struct {
        double values[6];
        size_t n;
        double mean, median, min, max, std;
    } cases[] = {
        {{0}, 0, NAN, NAN, NAN, NAN, NAN},
        {{7}, 1, 7, 7, 7, 7, 0},
        {{4, 2}, 2, 3, 3, 2, 4, 1.4142135623730951},
        {{2, 4, 4, 4, 5, 11}, 6, 5, 4, 2, 11, 3.0983866769659336},
        {{3, -1, 2}, 3, 4.0 / 3, 2, -1, 3, 2.0816659994661326},
        {{1e15, 1e15 + 2, 1e15 + 4}, 3, 1e15 + 2, 1e15 + 2, 1e15, 1e15 + 4, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double values[6];
        struct ipw_stats_result r;

        memcpy(values, cases[i].values, sizeof values);
        r = ipw_stats_describe(values, cases[i].n);
        assert_int_equal(r.n, cases[i].n);
        if (!r.n) {
            assert_true(isnan(r.mean) && isnan(r.median) && isnan(r.min) && isnan(r.max) &&
                        isnan(r.std));
        } else {
            assert_true(fabs(r.mean - cases[i].mean) < 1e-12);
            assert_true(r.median == cases[i].median);
            assert_true(r.min == cases[i].min && r.max == cases[i].max);
            assert_true(fabs(r.std - cases[i].std) < 1e-12);
        }
    }
}

/* statistics.quantiles(..., n=100, method='inclusive') of Python 3.11. */
static void quantiles_lie_between_two_values(void **state)
{
    double values[] = {12.5, 3.25, 7.75, 9.5, 1, 22, 15.25, 8, 4.5, 30, 6.25};
    static const double sorted[] = {1, 3.25, 4.5, 6.25, 7.75, 8, 9.5, 12.5, 15.25, 22, 30};
    struct ipw_stats_result r = ipw_stats_describe(values, 11);

    (void)state;
    assert_true(r.median == 8 && r.p90 == 22 && fabs(r.p95 - 26) < 1e-12);
    assert_true(fabs(r.p99 - 29.2) < 1e-12);
    assert_true(fabs(ipw_stats_quantile(sorted, 11, 0.975) - 28) < 1e-12);
    assert_true(ipw_stats_quantile(sorted, 11, 0) == 1 && ipw_stats_quantile(sorted, 11, 1) == 30);
    assert_true(ipw_stats_quantile(sorted, 1, 0.9) == 1);
}

/* The first four are Table I, method 3 of Newcombe 1998 (Statistics in Medicine 17:857-872); the
 * others the two roots of (p - x)^2 = z^2 x (1 - x) / n, solved apart from the formula in the
 * header. */
static void wilson_as_published(void **state)
{
    static const struct {
        double right, n, lo, hi, by;
    } cases[] = {
        {81, 263, 0.2553, 0.3662, 5e-5},
        {15, 148, 0.0624, 0.1605, 5e-5},
        {0, 20, 0, 0.1611, 5e-5},
        {1, 29, 0.0061, 0.1718, 5e-5},
        {3, 5, 0.230724281, 0.882379226, 1e-9},
        {15, 16, 0.716712624, 0.988880655, 1e-9},
        {3, 3, 0.438502968, 1, 1e-9},
        {1.721926, 3.443853, 0.136926936, 0.863073064, 1e-6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double lo, hi;

        ipw_stats_wilson(&lo, &hi, cases[i].right / cases[i].n, cases[i].n);
        assert_true(fabs(lo - cases[i].lo) < cases[i].by);
        assert_true(fabs(hi - cases[i].hi) < cases[i].by);
    }
    for (int n = 1; n < 40; n++) { /* and never outside of what a proportion can be */
        for (int k = 0; k <= n; k++) {
            double lo, hi, p = (double)k / n;

            ipw_stats_wilson(&lo, &hi, p, n);
            assert_true(lo >= 0 && lo <= p && p <= hi && hi <= 1);
        }
    }
}

/* Worked out apart from the program by the sum over all pairs of a task's observations (Miller
 * 2024, arXiv:2411.00640, section 2.2), which is the same square written otherwise, with G / (G -
 * 1). */
static void clusters_by_the_sum_over_pairs(void **state)
{
    static const struct {
        struct ipw_stats_cluster all[5];
        size_t n;
        double mean, se, effective_n;
    } cases[] = {
        {{{0}}, 0, NAN, NAN, NAN},
        /* 110, 001, 111, 000: V = 5/144; 7.2 observations, times (t of 11 / t of 3)^2 */
        {{{2, 3}, {1, 3}, {3, 3}, {0, 3}}, 4, 0.5, 0.2151657414559676, 3.443852739},
        /* one a task: s / sqrt(n), and n */
        {{{1, 1}, {0, 1}, {1, 1}, {1, 1}, {0, 1}}, 5, 0.6, 0.24494897427831783, 5},
        /* unequal numbers: 12.5 13.5, 20, 7 8 9.5 */
        {{{26, 2}, {20, 1}, {24.5, 3}}, 3, 11.75, 2.8127314719562784, NAN},
        /* all right: nothing to estimate V from, so a task counts once */
        {{{2, 2}, {1, 1}, {3, 3}}, 3, 1, 0, 3},
        /* alike in every task: never more than there are observations */
        {{{1, 2}, {1, 2}, {1, 2}}, 3, 0.5, 0, 2.141621},
        /* one task alone, repeated: what another task would give is not known */
        {{{1, 2}}, 1, 0.5, NAN, NAN},
        {{{1, 1}}, 1, 1, NAN, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_columns clusters;
        struct ipw_stats_clustered c;

        ipw_columns_init(&clusters, 2);
        for (size_t k = 0; k < cases[i].n; k++)
            ipw_columns_add(&clusters, (double[]){cases[i].all[k].sum, cases[i].all[k].n});
        c = ipw_stats_clustered(&clusters);
        ipw_columns_release(&clusters);
        assert_true(isnan(cases[i].mean) ? isnan(c.mean) : fabs(c.mean - cases[i].mean) < 1e-12);
        assert_true(isnan(cases[i].se) ? isnan(c.se) : fabs(c.se - cases[i].se) < 1e-12);
        if (cases[i].mean <= 1)
            assert_true(isnan(cases[i].effective_n)
                            ? isnan(c.effective_n)
                            : fabs(c.effective_n - cases[i].effective_n) < 1e-5);
    }
}

/* Against the table of any textbook. */
static void quantiles_of_t(void **state)
{
    static const struct {
        size_t degrees;
        double t;
    } cases[] = {{1, 12.7062047}, {2, 4.3026527},   {10, 2.2281389},  {18, 2.1009220},
                 {19, 2.0930241}, {20, 2.0859634},  {24, 2.0638986},  {30, 2.0422725},
                 {60, 2.0002978}, {120, 1.9799304}, {1000, 1.9623391}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double off = fabs(ipw_stats_t975(cases[i].degrees) - cases[i].t);

        assert_true(off < 2e-5);
    }
    assert_true(isnan(ipw_stats_t975(0)));
}

UNIT(stats)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sets), cmocka_unit_test(quantiles_lie_between_two_values),
        cmocka_unit_test(wilson_as_published), cmocka_unit_test(clusters_by_the_sum_over_pairs),
        cmocka_unit_test(quantiles_of_t)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
