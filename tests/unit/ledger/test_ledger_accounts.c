/* What a query is charged, of each device and above the idle baseline. */
#include "ledger/ledger.h"

#include <stdlib.h>

#include "sim/ask.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU

static struct sim_sensor meter(const struct sim_curve *curve, enum ipw_domain domain)
{
    struct sim_sensor s = {.curve = curve, .seed = 1};

    s.channel = test_counter("meter", domain, 0, 1000);
    return s;
}

/* Case 39: what a query is due below the baseline is below 0, and of each device by itself. */
static void test_39_net_is_never_clamped(void **state)
{
    struct sim_curve low = {0}, high = {0};
    struct sim_sensor s[2];
    struct ipw_channel c[2];
    struct ipw_ledger *l;
    int64_t a, b;
    struct ipw_account x, y, one[2];

    (void)state;
    sim_curve_add(&low, 0, 60, 0);
    sim_curve_add(&high, 0, 300, 0);
    s[0] = meter(&low, GPU);
    s[1] = meter(&high, GPU);
    c[0] = s[0].channel;
    c[1] = s[1].channel;
    l = ipw_ledger_new(c, 2);
    ipw_ledger_set_device_baseline(l, GPU, 0, 100);
    ipw_ledger_set_device_baseline(l, GPU, 1, 100);
    a = ipw_ledger_query_begin(l, S(2));
    b = ipw_ledger_query_begin(l, S(4));
    ipw_ledger_query_end(l, a, S(6));
    ipw_ledger_query_end(l, b, S(8));
    for (int64_t i = 0; i <= 180; i++) {
        double t = 1 + (double)i * 0.05;
        int64_t v[2] = {sim_sensor_read(&s[0], t), sim_sensor_read(&s[1], t)};

        ipw_ledger_row(l, 0, 2, S(t), v);
    }
    x = ipw_ledger_account(l, ask_query(a, GPU, S(2), S(6)));
    y = ipw_ledger_account(l, ask_query(b, GPU, S(4), S(8)));
    for (size_t i = 0; i < 2; i++) {
        one[i] = ipw_ledger_account(l, ask_device(i, ask_query(a, GPU, S(2), S(6))));
        /* Two seconds alone and two shared: three of its own, at (60 - 100) and (300 - 100) W. */
        assert_near(one[i].marginal_j, i ? 600 : -120, 1e-3);
        assert_near(one[i].exclusive_j, i ? 600 : 120, 1e-3);
    }
    assert_near(x.marginal_j, 480, 1e-3);
    assert_int_equal(llround(x.marginal_j * 1e6),
                     llround(one[0].marginal_j * 1e6) + llround(one[1].marginal_j * 1e6));
    assert_int_equal(llround(x.exclusive_j * 1e6),
                     llround(one[0].exclusive_j * 1e6) + llround(one[1].exclusive_j * 1e6));
    /* Net and the baseline's part are the figure again. */
    assert_near(x.marginal_j + 200 * 3, x.attributed.j, 1e-5);
    assert_near(y.marginal_j + 200 * 3, y.attributed.j, 1e-5);
    ipw_ledger_free(l);
    sim_curve_release(&low);
    sim_curve_release(&high);
}

/* Of a power that changes, alone and with that of a second board: what was drawn for half of the
 * time is the median, whatever the readings' distances. */
static void test_power_statistics(void **state)
{
    struct sim_curve curve = {0}, steady = {0};
    struct sim_sensor s[2];
    struct ipw_power_stats p;

    (void)state;
    sim_curve_add(&curve, 0, 100, 0);
    sim_curve_add(&curve, 4, 400, 0); /* 1 s of 400 W, then 2 s of 300 W, in [2, 9] */
    sim_curve_add(&curve, 5, 300, 0);
    sim_curve_add(&curve, 7, 100, 0);
    sim_curve_add(&steady, 0, 50, 0);
    s[0] = meter(&curve, GPU);
    s[1] = meter(&steady, GPU);
    for (size_t n = 1; n <= 2; n++) {
        struct ipw_channel c[2] = {s[0].channel, s[1].channel};
        struct ipw_ledger *l = ipw_ledger_new(c, n);
        double more = n == 2 ? 50 : 0;

        for (int64_t i = 0; i <= 180; i++) {
            double t = 1 + (double)i * 0.05;
            int64_t v[2] = {sim_sensor_read(&s[0], t), sim_sensor_read(&s[1], t)};

            ipw_ledger_row(l, 0, n, S(t), v);
        }
        assert_true(
            ipw_ledger_power(l,
                             (struct ipw_ledger_question){IPW_LEDGER_ANY, GPU, IPW_LEDGER_ALL, S(2),
                                                          S(9), IPW_LEDGER_TOTAL},
                             &p));
        assert_near(p.avg_w, (4 * 100 + 400 + 2 * 300) / 7.0 + more, 0.1);
        assert_near(p.median_w, 100 + more, 0.1);
        assert_near(p.min_w, 100 + more, 0.1);
        assert_near(p.max_w, 400 + more, 0.1);
        assert_true(
            ipw_ledger_power(l,
                             (struct ipw_ledger_question){IPW_LEDGER_ANY, GPU, IPW_LEDGER_ALL, S(4),
                                                          S(7), IPW_LEDGER_TOTAL},
                             &p));
        assert_near(p.median_w, 300 + more, 0.1);
        assert_near(p.min_w, 300 + more, 0.1);
        assert_false(
            ipw_ledger_power(l,
                             (struct ipw_ledger_question){IPW_LEDGER_ANY, GPU, IPW_LEDGER_ALL,
                                                          S(20), S(21), IPW_LEDGER_TOTAL},
                             &p));
        assert_true(isnan(p.avg_w) && isnan(p.median_w) && isnan(p.min_w) && isnan(p.max_w));
        ipw_ledger_free(l);
    }
    sim_curve_release(&curve);
    sim_curve_release(&steady);
}

UNIT(ledger_accounts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_39_net_is_never_clamped),
        cmocka_unit_test(test_power_statistics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
