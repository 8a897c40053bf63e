/* Steps of the wall clock and sleep: cases 29 and 30 of tests/cases.txt. */
#include "energy/clockwatch.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static struct ipw_anchor at(double mono, double wall, double boot)
{
    return (struct ipw_anchor){.mono_ns = S(mono), .wall_ns = S(wall), .boot_ns = S(boot)};
}

static void test_29_30(void **state)
{
    static const struct {
        double mono, wall, boot, step, slept;
    } looks[] = {
        {10, 1000, 10, 0, 0},       /* the first says nothing */
        {11, 1001, 11, 0, 0},       /* nothing moved */
        {12, 1002.0005, 12, 0, 0},  /* slewed by half a millisecond: that is its right */
        {13, 1001.0005, 13, -2, 0}, /* case 29: set back by two seconds */
        {14, 1002.0005, 14, 0, 0},
        {15, 1033.0005, 45, 0, 30}, /* case 30: slept for 30 s; the wall clock went on */
        {16, 1034.0005, 46, 0, 0},
        {17, 1045.0005, 57, 0, 10},
        {18, 1146.0005, 58, 100, 0}, /* set on */
        {19, 1200.0005, 69, 43, 10}, /* both at once */
    };
    struct ipw_clockwatch w = {0};

    (void)state;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct ipw_anchor now = at(looks[i].mono, looks[i].wall, looks[i].boot);
        struct ipw_clock_moves m;
        bool moved = ipw_clockwatch_look(&w, &now, &m);

        assert_int_equal(moved, looks[i].step != 0 || looks[i].slept != 0);
        assert_near((double)m.step_ns, looks[i].step * 1e9, 10);
        assert_near((double)m.suspend_ns, looks[i].slept * 1e9, 10);
        assert_int_equal(m.to_ns, S(looks[i].mono));
        if (i) assert_int_equal(m.from_ns, S(looks[i - 1].mono));
    }
}

static void test_take(void **state)
{
    struct ipw_anchor now = {0};

    (void)state;
    for (int i = 0; i < 1000 && !ipw_clockwatch_take(&now); i++) continue;
    assert_true(now.mono_ns > 0 && now.wall_ns > now.mono_ns && now.boot_ns > 0);
}

UNIT(clockwatch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_29_30),
        cmocka_unit_test(test_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
