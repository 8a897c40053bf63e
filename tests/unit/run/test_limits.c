/* Spending: what events spend, what passes a limit, and when nothing may be begun any more. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "run/limits.h"
#include "unit/unit.h"

#define S(s) ((int64_t)((s)*1e9))

static void lm_start(struct ipw_spending *m, int attempt)
{
    struct ipw_event e = {.kind = IPW_EV_LM_START, .t_ns = S(1), .lm = {.attempt = attempt}};

    ipw_spending_event(m, &e, 0);
}

static void lm_end(struct ipw_spending *m, double t, int64_t in, int64_t out, double usd)
{
    struct ipw_event e = {
        .kind = IPW_EV_LM_END,
        .t_ns = S(t),
        .lm = {.outcome = IPW_LM_OK, .input_tokens = in, .output_tokens = out, .chunks = 7}};

    ipw_spending_event(m, &e, usd);
}

static void retry(struct ipw_spending *m, double t, double wait)
{
    struct ipw_event e = {.kind = IPW_EV_LM_END,
                          .t_ns = S(t),
                          .lm = {.outcome = IPW_LM_HTTP_ERROR,
                                 .will_retry = true,
                                 .retry_wait_ns = S(wait),
                                 .input_tokens = -1,
                                 .output_tokens = -1}};

    ipw_spending_event(m, &e, NAN);
    ipw_spending_wait(m, e.t_ns, e.t_ns + e.lm.retry_wait_ns);
}

static void test_tokens_and_turns(void **state)
{
    const struct ipw_limits l = {.tokens = 100, .turns = 2};
    struct ipw_spending m;
    char text[160];

    (void)state;
    ipw_spending_start(&m, S(0));
    assert_int_equal(ipw_spending_used_up(&m, &l, S(1)), IPW_LIMIT_NONE);
    lm_start(&m, 1);
    lm_start(&m, 2); /* another attempt of the same call */
    assert_int_equal(m.turns, 1);
    lm_end(&m, 2, 60, 40, 0);
    /* All of it used, none of it passed: what was begun was allowed, the next thing is not. */
    assert_int_equal(ipw_spending_passed(&m, &l, S(2)), IPW_LIMIT_NONE);
    assert_int_equal(ipw_spending_used_up(&m, &l, S(2)), IPW_LIMIT_TOKENS);
    lm_end(&m, 3, 1, 0, 0);
    assert_int_equal(ipw_spending_passed(&m, &l, S(3)), IPW_LIMIT_TOKENS);
    ipw_spending_describe(text, sizeof text, &m, &l, IPW_LIMIT_TOKENS, false, S(3));
    assert_string_equal(text, "--token-limit 100: 101 used");
    ipw_spending_describe(text, sizeof text, &m, &l, IPW_LIMIT_TOKENS, true, S(3));
    assert_string_equal(text, "--run-token-limit 100: 101 used");
    ipw_spending_start(&m, S(0));
    lm_start(&m, 1);
    assert_int_equal(ipw_spending_used_up(&m, &l, S(2)), IPW_LIMIT_NONE);
    lm_start(&m, 1);
    assert_int_equal(ipw_spending_used_up(&m, &l, S(2)), IPW_LIMIT_TURNS);
    assert_int_equal(ipw_spending_passed(&m, &l, S(2)), IPW_LIMIT_NONE);
}

static void test_untold_tokens_are_counted_by_events(void **state)
{
    const struct ipw_limits l = {.tokens = 10};
    struct ipw_spending m;

    (void)state;
    ipw_spending_start(&m, 0);
    lm_end(&m, 1, -1, -1, 0);
    assert_true(m.guessed);
    assert_int_equal(m.tokens, 7);
    lm_end(&m, 2, -1, -1, 0);
    assert_int_equal(ipw_spending_passed(&m, &l, S(2)), IPW_LIMIT_TOKENS);
}

static void test_time(void **state)
{
    const struct ipw_limits l = {.wall_ns = S(100), .working_ns = S(10)};
    const struct ipw_limits wall = {.wall_ns = S(100)};
    struct ipw_spending m;

    (void)state;
    ipw_spending_start(&m, S(1000));
    assert_true(ipw_spending_working_ns(&m, S(1009)) == S(9));
    retry(&m, 1009, 20);
    /* While it waits the clock of its work stands still. */
    assert_true(ipw_spending_working_ns(&m, S(1019)) == S(9));
    assert_int_equal(ipw_spending_passed(&m, &l, S(1029)), IPW_LIMIT_NONE);
    assert_true(ipw_spending_working_ns(&m, S(1029.5)) == S(9.5));
    retry(&m, 1029.5, 10); /* two branches wait: */
    retry(&m, 1034.5, 10); /* the overlap counts once */
    assert_true(ipw_spending_working_ns(&m, S(1044.5)) == S(9.5));
    assert_int_equal(ipw_spending_passed(&m, &l, S(1045)), IPW_LIMIT_NONE);
    assert_int_equal(ipw_spending_used_up(&m, &l, S(1045)), IPW_LIMIT_WORKING);
    assert_int_equal(ipw_spending_passed(&m, &l, S(1045.1)), IPW_LIMIT_WORKING);
    retry(&m, 1040, 1); /* wholly inside another wait */
    assert_true(ipw_spending_working_ns(&m, S(1045)) == S(10));
    ipw_spending_wait_over(&m, S(1060)); /* none is under way */
    retry(&m, 1060, 10);
    ipw_spending_wait_over(&m, S(1062));
    assert_true(ipw_spending_working_ns(&m, S(1062)) == S(25));
    assert_true(ipw_spending_working_ns(&m, S(1063)) == S(26));
    assert_int_equal(ipw_spending_passed(&m, &wall, S(1100)), IPW_LIMIT_NONE);
    assert_int_equal(ipw_spending_passed(&m, &wall, S(1100.1)), IPW_LIMIT_TIME);
}

static void test_cost(void **state)
{
    const struct ipw_limits l = {.cost_usd = 1}, none = {0};
    struct ipw_spending m;
    char text[160];

    (void)state;
    ipw_spending_start(&m, 0);
    lm_end(&m, 1, 1, 1, 0.75);
    retry(&m, 2, 1); /* an attempt that failed and told nothing costs nothing known */
    assert_int_equal(ipw_spending_used_up(&m, &l, S(2)), IPW_LIMIT_NONE);
    lm_end(&m, 1, 1, 1, 0.5);
    assert_int_equal(ipw_spending_passed(&m, &l, S(2)), IPW_LIMIT_COST);
    ipw_spending_describe(text, sizeof text, &m, &l, IPW_LIMIT_COST, false, S(2));
    assert_string_equal(text, "--cost-limit $1: $1.25 used");
    ipw_spending_start(&m, 0);
    lm_end(&m, 1, 1, 1, NAN);
    assert_int_equal(ipw_spending_passed(&m, &none, S(2)), IPW_LIMIT_NONE);
    assert_int_equal(ipw_spending_passed(&m, &l, S(2)), IPW_LIMIT_COST);
}

static void test_energy(void **state)
{
    const struct ipw_limits l = {.energy_j = 2000};
    struct ipw_spending m;

    (void)state;
    ipw_spending_start(&m, 0);
    assert_int_equal(ipw_spending_used_up(&m, &l, S(2)), IPW_LIMIT_NONE); /* not known yet */
    m.energy_j = 2000;
    assert_int_equal(ipw_spending_passed(&m, &l, S(2)), IPW_LIMIT_NONE);
    assert_int_equal(ipw_spending_used_up(&m, &l, S(2)), IPW_LIMIT_ENERGY);
    m.energy_j = 2001;
    assert_int_equal(ipw_spending_passed(&m, &l, S(2)), IPW_LIMIT_ENERGY);
}

static void test_written(void **state)
{
    struct ipw_limit_options o = {.query = {.tokens = 5, .energy_j = 2000, .wall_ns = S(2)},
                                  .run = {.cost_usd = 0.5}};
    struct ipw_buf out = IPW_BUF(1000);
    struct ipw_jw w;

    (void)state;
    ipw_jw_init(&w, &out);
    ipw_limits_write(&w, &o);
    assert_string_equal(ipw_buf_str(&out),
                        "{\"query\":{\"cost_usd\":null,\"energy_joules\":2000.0,\"tokens\":5,"
                        "\"turns\":null,\"wall_s\":2.0,\"working_s\":null},"
                        "\"run\":{\"cost_usd\":0.5,\"energy_joules\":null,\"tokens\":null,"
                        "\"turns\":null,\"wall_s\":null,\"working_s\":null}}");
    ipw_buf_release(&out);
}

/* What is not given is no limit; a limit of nothing is refused, not taken for none. */
static void test_checked(void **state)
{
    static const double bad[] = {0, -1, INFINITY};
    struct ipw_limit_options o;
    struct ipw_err err;

    (void)state;
    ipw_limits_init(&o);
    o.query.energy_j = 5;
    assert_int_equal(ipw_limits_check(&o, &err), 0);
    assert_true(o.query.cost_usd == 0 && o.run.cost_usd == 0 && o.run.energy_j == 0);
    assert_true(o.query.energy_j == 5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ipw_limits_init(&o);
        o.run.cost_usd = bad[i];
        assert_int_equal(ipw_limits_check(&o, &err), IPW_EINVAL);
        assert_string_equal(err.text, "--run-cost-limit: expected USD, more than zero");
        ipw_limits_init(&o);
        o.query.energy_j = bad[i];
        assert_int_equal(ipw_limits_check(&o, &err), IPW_EINVAL);
        assert_string_equal(err.text, "--energy-limit: expected an energy, more than zero");
    }
}

/* Every limit has its own outcome, and its option. */
static void test_names(void **state)
{
    (void)state;
    for (enum ipw_limit a = IPW_LIMIT_TOKENS; a < IPW_LIMITS; a++) {
        for (enum ipw_limit b = IPW_LIMIT_TOKENS; b < IPW_LIMITS; b++) {
            assert_true((strcmp(ipw_limit_outcome(a, false), ipw_limit_outcome(b, false)) == 0) ==
                        (a == b));
            assert_true(strcmp(ipw_limit_outcome(a, false), ipw_limit_outcome(b, true)) != 0);
        }
        assert_true(strlen(ipw_limit_option(a, false)) > 0);
        assert_int_equal(strncmp(ipw_limit_option(a, true), "run-", 4), 0);
    }
}

UNIT(limits)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_and_turns),
        cmocka_unit_test(test_untold_tokens_are_counted_by_events),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_energy),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_checked),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
