#include "ledger/ledger.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define CPU IPW_DOMAIN_CPU
#define GPU IPW_DOMAIN_GPU

/* One counter of 100 W, read every 100 ms from 1 s to 11 s. */
static struct ipw_ledger *steady(void)
{
    struct ipw_channel c = test_counter("package-0", CPU, 0, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);

    for (int i = 0; i <= 100; i++) {
        int64_t v = J(10 * i);
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
    }
    return l;
}

static void test_one_query(void **state)
{
    struct ipw_ledger *l = steady();
    struct ipw_power_stats power;

    (void)state;
    ipw_ledger_query_begin(l, S(3));
    ipw_ledger_query_end(l, 0, S(5));
    assert_figure(ipw_ledger_figure(l, ask_query(0, CPU, S(3), S(5))), 200, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_query(0, CPU, S(3.05), S(4.95))), 190,
                  IPW_PROV_INTERPOLATED);
    assert_figure(ipw_ledger_figure(l, ask_total(CPU, S(1), S(11))), 1000, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_idle(CPU, S(1), S(11))), 800, IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_idle(CPU, S(3.5), S(5))), "not_covered");
    assert_unknown(ipw_ledger_figure(l, ask_idle(CPU, S(2), S(4))), "not_covered");
    assert_true(ipw_ledger_power(l,
                                 (struct ipw_ledger_question){IPW_LEDGER_ANY, CPU, IPW_LEDGER_ALL,
                                                              S(3), S(5), IPW_LEDGER_TOTAL},
                                 &power));
    assert_near(power.avg_w, 100, 1e-6);
    assert_near(power.max_w, 100, 1e-6);
    assert_int_equal(ipw_ledger_covered_ns(l), S(11));
    ipw_ledger_free(l);
}

static void test_22_no_length(void **state)
{
    struct ipw_ledger *l = steady();

    (void)state;
    ipw_ledger_query_begin(l, S(3));
    ipw_ledger_query_begin(l, S(3));
    ipw_ledger_query_end(l, 0, S(3));
    ipw_ledger_query_end(l, 1, S(5));
    assert_figure(ipw_ledger_figure(l, ask_query(0, CPU, S(3.03), S(3.03))), 0, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_query(0, CPU, S(3), S(3))), 0, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_query(1, CPU, S(3), S(5))), 200, IPW_PROV_MEASURED);
    ipw_ledger_free(l);
}

/* Two at a time for 60 us, in which the line has three microjoules and the truth may have all of
 * the step's 2500: the half that each is due of it is within its bounds, although one was handed
 * two. */
static void test_33_bounds_of_a_small_cell(void **state)
{
    struct ipw_channel c = test_counter("dram", CPU, RANGE_61 + 61, 1000);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    int64_t q[3];

    (void)state;
    for (int i = 0; i <= 10; i++) {
        int64_t v = 2500 * i;
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.05), &v);
    }
    for (int i = 0; i < 3; i++) q[i] = ipw_ledger_query_begin(l, S(1.22 + i * 0.00006));
    for (int i = 0; i < 3; i++) ipw_ledger_query_end(l, q[i], S(1.23));
    for (int i = 0; i < 2; i++) {
        struct ipw_figure f = ipw_ledger_figure(l, ask_query(q[i], CPU, S(1.22006), S(1.23)));

        assert_true(f.known && f.hi_j >= 0.00125 && f.lo_j == 0);
    }
    ipw_ledger_free(l);
}

/* Case 33: at 1, 2 and 8 at a time each joule is booked once; the order changes nothing. */
static void test_33_equal_slices(void **state)
{
    static const int crowds[] = {1, 2, 8};

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        int n = crowds[c];
        double sum = 0, idle;
        struct ipw_ledger *l = steady(), *back = steady();

        /* Query k is in flight from 2 + 0.3 k to 6 + 0.3 k: told by time. */
        for (int i = 0; i < n; i++) ipw_ledger_query_begin(l, S(2 + 0.3 * i));
        for (int i = 0; i < n; i++) ipw_ledger_query_end(l, i, S(6 + 0.3 * i));
        for (int i = 0; i < n; i++) ipw_ledger_query_begin(back, S(2 + 0.3 * i));
        for (int i = 0; i < n; i++) ipw_ledger_query_end(back, i, S(6 + 0.3 * i));
        for (int k = n - 1; k >= 0; k--) {
            struct ipw_figure f =
                ipw_ledger_figure(l, ask_query(k, CPU, S(2 + 0.3 * k), S(6 + 0.3 * k)));
            struct ipw_figure g =
                ipw_ledger_figure(back, ask_query(n - 1 - k, CPU, S(2 + 0.3 * (n - 1 - k)),
                                                  S(6 + 0.3 * (n - 1 - k))));
            assert_true(f.known && g.known);
            assert_int_equal(f.provenance, n > 1 ? IPW_PROV_DISTRIBUTED : IPW_PROV_MEASURED);
            assert_near(
                f.j, ipw_ledger_figure(back, ask_query(k, CPU, S(2 + 0.3 * k), S(6 + 0.3 * k))).j,
                0);
            sum += f.j;
        }
        idle = ipw_ledger_figure(l, ask_idle(CPU, S(1), S(11))).j;
        assert_near(idle, 1000 - (4 + 0.3 * (n - 1)) * 100, 1e-6);
        assert_near(sum + idle, 1000, 1e-6 * n);
        ipw_ledger_free(l);
        ipw_ledger_free(back);
    }
}

/* Samples and edges may come in any order. */
static void test_interleaving_does_not_matter(void **state)
{
    struct ipw_channel c = test_counter("package-0", CPU, 0, 400);
    struct ipw_figure f[3];

    (void)state;
    for (int order = 0; order < 3; order++) {
        struct ipw_ledger *l = ipw_ledger_new(&c, 1);

        if (order == 0) ipw_ledger_query_begin(l, S(2.013));
        if (order == 0) ipw_ledger_query_begin(l, S(2.5));
        if (order == 0) ipw_ledger_query_end(l, 0, S(4.017));
        for (int i = 0; i <= 40; i++) {
            int64_t v = J(i * i * 0.1);
            ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
            if (order == 1 && i == 11) ipw_ledger_query_begin(l, S(2.013));
            if (order == 1 && i == 35) ipw_ledger_query_begin(l, S(2.5)); /* long read by then */
            if (order == 1 && i == 35) ipw_ledger_query_end(l, 0, S(4.017));
        }
        if (order == 2) ipw_ledger_query_begin(l, S(2.013));
        if (order == 2) ipw_ledger_query_begin(l, S(2.5));
        if (order == 2) ipw_ledger_query_end(l, 0, S(4.017));
        f[order] = ipw_ledger_figure(l, ask_query(0, CPU, S(2.013), S(4.017)));
        assert_true(f[order].known);
        ipw_ledger_free(l);
    }
    assert_near(f[0].j, f[1].j, 0);
    assert_near(f[0].j, f[2].j, 0);
}

/* Case 5: two sockets of different range that wrap at different times. */
static void test_05_two_sockets(void **state)
{
    struct ipw_channel c[2] = {test_counter("package-0", CPU, RANGE_61 + 61, 400),
                               test_counter("package-1", CPU, RANGE_15 + 15, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);
    struct ipw_power_stats power;

    (void)state;
    for (int i = 0; i <= 100; i++) {
        int64_t v[2] = {(RANGE_61 - J(123) + J(10 * i)) % (RANGE_61 + 61),
                        (RANGE_15 - J(456) + J(15 * i)) % (RANGE_15 + 15)};
        ipw_ledger_row(l, 0, 2, S(1 + i * 0.1), v);
        if (i) {
            assert_figure(ipw_ledger_figure(l, ask_total(CPU, S(1), S(1 + i * 0.1))), 25 * i,
                          IPW_PROV_MEASURED);
        }
    }
    assert_true(ipw_ledger_power(l,
                                 (struct ipw_ledger_question){IPW_LEDGER_ANY, CPU, IPW_LEDGER_ALL,
                                                              S(2), S(9), IPW_LEDGER_TOTAL},
                                 &power));
    assert_near(power.avg_w, 250, 1e-6);
    assert_near(power.max_w, 250, 1e-6);
    ipw_ledger_free(l);
}

/* Case 6: one reset in the run: what spans it is unknown, with the reason; the rest stands. */
static void test_06_reset_mid_run(void **state)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    int64_t t[5] = {S(2), S(4), S(6.05), S(8), S(10)};
    struct ipw_figure f[4];

    (void)state;
    for (int i = 0; i <= 100; i++) {
        int64_t v = i <= 50 ? J(5000 + 10 * i) : J(10 * (i - 50));
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
    }
    ipw_ledger_query_begin(l, S(2));
    ipw_ledger_query_end(l, 0, S(10));
    ipw_ledger_figures(l, ask_windows(0, GPU), t, 4, f);
    assert_figure(f[0], 200, IPW_PROV_MEASURED);
    assert_unknown(f[1], "counter_reset");
    assert_unknown(f[2], "counter_reset");
    assert_figure(f[3], 200, IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(1), S(11))), "counter_reset");
    assert_unknown(ipw_ledger_figure(l, ask_idle(GPU, S(1), S(11))), "counter_reset");
    /* What is known of it has a name of its own: all but the tenth of a second of the reset. */
    assert_near(ipw_ledger_figure(l, ask_total(GPU, S(1), S(11))).coverage, 0.99, 1e-9);
    assert_near(ipw_ledger_figure(l, ask_total(GPU, S(1), S(11))).partial_j, 990, 1e-6);
    assert_near(ipw_ledger_figure(l, ask_total(GPU, S(1), S(11))).j, 0, 0);
    ipw_ledger_free(l);
}

/* Case 12: a hole of 12 s over four turns: by wall clock, and their sum is the hole's energy. */
static void test_12_hole_is_shared_out(void **state)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    int64_t t[7] = {S(1), S(3), S(5), S(8), S(9), S(13), S(20)};
    struct ipw_figure f[6];
    double sum = 0;

    (void)state;
    for (int i = 0; i <= 200; i++) {
        int64_t v = J(10 * i);
        if (i > 10 && i < 130) continue; /* from 2 s to 14 s */
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
    }
    ipw_ledger_query_begin(l, S(1));
    ipw_ledger_query_end(l, 0, S(20));
    ipw_ledger_figures(l, ask_windows(0, GPU), t, 6, f);
    for (int i = 0; i < 6; i++) {
        assert_figure(f[i], 100 * (double)(t[i + 1] - t[i]) / 1e9, IPW_PROV_DISTRIBUTED);
        sum += f[i].j;
    }
    assert_near(sum, ipw_ledger_figure(l, ask_query(0, GPU, S(1), S(20))).j, 1e-6);
    assert_figure(ipw_ledger_figure(l, ask_query(0, GPU, S(1), S(20))), 1900, IPW_PROV_MEASURED);
    ipw_ledger_free(l);
}

/* Part windows outside the samples by less than the slack get what the whole has left for them. */
static void test_windows_within_the_slack(void **state)
{
    struct ipw_ledger *l = steady();
    int64_t t[4] = {S(10), S(10.9), S(11.0001), S(11.001)};
    struct ipw_figure f[3];

    (void)state;
    ipw_ledger_query_begin(l, S(10));
    ipw_ledger_query_end(l, 0, S(11.001));
    ipw_ledger_figures(l, ask_windows(0, CPU), t, 3, f);
    assert_figure(f[0], 90, IPW_PROV_INTERPOLATED); /* short: 20 ms of its power at each end */
    assert_true(f[0].hi_j - f[0].lo_j >= 4 && f[0].hi_j - f[0].lo_j < 4.1);
    assert_figure(f[1], 10, IPW_PROV_DISTRIBUTED);
    assert_figure(f[2], 0, IPW_PROV_DISTRIBUTED);
    ipw_ledger_figures(l, ask_windows(0, CPU), t, 0, f); /* none: nothing is touched */
    ipw_ledger_free(l);
}

/* Case 24: a thousand turns of 60 ms at 100 ms: none unknown, and the sum is the total. */
static void test_24_short_turns(void **state)
{
    struct ipw_channel c = test_counter("package-0", CPU, RANGE_61 + 61, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    static int64_t t[1001];
    static struct ipw_figure f[1000];
    uint64_t seed = 24;
    int64_t v = J(17), sum = 0;

    (void)state;
    for (int i = 0; i <= 700; i++) {
        ipw_ledger_row(l, 0, 1, S(1 + i * 0.1), &v);
        v += (int64_t)(test_random(&seed) % 20000000);
    }
    for (int i = 0; i <= 1000; i++) t[i] = S(5) + i * S(0.06);
    ipw_ledger_query_begin(l, t[0]);
    ipw_ledger_query_end(l, 0, t[1000]);
    ipw_ledger_figures(l, ask_windows(0, CPU), t, 1000, f);
    for (int i = 0; i < 1000; i++) {
        assert_true(f[i].known);
        sum += (int64_t)(f[i].j * 1e6 + 0.5);
    }
    assert_int_equal(
        sum, (int64_t)(ipw_ledger_figure(l, ask_query(0, CPU, t[0], t[1000])).j * 1e6 + 0.5));
    assert_near((double)sum / 1e6 + ipw_ledger_figure(l, ask_idle(CPU, S(1), S(71))).j,
                ipw_ledger_figure(l, ask_total(CPU, S(1), S(71))).j, 1e-6);
    ipw_ledger_free(l);
}

static void test_reasons(void **state)
{
    struct ipw_channel c[2] = {test_counter("package-0", CPU, 0, 400), test_gauge("gpu0", 400)};
    struct ipw_ledger *l;
    int64_t v[2] = {J(1), 5000};
    struct ipw_power_stats power;

    (void)state;
    c[1].in_sum = false;
    l = ipw_ledger_new(c, 2);
    assert_int_equal(ipw_ledger_covered_ns(l), INT64_MIN);
    assert_unknown(ipw_ledger_figure(l, ask_total(CPU, S(1), S(2))), "no_samples");
    ipw_ledger_row(l, 0, 2, S(1), v);
    v[0] += J(100);
    ipw_ledger_row(l, 0, 2, S(2), v);
    assert_unknown(ipw_ledger_figure(l, ask_query(0, GPU, S(1), S(2))),
                   "no_sensor"); /* beside, not in it */
    ipw_ledger_set_reason(l, IPW_DOMAIN_DRAM, "permission");
    assert_unknown(ipw_ledger_figure(l, ask_total(IPW_DOMAIN_DRAM, S(1), S(2))), "permission");
    assert_unknown(ipw_ledger_figure(l, ask_idle(IPW_DOMAIN_MACHINE, S(1), S(2))), "no_sensor");
    assert_unknown(ipw_ledger_figure(l, ask_total(CPU, S(0.5), S(2))), "not_covered");
    assert_unknown(ipw_ledger_figure(l, ask_total(CPU, S(1.5), S(2.5))), "not_covered");
    assert_false(ipw_ledger_power(l,
                                  (struct ipw_ledger_question){IPW_LEDGER_ANY, GPU, IPW_LEDGER_ALL,
                                                               S(1), S(2), IPW_LEDGER_TOTAL},
                                  &power));
    assert_false(ipw_ledger_power(l,
                                  (struct ipw_ledger_question){IPW_LEDGER_ANY, CPU, IPW_LEDGER_ALL,
                                                               S(1), S(3), IPW_LEDGER_TOTAL},
                                  &power));
    assert_int_equal(ipw_ledger_covered_ns(l), S(2));
    ipw_ledger_free(l);
    l = ipw_ledger_new(NULL, 0);
    assert_int_equal(ipw_ledger_covered_ns(l), INT64_MAX);
    ipw_ledger_query_begin(l, S(1));
    ipw_ledger_query_end(l, 0, S(2));
    assert_unknown(ipw_ledger_figure(l, ask_query(0, CPU, S(1), S(2))), "no_sensor");
    ipw_ledger_free(l);
    ipw_ledger_free(NULL);
}

/* Case 13: a device that is lost holds nobody up, and what was read before stays. */
static void test_13_lost_device(void **state)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 400),
                               test_counter("gpu1", GPU, 0, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);

    (void)state;
    ipw_ledger_query_begin(l, S(2));
    for (int i = 0; i <= 300; i++) {
        int64_t v[2] = {J(10 * i), i <= 150 ? J(20 * i) : IPW_NO_VALUE};
        ipw_ledger_row(l, 0, 2, S(1 + i * 0.1), v);
        if (i == 160) assert_int_equal(ipw_ledger_covered_ns(l), S(16)); /* it may come back */
    }
    ipw_ledger_query_end(l, 0, S(20));
    assert_int_equal(ipw_ledger_covered_ns(l), S(31));
    assert_figure(ipw_ledger_figure(l, ask_query(0, GPU, S(2), S(16))), 30 * 140,
                  IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_query(0, GPU, S(2), S(20))), "no_samples");
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(1), S(31))), "no_samples");
    ipw_ledger_free(l);
}

/* Case 13: it is known to have fallen off the bus at 15 s: the turns before keep their joules,
 * those after it are null for that reason, nobody waits for it, and the other device's books go on.
 * When it comes back, its count is another one, even where it could pass for the old one gone
 * on. */
static void test_13_gpu_lost_at_15_s(void **state)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 400),
                               test_counter("gpu1", GPU, 0, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);
    int64_t q0 = ipw_ledger_query_begin(l, S(2)), q1, q2;

    (void)state;
    for (int i = 0; i <= 150; i++) {
        int64_t v[2] = {J(10 * i), J(20 * i)};
        ipw_ledger_row(l, 0, 2, S(i * 0.1), v);
    }
    ipw_ledger_query_end(l, q0, S(14));
    q1 = ipw_ledger_query_begin(l, S(14));
    ipw_ledger_lose(l, 1, "gpu_lost");
    for (int i = 151; i <= 300; i++) {
        int64_t v[2] = {J(10 * i), i <= 250 ? IPW_NO_VALUE : J(20 * 150 + 20 * (i - 250))};
        ipw_ledger_row(l, 0, 2, S(i * 0.1), v);
        if (i == 160) {
            assert_int_equal(ipw_ledger_covered_ns(l), S(16));
            ipw_ledger_query_end(l, q1, S(16));
        }
    }
    q2 = ipw_ledger_query_begin(l, S(26));
    ipw_ledger_query_end(l, q2, S(28));
    assert_figure(ipw_ledger_figure(l, ask_query(q0, GPU, S(2), S(14))), 300 * 12,
                  IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_query(q1, GPU, S(14), S(16))), "gpu_lost");
    assert_figure(ipw_ledger_figure(l, ask_device(0, ask_query(q1, GPU, S(14), S(16)))), 100 * 2,
                  IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_query(q2, GPU, S(26), S(28))), 300 * 2,
                  IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(0), S(30))), "gpu_lost");
    assert_figure(ipw_ledger_figure(l, ask_device(0, ask_total(GPU, S(0), S(30)))), 100 * 30,
                  IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_device(1, ask_total(GPU, S(0), S(30)))), "gpu_lost");
    /* 15 s and the 4.9 s after it was back, of 30; with all of the other one. */
    assert_near(ipw_ledger_figure(l, ask_device(1, ask_total(GPU, S(0), S(30)))).partial_j,
                200 * 19.9, 1e-6);
    assert_near(ipw_ledger_figure(l, ask_total(GPU, S(0), S(30))).partial_j, 200 * 19.9 + 100 * 30,
                1e-6);
    assert_near(ipw_ledger_figure(l, ask_total(GPU, S(0), S(30))).coverage, 19.9 / 30, 1e-9);
    ipw_ledger_free(l);
}

/* Lost from the start: a sum over the others would pass for the sum over all. */
static void test_13_gpu_lost_from_the_start(void **state)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 400),
                               test_counter("gpu1", GPU, 0, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);
    int64_t q = -1;

    (void)state;
    ipw_ledger_lose(l, 1, "gpu_lost");
    for (int i = 0; i <= 100; i++) {
        int64_t v[2] = {J(10 * i), IPW_NO_VALUE};
        ipw_ledger_row(l, 0, 2, S(i * 0.1), v);
        if (i == 20) q = ipw_ledger_query_begin(l, S(2));
        if (i == 50) ipw_ledger_query_end(l, q, S(5));
    }
    assert_int_equal(ipw_ledger_covered_ns(l), S(10));
    assert_unknown(ipw_ledger_figure(l, ask_query(q, GPU, S(2), S(5))), "gpu_lost");
    assert_figure(ipw_ledger_figure(l, ask_device(0, ask_query(q, GPU, S(2), S(5)))), 300,
                  IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(0), S(10))), "gpu_lost");
    ipw_ledger_free(l);
}

/* A source of which no row ever comes is not waited for longer than half a minute from the first
 * row of another one. */
static void test_13_a_source_that_never_spoke(void **state)
{
    struct ipw_channel c[2] = {test_counter("gpu0", GPU, 0, 400),
                               test_counter("gpu1", GPU, 0, 400)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);

    (void)state;
    for (int i = 0; i <= 60; i++) {
        int64_t v = J(50 * i);

        ipw_ledger_row(l, 0, 1, S(100 + i * 0.5), &v);
        assert_int_equal(ipw_ledger_covered_ns(l), i < 60 ? INT64_MIN : S(130));
    }
    assert_unknown(ipw_ledger_figure(l, ask_total(GPU, S(100), S(130))), "no_samples");
    assert_figure(ipw_ledger_figure(l, ask_device(0, ask_total(GPU, S(100), S(130)))), 3000,
                  IPW_PROV_MEASURED);
    ipw_ledger_free(l);
}

/* Case 16: a zone that went away and came back counts from wherever it stands then, here from what
 * could pass for the old count gone on: nothing is claimed across. */
static void test_16_zone_back_is_a_new_chain(void **state)
{
    struct ipw_channel c = test_counter("package-0", CPU, 0, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);

    (void)state;
    for (int i = 0; i <= 100; i++) {
        int64_t v = i == 50 ? IPW_NO_VALUE : i < 50 ? J(10 * i) : J(10 * i - 7);

        if (i == 50) ipw_ledger_lose(l, 0, "lost");
        ipw_ledger_row(l, 0, 1, S(0.1 * i), &v);
    }
    assert_figure(ipw_ledger_figure(l, ask_total(CPU, S(0), S(4.9))), 490, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_total(CPU, S(5.1), S(10))), 490, IPW_PROV_MEASURED);
    assert_unknown(ipw_ledger_figure(l, ask_total(CPU, S(0), S(10))), "lost");
    ipw_ledger_free(l);
}

/* Case 23: what ends before it starts has no figure, and what is told of it changes none. */
static void test_23_end_before_start(void **state)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 400);
    struct ipw_ledger *l[2];
    struct ipw_figure f[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        int64_t q;

        l[k] = ipw_ledger_new(&c, 1);
        q = ipw_ledger_query_begin(l[k], S(2));
        tell_phase(l[k], q, IPW_PHASE_PREFILL, S(3), S(4));
        if (k) {
            tell_phase(l[k], q, IPW_PHASE_DECODE, S(5), S(4.5));
        }
        for (int i = 0; i <= 100; i++) {
            int64_t v = J(20 * i + (i <= 20 ? 0 : i < 40 ? 10 * (i - 20) : 200));
            ipw_ledger_row(l[k], 0, 1, S(1 + i * 0.1), &v);
        }
        ipw_ledger_query_end(l[k], q, S(6));
        f[k] = ipw_ledger_figure(l[k], ask_query(q, GPU, S(3.05), S(4.05)));
        assert_true(f[k].known);
        assert_unknown(ipw_ledger_figure(l[k], ask_query(q, GPU, S(4), S(3))), "not_covered");
        assert_unknown(ipw_ledger_figure(l[k], ask_total(GPU, S(4), S(3))), "not_covered");
    }
    assert_memory_equal(&f[0].j, &f[1].j, sizeof f[0].j);
    ipw_ledger_free(l[0]);
    ipw_ledger_free(l[1]);
}

/* Two sources that are read at different times have one total. */
static void test_rows_of_two_sources(void **state)
{
    struct ipw_channel c[3] = {test_counter("package-0", CPU, 0, 400),
                               test_counter("package-0/dram", IPW_DOMAIN_DRAM, 0, 100),
                               test_gauge("gpu0", 700)};
    struct ipw_ledger *l = ipw_ledger_new(c, 3);
    int64_t gauge = 250000;

    (void)state;
    for (int i = 0; i <= 1000; i++) {
        int64_t v[2] = {J(i), J(0.25 * i)};
        ipw_ledger_row(l, 0, 2, S(1 + i * 0.01), v);
        if (i % 7 == 3) ipw_ledger_row(l, 2, 1, S(1.001 + i * 0.01), &gauge);
    }
    ipw_ledger_query_begin(l, S(2));
    ipw_ledger_query_end(l, 0, S(4));
    assert_figure(ipw_ledger_figure(l, ask_query(0, CPU, S(2), S(4))), 200, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_query(0, IPW_DOMAIN_DRAM, S(2), S(4))), 50,
                  IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_query(0, GPU, S(2), S(4))), 500, IPW_PROV_ESTIMATED);
    assert_true(ipw_ledger_covered_ns(l) < S(11));
    ipw_ledger_free(l);
}

UNIT(ledger_window)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_query),
        cmocka_unit_test(test_22_no_length),
        cmocka_unit_test(test_33_bounds_of_a_small_cell),
        cmocka_unit_test(test_33_equal_slices),
        cmocka_unit_test(test_interleaving_does_not_matter),
        cmocka_unit_test(test_05_two_sockets),
        cmocka_unit_test(test_06_reset_mid_run),
        cmocka_unit_test(test_12_hole_is_shared_out),
        cmocka_unit_test(test_windows_within_the_slack),
        cmocka_unit_test(test_24_short_turns),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_13_lost_device),
        cmocka_unit_test(test_13_gpu_lost_at_15_s),
        cmocka_unit_test(test_13_gpu_lost_from_the_start),
        cmocka_unit_test(test_13_a_source_that_never_spoke),
        cmocka_unit_test(test_16_zone_back_is_a_new_chain),
        cmocka_unit_test(test_23_end_before_start),
        cmocka_unit_test(test_rows_of_two_sources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
