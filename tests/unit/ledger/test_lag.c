/* How late a device's power follows its phases: ledger/lag.h. */
#include <stdlib.h>

#include "ledger/lag.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* Steps of 100 ms of a device that draws 80 W and 430 W by turns of half a second and follows
 * `late` seconds after; `noise` of each step. */
static void learn(struct ipw_lag *lag, double late, double noise, int steps)
{
    struct ipw_phase_line line = {0};
    uint64_t seed = 5;

    ipw_lag_init(lag, 700);
    lag->learns = true;
    for (int i = 0; i < steps / 5; i += 2)
        ipw_phase_line_add(&line, IPW_PHASE_DECODE, S(100 + 0.513 * i), S(100 + 0.513 * (i + 1)),
                           1);
    for (int i = 0; i < steps; i++) {
        double t0 = 100.03 + 0.1 * i, t1 = t0 + 0.1, on = 0;

        for (int k = 0; k < steps / 5; k += 2) {
            double from = 100 + 0.513 * k + late, to = 100 + 0.513 * (k + 1) + late;
            from = from > t0 ? from : t0;
            to = to < t1 ? to : t1;
            if (to > from) on += to - from;
        }
        ipw_lag_add(lag, &line, S(t0), S(t1),
                    J((80 * 0.1 + 350 * on) * (1 + noise * test_uniform(&seed, -1, 1))));
    }
    ipw_lag_solve(lag);
    ipw_phase_line_release(&line);
}

static void test_lag_is_found(void **state)
{
    static const double lags[] = {0.002, 0.0045, 0.006, 0.011};
    struct ipw_lag lag;

    (void)state;
    for (size_t i = 0; i < sizeof lags / sizeof *lags; i++) {
        learn(&lag, lags[i], 0.02, 400);
        assert_near((double)lag.lag_ns / 1e9, lags[i], 0.0008);
        assert_int_equal(lag.doubt_ns, 0);
        assert_near(ipw_phase_fit_single_w(ipw_lag_fit(&lag), IPW_PHASE_DECODE), 350, 5);
    }
}

/* None there, too few steps, and steps that say nothing: no lag is removed. */
static void test_no_lag_is_invented(void **state)
{
    struct ipw_lag lag;

    (void)state;
    learn(&lag, 0, 0.02, 400);
    assert_true(lag.lag_ns < S(0.001));
    learn(&lag, 0.006, 0.02, 20);
    assert_int_equal(lag.lag_ns, 0);
    learn(&lag, 0.006, 0.9, 60);
    assert_true(lag.lag_ns <= IPW_LAG_MOST_NS);
}

/* No device settles for 35 ms: its values are old, which is told as doubt. */
static void test_old_values_are_doubt(void **state)
{
    struct ipw_lag lag;

    (void)state;
    learn(&lag, 0.035, 0.02, 400);
    assert_int_equal(lag.lag_ns, 0);
    assert_true(lag.doubt_ns >= S(0.035) && lag.doubt_ns < S(0.05));
}

UNIT(lag)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lag_is_found),
        cmocka_unit_test(test_no_lag_is_invented),
        cmocka_unit_test(test_old_values_are_doubt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
