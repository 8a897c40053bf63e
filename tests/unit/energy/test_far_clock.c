/* The clock of another machine: what round trips say of it. */
#include "energy/far_clock.h"

#include <stdlib.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static void unknown_without_a_round_trip(void **state)
{
    struct ipw_far_clock c = {0};
    int64_t here, half;

    (void)state;
    assert_false(ipw_far_clock_at(&c, S(5), &here, &half));
    assert_false(ipw_far_clock_add(&c, S(5), S(1), S(5) - 1)); /* an answer before the question */
    assert_false(ipw_far_clock_add(&c, S(5), -1, S(6)));
    assert_false(ipw_far_clock_add(&c, S(5), INT64_MAX, S(6)));
    assert_false(ipw_far_clock_at(&c, S(5), &here, &half));
    assert_true(ipw_far_clock_add(&c, S(5), S(1), S(6)));
    assert_false(ipw_far_clock_at(&c, -1, &here, &half));
    assert_false(ipw_far_clock_at(&c, INT64_MAX, &here, &half));
}

/* One bounds the offset by its length, several together by their overlap. */
static void round_trips_overlap(void **state)
{
    struct ipw_far_clock c = {0};
    int64_t here, half;

    (void)state;
    assert_true(ipw_far_clock_add(&c, S(100), S(10), S(100.4)));
    assert_true(ipw_far_clock_at(&c, S(10), &here, &half));
    assert_near((double)here / 1e9, 100.2, 1e-6);
    assert_near((double)half / 1e9, 0.2, 1e-6);
    /* An hour later it may have drifted by 200 ppm. */
    assert_true(ipw_far_clock_at(&c, S(3610), &here, &half));
    assert_near((double)half / 1e9, 0.2 + 3600 * 200e-6, 1e-6);
    assert_true(ipw_far_clock_add(&c, S(100.3), S(10), S(100.7))); /* the offset is 90.3 to 90.4 */
    assert_true(ipw_far_clock_at(&c, S(10), &here, &half));
    assert_true(half < S(0.11));
    assert_in_range(here, S(100.3) - 10, S(100.4) + 10);
    assert_int_equal(c.steps, 0);
}

/* A clock that was set: the newest round trip counts alone. */
static void contradiction(void **state)
{
    struct ipw_far_clock c = {0};
    int64_t here, half;

    (void)state;
    for (int i = 0; i < 40; i++) ipw_far_clock_add(&c, S(100 + i), S(10 + i), S(100.01 + i));
    ipw_far_clock_add(&c, S(141), S(1000), S(141.1));
    assert_int_equal(c.steps, 1);
    assert_true(ipw_far_clock_at(&c, S(1000), &here, &half));
    assert_near((double)here / 1e9, 141.05, 1e-6);
    assert_near((double)half / 1e9, 0.05, 1e-6);
}

UNIT(far_clock)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_without_a_round_trip),
        cmocka_unit_test(round_trips_overlap),
        cmocka_unit_test(contradiction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
