/* Does each sensor do what it says: cases 11, 40, 41 of tests/cases.txt, over rows that
 * are known exactly. */
#include "energy/selftest.h"

#include <math.h>

#include "energy/overlap.h"
#include "json/json.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static struct ipw_channel channels[3];
static struct ipw_source source;
static struct ipw_source_set set;

static void world(int64_t period_ns, int64_t modulus_uj)
{
    for (int i = 0; i < 3; i++) {
        channels[i] = (struct ipw_channel){.domain = IPW_DOMAIN_GPU, .period_ns = period_ns};
        snprintf(channels[i].device, sizeof channels[i].device, "0000:03:00.0");
    }
    snprintf(channels[0].name, sizeof channels[0].name, "gpu0");
    snprintf(channels[1].name, sizeof channels[1].name, "gpu0/power");
    snprintf(channels[2].name, sizeof channels[2].name, "gpu0/util");
    channels[0].kind = IPW_CHANNEL_COUNTER;
    channels[0].in_sum = true;
    channels[0].modulus_uj = modulus_uj;
    channels[1].kind = IPW_CHANNEL_GAUGE;
    channels[2].kind = IPW_CHANNEL_METRIC;
    source = (struct ipw_source){.name = "amdgpu", .channels = channels, .n_channels = 3};
    set = (struct ipw_source_set){.n = 1, .sources = {&source}};
    ipw_source_set_cover(&set);
}

/* The set borrows a source that nobody closes. */
static void end(struct ipw_selftest *t)
{
    ipw_selftest_free(t);
    source.close = NULL;
    set.n = 0;
    ipw_source_set_close(&set);
}

/* `seconds` of rows every 5 ms: a counter of `watts` that publishes every `period_ms`, and a
 * gauge. */
static void feed(struct ipw_selftest *t, double seconds, double watts, int period_ms,
                 int64_t gauge_mw, int64_t start_uj)
{
    for (int ms = 0; ms <= (int)(seconds * 1000); ms += 5) {
        int64_t uj = start_uj + (int64_t)(watts * (ms / period_ms * period_ms) * 1000);
        int64_t values[3] = {channels[0].modulus_uj ? uj % channels[0].modulus_uj : uj, gauge_mw,
                             42000};
        struct ipw_sampler_row row = {
            .n = 3, .t_ns = S(100) + (int64_t)ms * 1000000, .values = values};
        ipw_selftest_row(t, &row);
    }
}

static void test_moves_and_period(void **state)
{
    struct ipw_selftest *t;
    struct ipw_selftest_verdict v;

    (void)state;
    world(S(0.1), 0);
    t = ipw_selftest_new(&set);
    feed(t, 1.2, 300, 100, 300000, 1000000);
    v = ipw_selftest_verdict(t, 0);
    assert_int_equal(v.state, IPW_SELFTEST_MOVES);
    assert_near((double)v.period_ns, 1e8, 1);
    assert_near(v.watts, 300, 0.01);
    assert_near(v.ratio, 1, 0.001);
    assert_false(v.disagrees || v.frozen);
    v = ipw_selftest_verdict(t, 1);
    assert_int_equal(v.state, IPW_SELFTEST_STEADY);
    assert_near(v.watts, 300, 0.01);
    v = ipw_selftest_verdict(t, 2);
    assert_near(v.value, 42, 1e-9);
    assert_true(isnan(v.watts));
    assert_int_equal(ipw_selftest_gpus(t), 1);
    assert_int_equal(ipw_selftest_span_ns(t), S(1.2));
    end(t);
}

/* Case 1: a wrap on the way changes nothing. */
static void test_01_wrap(void **state)
{
    struct ipw_selftest *t;

    (void)state;
    world(S(0.001), RANGE_61 + 61);
    t = ipw_selftest_new(&set);
    feed(t, 1.2, 300, 5, 0, RANGE_61 - 100000000);
    assert_near(ipw_selftest_verdict(t, 0).watts, 300, 0.01);
    end(t);
}

static void test_40_counter_and_gauge_disagree(void **state)
{
    struct ipw_selftest *t;
    struct ipw_selftest_verdict v;

    (void)state;
    world(S(0.1), 0);
    t = ipw_selftest_new(&set);
    feed(t, 1.2, 140, 100, 100000, 0);
    v = ipw_selftest_verdict(t, 0);
    assert_true(v.disagrees);
    assert_near(v.ratio, 1.4, 0.01);
    assert_int_equal(ipw_selftest_reject(t, &set), 0); /* flagged, and used all the same */
    assert_true(set.channels[0].in_sum);
    end(t);
}

/* Case 41: the accumulator stands still while the board draws power: its gauge takes its place. */
static void test_41_frozen(void **state)
{
    struct ipw_selftest *t;

    (void)state;
    world(S(0.001), 0);
    t = ipw_selftest_new(&set);
    feed(t, 0.25, 0, 100, 90000, 5000);
    assert_true(ipw_selftest_verdict(t, 0).frozen);
    assert_int_equal(ipw_selftest_verdict(t, 0).state, IPW_SELFTEST_STUCK);
    assert_int_equal(ipw_selftest_reject(t, &set), 1);
    assert_false(set.channels[0].in_sum);
    assert_true(set.channels[1].in_sum);
    assert_string_equal(set.basis[IPW_DOMAIN_GPU], "1 GPU (amdgpu, power integrated)");
    assert_int_equal(ipw_selftest_reject(t, &set), 0);
    end(t);
}

/* Case 11: a gauge that says the same for 5 s while the counter moves otherwise. */
static void test_11_stuck_gauge_under_load(void **state)
{
    struct ipw_selftest *t;

    (void)state;
    /* It shows another power than the counter. */
    world(S(0.1), 0);
    t = ipw_selftest_new(&set);
    feed(t, 4.9, 300, 100, 75000, 0);
    assert_int_equal(ipw_selftest_verdict(t, 1).state, IPW_SELFTEST_STEADY);
    end(t);
    world(S(0.1), 0);
    t = ipw_selftest_new(&set);
    feed(t, 5, 300, 100, 75000, 0);
    assert_int_equal(ipw_selftest_verdict(t, 1).state, IPW_SELFTEST_STUCK);
    assert_true(ipw_selftest_verdict(t, 1).frozen);
    assert_int_equal(ipw_selftest_verdict(t, 0).state, IPW_SELFTEST_MOVES);
    assert_true(ipw_selftest_verdict(t, 0).disagrees);
    end(t);
    /* It shows the mean, while the power goes up and down. */
    world(S(0.1), 0);
    t = ipw_selftest_new(&set);
    for (int ms = 0; ms <= 6000; ms += 100) {
        int64_t values[3] = {ms < 3000 ? ms * 200000 : 600000000 + (ms - 3000) * 400000, 300000, 0};
        struct ipw_sampler_row row = {
            .n = 3, .t_ns = S(100) + (int64_t)ms * 1000000, .values = values};
        ipw_selftest_row(t, &row);
    }
    assert_int_equal(ipw_selftest_verdict(t, 1).state, IPW_SELFTEST_STUCK);
    end(t);
    /* A steady load is no fault. */
    world(S(0.1), 0);
    t = ipw_selftest_new(&set);
    feed(t, 6, 300, 100, 300000, 0);
    assert_int_equal(ipw_selftest_verdict(t, 1).state, IPW_SELFTEST_STEADY);
    assert_int_equal(ipw_selftest_reject(t, &set), 0);
    end(t);
}

/* An idle board that counts nothing is not frozen, and too short a look says nothing. */
static void test_11_not_frozen(void **state)
{
    struct ipw_selftest *t;

    (void)state;
    world(S(0.1), 0);
    t = ipw_selftest_new(&set);
    feed(t, 0.25, 0, 100, 90000, 5000);
    assert_false(ipw_selftest_verdict(t, 0).frozen);
    assert_int_equal(ipw_selftest_verdict(t, 0).state, IPW_SELFTEST_SHORT);
    end(t);
    world(S(0.001), 0);
    t = ipw_selftest_new(&set);
    feed(t, 2, 0, 100, 0, 5000);
    assert_false(ipw_selftest_verdict(t, 0).frozen);
    assert_int_equal(ipw_selftest_verdict(t, 0).state, IPW_SELFTEST_STUCK);
    assert_near(ipw_selftest_verdict(t, 0).watts, 0, 1e-9);
    end(t);
}

static void test_unread_and_json(void **state)
{
    struct ipw_buf out = IPW_BUF(65536);
    struct ipw_json *doc;
    struct ipw_selftest *t;
    int64_t values[3] = {IPW_NO_VALUE, IPW_NO_VALUE, IPW_NO_VALUE};
    struct ipw_sampler_row row = {.n = 3, .t_ns = 5, .values = values};

    (void)state;
    world(0, 0);
    t = ipw_selftest_new(&set);
    assert_int_equal(ipw_selftest_verdict(t, 0).state, IPW_SELFTEST_SHORT);
    for (int i = 0; i < 10; i++, row.t_ns += S(0.2)) ipw_selftest_row(t, &row);
    assert_int_equal(ipw_selftest_verdict(t, 0).state, IPW_SELFTEST_UNREAD);
    assert_int_equal(ipw_selftest_verdict(t, 0).failed, 10);
    assert_true(isnan(ipw_selftest_verdict(t, 0).watts));
    ipw_selftest_json(&out, t);
    assert_int_equal(ipw_json_parse(&doc, out.data, out.len, NULL, NULL), 0);
    assert_int_equal(ipw_json_count(doc), 3);
    assert_string_equal(ipw_json_str(ipw_json_get(ipw_json_at(doc, 0), "state"), ""), "unread");
    assert_true(ipw_json_is_null(ipw_json_get(ipw_json_at(doc, 0), "watts")));
    ipw_json_free(doc);
    ipw_buf_release(&out);
    end(t);
}

UNIT(selftest)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_and_period),
        cmocka_unit_test(test_01_wrap),
        cmocka_unit_test(test_40_counter_and_gauge_disagree),
        cmocka_unit_test(test_41_frozen),
        cmocka_unit_test(test_11_not_frozen),
        cmocka_unit_test(test_11_stuck_gauge_under_load),
        cmocka_unit_test(test_unread_and_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
