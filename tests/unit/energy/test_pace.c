/* How often a source is read: cases 42 and 43 of reference/energy.md section 6, over counters whose
 * publication is known exactly. */
#include "energy/pace.h"

#include "unit/energy/energy_test.h"

struct world {
    struct ipw_source source;
    struct ipw_channel channels[2];
    struct ipw_pace pace;
    int64_t t, published; /* now; the last publication */
    int64_t period, jitter;
    int64_t value, reads;
    uint64_t seed;
};

static void start(struct world *w, int64_t least, int64_t declared, int64_t interval, bool adapt)
{
    *w = (struct world){.source = {.name = "x", .n_channels = 2, .period_ns = least},
                        .t = S(1000),
                        .published = S(1000),
                        .seed = 7};
    w->channels[0] = (struct ipw_channel){.kind = IPW_CHANNEL_COUNTER, .period_ns = declared};
    w->channels[1] = (struct ipw_channel){.kind = IPW_CHANNEL_GAUGE, .period_ns = declared};
    w->source.channels = w->channels;
    ipw_pace_init(&w->pace, &w->source, interval, adapt, w->t);
}

/* Lets time pass, reading whenever the pace says so. */
static void run(struct world *w, int64_t ns)
{
    int64_t end = w->t + ns;

    for (; w->t < end; w->t += w->pace.poll_ns) {
        int64_t values[2];

        while (w->period && w->published + w->period <= w->t) {
            int64_t off = (int64_t)(test_uniform(&w->seed, -1, 1) * (double)w->jitter);
            w->published += w->period + off > 0 ? w->period + off : 1;
            w->value += J(10);
        }
        values[0] = w->value;
        values[1] = 250000;
        ipw_pace_push(&w->pace, w->t, values);
        w->reads++;
    }
}

/* 100 ms: 200 polls of 5 ms in the first second, then 20 ms. */
static void test_42_learns_100_ms(void **state)
{
    struct world w;

    (void)state;
    start(&w, S(0.02), S(0.1), S(0.05), true);
    w.period = S(0.1);
    assert_int_equal(w.pace.poll_ns, S(0.005));
    run(&w, S(1));
    assert_true(w.reads >= 195 && w.reads <= 205);
    run(&w, S(10));
    assert_near((double)w.pace.period_ns, 1e8, 6e6);
    assert_near((double)w.pace.poll_ns, 2e7, 1.2e6);
    assert_false(w.pace.fast);
}

/* Case 43: +-20 % of jitter, then from 100 to 20 ms, to 200 ms, and back. */
static void test_43_jitter_and_drift(void **state)
{
    struct world w;

    (void)state;
    start(&w, S(0.004), 0, S(0.05), true);
    w.period = S(0.1);
    w.jitter = S(0.02);
    run(&w, S(20));
    assert_near((double)w.pace.period_ns, 1e8, 2e7);
    assert_near((double)w.pace.poll_ns, 2e7, 4e6);
    w.jitter = 0;
    w.period = S(0.02);
    run(&w, S(5));
    assert_near((double)w.pace.period_ns, 2e7, 5.1e6);
    assert_int_equal(w.pace.poll_ns, S(0.005));
    w.period = S(0.2);
    run(&w, S(10));
    assert_near((double)w.pace.period_ns, 2e8, 1e7);
    assert_near((double)w.pace.poll_ns, 4e7, 2e6);
    w.period = S(0.1);
    run(&w, S(10));
    assert_near((double)w.pace.period_ns, 1e8, 1e7);
}

/* What moves with each reading at the fastest useful pace is read by the schedule; when it slows
 * down that is noticed. */
static void test_43_fast_and_back(void **state)
{
    struct world w;

    (void)state;
    start(&w, S(0.02), 0, S(0.05), true);
    w.period = S(0.001);
    run(&w, S(5));
    assert_true(w.pace.fast);
    assert_int_equal(w.pace.poll_ns, S(0.05));
    w.period = S(0.3);
    run(&w, S(20));
    assert_false(w.pace.fast);
    assert_near((double)w.pace.period_ns, 3e8, 3e7);
}

/* A stuck counter is not polled for ever at 5 ms. */
static void test_stuck(void **state)
{
    struct world w;

    (void)state;
    start(&w, S(0.02), 0, S(0.05), true);
    run(&w, S(2));
    assert_int_equal(w.pace.period_ns, 0);
    assert_int_equal(w.pace.poll_ns, S(0.05));
}

/* Declared fast, remote, expensive, or not asked for: by the schedule from the start. */
static void test_by_the_schedule(void **state)
{
    struct world w;

    (void)state;
    start(&w, S(0.001), S(0.001), S(0.05), true);
    assert_int_equal(w.pace.poll_ns, S(0.05));
    start(&w, S(0.02), S(0.1), S(0.05), false);
    assert_int_equal(w.pace.poll_ns, S(0.05));
    start(&w, S(0.02), S(0.1), S(0.001), false);
    assert_int_equal(w.pace.poll_ns, S(0.02));
    start(&w, S(1), 0, S(0.05), true);
    assert_int_equal(w.pace.poll_ns, S(1));
    start(&w, S(0.02), 0, S(0.05), true);
    w.channels[0].remote = true;
    ipw_pace_init(&w.pace, &w.source, S(0.05), true, w.t);
    assert_int_equal(w.pace.poll_ns, S(0.05));
    run(&w, S(3));
    assert_int_equal(w.pace.poll_ns, S(0.05));
}

/* Failed reads are no repeats and no moves. */
static void test_failed_reads(void **state)
{
    struct world w;
    int64_t values[2] = {IPW_NO_VALUE, IPW_NO_VALUE};

    (void)state;
    start(&w, S(0.02), 0, S(0.05), true);
    for (int i = 0; i < 1000; i++) ipw_pace_push(&w.pace, w.t + i * S(0.005), values);
    assert_int_equal(w.pace.period_ns, 0);
    assert_int_equal(w.pace.poll_ns, S(0.05));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_42_learns_100_ms), cmocka_unit_test(test_43_jitter_and_drift),
        cmocka_unit_test(test_43_fast_and_back), cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_by_the_schedule),  cmocka_unit_test(test_failed_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
