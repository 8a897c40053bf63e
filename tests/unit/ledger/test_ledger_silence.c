/* Sensors that stand still, and what stands in for them, through the ledger. */
#include "ledger/ledger.h"
#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU
#define CPU IPW_DOMAIN_CPU

/* A counter of 100 ms and, where there is one, the gauge of the same device. */
static struct ipw_ledger *board(bool with_gauge)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 700), test_gauge("gpu0/power", 700)};

    c[0].period_ns = S(0.1);
    c[1].in_sum = false;
    for (int i = 0; i < 2; i++) snprintf(c[i].device, sizeof c[i].device, "GPU-1");
    return ipw_ledger_new(c, with_gauge ? 2 : 1);
}

/* 200 W from t0 to t1; from `dead` on the counter shows one value (and the gauge goes on, `mw`). */
static void feed(struct ipw_ledger *l, double t0, double t1, double dead, int64_t mw,
                 bool with_gauge)
{
    for (double t = t0; t < t1; t += 0.02) {
        double shown = floor((t < dead ? t : dead) * 10 + 1e-6) / 10;
        int64_t v[2] = {J(200 * shown), mw};

        ipw_ledger_row(l, 0, with_gauge ? 2 : 1, S(t), v);
    }
}

/* It never moved: no window has a figure, and none is 0 J. */
static void test_never_moved(void **state)
{
    struct ipw_ledger *l = board(false);
    struct ipw_figure f;
    int64_t q;

    (void)state;
    feed(l, 1, 2, 1, 0, false);
    q = ipw_ledger_query_begin(l, S(2));
    feed(l, 2, 4, 1, 0, false);
    ipw_ledger_query_end(l, q, S(4));
    feed(l, 4, 9, 1, 0, false);
    f = ipw_ledger_figure(l, ask_query(q, GPU, S(2), S(4)));
    assert_unknown(f, "stuck");
    assert_false(f.estimated);
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(1), S(9))), "stuck");
    assert_unknown(ipw_ledger_figure(l, ask_idle(GPU, S(1), S(9))), "stuck");
    assert_true(ipw_ledger_silence_ns(l, 0) > S(7));
    ipw_ledger_free(l);
}

/* It stops in the middle of a run, and nothing else reads the device: what was before stands, what
 * ends in the silence is null with an estimate by what was drawn last. */
static void test_stops_for_good(void **state)
{
    struct ipw_ledger *l = board(false);
    struct ipw_figure f;
    int64_t a, b;

    (void)state;
    feed(l, 1, 2, 5, 0, false);
    a = ipw_ledger_query_begin(l, S(2));
    feed(l, 2, 4, 5, 0, false);
    ipw_ledger_query_end(l, a, S(4));
    b = ipw_ledger_query_begin(l, S(4));
    feed(l, 4, 8, 5, 0, false);
    ipw_ledger_query_end(l, b, S(8));
    assert_true(ipw_ledger_silence_ns(l, 0) > S(2.8));
    feed(l, 8, 12, 5, 0, false);
    assert_near(ipw_ledger_figure(l, ask_query(a, GPU, S(2), S(4))).j, 400, 5);
    f = ipw_ledger_figure(l, ask_query(b, GPU, S(4), S(8)));
    assert_unknown(f, "stuck");
    assert_true(f.estimated);
    assert_near(f.estimate_j, 800, 25);
    assert_near(f.partial_j, 200, 25);
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(1), S(12))), "stuck");
    /* It moves again: that is another chain, so that nothing is counted which nobody was
     * charged. */
    for (double t = 12; t < 14; t += 0.02) {
        int64_t v = J(5000 + 200 * (floor(t * 10 + 1e-6) / 10));
        ipw_ledger_row(l, 0, 1, S(t), &v);
    }
    assert_int_equal(ipw_ledger_silence_ns(l, 0), 0);
    assert_near(ipw_ledger_figure(l, ask_total(GPU, S(12.5), S(13.5))).j, 200, 25);
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(1), S(14))), "stuck");
    ipw_ledger_free(l);
}

/* Silent for 3 s in the middle of a query: the next change covers it, and the query is right. */
static void test_silence_that_ends(void **state)
{
    struct ipw_ledger *l = board(false);
    struct ipw_figure f;
    int64_t q;

    (void)state;
    feed(l, 1, 2, 100, 0, false);
    q = ipw_ledger_query_begin(l, S(2));
    feed(l, 2, 5, 100, 0, false);
    feed(l, 5, 8, 5, 0, false);
    feed(l, 8, 10, 100, 0, false);
    ipw_ledger_query_end(l, q, S(10));
    feed(l, 10, 11, 100, 0, false);
    f = ipw_ledger_figure(l, ask_query(q, GPU, S(2), S(10)));
    assert_true(f.known);
    assert_near(f.j, 1600, 5);
    assert_true(f.lo_j <= 1600 && f.hi_j >= 1600);
    assert_near(ipw_ledger_figure(l, ask_total(GPU, S(1.5), S(10.5))).j, 1800, 25);
    ipw_ledger_free(l);
}

/* Its gauge says that the device draws power: after 5 s the gauge stands in, as a chain of its
 * own. */
static void test_handed_over(void **state)
{
    struct ipw_ledger *l = board(true);
    int64_t q;

    (void)state;
    feed(l, 1, 5, 4, 200000, true);
    assert_int_equal(ipw_ledger_handed_over_ns(l, 0), INT64_MIN);
    feed(l, 5, 12, 4, 200000, true);
    assert_true(ipw_ledger_handed_over_ns(l, 0) > S(9) &&
                ipw_ledger_handed_over_ns(l, 0) < S(10.5));
    assert_int_equal(ipw_ledger_silence_ns(l, 0), 0);
    q = ipw_ledger_query_begin(l, S(12));
    feed(l, 12, 15, 4, 200000, true);
    ipw_ledger_query_end(l, q, S(15));
    feed(l, 15, 16, 4, 200000, true);
    assert_figure(ipw_ledger_figure(l, ask_query(q, GPU, S(12), S(15))), 600, IPW_PROV_ESTIMATED);
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(1), S(16))), "stuck");
    ipw_ledger_free(l);
}

/* A device that sleeps reports 0 W: its counter's silence is believed, as an estimate. */
static void test_asleep(void **state)
{
    struct ipw_ledger *l = board(true);
    struct ipw_figure f;
    int64_t q;

    (void)state;
    feed(l, 1, 4, 4, 200000, true);
    q = ipw_ledger_query_begin(l, S(5));
    feed(l, 4.2, 12, 4, 0, true);
    ipw_ledger_query_end(l, q, S(11));
    feed(l, 12, 13, 4, 0, true);
    f = ipw_ledger_figure(l, ask_query(q, GPU, S(5), S(11)));
    assert_true(f.known);
    assert_near(f.j, 0, 1e-9);
    assert_int_equal(f.provenance, IPW_PROV_ESTIMATED);
    assert_int_equal(ipw_ledger_silence_ns(l, 0), 0);
    ipw_ledger_free(l);
}

/* One package of two is dead: the domain has no figure, and what the other drew is a part of it. */
static void test_one_of_two(void **state)
{
    struct ipw_channel c[2] = {test_counter("package-0", CPU, 0, 400),
                               test_counter("package-1", CPU, 0, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);
    struct ipw_figure f;

    (void)state;
    for (int i = 0; i <= 100; i++) {
        int64_t v[2] = {J(10 * i), J(77)};
        ipw_ledger_row(l, 0, 2, S(1 + i * 0.1), v);
    }
    f = ipw_ledger_figure(l, ask_total(CPU, S(1), S(11)));
    assert_unknown(f, "stuck");
    assert_near(f.partial_j, 1000, 1);
    assert_figure(ipw_ledger_figure(l, ask_device(0, ask_total(CPU, S(1), S(11)))), 1000,
                  IPW_PROV_MEASURED);
    ipw_ledger_free(l);
}

/* A gauge that averages over a second: a turn of half a second is null, the query keeps its
 * figure. */
static void test_turns_below_resolution(void **state)
{
    struct ipw_channel c = test_gauge("wall", 700);
    int64_t t[4] = {S(10), S(10.5), S(15), S(20)};
    struct ipw_figure f[3], whole;
    struct ipw_ledger *l;
    int64_t q;

    (void)state;
    c.period_ns = S(0.1);
    c.window_ns = S(1);
    l = ipw_ledger_new(&c, 1);
    q = ipw_ledger_query_begin(l, S(10));
    for (int i = 0; i <= 300; i++) {
        int64_t v = 100000 + i % 7;
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
        if (i == 190) ipw_ledger_query_end(l, q, S(20));
    }
    ipw_ledger_figures(l, ask_windows(q, GPU), t, 3, f);
    whole = ipw_ledger_figure(l, ask_query(q, GPU, S(10), S(20)));
    assert_unknown(f[0], "below_resolution");
    assert_true(f[0].estimated);
    assert_near(f[0].estimate_j, 50, 1);
    assert_true(f[1].known && f[2].known);
    assert_near(f[1].j, 450, 1);
    assert_near(whole.j, 1000, 1);
    /* A second of its window and a period at each end may be on the wrong side. */
    assert_true(whole.lo_j < 960 && whole.hi_j > 1040);
    assert_unknown(ipw_ledger_figure(l, ask_span(q, GPU, S(11), S(13.9))), "below_resolution");
    assert_true(ipw_ledger_figure(l, ask_span(q, GPU, S(11), S(14))).known);
    ipw_ledger_free(l);
}

/* A gauge that shows 100 W for 20 s may be stuck.  One whose value is delivered anew is steady. */
static void test_a_value_delivered_anew(void **state)
{
    double width[2];

    (void)state;
    for (int fresh = 0; fresh < 2; fresh++) {
        struct ipw_channel c = test_gauge("wall", 700);
        int64_t q, v = 100000;
        struct ipw_ledger *l;
        struct ipw_figure f;

        c.period_ns = S(0.1);
        c.fresh = fresh;
        l = ipw_ledger_new(&c, 1);
        q = ipw_ledger_query_begin(l, S(10));
        for (int i = 0; i <= 300; i++) {
            ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
            if (i == 190) ipw_ledger_query_end(l, q, S(20));
        }
        f = ipw_ledger_figure(l, ask_query(q, GPU, S(10), S(20)));
        assert_near(f.j, 1000, 1);
        width[fresh] = f.hi_j - f.lo_j;
        ipw_ledger_free(l);
    }
    assert_true(width[0] > 5000);
    assert_true(width[1] < 300);
}

/* Where no sensor is, a model's three counters fill the estimate of a null; no total has it. */
static void test_estimate_by_a_model(void **state)
{
    struct ipw_channel c[3];
    struct ipw_ledger *l;
    struct ipw_figure f;
    int64_t a, b;

    (void)state;
    for (int i = 0; i < 3; i++) {
        c[i] = test_counter(i == 0 ? "mid" : i == 1 ? "least" : "most", CPU, 0, 1000);
        c[i].kind = IPW_CHANNEL_ESTIMATE;
        c[i].in_sum = false;
        c[i].period_ns = S(0.1); /* how often it is asked */
    }
    l = ipw_ledger_new(c, 3);
    ipw_ledger_set_reason(l, CPU, "permission");
    a = ipw_ledger_query_begin(l, S(1));
    b = ipw_ledger_query_begin(l, S(1));
    for (int i = 0; i <= 100; i++) {
        int64_t v[3] = {J(0.4 * i), J(0.2 * i), J(1.0 * i)};
        ipw_ledger_row(l, 0, 3, S(1 + i * 0.1), v);
    }
    ipw_ledger_query_end(l, a, S(6));
    ipw_ledger_instant(l, b, S(7));
    ipw_ledger_query_end(l, b, S(11.02));
    f = ipw_ledger_figure(l, ask_query(a, CPU, S(2), S(4))); /* two in flight: half of 8 J */
    assert_unknown(f, "permission");
    assert_true(f.estimated);
    assert_string_equal(f.estimate_by, "model");
    assert_near(f.estimate_j, 4, 1e-3);
    assert_near(f.lo_j, 2, 1e-3);
    assert_near(f.hi_j, 10, 1e-3);
    assert_near(ipw_ledger_figure(l, ask_query(b, CPU, S(7), S(9))).estimate_j, 8, 1e-3);
    /* Up to its newest reading no stretch is flat, however short. */
    assert_near(ipw_ledger_figure(l, ask_query(b, CPU, S(10.96), S(10.99))).estimate_j, 0.12, 1e-3);
    /* A little beyond its newest reading it goes on as it was. */
    assert_near(ipw_ledger_figure(l, ask_query(b, CPU, S(10), S(11.02))).estimate_j, 4.08, 1e-2);
    assert_false(ipw_ledger_figure(l, ask_total(CPU, S(1), S(11))).estimated);
    assert_false(ipw_ledger_figure(l, ask_query(a, GPU, S(2), S(4))).estimated);
    ipw_ledger_free(l);
}

/* Short queries between two readings of a model, of a ledger that has forgotten what was before
 * them: it goes on as it was before the newest reading, and is never 0 for want of an older one. */
static void test_estimate_after_a_trim(void **state)
{
    struct ipw_channel c[3];
    struct ipw_ledger *l;

    (void)state;
    for (int i = 0; i < 3; i++) {
        c[i] = test_counter(i == 0 ? "mid" : i == 1 ? "least" : "most", CPU, 0, 1000);
        c[i].kind = IPW_CHANNEL_ESTIMATE;
        c[i].in_sum = false;
    }
    l = ipw_ledger_new(c, 3);
    ipw_ledger_set_reason(l, CPU, "no_sensor");
    for (int i = 0; i < 50; i++) {
        double begun = 1 + i * 0.1;
        int64_t v[3] = {J(0.4 * i), J(0.2 * i), J(1.0 * i)}, q;
        struct ipw_figure f;

        ipw_ledger_row(l, 0, 3, S(begun), v);
        for (double t = begun + 0.01; t < begun + 0.09; t += 0.03) {
            q = ipw_ledger_query_begin(l, S(t));
            ipw_ledger_query_end(l, q, S(t + 0.02));
            if (i == 0) continue; /* read once, it says nothing yet */
            f = ipw_ledger_figure(l, ask_query(q, CPU, S(t), S(t + 0.02)));
            assert_true(f.estimated);
            assert_near(f.estimate_j, 0.08, 1e-3);
            assert_near(f.lo_j, 0.04, 1e-3);
            assert_near(f.hi_j, 0.2, 1e-3);
            ipw_ledger_forget(l, q);
        }
    }
    ipw_ledger_free(l);
}

/* Shared by phases before anything is known of them: equal slices. */
static void test_unfitted(void **state)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 700);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    int64_t a, b, v = 0;

    (void)state;
    ipw_ledger_set_share(l, IPW_SHARE_PHASE);
    ipw_ledger_row(l, 0, 1, S(1), &v);
    a = ipw_ledger_query_begin(l, S(1));
    b = ipw_ledger_query_begin(l, S(1));
    v = J(300);
    ipw_ledger_row(l, 0, 1, S(2), &v);
    ipw_ledger_query_end(l, a, S(2));
    v = J(400);
    ipw_ledger_row(l, 0, 1, S(3), &v);
    ipw_ledger_query_end(l, b, S(3));
    assert_near(ipw_ledger_figure(l, ask_query(a, GPU, S(1), S(2))).j, 150, 1e-3);
    ipw_ledger_free(l);
}

UNIT(ledger_silence)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_moved),
        cmocka_unit_test(test_stops_for_good),
        cmocka_unit_test(test_silence_that_ends),
        cmocka_unit_test(test_handed_over),
        cmocka_unit_test(test_asleep),
        cmocka_unit_test(test_one_of_two),
        cmocka_unit_test(test_turns_below_resolution),
        cmocka_unit_test(test_a_value_delivered_anew),
        cmocka_unit_test(test_estimate_by_a_model),
        cmocka_unit_test(test_estimate_after_a_trim),
        cmocka_unit_test(test_unfitted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
