/* Counters that publish more slowly than they are polled: the edges of series.h. */
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

struct meter {                    /* a device of steps in power, seen through a counter */
    double step_s, low_w, high_w; /* it alternates */
    double publish_s, phase_s;
};

static double truth_j(const struct meter *m, double t)
{
    double pairs = floor(t / (2 * m->step_s)), rest = t - pairs * 2 * m->step_s;
    double j = pairs * m->step_s * (m->low_w + m->high_w);

    return rest < m->step_s ? j + rest * m->low_w
                            : j + m->step_s * m->low_w + (rest - m->step_s) * m->high_w;
}

static int64_t shown_uj(const struct meter *m, double t)
{
    double published = floor((t - m->phase_s) / m->publish_s) * m->publish_s + m->phase_s;

    return (int64_t)(truth_j(m, published) * 1e3) * 1000; /* whole millijoules */
}

static void poll(struct ipw_series *s, const struct meter *m, double from, double to, double every)
{
    for (int64_t i = 0; from + (double)i * every <= to + 1e-9; i++) {
        double t = from + (double)i * every;
        ipw_series_push(s, S(t), shown_uj(m, t));
    }
}

static struct ipw_series slow_series(int64_t period_ns)
{
    struct ipw_channel c = test_counter("gpu0", IPW_DOMAIN_GPU, 0, 700);
    struct ipw_series s;

    c.period_ns = period_ns;
    ipw_series_init(&s, &c);
    return s;
}

/* Case 42: polled every 5 ms, moving every 100 ms; told so, or to be learned. */
static void test_42_repeats_are_not_idle(void **state)
{
    const struct meter m = {1000, 300, 300, 0.1, 0.0421};

    (void)state;
    for (int told = 0; told < 2; told++) {
        struct ipw_series s = slow_series(told ? S(0.1) : 0);
        double mean, peak;

        poll(&s, &m, 10, 20, 0.005);
        assert_int_equal(s.breaks, 0);
        /* Not a joule is lost between the first and the last reading. */
        assert_int_equal(ipw_series_at(&s, S(20)), shown_uj(&m, 20) - shown_uj(&m, 10));
        /* No stretch of it looks idle, however short (once it is learned). */
        for (double t = 10.5; t < 19.5; t += 0.0137) {
            struct ipw_figure f = ipw_series_between(&s, S(t), S(t + 0.01), 0);
            assert_true(f.known);
            assert_near(f.j, 3, 0.2); /* edges are known to half a poll in 100 ms */
        }
        assert_true(ipw_series_power(&s, S(11), S(19), &mean, &peak));
        assert_near(mean, 300, 1);
        assert_true(peak < 300 * 1.1);
        ipw_series_release(&s);
    }
}

/* What a straight line over the readings says was counted by t: a poll sees the newest value. */
static double along_readings(const struct meter *m, double t, double every)
{
    double before = 10 + floor((t - 10) / every) * every;
    double a = (double)shown_uj(m, before), b = (double)shown_uj(m, before + every);

    return (a + (b - a) * (t - before) / every) / 1e6;
}

/* The edges at least halve the error of a straight line over the readings. */
static void test_edges_halve_the_error(void **state)
{
    const struct meter m = {0.7303, 90, 560, 0.1, 0.033};
    struct ipw_series edges = slow_series(S(0.1));
    double err_edges = 0, err_raw = 0;
    uint64_t seed = 3;

    (void)state;
    poll(&edges, &m, 10, 70, 0.01);
    for (int i = 0; i < 1000; i++) {
        double t0 = test_uniform(&seed, 11, 60), t1 = t0 + test_uniform(&seed, 0.2, 1);
        double j = truth_j(&m, t1) - truth_j(&m, t0);
        double raw = along_readings(&m, t1, 0.01) - along_readings(&m, t0, 0.01);

        err_edges += fabs(ipw_series_between(&edges, S(t0), S(t1), 0).j - j) / j;
        err_raw += fabs(raw - j) / j;
    }
    print_message("mean error of 0.2 to 1 s windows: edges %.2f %%, readings %.2f %%\n",
                  err_edges / 10, err_raw / 10);
    assert_true(err_edges < err_raw / 2);
    ipw_series_release(&edges);
}

/* Case 43: the period jitters and then changes; it is learned again. */
static void test_43_period_is_learned_again(void **state)
{
    struct ipw_series s = slow_series(0);
    uint64_t seed = 43;
    double t = 1, next = 1.05, shown = 1;

    (void)state;
    for (int i = 0; i < 4000; i++, t += 0.004) {
        double period = t < 8 ? 0.1 : 0.02;
        if (t >= next) {
            shown = next;
            next += period * test_uniform(&seed, 0.8, 1.2);
        }
        ipw_series_push(&s, S(t), J(200 * shown));
        if (i == 1700) assert_near((double)s.pace.moves_ns / 1e9, 0.1, 0.02);
    }
    assert_near((double)s.pace.moves_ns / 1e9, 0.02, 0.005);
    assert_int_equal(s.breaks, 0);
    assert_near(ipw_series_between(&s, S(3), S(16), 0).j, 200 * 13, 200 * 0.02);
    ipw_series_release(&s);
}

/* A counter that stands still says nothing, however often it is read: what ends in the silence has
 * no figure, and what spans it has what the next change brings. */
static void test_counter_that_stands_still(void **state)
{
    struct ipw_series s = slow_series(S(0.1));
    struct ipw_figure f;
    int64_t v = J(1000);

    (void)state;
    for (int i = 0; i <= 1000; i++) {
        int64_t t = S(1) + i * S(0.02);

        if (i % 5 == 0 && (i < 250 || i > 750)) v += i == 755 ? J(1000) : J(10);
        ipw_series_push(&s, t, v);
        if (i == 260) assert_int_equal(ipw_series_silence_ns(&s), 0); /* 300 ms: it happens */
        if (i == 300) {
            assert_int_equal(ipw_series_silence_ns(&s), S(1.1));
            assert_false(ipw_series_is_stuck(&s));
            f = ipw_series_between(&s, S(3), S(6.5), 0);
            assert_unknown(f, "stuck");
            assert_near(f.partial_j, 290, 6); /* up to its last change, at 5.9 s */
            assert_near(f.coverage, 2.9 / 3.5, 0.02);
            assert_near(ipw_series_between(&s, S(3), S(5), 0).j, 200, 2);
        }
        if (i == 700) assert_true(ipw_series_is_stuck(&s));
    }
    assert_int_equal(s.breaks, 0);
    assert_int_equal(ipw_series_at(&s, S(21)), v - J(1010));
    f = ipw_series_between(&s, S(3), S(20), 0);
    assert_true(f.known);
    assert_near(f.j, 290 + 1000 + 390, 12);
    /* A window inside the silence may have had all of it, or next to nothing. */
    f = ipw_series_between(&s, S(8), S(9), 0);
    assert_int_equal(f.provenance, IPW_PROV_DISTRIBUTED);
    assert_near(f.lo_j, 0, 0);
    assert_true(f.hi_j >= 700);
    ipw_series_release(&s);
}

/* Until it has moved once nothing is known, whoever asks; from its first change on everything
 * is. */
static void test_counter_that_never_moves(void **state)
{
    struct ipw_series s = slow_series(S(0.1));

    (void)state;
    for (int i = 0; i <= 500; i++) ipw_series_push(&s, S(1) + i * S(0.02), J(77));
    assert_false(ipw_series_has_moved(&s));
    assert_unknown(ipw_series_between(&s, S(1), S(11), 0), "stuck");
    assert_unknown(ipw_series_between(&s, S(1), S(1.05), 0), "stuck");
    assert_unknown(ipw_series_between(&s, S(2), S(2), 0), "stuck");
    assert_near(ipw_series_coverage(&s, S(1), S(11)), 0, 0);
    assert_int_equal(ipw_series_settled_ns(&s), INT64_MIN);
    ipw_series_push(&s, S(11.02), J(1077));
    assert_true(ipw_series_has_moved(&s));
    assert_near(ipw_series_between(&s, S(1), S(11), 0).j, 1000, 5);
    ipw_series_release(&s);
}

/* A device that says that it sleeps is believed: nothing was drawn; the figure is no
 * measurement. */
static void test_counter_of_a_sleeping_device(void **state)
{
    struct ipw_series s = slow_series(S(0.1));
    int64_t v = J(1000);

    (void)state;
    for (int i = 0; i <= 1000; i++) {
        int64_t t = S(1) + i * S(0.02);

        if (i % 5 == 0 && (i < 250 || i > 750)) v += J(10);
        ipw_series_push(&s, t, v);
        if (i > 250 && i <= 750) ipw_series_sleep(&s);
    }
    assert_near(ipw_series_between(&s, S(7), S(15), 0).j, 0, 1e-9);
    assert_int_equal(ipw_series_between(&s, S(7), S(15), 0).provenance, IPW_PROV_ESTIMATED);
    assert_near(ipw_series_between(&s, S(2), S(5), 0).j, 300, 1e-3 + 100 * 0.01);
    assert_int_equal(ipw_series_at(&s, S(21)), v - J(1010));
    ipw_series_release(&s);
}

/* A dead counter's gauge takes its place: a chain of its own, estimated; what spans both is
 * null. */
static void test_handed_over_to_its_gauge(void **state)
{
    for (int moved = 0; moved < 2; moved++) {
        struct ipw_series s = slow_series(S(0.1));
        struct ipw_channel gauge = test_gauge("gpu0", 700);
        int64_t v = J(1000);

        (void)state;
        for (int i = 0; i <= 100; i++) { /* it dies at 2 s */
            if (moved && i % 5 == 0 && i <= 50) v += J(20);
            ipw_series_push(&s, S(1) + i * S(0.02), v);
        }
        ipw_series_hand_over(&s, &gauge, "stuck");
        for (int i = 0; i <= 100; i++) ipw_series_push(&s, S(5) + i * S(0.02), 200000);
        assert_figure(ipw_series_between(&s, S(5.5), S(6.5), 0), 200, IPW_PROV_ESTIMATED);
        assert_unknown(ipw_series_between(&s, S(1.5), S(6), 0), "stuck");
        assert_unknown(ipw_series_between(&s, S(2.5), S(4), 0), "stuck");
        if (moved) {
            assert_near(ipw_series_between(&s, S(1.2), S(1.8), 0).j, 120, 2);
        } else {
            assert_unknown(ipw_series_between(&s, S(1.2), S(1.8), 0), "stuck");
        }
        ipw_series_release(&s);
    }
}

/* What has been said stays said, whatever comes later: random counters, rhythms and failures. */
static void test_settled_figures_do_not_change(void **state)
{
    (void)state;
    for (uint64_t run = 0; run < 300; run++) {
        uint64_t seed = run + 1;
        struct ipw_series s = slow_series(run % 3 == 0 ? S(0.1) : 0);
        int64_t asked[400], said[400], t = S(1), v = J(10), settled;
        size_t n = 0;
        int hold = 1 + (int)(test_random(&seed) % 9);

        if (run % 2) s.channel.modulus_uj = RANGE_15 + 15;
        for (int i = 0; i < 400; i++) {
            uint32_t dice = test_random(&seed);

            t += (int64_t)(dice % 30000000) + 1;
            if (dice % 1000 < 5) t += S(20); /* a hole */
            if (dice % 1000 > 994) hold = 1 + (int)(dice / 1000 % 9);
            if (i % hold == 0) v += (int64_t)(test_random(&seed) % 4000000);
            if (dice % 1000 == 500) v = (int64_t)(test_random(&seed) % 50000); /* a reset */
            if (dice % 1000 > 30 && dice % 1000 < 60) {
                ipw_series_push(&s, t, IPW_NO_VALUE);
            } else {
                ipw_series_push(&s, t, dice % 1000 == 700 ? 0 : v);
            }
            settled = ipw_series_settled_ns(&s);
            if (settled == INT64_MIN) continue;
            asked[n] = settled - (int64_t)(test_random(&seed) % 100000000);
            said[n] = ipw_series_at(&s, asked[n]);
            n++;
        }
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(ipw_series_at(&s, asked[i]), said[i]);
        }
        for (size_t i = s.first + 1; i < s.n; i++) { /* and it never runs backwards */
            assert_true(s.samples[i].t_ns > s.samples[i - 1].t_ns);
            assert_true(s.samples[i].uj >= s.samples[i - 1].uj);
        }
        ipw_series_release(&s);
    }
}

/* The error of a straight line: one step of power inside a gap of h costs at most h * dP / 4. */
static void test_interpolation_error_is_bounded(void **state)
{
    uint64_t seed = 2;

    (void)state;
    for (int run = 0; run < 2000; run++) {
        struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, 0, 1000);
        double h = test_uniform(&seed, 0.001, 0.2), a = test_uniform(&seed, 1, 900);
        double b = test_uniform(&seed, 1, 900), at = test_uniform(&seed, 0, h);
        struct ipw_series s;

        ipw_series_init(&s, &c);
        ipw_series_push(&s, S(1), 0);
        ipw_series_push(&s, S(1 + h), J(a * at + b * (h - at)));
        for (int k = 0; k <= 20; k++) {
            double x = h * k / 20, j = x < at ? a * x : a * at + b * (x - at);
            assert_near((double)ipw_series_at(&s, S(1 + x)) / 1e6, j, h * fabs(a - b) / 4 + 2.1e-6);
        }
        ipw_series_release(&s);
    }
}

/* 300 W, in windows whose ends lie at samples: 5 % of the joules, and 20 ms and half of the
 * samples' interval of 5 ms at each end, all rectangular. */
static void test_standard_uncertainty(void **state)
{
    const struct meter m = {1000, 300, 300, 0.1, 0.0421};
    struct ipw_series s = slow_series(S(0.1));

    (void)state;
    poll(&s, &m, 10, 22, 0.005);
    for (double length = 0.2; length <= 10; length *= 7) {
        struct ipw_figure f = ipw_series_between(&s, S(11.0421), S(11.0421 + length), 0);
        double stated = 0.05 * 300 * length, ends = 300 * (0.02 + 0.0025) * sqrt(2);

        assert_near(f.u_j, hypot(stated, ends) / sqrt(3), 0.02 * f.u_j);
    }
    ipw_series_release(&s);
}

UNIT(series_edges)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_42_repeats_are_not_idle),
        cmocka_unit_test(test_edges_halve_the_error),
        cmocka_unit_test(test_43_period_is_learned_again),
        cmocka_unit_test(test_counter_that_stands_still),
        cmocka_unit_test(test_counter_that_never_moves),
        cmocka_unit_test(test_counter_of_a_sleeping_device),
        cmocka_unit_test(test_handed_over_to_its_gauge),
        cmocka_unit_test(test_settled_figures_do_not_change),
        cmocka_unit_test(test_interpolation_error_is_bounded),
        cmocka_unit_test(test_standard_uncertainty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
