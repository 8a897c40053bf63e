/* The gate of counters: what is a step, what a glitch, and where a count begins anew. */
#include "energy/counter.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static struct ipw_channel board;
static struct ipw_counter counter;
static int64_t step, now_ns;

static void begin(int64_t modulus_uj, int64_t value)
{
    board = test_counter("c", IPW_DOMAIN_GPU, modulus_uj, 700);
    now_ns = S(10);
    ipw_counter_begin(&counter, now_ns, value);
}

static enum ipw_counter_taken take(double seconds, int64_t value)
{
    now_ns += S(seconds);
    return ipw_counter_take(&counter, &board, S(0.1), S(0.5), now_ns, value, &step);
}

static void test_steps_and_wraps(void **state)
{
    (void)state;
    begin(RANGE_61, RANGE_61 - 1000);
    assert_int_equal(take(0.1, 500), IPW_COUNTER_STEP);
    assert_int_equal(step, 1500);
    assert_int_equal(take(600, 50000), IPW_COUNTER_ANEW); /* it may have gone round */
    assert_int_equal(counter.broken, IPW_COUNTER_TOO_LONG);
}

/* 5 mJ less than before was 262,174 J in a page of telemetry. */
static void test_a_small_step_back_is_no_turn_of_the_register(void **state)
{
    (void)state;
    begin(RANGE_61, J(100));
    assert_int_equal(take(0.1, J(120)), IPW_COUNTER_STEP);
    assert_int_equal(take(0.1, J(120) - 5000), IPW_COUNTER_SUSPECT);
    assert_int_equal(step, 0);
    assert_int_equal(take(0.1, J(150)), IPW_COUNTER_STEP);
    assert_int_equal(step, J(30));
}

static void test_a_jump_that_stays_begins_a_count(void **state)
{
    (void)state;
    begin(0, J(100));
    assert_int_equal(take(0.1, J(1e6)), IPW_COUNTER_SUSPECT);
    assert_int_equal(take(0.1, J(1e6 + 20)), IPW_COUNTER_ANEW);
    assert_string_equal(ipw_counter_reason(counter.broken), "implausible_step");
    assert_int_equal(counter.begin_raw, J(1e6));
    assert_int_equal(step, J(20));
    assert_int_equal(take(0.1, J(10)), IPW_COUNTER_SUSPECT);
    assert_int_equal(take(0.1, J(30)), IPW_COUNTER_ANEW);
    assert_string_equal(ipw_counter_reason(counter.broken), "counter_reset");
}

/* After a silence of 1.5 s at 200 W: it catches up, or lacks what it did not count. */
static void test_a_lost_silence(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        int64_t uj = J(100);

        begin(0, uj);
        for (int i = 0; i < 20; i++) assert_int_equal(take(0.1, uj += J(20)), IPW_COUNTER_STEP);
        for (int i = 0; i < 15; i++) assert_int_equal(take(0.1, uj), IPW_COUNTER_STEP);
        uj += lost ? J(20) : J(320);
        assert_int_equal(take(0.1, uj), lost ? IPW_COUNTER_ANEW : IPW_COUNTER_STEP);
        assert_int_equal(step, lost ? 0 : J(320));
        if (lost) assert_string_equal(ipw_counter_reason(counter.broken), "stuck");
        assert_int_equal(take(0.1, uj + J(20)), IPW_COUNTER_STEP);
    }
}

UNIT(counter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_and_wraps),
        cmocka_unit_test(test_a_small_step_back_is_no_turn_of_the_register),
        cmocka_unit_test(test_a_jump_that_stays_begins_a_count),
        cmocka_unit_test(test_a_lost_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
