/* The chain of docs/method.md, "Fallbacks", step by step: each turn gets the first figure that
 * applies, and says which. */
#include "ledger/ledger.h"
#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU

struct world {
    struct ipw_ledger *l;
    int64_t q;
};

/* A board of 300 W (prefill 600 W, when told), read at the given times. */
static struct world begin(int64_t period_ns, bool gauge)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 900), test_gauge("gpu0/power", 900)};

    c[0].period_ns = period_ns;
    c[1].in_sum = false;
    snprintf(c[0].device, sizeof c[0].device, "board");
    snprintf(c[1].device, sizeof c[1].device, "board");
    return (struct world){.l = ipw_ledger_new(c, gauge ? 2 : 1), .q = -1};
}

static void read_at(struct world *w, double t, double joules)
{
    int64_t v = J(joules);

    ipw_ledger_row(w->l, 0, 1, S(t), &v);
}

static struct ipw_figure turn(const struct world *w, double t0, double t1)
{
    return ipw_ledger_figure(w->l, ask_query(w->q, GPU, S(t0), S(t1)));
}

static void test_measured(void **state)
{
    struct world w = begin(0, false);

    (void)state;
    for (int i = 0; i <= 1000; i++) read_at(&w, 1 + i * 0.01, 3 * i);
    w.q = ipw_ledger_query_begin(w.l, S(2));
    ipw_ledger_query_end(w.l, w.q, S(6));
    assert_figure(turn(&w, 2, 6), 1200, IPW_PROV_MEASURED);
    assert_true(turn(&w, 2, 6).split_fraction == 0);
    ipw_ledger_free(w.l);
}

static void test_interpolated(void **state)
{
    struct world w = begin(0, false);

    (void)state;
    for (int i = 0; i <= 100; i++) read_at(&w, 1 + i * 0.1, 30 * i);
    w.q = ipw_ledger_query_begin(w.l, S(2.05));
    ipw_ledger_query_end(w.l, w.q, S(6.05));
    assert_figure(turn(&w, 2.05, 6.05), 1200, IPW_PROV_INTERPOLATED);
    assert_true(turn(&w, 2.05, 6.05).split_fraction > 0);
    ipw_ledger_free(w.l);
}

/* Two turns share a hole of 2 s; seen before, prefill draws 600 W and tools 300. */
static void test_distributed_by_phase_weights(void **state)
{
    struct world w = begin(0, false);
    double j = 0;

    (void)state;
    w.q = ipw_ledger_query_begin(w.l, S(1));
    for (int i = 0; i <= 100; i++) { /* a second of each, in turn */
        double t = 1 + i * 0.1;

        if (i % 10 == 0) {
            tell_phase(w.l, w.q, i / 10 % 2 ? IPW_PHASE_TOOL : IPW_PHASE_PREFILL, S(t), INT64_MAX);
        }
        read_at(&w, t, j);
        j += i / 10 % 2 ? 30 : 60;
    }
    /* Nothing is read from 11 s to 13 s: prefill for 0.5 s, a tool for 1.5. */
    tell_phase(w.l, w.q, IPW_PHASE_TOOL, S(11.5), INT64_MAX);
    j += 0.5 * 600 + 1.5 * 300 - 60;
    for (int i = 0; i <= 10; i++) read_at(&w, 13 + i * 0.1, j + 30 * i);
    ipw_ledger_query_end(w.l, w.q, S(13.5));
    read_at(&w, 14.1, j + 330);
    assert_string_equal(ipw_provenance_name(turn(&w, 11, 11.5).provenance), "distributed");
    assert_near(turn(&w, 11, 11.5).j, 300, 30);
    assert_near(turn(&w, 11.5, 13).j, 450, 30);
    assert_near(turn(&w, 11, 11.5).j + turn(&w, 11.5, 13).j, 750, 1e-5);
    ipw_ledger_free(w.l);
}

/* Case 12: a hole of 12 s that covers four turns of different make: each has what its phases draw,
 * by what they drew before, and together they have the hole's energy, to the microjoule. */
static void test_12_hole_over_four_turns_by_phases(void **state)
{
    static const double prefill_s[] = {0.5, 1, 1.5, 2}; /* the rest of each turn's 3 s: a tool */
    struct world w = begin(0, false);
    double j = 0, t = 11;
    int64_t sum = 0;

    (void)state;
    w.q = ipw_ledger_query_begin(w.l, S(1));
    for (int i = 0; i <= 100; i++) { /* a second of each, in turn: 600 W and 300 W */
        double at = 1 + i * 0.1;

        if (i % 10 == 0) {
            tell_phase(w.l, w.q, i / 10 % 2 ? IPW_PHASE_TOOL : IPW_PHASE_PREFILL, S(at), INT64_MAX);
        }
        read_at(&w, at, j);
        if (i < 100) j += i / 10 % 2 ? 30 : 60;
    }
    for (int i = 0; i < 4; i++, t += 3) { /* nothing is read from 11 s to 23 s */
        tell_phase(w.l, w.q, IPW_PHASE_PREFILL, S(t), INT64_MAX);
        tell_phase(w.l, w.q, IPW_PHASE_TOOL, S(t + prefill_s[i]), INT64_MAX);
        j += 600 * prefill_s[i] + 300 * (3 - prefill_s[i]);
    }
    for (int i = 0; i <= 10; i++) read_at(&w, 23 + i * 0.1, j + 30 * i);
    ipw_ledger_query_end(w.l, w.q, S(23.5));
    for (int i = 0; i < 4; i++) {
        struct ipw_figure f = turn(&w, 11 + 3 * i, 14 + 3 * i);

        assert_string_equal(ipw_provenance_name(f.provenance), "distributed");
        assert_near(f.j, 900 + 300 * prefill_s[i], 40); /* by wall clock: 1275 each */
        assert_true(f.lo_j <= f.j && f.j <= f.hi_j);
        sum += (int64_t)(f.j * 1e6 + 0.5);
    }
    assert_int_equal(sum, (int64_t)(turn(&w, 11, 23).j * 1e6 + 0.5));
    assert_near(turn(&w, 11, 23).j, 5100, 1e-5);
    ipw_ledger_free(w.l);
}

/* Turns that no publication of the counter tells apart, polled no faster than it publishes: by wall
 * clock. */
static void test_short_turns_by_wall_clock(void **state)
{
    struct world w = begin(S(0.1), false);
    int64_t t[4] = {S(2), S(2.03), S(2.09), S(2.15)};
    struct ipw_figure f[3];

    (void)state;
    for (int i = 0; i <= 30; i++) read_at(&w, 1.03 + i * 0.1, 30 * i);
    w.q = ipw_ledger_query_begin(w.l, t[0]);
    ipw_ledger_query_end(w.l, w.q, t[3]);
    ipw_ledger_figures(w.l, ask_windows(w.q, GPU), t, 3, f);
    assert_figure(f[0], 9, IPW_PROV_DISTRIBUTED);
    assert_figure(f[1], 18, IPW_PROV_DISTRIBUTED);
    assert_figure(f[2], 18, IPW_PROV_DISTRIBUTED);
    ipw_ledger_free(w.l);
}

/* The counter dies within a turn: the figure is null, and beside it stands what the last power
 * gives, between what was measured and what the board can draw. */
static void test_estimated_by_the_last_power(void **state)
{
    struct world w = begin(0, false);
    int64_t failed = IPW_NO_VALUE;
    struct ipw_figure f;

    (void)state;
    w.q = ipw_ledger_query_begin(w.l, S(2));
    for (int i = 0; i <= 30; i++) read_at(&w, 1 + i * 0.1, 30 * i);
    for (int i = 31; i <= 90; i++) ipw_ledger_row(w.l, 0, 1, S(1 + i * 0.1), &failed);
    ipw_ledger_query_end(w.l, w.q, S(9));
    f = turn(&w, 2, 6);
    assert_unknown(f, "no_samples");
    assert_true(f.estimated);
    assert_string_equal(f.estimate_by, "last_power");
    assert_near(f.estimate_j, 1200, 0.1);
    assert_near(f.lo_j, 600, 1e-3);
    assert_near(f.hi_j, 600 + 2 * 900, 1e-3);
    f = turn(&w, 6, 9); /* all of it after the last reading */
    assert_unknown(f, "no_samples");
    assert_near(f.estimate_j, 900, 0.1);
    assert_near(f.lo_j, 0, 1e-9);
    ipw_ledger_free(w.l);
}

/* The board's own power gauge went on: that is better than its last power. */
static void test_estimated_by_the_gauge(void **state)
{
    struct world w = begin(0, true);
    struct ipw_figure f;

    (void)state;
    w.q = ipw_ledger_query_begin(w.l, S(2));
    for (int i = 0; i <= 100; i++) {
        int64_t v[2] = {i <= 30 ? J(30 * i) : IPW_NO_VALUE, i <= 40 ? 300000 : 500000};
        ipw_ledger_row(w.l, 0, 2, S(1 + i * 0.1), v);
    }
    ipw_ledger_query_end(w.l, w.q, S(9));
    f = turn(&w, 6, 9);
    assert_unknown(f, "no_samples");
    assert_string_equal(f.estimate_by, "gauge");
    assert_near(f.estimate_j, 1500, 0.1);
    ipw_ledger_free(w.l);
}

/* A reply that comes all at once, 40 us of decode in each 100 ms that the counter tells: what a
 * phase draws that is next to nothing of every step is anybody's guess, but
 * no piece of a step holds more than the board can draw in its time, and no window's peak is below
 * its mean. */
static void test_no_piece_beyond_the_most(void **state)
{
    struct world w = begin(S(0.1), false);
    double decode_j = 0;

    (void)state;
    for (int i = 0; i <= 50; i++) {
        double t = 1 + i * 0.02;
        read_at(&w, t, 150 * (t - fmod(t - 1 + 1e-9, 0.1)));
    }
    w.q = ipw_ledger_query_begin(w.l, S(1.2));
    for (int k = 0; k < 12; k++) {
        double t = 1.2 + k * 0.0413, first = t + 0.0402, last = first + 0.00004;

        tell_phase(w.l, w.q, IPW_PHASE_PREFILL, S(t), S(first));
        tell_phase(w.l, w.q, IPW_PHASE_DECODE, S(first), S(last));
        tell_phase(w.l, w.q, IPW_PHASE_AGENT, S(last), S(t + 0.0413));
    }
    ipw_ledger_query_end(w.l, w.q, S(1.7));
    for (int k = 0; k < 12; k++) {
        double t = 1.2 + k * 0.0413, first = t + 0.0402;
        struct ipw_power_stats power;
        struct ipw_figure f = turn(&w, first, first + 0.00004);

        assert_true(f.known && f.lo_j <= f.j && f.j <= f.hi_j);
        assert_true(f.j <= 900 * 0.00004 + 3e-6);
        assert_true(f.hi_j <= 900 * 0.00004 + 3e-6);
        assert_true(ipw_ledger_power(
            w.l,
            (struct ipw_ledger_question){IPW_LEDGER_ANY, GPU, IPW_LEDGER_ALL, S(first),
                                         S(first + 0.00004), IPW_LEDGER_TOTAL},
            &power));
        assert_true(power.avg_w <= power.max_w && power.max_w <= 901);
        decode_j += f.j;
    }
    assert_true(decode_j > 0);
    assert_near(turn(&w, 1.2, 1.7).j, 75, 0.1);
    ipw_ledger_free(w.l);
}

/* Two turns at a time: each has its half of the estimate, too. */
static void test_estimates_are_shared(void **state)
{
    struct world w = begin(0, false);
    int64_t failed = IPW_NO_VALUE, other;

    (void)state;
    w.q = ipw_ledger_query_begin(w.l, S(2));
    other = ipw_ledger_query_begin(w.l, S(2));
    for (int i = 0; i <= 30; i++) read_at(&w, 1 + i * 0.1, 30 * i);
    for (int i = 31; i <= 90; i++) ipw_ledger_row(w.l, 0, 1, S(1 + i * 0.1), &failed);
    ipw_ledger_query_end(w.l, w.q, S(9));
    ipw_ledger_query_end(w.l, other, S(9));
    assert_near(turn(&w, 2, 6).estimate_j, 600, 0.1);
    ipw_ledger_free(w.l);
}

/* In each of two breaks it is the power before that one. */
static void test_estimated_in_each_break(void **state)
{
    struct world w = begin(0, false);
    double before[2];

    (void)state;
    w.q = ipw_ledger_query_begin(w.l, S(2));
    for (int i = 0; i <= 30; i++) read_at(&w, 1 + i * 0.1, 30 * i);
    ipw_ledger_break(w.l, "lost");
    for (int i = 0; i <= 30; i++) read_at(&w, 10 + i * 0.1, 2000 + 10 * i);
    ipw_ledger_break(w.l, "lost");
    for (int i = 0; i <= 30; i++) read_at(&w, 20 + i * 0.1, 4000 + 50 * i);
    ipw_ledger_query_end(w.l, w.q, S(22));
    for (int i = 0; i < 2; i++) {
        struct ipw_figure f = turn(&w, 6 + 9 * i, 8 + 9 * i);

        assert_unknown(f, "lost");
        assert_string_equal(f.estimate_by, "last_power");
        before[i] = f.estimate_j / 2;
    }
    assert_near(before[0], 300, 0.1);
    assert_near(before[1], 100, 0.1);
    ipw_ledger_free(w.l);
}

/* One of two boards dies: the domain's estimate is what the other one was measured at, and the
 * estimate of the dead one. */
static void test_estimates_of_two_boards(void **state)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 900),
                               test_counter("gpu1", GPU, 0, 900)};

    (void)state;
    for (int dead = 0; dead < 2; dead++) {
        struct world w = {.l = ipw_ledger_new(c, 2)};
        struct ipw_figure f;

        w.q = ipw_ledger_query_begin(w.l, S(2));
        for (int i = 0; i <= 90; i++) {
            int64_t v[2] = {J((dead ? 10 : 30) * i), J((dead ? 30 : 10) * i)};

            if (i > 30) v[dead] = IPW_NO_VALUE;
            ipw_ledger_row(w.l, 0, 2, S(1 + i * 0.1), v);
        }
        ipw_ledger_query_end(w.l, w.q, S(9));
        f = turn(&w, 2, 6);
        assert_unknown(f, "no_samples");
        assert_true(f.estimated);
        assert_string_equal(f.estimate_by, "last_power");
        assert_near(f.estimate_j, 400 + 1200, 0.1);
        assert_near(f.partial_j, 400 + 600, 0.1);
        assert_near(f.lo_j, 400 + 600, 0.1);
        assert_near(f.hi_j, 400 + 600 + 2 * 900, 0.1);
        ipw_ledger_free(w.l);
    }
}

/* Nothing was ever read: there is nothing to estimate from. */
static void test_null_with_a_reason(void **state)
{
    struct world w = begin(0, false);
    struct ipw_figure f;

    (void)state;
    w.q = ipw_ledger_query_begin(w.l, S(2));
    ipw_ledger_query_end(w.l, w.q, S(3));
    f = turn(&w, 2, 3);
    assert_unknown(f, "no_samples");
    assert_false(f.estimated);
    /* Nor is there across a suspend: no clock counted the time. */
    for (int i = 0; i <= 10; i++) read_at(&w, 4 + i * 0.1, 30 * i);
    ipw_ledger_break(w.l, "suspended");
    for (int i = 0; i <= 10; i++) read_at(&w, 35 + i * 0.1, 1000 + 30 * i);
    w.q = ipw_ledger_query_begin(w.l, S(4.5));
    ipw_ledger_query_end(w.l, w.q, S(35.5));
    f = turn(&w, 4.5, 35.5);
    assert_unknown(f, "suspended");
    assert_false(f.estimated);
    ipw_ledger_free(w.l);
}

UNIT(ledger_chain)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_interpolated),
        cmocka_unit_test(test_distributed_by_phase_weights),
        cmocka_unit_test(test_12_hole_over_four_turns_by_phases),
        cmocka_unit_test(test_no_piece_beyond_the_most),
        cmocka_unit_test(test_short_turns_by_wall_clock),
        cmocka_unit_test(test_estimated_by_the_last_power),
        cmocka_unit_test(test_estimated_by_the_gauge),
        cmocka_unit_test(test_estimates_are_shared),
        cmocka_unit_test(test_estimated_in_each_break),
        cmocka_unit_test(test_estimates_of_two_boards),
        cmocka_unit_test(test_null_with_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
