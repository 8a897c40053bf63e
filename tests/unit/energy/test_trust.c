/* Which sensors are believed, in what words they are doubted, and how long that takes: cases 11,
 * 40, 41 of tests/cases.txt, over rows that are known exactly. */
#include "energy/trust.h"

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
static void end(struct ipw_trust *t)
{
    ipw_trust_free(t);
    source.close = NULL;
    set.n = 0;
    ipw_source_set_close(&set);
}

/* `seconds` of rows every 5 ms: a counter of `watts` that publishes every `period_ms`, and a
 * gauge. */
static void feed(struct ipw_trust *t, double seconds, double watts, int period_ms, int64_t gauge_mw,
                 int64_t start_uj)
{
    for (int ms = 0; ms <= (int)(seconds * 1000); ms += 5) {
        int64_t uj = start_uj + (int64_t)(watts * (ms / period_ms * period_ms) * 1000);
        int64_t values[3] = {channels[0].modulus_uj ? uj % channels[0].modulus_uj : uj, gauge_mw,
                             42000};
        struct ipw_sampler_row row = {
            .n = 3, .t_ns = S(100) + (int64_t)ms * 1000000, .values = values};
        ipw_trust_row(t, &row);
    }
}

static void test_moves_and_period(void **state)
{
    struct ipw_trust *t;
    struct ipw_trust_verdict v;

    (void)state;
    world(S(0.1), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 1.2, 300, 100, 300000, 1000000);
    v = ipw_trust_verdict(t, 0);
    assert_int_equal(v.state, IPW_TRUST_MOVES);
    assert_near((double)v.period_ns, 1e8, 1);
    assert_near(v.watts, 300, 0.01);
    assert_near(v.ratio, 1, 0.001);
    assert_true(v.believed);
    v = ipw_trust_verdict(t, 1);
    assert_int_equal(v.state, IPW_TRUST_STEADY);
    assert_near(v.watts, 300, 0.01);
    v = ipw_trust_verdict(t, 2);
    assert_near(v.value, 42, 1e-9);
    assert_true(isnan(v.watts));
    assert_int_equal(ipw_trust_gpus(t), 1);
    assert_int_equal(ipw_trust_span_ns(t), S(1.2));
    end(t);
}

/* Case 1: a wrap on the way changes nothing. */
static void test_01_wrap(void **state)
{
    struct ipw_trust *t;

    (void)state;
    world(S(0.001), RANGE_61 + 61);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 1.2, 300, 5, 0, RANGE_61 - 100000000);
    assert_near(ipw_trust_verdict(t, 0).watts, 300, 0.01);
    end(t);
}

static void test_40_counter_and_gauge_disagree(void **state)
{
    struct ipw_trust *t;
    struct ipw_trust_verdict v;

    (void)state;
    world(S(0.1), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 1.2, 140, 100, 100000, 0);
    v = ipw_trust_verdict(t, 0);
    assert_int_equal(v.doubt, IPW_DOUBT_GAUGE);
    assert_string_equal(v.reason, "contradicted");
    assert_near(v.ratio, 1.4, 0.01);
    assert_int_equal(ipw_trust_reject(t, &set), 0); /* its sum is null, not its gauge's */
    assert_true(set.channels[0].in_sum);
    end(t);
}

/* Case 41: the accumulator stands still while the board draws power: its gauge takes its place. */
static void test_41_frozen(void **state)
{
    struct ipw_trust *t;

    (void)state;
    world(S(0.001), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 0.25, 0, 100, 90000, 5000);
    assert_true(ipw_trust_verdict(t, 0).doubt == IPW_DOUBT_FROZEN);
    assert_int_equal(ipw_trust_verdict(t, 0).state, IPW_TRUST_STUCK);
    assert_int_equal(ipw_trust_reject(t, &set), 1);
    assert_false(set.channels[0].in_sum);
    assert_true(set.channels[1].in_sum);
    assert_string_equal(set.basis[IPW_DOMAIN_GPU], "1 GPU (amdgpu, power integrated)");
    assert_int_equal(ipw_trust_reject(t, &set), 0);
    end(t);
}

/* Case 11: a gauge that says the same for 5 s while the counter moves otherwise. */
static void test_11_stuck_gauge_under_load(void **state)
{
    struct ipw_trust *t;

    (void)state;
    /* It shows another power than the counter. */
    world(S(0.1), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 4.9, 300, 100, 75000, 0);
    assert_int_equal(ipw_trust_verdict(t, 1).state, IPW_TRUST_STEADY);
    end(t);
    world(S(0.1), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 5, 300, 100, 75000, 0);
    assert_int_equal(ipw_trust_verdict(t, 1).state, IPW_TRUST_STUCK);
    assert_true(ipw_trust_verdict(t, 1).doubt == IPW_DOUBT_HELD);
    assert_int_equal(ipw_trust_verdict(t, 0).state, IPW_TRUST_MOVES);
    assert_int_equal(ipw_trust_verdict(t, 0).doubt, IPW_DOUBT_GAUGE);
    end(t);
    /* It shows the mean, while the power goes up and down. */
    world(S(0.1), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    for (int ms = 0; ms <= 6000; ms += 100) {
        int64_t values[3] = {ms < 3000 ? ms * 200000 : 600000000 + (ms - 3000) * 400000, 300000, 0};
        struct ipw_sampler_row row = {
            .n = 3, .t_ns = S(100) + (int64_t)ms * 1000000, .values = values};
        ipw_trust_row(t, &row);
    }
    assert_int_equal(ipw_trust_verdict(t, 1).state, IPW_TRUST_STUCK);
    end(t);
    /* A steady load is no fault. */
    world(S(0.1), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 6, 300, 100, 300000, 0);
    assert_int_equal(ipw_trust_verdict(t, 1).state, IPW_TRUST_STEADY);
    assert_int_equal(ipw_trust_reject(t, &set), 0);
    end(t);
}

/* An idle board that counts nothing is not frozen, and too short a look says nothing. */
static void test_11_not_frozen(void **state)
{
    struct ipw_trust *t;

    (void)state;
    world(S(0.1), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 0.25, 0, 100, 90000, 5000);
    assert_false(ipw_trust_verdict(t, 0).doubt == IPW_DOUBT_FROZEN);
    assert_int_equal(ipw_trust_verdict(t, 0).state, IPW_TRUST_SHORT);
    end(t);
    world(S(0.001), 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    feed(t, 2, 0, 100, 0, 5000);
    assert_false(ipw_trust_verdict(t, 0).doubt == IPW_DOUBT_FROZEN);
    assert_int_equal(ipw_trust_verdict(t, 0).state, IPW_TRUST_STUCK);
    assert_near(ipw_trust_verdict(t, 0).watts, 0, 1e-9);
    end(t);
}

static void test_unread_and_json(void **state)
{
    struct ipw_buf out = IPW_BUF(65536);
    struct ipw_json *doc;
    struct ipw_trust *t;
    int64_t values[3] = {IPW_NO_VALUE, IPW_NO_VALUE, IPW_NO_VALUE};
    struct ipw_sampler_row row = {.n = 3, .t_ns = 5, .values = values};

    (void)state;
    world(0, 0);
    t = ipw_trust_new(set.channels, set.n_channels);
    assert_int_equal(ipw_trust_verdict(t, 0).state, IPW_TRUST_SHORT);
    for (int i = 0; i < 10; i++, row.t_ns += S(0.2)) ipw_trust_row(t, &row);
    assert_int_equal(ipw_trust_verdict(t, 0).state, IPW_TRUST_UNREAD);
    assert_int_equal(ipw_trust_verdict(t, 0).failed, 10);
    assert_true(isnan(ipw_trust_verdict(t, 0).watts));
    ipw_trust_json(&out, t, &set);
    assert_int_equal(ipw_json_parse(&doc, out.data, out.len, NULL, NULL), 0);
    assert_int_equal(ipw_json_count(doc), 3);
    assert_string_equal(ipw_json_str(ipw_json_get(ipw_json_at(doc, 0), "state"), ""), "unread");
    assert_true(ipw_json_is_null(ipw_json_get(ipw_json_at(doc, 0), "watts")));
    ipw_json_free(doc);
    ipw_buf_release(&out);
    end(t);
}

/* A board with a counter and a gauge, and a package with a counter alone. */
static struct ipw_trust *pair(int64_t period_ns)
{
    channels[0] = test_counter("gpu0", IPW_DOMAIN_GPU, 0, 700);
    channels[1] = test_gauge("gpu0/power", 700);
    channels[1].in_sum = false;
    channels[2] = test_counter("package-0", IPW_DOMAIN_CPU, 0, 300);
    for (int i = 0; i < 3; i++) {
        channels[i].period_ns = period_ns;
        snprintf(channels[i].device, sizeof channels[i].device, "%s", i < 2 ? "03:00.0" : "cpu");
    }
    channels[2].scope = IPW_SCOPE_PACKAGE;
    source = (struct ipw_source){.name = "x", .channels = channels, .n_channels = 3};
    set = (struct ipw_source_set){.n = 1, .sources = {&source}};
    ipw_source_set_cover(&set);
    return ipw_trust_new(set.channels, set.n_channels);
}

/* Rows every 10 ms; watts of the two counters (0: they stand still), milliwatts of the gauge. */
static void feed_pair(struct ipw_trust *t, double seconds, double gpu_w, int64_t gauge,
                      double cpu_w)
{
    for (int ms = 0; ms <= (int)(seconds * 1000); ms += 10) {
        int64_t values[3] = {5000 + (int64_t)(gpu_w * (ms / 100 * 100) * 1000), gauge,
                             7000 + (int64_t)(cpu_w * ms * 1000)};
        struct ipw_sampler_row row = {
            .n = 3, .t_ns = S(100) + (int64_t)ms * 1000000, .values = values};

        ipw_trust_row(t, &row);
    }
}

static void assert_belief(const struct ipw_trust *t, size_t channel, enum ipw_doubt doubt,
                          const char *reason, const char *words)
{
    struct ipw_trust_verdict b = ipw_trust_verdict(t, channel);

    assert_int_equal(b.doubt, doubt);
    assert_int_equal(b.believed, doubt == IPW_DOUBT_NONE);
    if (reason)
        assert_string_equal(b.reason, reason);
    else
        assert_null(b.reason);
    assert_string_equal(b.words, words);
}

static void test_believed(void **state)
{
    struct ipw_trust *t = pair(S(0.1));
    struct ipw_trust_verdict b;

    (void)state;
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, ""); /* nothing was seen yet */
    feed_pair(t, 2, 200, 200000, 50);
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "ok");
    assert_belief(t, 1, IPW_DOUBT_NONE, NULL, "ok");
    assert_belief(t, 2, IPW_DOUBT_NONE, NULL, "ok");
    assert_int_equal(ipw_trust_doubtful(&b, t, IPW_DOMAIN_GPU), -1);
    end(t);
    t = pair(S(0.1));
    feed_pair(t, 2, 170, 200000, 50); /* near its gauge: believed, and it is said */
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "counter -15 % against its gauge");
    end(t);
    t = pair(S(0.1));
    feed_pair(t, 2, 100, 200000, 50);
    assert_belief(t, 0, IPW_DOUBT_GAUGE, "contradicted",
                  "shows 100 W, its gauge 200 W: not believed");
    end(t);
    t = pair(S(0.1));
    feed_pair(t, 2, 0.3, 300, 0.02);
    assert_belief(t, 0, IPW_DOUBT_LEAST, "stuck",
                  "shows 0.3 W, less than its device draws: not believed");
    assert_belief(t, 2, IPW_DOUBT_LEAST, "stuck",
                  "shows 0.02 W, less than its device draws: not believed");
    end(t);
}

static void test_a_counter_that_stands_still(void **state)
{
    struct ipw_trust *t = pair(S(0.1));
    struct ipw_trust_verdict b;

    (void)state;
    feed_pair(t, 0.6, 0, 200000, 0); /* as long as NVML's channels are watched */
    assert_belief(t, 0, IPW_DOUBT_FROZEN, "stuck",
                  "does not move although power is above 0: not believed");
    assert_belief(t, 2, IPW_DOUBT_STUCK, "stuck", "does not move: not believed");
    assert_string_equal(set.channels[ipw_trust_doubtful(&b, t, IPW_DOMAIN_CPU)].name, "package-0");
    assert_int_equal(b.doubt, IPW_DOUBT_STUCK);
    assert_string_equal(set.channels[ipw_trust_doubtful(&b, t, IPW_DOMAIN_GPU)].name, "gpu0");
    assert_int_equal(ipw_trust_doubtful(&b, t, IPW_DOMAIN_MACHINE), -1);
    assert_int_equal(ipw_trust_reject(t, &set), 1);
    assert_int_equal(ipw_trust_doubtful(&b, t, IPW_DOMAIN_GPU), -1); /* its gauge stands in */
    assert_string_equal(set.channels[ipw_trust_doubtful(&b, t, IPW_DOMAIN_CPU)].name, "package-0");
    end(t);
    t = pair(S(0.1));
    feed_pair(t, 0.3, 0, 200000, 0); /* too short to tell: three periods */
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "");
    assert_belief(t, 2, IPW_DOUBT_NONE, NULL, "");
    end(t);
    for (int k = 0; k < 2;
         k++) { /* a period that is not known, or one that a host may not keep to */
        t = pair(k ? S(0.001) : 0);
        feed_pair(t, 0.9, 0, 200000, 0);
        assert_belief(t, 2, IPW_DOUBT_NONE, NULL, "");
        end(t);
        t = pair(k ? S(0.001) : 0);
        feed_pair(t, 1.2, 0, 200000, 0);
        assert_belief(t, 2, IPW_DOUBT_STUCK, "stuck", "does not move: not believed");
        assert_belief(t, 0, IPW_DOUBT_FROZEN, "stuck",
                      "does not move although power is above 0: not believed");
        end(t);
    }
}

/* A gauge says 0 W only of a device that is suspended; what cannot be read says nothing. */
static void test_asleep_and_unread(void **state)
{
    struct ipw_trust *t = pair(S(0.1));

    (void)state;
    feed_pair(t, 2, 0, 0, 50);
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "asleep");
    end(t);
    t = pair(S(0.1));
    feed_pair(t, 2, 0, IPW_NO_VALUE, 50);
    assert_belief(t, 0, IPW_DOUBT_STUCK, "stuck", "does not move: not believed");
    assert_belief(t, 1, IPW_DOUBT_UNREAD, "no_samples", "cannot be read");
    end(t);
}

/* Long enough for what was just seen to be told: never shorter than the self-test needs. */
static void test_how_long_to_watch(void **state)
{
    struct ipw_channel c = test_counter("c", IPW_DOMAIN_GPU, 0, 0);

    (void)state;
    assert_int_equal(ipw_trust_watch_ns(&c), S(1.2));
    c.period_ns = S(0.001);
    assert_int_equal(ipw_trust_watch_ns(&c), S(1.2));
    c.period_ns = S(0.02);
    assert_int_equal(ipw_trust_watch_ns(&c), S(0.25));
    c.period_ns = S(0.1);
    assert_int_equal(ipw_trust_watch_ns(&c), S(0.6));
    c.period_ns = S(3);
    assert_int_equal(ipw_trust_watch_ns(&c), S(5));
    c.kind = IPW_CHANNEL_GAUGE;
    assert_int_equal(ipw_trust_watch_ns(&c), 0);
}

static void test_words_for_reasons(void **state)
{
    (void)state;
    assert_string_equal(ipw_trust_reason_words("stuck"), "the counter does not move");
    assert_string_equal(ipw_trust_reason_words("no_sensor"), "no readable sensor");
    assert_string_equal(ipw_trust_reason_words("something_else"), "something_else");
    assert_null(ipw_trust_reason_words(NULL));
}

UNIT(trust)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_and_period),
        cmocka_unit_test(test_01_wrap),
        cmocka_unit_test(test_40_counter_and_gauge_disagree),
        cmocka_unit_test(test_41_frozen),
        cmocka_unit_test(test_11_not_frozen),
        cmocka_unit_test(test_11_stuck_gauge_under_load),
        cmocka_unit_test(test_unread_and_json),
        cmocka_unit_test(test_believed),
        cmocka_unit_test(test_a_counter_that_stands_still),
        cmocka_unit_test(test_asleep_and_unread),
        cmocka_unit_test(test_how_long_to_watch),
        cmocka_unit_test(test_words_for_reasons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
