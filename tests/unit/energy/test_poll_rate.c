/* How often a source is read: cases 42 and 43 of tests/cases.txt, over counters whose
 * publication is known exactly. */
#include "energy/poll_rate.h"

#include <stdlib.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

struct world {
    struct ipw_source source;
    struct ipw_channel channels[2];
    struct ipw_poll_rate pace;
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
    ipw_poll_rate_init(&w->pace, &w->source, interval, adapt, w->t);
}

/* Lets time pass, reading whenever the pace says so. */
static void run(struct world *w, int64_t ns)
{
    int64_t end = w->t + ns;

    while (w->t < end) {
        int64_t values[2];

        while (w->period && w->published + w->period <= w->t) {
            int64_t off = (int64_t)(test_uniform(&w->seed, -1, 1) * (double)w->jitter);
            w->published += w->period + off > 0 ? w->period + off : 1;
            w->value += J(10);
        }
        values[0] = w->value;
        values[1] = 250000;
        ipw_poll_rate_push(&w->pace, w->t, values);
        w->reads++;
        w->t = ipw_poll_rate_next(&w->pace, w->t);
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
    ipw_poll_rate_init(&w.pace, &w.source, S(0.05), true, w.t);
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
    for (int i = 0; i < 1000; i++) ipw_poll_rate_push(&w.pace, w.t + i * S(0.005), values);
    assert_int_equal(w.pace.period_ns, 0);
    assert_int_equal(w.pace.poll_ns, S(0.05));
}

/* ---- readings around the publications ---- */

/* Counters that publish on a grid of `period`, each publication up to `jitter` off, at phases of
 * their own; what the readings tell of them. */
struct grid {
    struct ipw_source source;
    struct ipw_channel channels[8];
    struct ipw_poll_rate pace;
    size_t n;
    int64_t t, took, late, period, jitter, phase[8]; /* late: readings come up to so much */
    int64_t next[8], count[8], value[8], read_ns;
    int64_t still_from, still_to; /* no publications in between */
    uint64_t seed;
    int64_t reads, busy_ns, changes, blurred, window_ns; /* blurred: seen in more than 5 ms */
};

static void grid_start(struct grid *g, size_t n, int64_t period, int64_t jitter)
{
    *g = (struct grid){.source = {.name = "x", .n_channels = n, .period_ns = S(0.02)},
                       .n = n,
                       .t = S(1000),
                       .read_ns = S(1000),
                       .period = period,
                       .jitter = jitter,
                       .seed = 11};
    g->source.channels = g->channels;
    for (size_t i = 0; i < n; i++) {
        g->channels[i] = (struct ipw_channel){.kind = IPW_CHANNEL_COUNTER, .period_ns = S(0.1)};
        g->phase[i] = S(1000) + period * (int64_t)(3 * i % 8) / 8 + S(0.003);
        g->next[i] = g->phase[i];
    }
    ipw_poll_rate_init(&g->pace, &g->source, S(0.05), true, g->t);
}

static bool publish(struct grid *g, size_t i, int64_t t)
{
    bool any = false;

    while (g->next[i] <= t) {
        bool silent = g->next[i] >= g->still_from && g->next[i] < g->still_to;

        if (!silent) g->value[i] += J(10);
        any |= !silent;
        g->count[i]++;
        g->next[i] = g->phase[i] + g->count[i] * g->period +
                     (int64_t)(test_uniform(&g->seed, -1, 1) * (double)g->jitter);
    }
    return any;
}

static void grid_run(struct grid *g, int64_t ns)
{
    int64_t end = g->t + ns;

    g->reads = g->changes = g->blurred = g->window_ns = g->busy_ns = 0;
    while (g->t < end) {
        int64_t at = g->t + g->took / 2;

        for (size_t i = 0; i < g->n; i++) {
            if (!publish(g, i, at)) continue;
            g->changes++;
            g->window_ns += at - g->read_ns;
            if (at - g->read_ns > S(0.005)) g->blurred++;
        }
        g->read_ns = at;
        ipw_poll_rate_push(&g->pace, at, g->value);
        g->reads++;
        g->busy_ns += g->took;
        g->t = ipw_poll_rate_next(&g->pace, g->t + g->took);
        assert_true(g->t > at);
        if (g->late) g->t += (int64_t)(test_uniform(&g->seed, 0, 1) * (double)g->late);
    }
}

/* From here on the counters publish with another period. */
static void grid_change(struct grid *g, int64_t period, int64_t jitter)
{
    g->period = period;
    g->jitter = jitter;
    for (size_t i = 0; i < g->n; i++) {
        g->phase[i] = g->next[i];
        g->count[i] = 0;
    }
}

/* 100 ms +-2.5 ms: about 35 readings a second in place of 50, and all but every hundredth
 * publication is seen within 5 ms, most within 2. */
static void test_reads_around_publications(void **state)
{
    struct grid g;

    (void)state;
    grid_start(&g, 1, S(0.1), S(0.0025));
    grid_run(&g, S(2));
    grid_run(&g, S(120));
    assert_true(g.changes >= 1195);
    assert_true(g.reads <= 42 * 120);
    assert_true(g.blurred <= 12);
    assert_true(g.window_ns <= g.changes * S(0.0028));
    assert_near((double)g.pace.period_ns, 1e8, 2e6);
}

/* A busy machine wakes the reader late by some milliseconds, now and then by many: the windows open
 * earlier, and one that was slept through contradicts no prediction. */
static void test_late_readings(void **state)
{
    struct grid g;

    (void)state;
    grid_start(&g, 1, S(0.1), S(0.001));
    grid_run(&g, S(2));
    g.late = S(0.008);
    grid_run(&g, S(60));
    assert_true(g.reads <= 51 * 60);
    assert_true(g.window_ns <= g.changes * S(0.012));
    assert_near((double)g.pace.period_ns, 1e8, 2e6);
    for (int i = 0; i < 30; i++) { /* a hole of 300 ms every second */
        g.late = S(0.002);
        grid_run(&g, S(1));
        g.t += S(0.3);
    }
    assert_near((double)g.pace.period_ns, 1e8, 3e6);
    grid_run(&g, S(2));
    grid_run(&g, S(10));
    assert_true(g.window_ns <= g.changes * S(0.006));
}

/* More jitter opens the windows earlier, and widens the steps where the allowance asks for it. */
static void test_jitter_widens_the_windows(void **state)
{
    struct grid g;

    (void)state;
    for (int ms = 5; ms <= 40; ms += 5) {
        grid_start(&g, 1, S(0.1), ms * IPW_NS_PER_MS);
        grid_run(&g, S(2));
        grid_run(&g, S(60));
        assert_true(g.reads <= 51 * 60);
        if (ms <= 10) assert_true(g.window_ns <= g.changes * S(0.008));
        if (ms <= 20) assert_true(g.window_ns <= g.changes * S(0.015));
        /* a third of the period and more: even polls would see them within 21 */
        assert_true(g.window_ns <= g.changes * S(0.031));
    }
}

/* Two boards have a window each; eight of them, all at other times, are polled evenly and not at a
 * fifth of the period, which would see each publication at the same phase again and again. */
static void test_several_channels(void **state)
{
    struct grid g;

    (void)state;
    grid_start(&g, 2, S(0.1), S(0.001));
    grid_run(&g, S(2));
    grid_run(&g, S(60));
    assert_true(g.reads <= 50 * 60 + 20);
    assert_true(g.window_ns <= g.changes * S(0.008));
    grid_start(&g, 8, S(0.1), S(0.001));
    grid_run(&g, S(2));
    grid_run(&g, S(60));
    assert_true(g.reads <= 50 * 60 + 20);
    assert_true(g.window_ns <= g.changes * S(0.0225));
    assert_true(llabs(ipw_poll_rate_next(&g.pace, g.pace.read_ns) - g.pace.read_ns - S(0.02)) >
                S(0.0005));
}

/* Eight boards that publish together cost no more than one. */
static void test_channels_in_phase(void **state)
{
    struct grid g;

    (void)state;
    grid_start(&g, 8, S(0.1), 0);
    for (size_t i = 0; i < 8; i++) g.phase[i] = g.next[i] = S(1000.003);
    grid_run(&g, S(2));
    grid_run(&g, S(60));
    assert_true(g.reads <= 42 * 60);
    assert_true(g.window_ns <= g.changes * S(0.0025));
}

/* A counter that stands still for 3 s is polled evenly, and its windows are found again. */
static void test_stall(void **state)
{
    struct grid g;

    (void)state;
    grid_start(&g, 1, S(0.1), S(0.0025));
    grid_run(&g, S(5));
    g.still_from = g.t;
    g.still_to = g.t + S(3);
    grid_run(&g, S(3));
    assert_true(g.reads <= 150 + 40 + 2); /* 50 a second, and what was saved up */
    assert_int_equal(g.changes, 0);
    grid_run(&g, S(1));
    grid_run(&g, S(10));
    assert_true(g.reads <= 510);
    assert_true(g.window_ns <= g.changes * S(0.004));
}

/* Other periods in mid-run: each is learned, and no more is read than is allowed (a fifth of the
 * period, and not closer than 20 ms on the average). */
static void test_other_periods(void **state)
{
    static const double periods[] = {0.15, 0.06, 0.1, 0.5, 0.1, 1, 0.2};
    struct grid g;

    (void)state;
    grid_start(&g, 1, S(0.1), S(0.001));
    grid_run(&g, S(5));
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        grid_change(&g, S(periods[i]), S(0.001));
        grid_run(&g, S(15));
        assert_true(g.reads <= 55 * 15);
        grid_run(&g, S(30 * periods[i]));
        assert_near((double)g.pace.period_ns, periods[i] * 1e9, periods[i] * 3e7);
        grid_run(&g, S(15));
        assert_true(g.reads <= (int64_t)(15 / (periods[i] < 0.1 ? 0.02 : periods[i] / 5)) + 20);
        /* seen within 5 ms, or within 2 % of a longer period */
        if (periods[i] < 1) assert_true(g.blurred <= g.changes / 20 + 1);
        assert_true(g.window_ns <= g.changes * S(fmax(0.005, periods[i] / 50)));
    }
}

/* A driver whose calls take 1 to 50 ms: at most half of the time is spent in them. */
static void test_slow_calls(void **state)
{
    static const double took[] = {0.001, 0.005, 0.01, 0.02, 0.05, 0.15};
    struct grid g;

    (void)state;
    for (size_t i = 0; i < sizeof took / sizeof *took; i++) {
        grid_start(&g, 1, S(0.1), S(0.0025));
        g.took = S(took[i]);
        grid_run(&g, S(3));
        grid_run(&g, S(60));
        assert_true(g.busy_ns <= S(31));
        assert_true(g.reads <= 50 * 60 + 20);
        if (took[i] <= 0.01) assert_true(g.window_ns <= g.changes * S(2 * took[i] + 0.012));
    }
}

/* What is read by the schedule keeps its grid, and ticks that were missed are not made up for. */
static void test_schedule_is_a_grid(void **state)
{
    struct world w;
    int64_t values[2] = {0, 0};

    (void)state;
    start(&w, S(0.001), S(0.001), S(0.05), true);
    for (int i = 1; i <= 10; i++) {
        int64_t next = ipw_poll_rate_next(&w.pace, w.t + S(0.003));

        assert_int_equal(next, S(1000) + i * S(0.05));
        w.t = next;
        values[0]++;
        ipw_poll_rate_push(&w.pace, w.t, values);
    }
    assert_int_equal(ipw_poll_rate_next(&w.pace, w.t + S(0.33)), w.t + S(0.35));
}

UNIT(poll_rate)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_42_learns_100_ms),
        cmocka_unit_test(test_43_jitter_and_drift),
        cmocka_unit_test(test_43_fast_and_back),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_by_the_schedule),
        cmocka_unit_test(test_failed_reads),
        cmocka_unit_test(test_reads_around_publications),
        cmocka_unit_test(test_late_readings),
        cmocka_unit_test(test_jitter_widens_the_windows),
        cmocka_unit_test(test_several_channels),
        cmocka_unit_test(test_channels_in_phase),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_other_periods),
        cmocka_unit_test(test_slow_calls),
        cmocka_unit_test(test_schedule_is_a_grid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
