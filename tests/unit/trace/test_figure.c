/* Sums in whole microjoules, and the reasons that decide something. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/figure.h"
#include "unit/unit.h"

static void sums_are_whole_microjoules(void **state)
{
    (void)state;
    assert_true(ipw_figure_add_j(0.1, 0.2) == 0.3);
    assert_true(ipw_figure_add_j(1e-6, 0.4e-6) == 1e-6);
    assert_true(isnan(ipw_figure_add_j(1, NAN)) && isnan(ipw_figure_add_j(NAN, 1e300)));
    assert_true(ipw_figure_add_j(1e300, -3) == 1e300);
    assert_true(ipw_figure_j(17.842665999999998) == 17.842666 && ipw_figure_j(-4e-7) == 0);
    assert_true(ipw_figure_j(123456789.1234567) == 123456789.123457);
    assert_true(ipw_figure_j(1234567890.1234567) == 1234567890.1234567);
}

static struct ipw_figure rounded(double lo_j, double hi_j)
{
    struct ipw_figure f = {.known = true, .j = lo_j, .coverage = 1, .lo_j = lo_j, .hi_j = hi_j};

    ipw_figure_round(&f);
    return f;
}

/* Bounds move outward by at most a twentieth of their distance, or by less than a microjoule. */
static void bounds_move_outward(void **state)
{
    static const struct {
        double lo_j, hi_j, lo, hi;
    } cases[] = {
        {1.022101, 1.904047, 1.02, 1.91},
        {0, 0.117262, 0, 0.118},
        {199.951234, 200.048765, 199.951, 200.049},
        {17.842665, 17.842667, 17.842665, 17.842667},
        {17.8426651, 17.8426653, 17.842665, 17.842666},
        {0.000101, 0.000300, 0.000101, 0.0003},
        {0.000101, 0.000301, 0.0001, 0.00031},
        {-2.345678, 1, -2.4, 1},
        {1234.5678, 98765.4321, 1000, 99000},
        /* Moved apart, they allow one digit less. */
        {0.000009, 0.200004, 0, 0.21},
        {0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_figure f = rounded(cases[i].lo_j, cases[i].hi_j), again = f;

        assert_true(f.lo_j == cases[i].lo && f.hi_j == cases[i].hi);
        assert_false(ipw_figure_round(&again));
    }
    assert_true(isinf(rounded(1, INFINITY).hi_j) && rounded(1, INFINITY).lo_j == 1);
}

static void rounded_bounds_keep_the_promise_of_the_provenance(void **state)
{
    struct ipw_figure f = {.known = true, .j = 1, .lo_j = 0.982501, .hi_j = 1.022499}, measured = f,
                      interpolated = f;
    (void)state;
    measured.provenance = IPW_PROV_MEASURED;
    assert_false(ipw_figure_round(&measured));
    assert_true(measured.lo_j == 0.982501 && measured.hi_j == 1.022499);
    interpolated.provenance = IPW_PROV_INTERPOLATED;
    assert_true(ipw_figure_round(&interpolated));
    assert_true(interpolated.lo_j == 0.982 && interpolated.hi_j == 1.023);
}

static void random_bounds_stay_around_the_figure(void **state)
{
    uint64_t seed = 88172645463325252;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        struct ipw_figure f = {.known = true}, was;
        double width;

        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        f.lo_j = (double)(seed >> 20) / pow(10, 5 + (double)(seed % 9));
        f.hi_j = f.lo_j + (double)(seed >> 40) / pow(10, (double)(seed % 11));
        f.j = (f.lo_j + f.hi_j) / 2;
        was = f;
        width = f.hi_j - f.lo_j;
        ipw_figure_round(&f);
        assert_true(f.lo_j <= was.lo_j * (1 + 1e-9) && f.hi_j >= was.hi_j * (1 - 1e-9));
        assert_true(f.lo_j >= was.lo_j - width * 0.0601 - 1.1e-6 - was.lo_j * 1e-15);
        assert_true(f.hi_j <= was.hi_j + width * 0.0601 + 1.1e-6 + was.hi_j * 1e-15);
        assert_false(ipw_figure_round(&f));
    }
}

static void shares_have_two_digits(void **state)
{
    static const double cases[][2] = {{0.1467, 0.15}, {0.0514, 0.051}, {0.00421, 0.0042},
                                      {0.99, 0.99},   {1, 1},          {0.00004, 0},
                                      {0.14499, 0.14}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_figure f = {.known = true, .coverage = 1.0 / 3, .split_fraction = cases[i][0]};

        ipw_figure_round(&f);
        assert_true(f.split_fraction == cases[i][1] && f.coverage == 0.333333);
        assert_false(ipw_figure_round(&f));
    }
}

static void uncertainties_have_two_digits_rounded_up(void **state)
{
    static const double cases[][2] = {{12.301, 13}, {0.12, 0.12}, {0.1201, 0.13},
                                      {99.2, 100},  {4e-7, 1e-6}, {0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_figure f = {.known = true, .j = 500, .u_j = cases[i][0]};

        ipw_figure_round(&f);
        assert_true(fabs(f.u_j - cases[i][1]) < 1e-9);
        assert_false(ipw_figure_round(&f));
    }
}

static void watts_of_extremes_have_six_digits(void **state)
{
    static const struct {
        double w, mean, least, peak;
    } cases[] = {
        {139.99344434661904, 139.993444, 139.993, 139.994},
        {20.3194234728895, 20.319423, 20.3194, 20.3195},
        {0.123456789, 0.123457, 0.123456, 0.123457},
        {0.000012349, 0.000012, 0.000012, 0.000013},
        {12345.678, 12345.678, 12345.6, 12345.7},
        {1234567.8, 1234567.8, 1234567, 1234568},
        {-1.23456789, -1.234568, -1.23457, -1.23456},
        {99.99999, 99.99999, 99.9999, 100},
        {80, 80, 80, 80},
        {0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(ipw_figure_mean_w(cases[i].w) == cases[i].mean);
        assert_true(ipw_figure_least_w(cases[i].w) == cases[i].least);
        assert_true(ipw_figure_peak_w(cases[i].w) == cases[i].peak);
        assert_true(ipw_figure_least_w(cases[i].least) == cases[i].least);
        assert_true(ipw_figure_peak_w(cases[i].peak) == cases[i].peak);
    }
    assert_true(isnan(ipw_figure_mean_w(NAN)) && isnan(ipw_figure_peak_w(NAN)));
}

static void a_figure_of_nothing_is_left_alone(void **state)
{
    struct ipw_figure f = {.reason = "no_sensor", .split_fraction = 0.12345};
    (void)state;
    assert_false(ipw_figure_round(&f));
    assert_true(f.split_fraction == 0.12345);
}

static void reasons_by_their_text(void **state)
{
    (void)state;
    assert_int_equal(ipw_reason_of("no_sensor"), IPW_REASON_NO_SENSOR);
    assert_int_equal(ipw_reason_of("permission"), IPW_REASON_PERMISSION);
    assert_int_equal(ipw_reason_of("switched_off"), IPW_REASON_SWITCHED_OFF);
    assert_int_equal(ipw_reason_of("remote"), IPW_REASON_REMOTE);
    assert_int_equal(ipw_reason_of("suspended"), IPW_REASON_SUSPENDED);
    assert_int_equal(ipw_reason_of("gap_too_long"), IPW_REASON_GAP_TOO_LONG);
    assert_int_equal(ipw_reason_of("gpu_lost"), IPW_REASON_OTHER);
    assert_int_equal(ipw_reason_of(""), IPW_REASON_OTHER);
    assert_int_equal(ipw_reason_of(NULL), IPW_REASON_OTHER);
}

UNIT(figure)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_whole_microjoules),
        cmocka_unit_test(bounds_move_outward),
        cmocka_unit_test(rounded_bounds_keep_the_promise_of_the_provenance),
        cmocka_unit_test(random_bounds_stay_around_the_figure),
        cmocka_unit_test(shares_have_two_digits),
        cmocka_unit_test(uncertainties_have_two_digits_rounded_up),
        cmocka_unit_test(watts_of_extremes_have_six_digits),
        cmocka_unit_test(a_figure_of_nothing_is_left_alone),
        cmocka_unit_test(reasons_by_their_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
