/* The controller against made-up servers, step by step: no clock, no network. */
#include "llm_support.h"

#include "base/clock.h"
#include "llm/adaptive.h"
#include "unit/unit.h"

/* A server that answers 429 above `room` requests and whose time to first token grows with what is
 * in flight above `fast`.  Closed loop: rounds of `limit` requests. */
struct model {
    int room, fast;
    int64_t now_ns;
    int refused, changes, highest;
};

static void play(struct ipw_adaptive *a, struct model *m, int rounds)
{
    for (int r = 0; r < rounds; r++) {
        int n = ipw_adaptive_limit(a);
        int64_t sent_ns = m->now_ns + 1;

        m->now_ns += IPW_NS_PER_S;
        if (n > m->highest) m->highest = n;
        for (int i = 0; i < n; i++) {
            int64_t ttft_ns = 100 * IPW_NS_PER_MS;
            struct ipw_adaptive_sample s = {.sent_ns = sent_ns, .t_ns = m->now_ns + i};
            struct ipw_adaptive_change change;

            if (m->fast && n > m->fast) ttft_ns = ttft_ns * n / m->fast;
            s.in_flight = ipw_adaptive_limit(a);
            s.seen = m->room && i >= m->room ? IPW_ADAPTIVE_BUSY : IPW_ADAPTIVE_GOOD;
            if (s.seen == IPW_ADAPTIVE_GOOD) s.ttft_ns = ttft_ns;
            m->refused += s.seen == IPW_ADAPTIVE_BUSY;
            if (!ipw_adaptive_sample(a, &s, &change)) continue;
            m->changes++;
            assert_int_equal(change.to, ipw_adaptive_limit(a));
            assert_int_not_equal(change.from, change.to);
            assert_non_null(change.reason);
        }
    }
}

static void grows_to_the_most(void **state)
{
    struct ipw_adaptive a;
    struct model m = {0};

    (void)state;
    ipw_adaptive_init(&a, 1, 64);
    play(&a, &m, 6);
    assert_int_equal(ipw_adaptive_limit(&a), 64); /* doubled each round */
    play(&a, &m, 100);
    assert_int_equal(ipw_adaptive_limit(&a), 64);
}

static void settles_below_a_fixed_limit(void **state)
{
    struct ipw_adaptive a;
    struct model m = {.room = 10};
    int early;

    (void)state;
    ipw_adaptive_init(&a, 1, 256);
    play(&a, &m, 60);
    early = m.refused;
    assert_true(early > 0 && early < 30);
    assert_true(ipw_adaptive_limit(&a) >= 7 && ipw_adaptive_limit(&a) <= 12);
    m.refused = 0;
    play(&a, &m, 500);
    assert_true(m.refused < 25); /* of 5,000: a probe now and then, rarer each time */
    assert_true(ipw_adaptive_limit(&a) >= 7 && ipw_adaptive_limit(&a) <= 12);
}

static void rising_times_are_too_much(void **state)
{
    struct ipw_adaptive a;
    struct model m = {.fast = 16};

    (void)state;
    ipw_adaptive_init(&a, 1, 4096);
    play(&a, &m, 400);
    assert_true(m.highest <= 256);
    assert_true(ipw_adaptive_limit(&a) >= 16 && ipw_adaptive_limit(&a) <= 64);
}

static void failures_of_other_kinds_change_nothing(void **state)
{
    struct ipw_adaptive a;
    struct ipw_adaptive_change change;
    struct ipw_adaptive_sample s = {
        .seen = IPW_ADAPTIVE_OTHER, .sent_ns = 1, .t_ns = 2, .in_flight = 8};

    (void)state;
    ipw_adaptive_init(&a, 8, 64);
    for (int i = 0; i < 1000; i++) assert_false(ipw_adaptive_sample(&a, &s, &change));
    assert_int_equal(ipw_adaptive_limit(&a), 8);
}

static void one_burst_is_one_sign(void **state)
{
    struct ipw_adaptive a;
    struct ipw_adaptive_change change;
    int changes = 0;

    (void)state;
    ipw_adaptive_init(&a, 100, 100);
    for (int i = 0; i < 50; i++) {
        struct ipw_adaptive_sample s = {
            .seen = IPW_ADAPTIVE_BUSY, .sent_ns = 1, .t_ns = 10 + i, .in_flight = 100};
        changes += ipw_adaptive_sample(&a, &s, &change);
    }
    assert_int_equal(changes, 1);
    assert_int_equal(ipw_adaptive_limit(&a), 70);
    assert_string_equal(change.reason, "429");
}

static void an_unused_limit_does_not_grow(void **state)
{
    struct ipw_adaptive a;
    struct ipw_adaptive_change change;

    (void)state;
    ipw_adaptive_init(&a, 10, 100);
    for (int i = 1; i < 1000; i++) {
        struct ipw_adaptive_sample s = {.sent_ns = i, .t_ns = i + 1, .in_flight = 3};
        assert_false(ipw_adaptive_sample(&a, &s, &change));
    }
    ipw_adaptive_init(&a, 0, 0);
    assert_int_equal(ipw_adaptive_limit(&a), 1);
    for (int i = 1; i < 100; i++) { /* never below one, never above the most */
        struct ipw_adaptive_sample s = {.seen = i % 2 ? IPW_ADAPTIVE_BUSY : IPW_ADAPTIVE_GOOD,
                                        .sent_ns = 10 * i,
                                        .t_ns = 10 * i + 1,
                                        .in_flight = 1};
        ipw_adaptive_sample(&a, &s, &change);
        assert_int_equal(ipw_adaptive_limit(&a), 1);
    }
}

UNIT(adaptive)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_to_the_most),
        cmocka_unit_test(settles_below_a_fixed_limit),
        cmocka_unit_test(rising_times_are_too_much),
        cmocka_unit_test(failures_of_other_kinds_change_nothing),
        cmocka_unit_test(one_burst_is_one_sign),
        cmocka_unit_test(an_unused_limit_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
