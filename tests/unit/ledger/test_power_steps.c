/* The median of power over time: ledger/power_steps.h. */
#include "ledger/power_steps.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static double median(const struct ipw_power_step *steps, size_t n)
{
    struct ipw_power_steps s = {0};
    double w;

    for (size_t i = 0; i < n; i++) ipw_power_steps_add(&s, steps[i].w, steps[i].seconds);
    w = ipw_power_steps_median(&s);
    ipw_power_steps_release(&s);
    return w;
}

/* Time decides, not the number of steps; at exactly half of it the two neighbours' mean. */
static void test_median(void **state)
{
    (void)state;
    assert_near(median((struct ipw_power_step[]){{70, 3}}, 1), 70, 0);
    assert_near(median((struct ipw_power_step[]){{30, 1}, {10, 1}, {20, 1}}, 3), 20, 0);
    assert_near(median((struct ipw_power_step[]){{30, 1}, {10, 1}}, 2), 20, 0);
    assert_near(median((struct ipw_power_step[]){{400, 9}, {10, 1}, {20, 1}, {30, 1}}, 4), 400, 0);
    assert_near(median((struct ipw_power_step[]){{10, 2}, {20, 1}, {50, 1}}, 3), 15, 0);
    /* Steps of no length say nothing of the time; of them alone the most is as good as any. */
    assert_near(median((struct ipw_power_step[]){{10, 0}, {20, 0}}, 2), 15, 0);
    assert_near(median((struct ipw_power_step[]){{10, 0}}, 1), 10, 0);
}

UNIT(power_steps)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_median)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
