/* Questions that a ledger has no number for, and events that are none: ledger/ledger.h. */
#include "ledger/ledger.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define CPU IPW_DOMAIN_CPU
#define GPU IPW_DOMAIN_GPU

/* Two packages of 100 W and 50 W, read every 100 ms from 1 s to 11 s. */
static struct ipw_ledger *two(void)
{
    struct ipw_channel c[2] = {test_counter("package-0", CPU, 0, 400),
                               test_counter("package-1", CPU, 0, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);

    for (int i = 0; i <= 100; i++) {
        int64_t v[2] = {J(10 * i), J(5 * i)};
        ipw_ledger_row(l, 0, 2, S(1 + i * 0.1), v);
    }
    return l;
}

static void test_names(void **state)
{
    struct ipw_ledger *l = two();

    (void)state;
    assert_string_equal(ipw_share_name(IPW_SHARE_EQUAL), "equal");
    assert_string_equal(ipw_share_name(IPW_SHARE_PHASE), "phase");
    assert_string_equal(ipw_share_name((enum ipw_share)99), "none");
    assert_int_equal(ipw_ledger_devices(l, CPU), 2);
    assert_int_equal(ipw_ledger_devices(l, GPU), 0);
    assert_string_equal(ipw_ledger_device_name(l, CPU, 0), "package-0");
    assert_string_equal(ipw_ledger_device_name(l, CPU, 1), "package-1");
    ipw_ledger_free(l);
}

/* A query that the ledger does not know has no energy: null with a reason, in every form of the
 * question. */
static void test_unknown_query(void **state)
{
    struct ipw_ledger *l = two();
    const int64_t t[] = {S(3), S(4), S(5)};
    struct ipw_figure f[2];
    struct ipw_account a;

    (void)state;
    ipw_ledger_query_begin(l, S(3));
    ipw_ledger_query_end(l, 0, S(5));
    assert_unknown(ipw_ledger_figure(l, ask_query(7, CPU, S(3), S(5))), "not_covered");
    ipw_ledger_figures(l, ask_windows(7, CPU), t, 2, f);
    assert_unknown(f[0], "not_covered");
    assert_unknown(f[1], "not_covered");
    a = ipw_ledger_account(l, ask_query(7, CPU, S(3), S(5)));
    assert_unknown(a.attributed, "not_covered");
    assert_true(isnan(a.exclusive_j) && isnan(a.marginal_j));
    assert_unknown(ipw_ledger_figure(l, ask_query(7, GPU, S(3), S(5))), "no_sensor");
    ipw_ledger_figures(l, ask_windows(7, GPU), t, 2, f);
    assert_unknown(f[0], "no_sensor");
    assert_unknown(ipw_ledger_figure(l, ask_device(0, ask_query(7, CPU, S(3), S(5)))),
                   "not_covered");
    assert_unknown(ipw_ledger_figure(l, ask_device(0, ask_span(7, CPU, S(3), S(5)))),
                   "not_covered");
    a = ipw_ledger_account(l, ask_device(0, ask_query(7, CPU, S(3), S(5))));
    assert_true(isnan(a.exclusive_j) && isnan(a.marginal_j));
    ipw_ledger_figures(l, ask_device(0, ask_windows(7, CPU)), t, 2, f);
    assert_unknown(f[1], "not_covered");
    assert_unknown(ipw_ledger_figure(l, ask_query(-1, CPU, S(3), S(5))), "not_covered");
    f[0] = (struct ipw_figure){.reason = "as it was"};
    ipw_ledger_figures(l, ask_device(1, ask_windows(-1, CPU)), t, 0,
                       f); /* no window: nothing is written */
    assert_string_equal(f[0].reason, "as it was");
    ipw_ledger_free(l);
}

/* The baseline is taken off each device's own; one that was not told makes the sum unknown. */
static void test_accounts_of_devices(void **state)
{
    struct ipw_ledger *l = two();
    struct ipw_account a;

    (void)state;
    ipw_ledger_set_device_baseline(l, CPU, 0, 30);
    ipw_ledger_query_begin(l, S(3));
    ipw_ledger_query_end(l, 0, S(5));
    a = ipw_ledger_account(l, ask_query(0, CPU, S(3), S(5)));
    assert_near(a.exclusive_j, 300, 1e-5);
    assert_true(isnan(a.marginal_j));
    assert_near(ipw_ledger_account(l, ask_device(0, ask_query(0, CPU, S(3), S(5)))).marginal_j, 140,
                1e-5);
    ipw_ledger_free(l);
}

/* What was forgotten is not answered with a number; the newer windows are as before. */
static void test_forgotten(void **state)
{
    struct ipw_ledger *l = two();
    const int64_t t[] = {S(2), S(3), S(4)};
    struct ipw_figure f[2];

    (void)state;
    for (int i = 0; i < 4; i++) {
        ipw_ledger_query_begin(l, S(2 + 2 * i));
        ipw_ledger_query_end(l, i, S(3 + 2 * i));
    }
    for (int i = 0; i < 3; i++) ipw_ledger_forget(l, i);
    assert_unknown(ipw_ledger_figure(l, ask_query(0, CPU, S(2), S(3))), "not_covered");
    assert_false(ipw_ledger_figure(l, ask_query(0, CPU, S(2), S(3))).known);
    assert_false(ipw_ledger_figure(l, ask_idle(CPU, S(2.5), S(3))).known);
    ipw_ledger_figures(l, ask_windows(0, CPU), t, 2, f);
    assert_false(f[0].known || f[1].known);
    assert_figure(ipw_ledger_figure(l, ask_query(3, CPU, S(8), S(9))), 150, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_total(CPU, S(1), S(11))), 1500, IPW_PROV_MEASURED);
    ipw_ledger_free(l);
}

/* Phases of an unknown query, that end before they begin, or of no kind, are passed
 * over; ones beyond the query's own time are cut to it. */
static void test_events_that_are_none(void **state)
{
    for (int share = IPW_SHARE_EQUAL; share <= IPW_SHARE_PHASE; share++) {
        struct ipw_ledger *l = two();
        int64_t q;

        (void)state;
        ipw_ledger_set_share(l, (enum ipw_share)share);
        q = ipw_ledger_query_begin(l, S(3));
        tell_phase(l, 99, IPW_PHASE_DECODE, S(3), S(4));
        tell_phase(l, q, IPW_PHASE_DECODE, S(4), S(3));
        tell_phase(l, q, IPW_PHASE_COUNT, S(3), S(4));
        tell_phase(l, q, IPW_PHASE_PREFILL, S(4), S(4));
        tell_phase(l, q, IPW_PHASE_PREFILL, S(2), INT64_MAX);
        tell_phase(l, q, IPW_PHASE_PREFILL, S(3), INT64_MAX); /* told twice */
        tell_phase(l, q, IPW_PHASE_PREFILL, S(3), S(4));
        tell_phase(l, q, IPW_PHASE_DECODE, S(4), INT64_MAX);
        ipw_ledger_query_end(l, q, S(5));
        tell_phase(l, q, IPW_PHASE_TOOL, S(4.9), S(9)); /* after it left */
        ipw_ledger_close(l, S(11));
        assert_near(ipw_ledger_figure(l, ask_query(q, CPU, S(3), S(5))).j, 300, 1e-5);
        assert_near(ipw_ledger_figure(l, ask_idle(CPU, S(1), S(11))).j, 1200, 1e-5);
        ipw_ledger_free(l);
    }
}

/* Channels that no sum has are not watched, not lost, not read in another's place. */
static void test_channels_outside_sums(void **state)
{
    struct ipw_channel c[3] = {test_counter("package-0", CPU, 0, 400), test_gauge("temperature", 0),
                               test_counter("core", CPU, 0, 400)};
    struct ipw_ledger *l;

    (void)state;
    c[1].kind = IPW_CHANNEL_METRIC;
    c[1].in_sum = c[2].in_sum = false;
    l = ipw_ledger_new(c, 3);
    for (int i = 0; i <= 40; i++) {
        int64_t v[4] = {J(10 * i), 50, J(1), 0};
        ipw_ledger_row(l, 0, 4, S(1 + i * 0.1), v); /* one value more than there are channels */
    }
    for (size_t k = 1; k < 9; k++) {
        assert_int_equal(ipw_ledger_silence_ns(l, k), 0);
        assert_true(ipw_ledger_handed_over_ns(l, k) == INT64_MIN);
        ipw_ledger_lose(l, k, "gpu_lost");
    }
    ipw_ledger_break(l, "suspended");
    assert_figure(ipw_ledger_figure(l, ask_total(CPU, S(1), S(5))), 400, IPW_PROV_MEASURED);
    ipw_ledger_free(l);
}

/* The newest reading of all: a channel that is given up does not hold it back, unless there is no
 * other. */
static void test_read_up_to(void **state)
{
    struct ipw_channel c[2] = {test_counter("package-0", CPU, 0, 400),
                               test_counter("package-1", CPU, 0, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);

    (void)state;
    assert_true(ipw_ledger_read_ns(l) == INT64_MIN);
    for (int i = 0; i <= 100; i++) {
        int64_t v[2] = {J(10 * i), i < 30 ? J(5 * i) : IPW_NO_VALUE};
        ipw_ledger_row(l, 0, 2, S(1 + i * 0.1), v);
        if (i == 40) assert_int_equal(ipw_ledger_read_ns(l), S(3.9)); /* it may come back */
    }
    assert_int_equal(ipw_ledger_read_ns(l), S(11));
    ipw_ledger_free(l);
    l = ipw_ledger_new(c, 1);
    for (int i = 0; i <= 100; i++) {
        int64_t v = i < 30 ? J(5 * i) : IPW_NO_VALUE;
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
    }
    assert_int_equal(ipw_ledger_read_ns(l), S(3.9));
    ipw_ledger_free(l);
    l = ipw_ledger_new(c, 0);
    assert_true(ipw_ledger_read_ns(l) == INT64_MAX);
    ipw_ledger_free(l);
}

/* Power of a window of no length, outside the readings, or of no sensor: none, and no statistics of
 * it. */
static void test_no_power(void **state)
{
    struct ipw_ledger *l = two();
    struct ipw_power_stats stats;

    (void)state;
    assert_false(ipw_ledger_power(l,
                                  (struct ipw_ledger_question){IPW_LEDGER_ANY, CPU, IPW_LEDGER_ALL,
                                                               S(3), S(3), IPW_LEDGER_TOTAL},
                                  &stats));
    assert_false(ipw_ledger_power(l,
                                  (struct ipw_ledger_question){IPW_LEDGER_ANY, CPU, IPW_LEDGER_ALL,
                                                               S(30), S(31), IPW_LEDGER_TOTAL},
                                  &stats));
    assert_false(ipw_ledger_power(l,
                                  (struct ipw_ledger_question){IPW_LEDGER_ANY, GPU, IPW_LEDGER_ALL,
                                                               S(3), S(4), IPW_LEDGER_TOTAL},
                                  &stats));
    assert_true(isnan(stats.avg_w) && isnan(stats.median_w) && isnan(stats.min_w) &&
                isnan(stats.max_w));
    assert_true(ipw_ledger_power(l,
                                 (struct ipw_ledger_question){IPW_LEDGER_ANY, CPU, IPW_LEDGER_ALL,
                                                              S(3.02), S(11), IPW_LEDGER_TOTAL},
                                 &stats));
    assert_near(stats.avg_w, 150, 1e-3);
    assert_near(stats.median_w, 150, 1e-3);
    assert_near(stats.min_w, 150, 1e-3);
    assert_near(stats.max_w, 150, 1e-3);
    ipw_ledger_free(l);
}

/* The median power of a counter that is read after each step, each of some watts and seconds. */
static double median_of(const double (*steps)[2], size_t n)
{
    struct ipw_channel c = test_counter("package-0", CPU, 0, 900);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    struct ipw_power_stats stats;
    int64_t t = S(1), uj = 0;

    ipw_ledger_row(l, 0, 1, t, &uj);
    for (size_t i = 0; i < n; i++) {
        t += S(steps[i][1]);
        uj += (int64_t)(steps[i][0] * steps[i][1] * 1e6);
        ipw_ledger_row(l, 0, 1, t, &uj);
    }
    assert_true(ipw_ledger_power(l,
                                 (struct ipw_ledger_question){IPW_LEDGER_ANY, CPU, IPW_LEDGER_ALL,
                                                              S(1), t, IPW_LEDGER_TOTAL},
                                 &stats));
    ipw_ledger_free(l);
    return stats.median_w;
}

/* Time decides, not the number of steps; at exactly half of it the two neighbours' mean. */
static void test_median_power(void **state)
{
    (void)state;
    assert_near(median_of((const double[][2]){{70, 3}}, 1), 70, 1e-3);
    assert_near(median_of((const double[][2]){{30, 1}, {10, 1}, {20, 1}}, 3), 20, 1e-3);
    assert_near(median_of((const double[][2]){{30, 1}, {10, 1}}, 2), 20, 1e-3);
    assert_near(median_of((const double[][2]){{400, 9}, {10, 1}, {20, 1}, {30, 1}}, 4), 400, 1e-3);
    assert_near(median_of((const double[][2]){{10, 2}, {20, 1}, {50, 1}}, 3), 15, 1e-3);
}

/* Part of a query that is shorter than a gauge resolves has no figure of its own; the reading is
 * its estimate. */
static void test_below_resolution(void **state)
{
    struct ipw_channel c = test_gauge("gpu0", 700);
    struct ipw_ledger *l;
    struct ipw_figure f;

    (void)state;
    c.period_ns = S(0.1);
    l = ipw_ledger_new(&c, 1);
    for (int i = 0; i <= 100; i++) {
        int64_t v = 100000 + i % 2;
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
    }
    ipw_ledger_query_begin(l, S(3));
    ipw_ledger_query_begin(l, S(3));
    for (int i = 0; i < 2; i++) ipw_ledger_query_end(l, i, S(6));
    f = ipw_ledger_figure(l, ask_device(0, ask_span(0, GPU, S(4), S(4.1))));
    assert_false(f.known);
    assert_string_equal(f.reason, "below_resolution");
    assert_true(f.estimated);
    assert_near(f.estimate_j, 5, 1e-3);
    f = ipw_ledger_figure(l, ask_span(1, GPU, S(4), S(4.1)));
    assert_string_equal(f.reason, "below_resolution");
    f = ipw_ledger_figure(l, ask_span(-1, GPU, S(40), S(40.1)));
    assert_false(f.known); /* beyond the readings: no estimate by the gauge */
    assert_string_not_equal(f.reason, "below_resolution");
    f = ipw_ledger_figure(l, ask_device(0, ask_span(0, GPU, S(3), S(6))));
    assert_true(f.known && f.lo_j <= f.j && f.hi_j >= f.j);
    assert_near(f.j, 150, 1e-2);
    ipw_ledger_free(l);
}

UNIT(ledger_asked)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_unknown_query),
        cmocka_unit_test(test_accounts_of_devices),
        cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_events_that_are_none),
        cmocka_unit_test(test_channels_outside_sums),
        cmocka_unit_test(test_read_up_to),
        cmocka_unit_test(test_no_power),
        cmocka_unit_test(test_median_power),
        cmocka_unit_test(test_below_resolution),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
