#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static struct ipw_series start(struct ipw_channel channel)
{
    struct ipw_series s;

    ipw_series_init(&s, &channel);
    return s;
}

static struct ipw_figure between(const struct ipw_series *s, double t0, double t1)
{
    return ipw_series_between(s, S(t0), S(t1), 0);
}

/* Cases 1 and 3: one wrap, inside a window and between two, at both units. */
static void test_01_03_wrap(void **state)
{
    static const struct {
        int64_t range, lsb;
    } units[] = {{RANGE_61, 61}, {RANGE_15, 15}};

    (void)state;
    for (size_t u = 0; u < 2; u++) {
        int64_t modulus = units[u].range + units[u].lsb, v = modulus - J(25);
        struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, modulus, 400));

        for (int i = 0; i <= 20; i++) { /* 100 W, read every 100 ms: wraps after 2.5 reads */
            ipw_series_push(&s, S(1 + i * 0.1), v % modulus);
            v += J(10);
        }
        assert_int_equal(s.breaks, 0);
        assert_int_equal(s.rejected, 0);
        assert_figure(between(&s, 1.0, 3.0), 200, IPW_PROV_MEASURED);
        assert_figure(between(&s, 1.1, 1.5), 40, IPW_PROV_MEASURED); /* wraps inside */
        assert_figure(between(&s, 1.0, 1.2), 20, IPW_PROV_MEASURED); /* before */
        assert_figure(between(&s, 1.3, 1.7), 40, IPW_PROV_MEASURED); /* after */
        ipw_series_release(&s);
    }
}

/* Case 2: from the highest value to 0 it is one unit. */
static void test_02_one_unit_over_the_wrap(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, RANGE_61 + 61, 400));

    (void)state;
    ipw_series_push(&s, S(1), RANGE_61);
    ipw_series_push(&s, S(1.1), 0);
    assert_int_equal(ipw_series_at(&s, S(1.1)), 61);
    assert_int_equal(s.breaks, 0);
    ipw_series_release(&s);
}

/* Case 4: two wraps in a hole of 200 s at 400 W are not one. */
static void test_04_hole_longer_than_the_register(void **state)
{
    int64_t modulus = RANGE_15 + 15, v = 0;
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, modulus, 800));

    (void)state;
    for (int i = 0; i <= 10; i++, v += J(40)) ipw_series_push(&s, S(1 + i * 0.1), v % modulus);
    v += J(400 * 200);
    for (int i = 0; i <= 10; i++, v += J(40)) ipw_series_push(&s, S(202 + i * 0.1), v % modulus);
    assert_int_equal(s.breaks, 1);
    assert_string_equal(s.break_reason, "gap_too_long");
    assert_figure(between(&s, 1, 2), 400, IPW_PROV_MEASURED);
    assert_figure(between(&s, 202, 203), 400, IPW_PROV_MEASURED);
    assert_unknown(between(&s, 1.5, 202.5), "gap_too_long");
    assert_unknown(between(&s, 100, 101), "gap_too_long"); /* inside it */
    assert_near(between(&s, 1, 203).coverage, 2.0 / 202, 1e-9);
    assert_near(between(&s, 100, 101).coverage, 0, 0);
    ipw_series_release(&s);
}

/* Case 6: a 64-bit counter that starts again. */
static void test_06_reset_of_a_counter_that_never_wraps(void **state)
{
    struct ipw_series s = start(test_counter("gpu0", IPW_DOMAIN_GPU, 0, 910));
    int64_t v = INT64_C(987654321000);

    (void)state;
    for (int i = 0; i <= 10; i++, v += J(30)) ipw_series_push(&s, S(1 + i * 0.1), v);
    for (int i = 0; i <= 10; i++) ipw_series_push(&s, S(2.1 + i * 0.1), J(30 * i));
    assert_int_equal(s.breaks, 1);
    assert_string_equal(s.break_reason, "counter_reset");
    assert_figure(between(&s, 1, 2), 300, IPW_PROV_MEASURED);
    assert_figure(between(&s, 2.1, 3.1), 300, IPW_PROV_MEASURED);
    assert_unknown(between(&s, 1, 3.1), "counter_reset");
    assert_unknown(between(&s, 2.02, 2.08), "counter_reset");
    assert_near(between(&s, 1, 3.1).coverage, 2.0 / 2.1, 1e-9);
    assert_int_equal(ipw_series_at(&s, S(3.1)), J(600)); /* nothing like 2^64 */
    ipw_series_release(&s);
}

/* Case 7: a small value after one far from the range is a reset, not a wrap. */
static void test_07_reset_is_not_a_wrap(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, RANGE_61 + 61, 400));

    (void)state;
    ipw_series_push(&s, S(1), J(100000));
    ipw_series_push(&s, S(1.1), J(100010));
    ipw_series_push(&s, S(1.2), J(1));
    assert_int_equal(s.breaks, 0); /* the next one has to agree first */
    ipw_series_push(&s, S(1.3), J(11));
    assert_int_equal(s.breaks, 1);
    assert_string_equal(s.break_reason, "counter_reset");
    assert_int_equal(ipw_series_at(&s, S(1.3)), J(20));
    ipw_series_release(&s);
}

/* A reading that the next one contradicts was a glitch (reference section 4, complaint 4). */
static void test_glitch_is_refused(void **state)
{
    static const int64_t glitches[] = {0, J(7), J(4000000), J(99999)};

    (void)state;
    for (size_t g = 0; g < sizeof glitches / sizeof *glitches; g++) {
        struct ipw_series s = start(test_counter("gpu0", IPW_DOMAIN_GPU, 0, 400));

        for (int i = 0; i <= 20; i++) {
            ipw_series_push(&s, S(1 + i * 0.1), i == 9 ? glitches[g] : J(100000 + 10 * i));
        }
        assert_int_equal(s.breaks, 0);
        assert_int_equal(s.rejected, 1);
        assert_figure(between(&s, 1, 3), 200, IPW_PROV_MEASURED);
        ipw_series_release(&s);
    }
}

static void test_jump_that_stays_is_a_break(void **state)
{
    struct ipw_series s = start(test_counter("gpu0", IPW_DOMAIN_GPU, 0, 400));

    (void)state;
    for (int i = 0; i <= 20; i++) {
        ipw_series_push(&s, S(1 + i * 0.1), J((i < 10 ? 0 : 900000) + 10 * i));
    }
    assert_int_equal(s.breaks, 1);
    assert_string_equal(s.break_reason, "implausible_step");
    assert_int_equal(ipw_series_at(&s, S(3)), J(190)); /* all but the step that broke it */
    ipw_series_release(&s);
}

/* Case 8: failed reads in between lose nothing; a failed first read is no baseline. */
static void test_08_failed_reads_are_spanned(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, RANGE_61 + 61, 400));

    (void)state;
    for (int i = 0; i <= 30; i++) {
        bool fails = i < 2 || (i >= 12 && i < 17);
        ipw_series_push(&s, S(1 + i * 0.1), fails ? IPW_NO_VALUE : J(500 + 10 * i));
    }
    assert_int_equal(s.rejected, 7);
    assert_int_equal(s.breaks, 0);
    assert_figure(between(&s, 1.2, 4), 280, IPW_PROV_MEASURED);
    assert_figure(between(&s, 2.35, 2.55), 20, IPW_PROV_DISTRIBUTED); /* inside the hole */
    assert_unknown(between(&s, 1, 4), "not_covered");
    ipw_series_release(&s);
}

static void test_13_reads_that_go_on_failing(void **state)
{
    struct ipw_series s = start(test_counter("gpu0", IPW_DOMAIN_GPU, 0, 400));

    (void)state;
    assert_unknown(between(&s, 1, 2), "no_samples");
    ipw_series_push(&s, S(1), IPW_NO_VALUE);
    assert_unknown(between(&s, 1, 2), "no_samples");
    for (int i = 0; i <= 10; i++) ipw_series_push(&s, S(2 + i * 0.1), J(10 * i));
    assert_unknown(between(&s, 2.5, 3.5), "not_covered"); /* not read yet */
    for (int i = 1; i <= 10; i++) ipw_series_push(&s, S(3 + i * 0.1), IPW_NO_VALUE);
    assert_unknown(between(&s, 2.5, 3.5), "no_samples");
    assert_figure(between(&s, 2, 3), 100, IPW_PROV_MEASURED); /* what was read before stays */
    ipw_series_release(&s);
}

/* Case 9, as numbers (the texts are in test_rapl.c). */
static void test_09_absurd_values(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, RANGE_61 + 61, 400));
    static const int64_t bad[] = {-1, -5, RANGE_61 + 61, INT64_MAX, IPW_NO_VALUE};

    (void)state;
    ipw_series_push(&s, S(1), J(5));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ipw_series_push(&s, S(1.1 + (double)i * 0.01), bad[i]);
    }
    ipw_series_push(&s, S(1.2), J(25));
    ipw_series_push(&s, S(1.2), J(26)); /* the same instant again */
    ipw_series_push(&s, S(1.1), J(27)); /* and back in time */
    assert_int_equal(s.rejected, 7);
    assert_int_equal(ipw_series_at(&s, S(9)), J(20));
    ipw_series_release(&s);
}

/* A meter at the wall, 10 times a second, whose most is not known: it is taken to draw twice the
 * largest that it has shown, so a window of some seconds is known within 15 %. */
static void test_meter_without_a_limit(void **state)
{
    (void)state;
    for (int counter = 0; counter < 2; counter++) {
        struct ipw_channel c = counter ? test_counter("wall", IPW_DOMAIN_MACHINE, 0, 30000)
                                       : test_gauge("wall", 30000);
        struct ipw_series s = start(c);
        struct ipw_figure f;
        double j = 0;

        for (int i = 0; i <= 150; i++) {
            double w = i % 20 < 4 ? 90 : 295 + i % 7;

            ipw_series_push(&s, S(1 + 0.1 * i), counter ? J(j) : (int64_t)(w * 1e3));
            j += w / 10;
        }
        f = ipw_series_between(&s, S(3.03), S(10.97), 0);
        assert_true(f.known && f.j > 1900 && f.j < 2200);
        assert_true(f.hi_j <= 1.15 * f.j && f.lo_j >= 0.85 * f.j);
        assert_true(f.hi_j > f.j && f.lo_j < f.j);
        ipw_series_release(&s);
    }
}

/* Case 10: absurd gauge readings are refused, their neighbours bridged unless too far apart. */
static void test_10_gauge(void **state)
{
    struct ipw_series s = start(test_gauge("gpu0", 400));

    (void)state;
    for (int i = 0; i <= 20; i++) {
        int64_t mw = i == 5 ? -1 : i == 6 ? INT64_C(4294967295) : i == 7 ? 1200001 : 300000;
        ipw_series_push(&s, S(1 + i * 0.1), mw);
    }
    assert_int_equal(s.rejected, 3);
    assert_figure(between(&s, 1, 3), 600, IPW_PROV_ESTIMATED);
    assert_figure(between(&s, 1.53, 1.61), 24, IPW_PROV_ESTIMATED);
    ipw_series_push(&s, S(9), 300000);
    ipw_series_push(&s, S(9.1), 300000);
    assert_int_equal(s.breaks, 1);
    assert_unknown(between(&s, 2, 9.05), "gap_too_long");
    assert_figure(between(&s, 9, 9.1), 30, IPW_PROV_ESTIMATED);
    ipw_series_release(&s);
}

static void test_gauge_trapezoid_loses_nothing(void **state)
{
    struct ipw_series s = start(test_gauge("gpu0", 0));

    (void)state;
    /* 1 mW for a million steps of 333 ns: each step is a third of a nanojoule. */
    for (int i = 0; i <= 1000000; i++) ipw_series_push(&s, 1 + (int64_t)i * 333, 1);
    assert_int_equal(ipw_series_at(&s, S(1)), 333);
    ipw_series_release(&s);
    s = start(test_gauge("gpu0", 0));
    ipw_series_push(&s, S(1), 0);
    ipw_series_push(&s, S(2), 200000);
    assert_figure(between(&s, 1, 2), 100, IPW_PROV_ESTIMATED);
    ipw_series_release(&s);
}

/* Case 22. */
static void test_22_no_length(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));
    struct ipw_figure f;

    (void)state;
    for (int i = 0; i <= 10; i++) ipw_series_push(&s, S(1 + i * 0.1), J(10 * i));
    f = between(&s, 1.234, 1.234);
    assert_figure(f, 0, IPW_PROV_MEASURED);
    assert_near(f.coverage, 1, 0);
    assert_int_equal(f.samples, 0);
    assert_int_equal(between(&s, 1.2, 1.2).samples, 1);
    assert_unknown(between(&s, 3, 3), "not_covered");
    assert_unknown(between(&s, 1.5, 1.4), "not_covered"); /* case 23: the wrong way round */
    ipw_series_release(&s);
}

static void test_provenance(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));
    struct ipw_figure f;

    (void)state;
    for (int i = 0; i <= 100; i++) {
        if (i < 60 || i > 70) ipw_series_push(&s, S(1 + i * 0.1), J(10 * i));
    }
    assert_figure(between(&s, 1.0, 2.0), 100, IPW_PROV_MEASURED);
    assert_figure(between(&s, 1.001, 2.002), 100.1, IPW_PROV_MEASURED);
    assert_figure(between(&s, 1.0, 2.003), 100.3, IPW_PROV_INTERPOLATED);  /* 3 ms off */
    assert_figure(between(&s, 1.0015, 1.1015), 10, IPW_PROV_INTERPOLATED); /* 3 % of it */
    assert_figure(between(&s, 1.02, 1.04), 2, IPW_PROV_DISTRIBUTED);       /* could be 0 to 8 J */
    assert_figure(between(&s, 6.95, 7.3), 35, IPW_PROV_DISTRIBUTED);       /* ends in the hole */
    assert_figure(between(&s, 6.5, 8.5), 200, IPW_PROV_MEASURED);          /* spans it */
    f = between(&s, 1.0, 2.0);
    assert_int_equal(f.samples, 11);
    assert_int_equal(between(&s, 1.01, 1.99).samples, 9);
    assert_int_equal(between(&s, 1.01, 1.09).samples, 0);
    assert_near(f.coverage, 1, 0);
    ipw_series_release(&s);
}

static void test_slack(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));
    struct ipw_figure f;

    (void)state;
    for (int i = 0; i <= 10; i++) ipw_series_push(&s, S(1 + i * 0.1), J(10 * i));
    assert_unknown(ipw_series_between(&s, S(0.998), S(2), S(0.001)), "not_covered");
    f = ipw_series_between(&s, S(0.998), S(2.002), S(0.002));
    assert_figure(f, 100, IPW_PROV_MEASURED);
    assert_near(f.coverage, 1 / 1.004, 1e-9);
    /* Slack does not invent a window that was never sampled. */
    assert_unknown(ipw_series_between(&s, S(0.998), S(0.999), S(0.01)), "not_covered");
    assert_unknown(ipw_series_between(&s, S(2.001), S(2.002), S(0.01)), "not_covered");
    ipw_series_release(&s);
}

/* At the edges of a break, too, an instant is taken as at the nearest sample of its own side. */
static void test_slack_at_a_break(void **state)
{
    struct ipw_series s = start(test_counter("gpu0", IPW_DOMAIN_GPU, 0, 400));

    (void)state;
    for (int i = 0; i <= 30; i++) { /* it starts again after 2 s and after 3 s */
        int64_t steps = i <= 10 ? i + 500 : i <= 20 ? i + 90 : i - 20;
        ipw_series_push(&s, S(1 + i * 0.1), steps * J(10));
    }
    assert_int_equal(s.breaks, 2);
    assert_figure(ipw_series_between(&s, S(1.5), S(2.001), S(0.002)), 50, IPW_PROV_MEASURED);
    assert_figure(ipw_series_between(&s, S(2.099), S(2.5), S(0.002)), 40, IPW_PROV_MEASURED);
    assert_unknown(ipw_series_between(&s, S(1.5), S(2.003), S(0.002)), "counter_reset");
    assert_unknown(ipw_series_between(&s, S(2.097), S(2.5), S(0.002)), "counter_reset");
    assert_unknown(ipw_series_between(&s, S(2.5), S(3.5), S(0.002)), "counter_reset");
    assert_unknown(ipw_series_between(&s, S(3.02), S(3.08), S(0.002)), "counter_reset");
    ipw_series_release(&s);
}

/* What is usual of a counter follows all of its past, not its newest step alone. */
static void test_what_is_usual(void **state)
{
    struct ipw_channel c = test_counter("gpu0", IPW_DOMAIN_GPU, 0, 400);
    struct ipw_series s;
    int64_t t = S(1);

    (void)state;
    c.period_ns = S(0.1);
    s = start(c);
    for (int i = 0; i < 200; i++, t += S(0.02)) ipw_series_push(&s, t, i / 5 * J(10));
    assert_in_range(s.pace.spacing_ns, S(0.099), S(0.101));
    assert_true(s.pace.longest_ns <= S(0.14)); /* not since it was opened */
    assert_in_range(s.pace.moves_ns, S(0.099), S(0.101));
    ipw_series_push(&s, t + S(3), J(1000)); /* one step of three seconds */
    assert_true(s.pace.spacing_ns > S(0.1) && s.pace.spacing_ns < S(0.15));
    ipw_series_release(&s);
    c.period_ns = S(0.01); /* a channel that says so is slow from the start */
    assert_int_equal(start(c).pace.moves_ns, S(0.01));
    c.period_ns--;
    assert_int_equal(start(c).pace.moves_ns, 0);
}

/* After a cut one reading begins a chain, and those that follow belong to it. */
static void test_one_cut_one_chain(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));

    (void)state;
    for (int i = 0; i <= 20; i++) {
        if (i == 11) ipw_series_cut(&s, "suspended");
        ipw_series_push(&s, S(1 + i * 0.1), J(10 * i));
    }
    assert_int_equal(s.breaks, 1);
    assert_figure(between(&s, 2.1, 3), 90, IPW_PROV_MEASURED);
    assert_unknown(between(&s, 1.5, 2.5), "suspended");
    ipw_series_release(&s);
}

/* Corners go with the samples before them; those that are kept bend the line as before. */
static void test_trim_corners(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));
    int64_t later;

    (void)state;
    for (int i = 0; i <= 200; i++) ipw_series_push(&s, S(1 + i * 0.1), J(10 * i));
    for (int i = 0; i < 200; i++)
        ipw_series_bend(&s, S(1.02 + i * 0.1), J(10 * i + 8)); /* most of it in a fifth */
    assert_int_equal(ipw_series_at(&s, S(1.01)), J(4));
    later = ipw_series_at(&s, S(15.51));
    assert_int_equal(later, J(1454));
    ipw_series_trim(&s, S(11));
    assert_true(s.n_knots >= 100 && s.n_knots <= 102);
    assert_int_equal(ipw_series_at(&s, S(15.51)), later);
    ipw_series_release(&s);
}

/* A window that only ends beyond the readings is covered up to there. */
static void test_slack_at_one_end(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));

    (void)state;
    for (int i = 0; i <= 10; i++) ipw_series_push(&s, S(1 + i * 0.1), J(10 * i));
    assert_near(ipw_series_between(&s, S(1), S(2.002), S(0.002)).coverage, 1 / 1.002, 1e-9);
    assert_near(ipw_series_between(&s, S(0.998), S(2), S(0.002)).coverage, 1 / 1.002, 1e-9);
    ipw_series_release(&s);
}

/* Hours between two readings of a large device: the straight line does not overflow. */
static void test_long_step(void **state)
{
    struct ipw_series s = start(test_counter("rack", IPW_DOMAIN_MACHINE, 0, 100000));

    (void)state;
    ipw_series_push(&s, S(1), 0);
    ipw_series_push(&s, S(2), J(50000));
    ipw_series_push(&s, S(100001), J(5e9)); /* 50 kW for 28 h */
    assert_figure(between(&s, 1, 50001), 2.5e9, IPW_PROV_DISTRIBUTED);
    ipw_series_release(&s);
}

static void test_trim(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));

    (void)state;
    ipw_series_keep(&s, S(1.25));
    for (int i = 0; i <= 10000; i++) {
        ipw_series_push(&s, S(1 + i * 0.1), J(10 * i));
        if (i % 100 == 99) ipw_series_trim(&s, S(1 + (i - 50) * 0.1 + 0.05));
    }
    assert_true(s.n - s.first < 200);
    assert_true(s.cap < 1000);
    assert_figure(between(&s, 1, 1001), 100000, IPW_PROV_MEASURED);
    assert_figure(between(&s, 1.05, 1000.95), 99990, IPW_PROV_INTERPOLATED);
    assert_figure(between(&s, 1.25, 1000), 99875, IPW_PROV_INTERPOLATED);
    assert_int_equal(between(&s, 1.1, 1001).samples, 10000);
    assert_figure(between(&s, 1, 1.2), 20, IPW_PROV_MEASURED);
    assert_unknown(between(&s, 500, 501), "not_covered"); /* trimmed */
    assert_unknown(between(&s, 500, 1000), "not_covered");
    assert_int_equal(ipw_series_at(&s, S(0.5)), 0);
    ipw_series_release(&s);
}

static void test_trim_remembers_breaks(void **state)
{
    struct ipw_series s = start(test_counter("gpu0", IPW_DOMAIN_GPU, 0, 400));

    (void)state;
    ipw_series_keep(&s, S(1));
    for (int i = 0; i <= 1000; i++) {
        ipw_series_push(&s, S(1 + i * 0.1), J(10 * (i >= 300 ? i - 299 : i + 9000)));
    }
    ipw_series_trim(&s, S(90));
    assert_int_equal(s.n_gaps, 0);
    assert_unknown(between(&s, 1, 100), "counter_reset");
    assert_near(between(&s, 1, 101).coverage, 99.9 / 100, 1e-9);
    assert_figure(between(&s, 95, 96), 100, IPW_PROV_MEASURED);
    ipw_series_release(&s);
}

static void test_power(void **state)
{
    struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, 0, 400));
    double mean, peak;
    int64_t v = 0;

    (void)state;
    assert_false(ipw_series_power(&s, S(1), S(2), &mean, &peak));
    for (int i = 0; i <= 100; i++) { /* 100 W, between 3 and 5 s 200 W */
        ipw_series_push(&s, S(1 + i * 0.1), v);
        v += i >= 20 && i < 40 ? J(20) : J(10);
    }
    assert_true(ipw_series_power(&s, S(2), S(6), &mean, &peak));
    assert_near(mean, 150, 1e-6);
    assert_near(peak, 200, 1e-6);
    assert_true(ipw_series_power(&s, S(2.01), S(2.02), &mean, &peak)); /* inside one step */
    assert_near(mean, 100, 1e-6);
    assert_near(peak, 100, 1e-6);
    assert_true(ipw_series_power(&s, S(0), S(2), &mean, &peak)); /* of what is there */
    assert_near(mean, 100, 1e-6);
    assert_false(ipw_series_power(&s, S(2), S(2), &mean, &peak));
    assert_false(ipw_series_power(&s, S(20), S(21), &mean, &peak));
    /* The time across a break is no time at 0 W. */
    ipw_series_cut(&s, "suspended");
    for (int i = 0; i <= 10; i++) ipw_series_push(&s, S(20 + i * 0.1), v + J(10 * i));
    assert_true(ipw_series_power(&s, S(10), S(21), &mean, &peak));
    assert_near(mean, 100, 1e-6);
    assert_near(peak, 100, 1e-6);
    assert_false(ipw_series_power(&s, S(12), S(19), &mean, &peak));
    ipw_series_release(&s);
}

/* Case 49: the same readings twice give the same figures. */
static void test_49_same_twice(void **state)
{
    struct ipw_figure f[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        uint64_t seed = 49;
        struct ipw_series s = start(test_counter("package-0", IPW_DOMAIN_CPU, RANGE_61 + 61, 400));
        int64_t v = RANGE_61 - J(500), t = S(1);

        for (int i = 0; i < 1000; i++) {
            ipw_series_push(&s, t, test_random(&seed) % 50 ? v % (RANGE_61 + 61) : IPW_NO_VALUE);
            t += 10000000 + (int64_t)(test_random(&seed) % 5000000);
            v += (int64_t)(test_random(&seed) % 3000000);
        }
        f[k] = ipw_series_between(&s, S(2), S(9), 0);
        ipw_series_release(&s);
    }
    assert_true(f[0].known);
    assert_memory_equal(&f[0].j, &f[1].j, sizeof f[0].j);
    assert_int_equal(f[0].samples, f[1].samples);
}

UNIT(series)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_01_03_wrap),
        cmocka_unit_test(test_02_one_unit_over_the_wrap),
        cmocka_unit_test(test_04_hole_longer_than_the_register),
        cmocka_unit_test(test_06_reset_of_a_counter_that_never_wraps),
        cmocka_unit_test(test_07_reset_is_not_a_wrap),
        cmocka_unit_test(test_glitch_is_refused),
        cmocka_unit_test(test_jump_that_stays_is_a_break),
        cmocka_unit_test(test_08_failed_reads_are_spanned),
        cmocka_unit_test(test_13_reads_that_go_on_failing),
        cmocka_unit_test(test_09_absurd_values),
        cmocka_unit_test(test_10_gauge),
        cmocka_unit_test(test_meter_without_a_limit),
        cmocka_unit_test(test_gauge_trapezoid_loses_nothing),
        cmocka_unit_test(test_22_no_length),
        cmocka_unit_test(test_provenance),
        cmocka_unit_test(test_slack),
        cmocka_unit_test(test_slack_at_one_end),
        cmocka_unit_test(test_what_is_usual),
        cmocka_unit_test(test_one_cut_one_chain),
        cmocka_unit_test(test_trim_corners),
        cmocka_unit_test(test_slack_at_a_break),
        cmocka_unit_test(test_long_step),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_trim_remembers_breaks),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_49_same_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
