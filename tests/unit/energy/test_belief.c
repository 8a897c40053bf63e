/* Which sensors are believed, in what words they are doubted, and how long that takes. */
#include "energy/belief.h"

#include "energy/overlap.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static struct ipw_channel channels[3];
static struct ipw_source source;
static struct ipw_source_set set;

/* A board with a counter and a gauge, and a package with a counter alone. */
static struct ipw_selftest *world(int64_t period_ns)
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
    return ipw_selftest_new(&set);
}

static void end(struct ipw_selftest *t)
{
    ipw_selftest_free(t);
    set.n = 0; /* nobody closes what is ours */
    ipw_source_set_close(&set);
}

/* Rows every 10 ms; watts of the two counters (0: they stand still), milliwatts of the gauge. */
static void feed(struct ipw_selftest *t, double seconds, double gpu_w, int64_t gauge, double cpu_w)
{
    for (int ms = 0; ms <= (int)(seconds * 1000); ms += 10) {
        int64_t values[3] = {5000 + (int64_t)(gpu_w * (ms / 100 * 100) * 1000), gauge,
                             7000 + (int64_t)(cpu_w * ms * 1000)};
        struct ipw_sampler_row row = {
            .n = 3, .t_ns = S(100) + (int64_t)ms * 1000000, .values = values};

        ipw_selftest_row(t, &row);
    }
}

static void assert_belief(const struct ipw_selftest *t, size_t channel, enum ipw_doubt doubt,
                          const char *reason, const char *words)
{
    struct ipw_belief b = ipw_belief_of(t, channel);

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
    struct ipw_selftest *t = world(S(0.1));
    struct ipw_belief b;

    (void)state;
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, ""); /* nothing was seen yet */
    feed(t, 2, 200, 200000, 50);
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "ok");
    assert_belief(t, 1, IPW_DOUBT_NONE, NULL, "ok");
    assert_belief(t, 2, IPW_DOUBT_NONE, NULL, "ok");
    assert_null(ipw_belief_doubtful(&b, t, &set, IPW_DOMAIN_GPU));
    end(t);
    t = world(S(0.1));
    feed(t, 2, 100, 200000, 50); /* half of its gauge: believed, and it is said */
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "counter -50 % against its gauge");
    end(t);
}

static void test_a_counter_that_stands_still(void **state)
{
    struct ipw_selftest *t = world(S(0.1));
    struct ipw_belief b;

    (void)state;
    feed(t, 0.6, 0, 200000, 0); /* as long as NVML's channels are watched */
    assert_belief(t, 0, IPW_DOUBT_FROZEN, "stuck",
                  "does not move although power is above 0: not believed");
    assert_belief(t, 2, IPW_DOUBT_STUCK, "stuck", "does not move: not believed");
    assert_string_equal(ipw_belief_doubtful(&b, t, &set, IPW_DOMAIN_CPU), "package-0");
    assert_int_equal(b.doubt, IPW_DOUBT_STUCK);
    assert_string_equal(ipw_belief_doubtful(&b, t, &set, IPW_DOMAIN_GPU), "gpu0");
    assert_null(ipw_belief_doubtful(&b, t, &set, IPW_DOMAIN_MACHINE));
    assert_int_equal(ipw_selftest_reject(t, &set), 1);
    assert_null(ipw_belief_doubtful(&b, t, &set, IPW_DOMAIN_GPU)); /* its gauge stands in */
    assert_string_equal(ipw_belief_doubtful(&b, t, &set, IPW_DOMAIN_CPU), "package-0");
    end(t);
    t = world(S(0.1));
    feed(t, 0.3, 0, 200000, 0); /* too short to tell: three periods */
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "");
    assert_belief(t, 2, IPW_DOUBT_NONE, NULL, "");
    end(t);
    for (int k = 0; k < 2;
         k++) { /* a period that is not known, or one that a host may not keep to */
        t = world(k ? S(0.001) : 0);
        feed(t, 0.9, 0, 200000, 0);
        assert_belief(t, 2, IPW_DOUBT_NONE, NULL, "");
        end(t);
        t = world(k ? S(0.001) : 0);
        feed(t, 1.2, 0, 200000, 0);
        assert_belief(t, 2, IPW_DOUBT_STUCK, "stuck", "does not move: not believed");
        assert_belief(t, 0, IPW_DOUBT_FROZEN, "stuck",
                      "does not move although power is above 0: not believed");
        end(t);
    }
}

/* A gauge says 0 W only of a device that is suspended; what cannot be read says nothing. */
static void test_asleep_and_unread(void **state)
{
    struct ipw_selftest *t = world(S(0.1));

    (void)state;
    feed(t, 2, 0, 0, 50);
    assert_belief(t, 0, IPW_DOUBT_NONE, NULL, "asleep");
    end(t);
    t = world(S(0.1));
    feed(t, 2, 0, IPW_NO_VALUE, 50);
    assert_belief(t, 0, IPW_DOUBT_STUCK, "stuck", "does not move: not believed");
    assert_belief(t, 1, IPW_DOUBT_UNREAD, "no_samples", "cannot be read");
    end(t);
}

/* Long enough for what was just seen to be told: never shorter than the self-test needs. */
static void test_how_long_to_watch(void **state)
{
    struct ipw_channel c = test_counter("c", IPW_DOMAIN_GPU, 0, 0);

    (void)state;
    assert_int_equal(ipw_belief_watch_ns(&c), S(1.2));
    c.period_ns = S(0.001);
    assert_int_equal(ipw_belief_watch_ns(&c), S(1.2));
    c.period_ns = S(0.02);
    assert_int_equal(ipw_belief_watch_ns(&c), S(0.25));
    c.period_ns = S(0.1);
    assert_int_equal(ipw_belief_watch_ns(&c), S(0.6));
    c.period_ns = S(3);
    assert_int_equal(ipw_belief_watch_ns(&c), S(5));
    c.kind = IPW_CHANNEL_GAUGE;
    assert_int_equal(ipw_belief_watch_ns(&c), 0);
}

static void test_words_for_reasons(void **state)
{
    (void)state;
    assert_string_equal(ipw_belief_reason_words("stuck"), "the counter does not move");
    assert_string_equal(ipw_belief_reason_words("no_sensor"), "no readable sensor");
    assert_string_equal(ipw_belief_reason_words("something_else"), "something_else");
    assert_null(ipw_belief_reason_words(NULL));
}

/* A saved self-test's word tells the same doubt as a fresh one; a word of another version tells
 * none. */
static void test_saved(void **state)
{
    (void)state;
    assert_int_equal(ipw_belief_saved("stuck", true), IPW_DOUBT_FROZEN);
    assert_int_equal(ipw_belief_saved(ipw_selftest_state_name(IPW_SELFTEST_STUCK), false),
                     IPW_DOUBT_STUCK);
    assert_int_equal(ipw_belief_saved(ipw_selftest_state_name(IPW_SELFTEST_UNREAD), false),
                     IPW_DOUBT_UNREAD);
    assert_int_equal(ipw_belief_saved("a word", false), IPW_DOUBT_NONE);
}

UNIT(belief)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_believed),
        cmocka_unit_test(test_a_counter_that_stands_still),
        cmocka_unit_test(test_asleep_and_unread),
        cmocka_unit_test(test_how_long_to_watch),
        cmocka_unit_test(test_words_for_reasons),
        cmocka_unit_test(test_saved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
