/* The bounds of what queries side by side are charged: docs/method.md, "Bounds". */
#include "ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "sim/ask.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU
enum { MOST = 5, RUNS = 1500 };

struct asked { /* a query, and the window that is asked for */
    double t0, t1, from, to;
    int64_t query;
};

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* What a query is due of the device's true energy in [from, to], which lies inside its own time. */
static double due(const struct sim_curve *curve, const struct asked *all, size_t n, double from,
                  double to)
{
    double cuts[2 * MOST + 2], sum = 0;
    size_t k = 0;

    cuts[k++] = from;
    cuts[k++] = to;
    for (size_t i = 0; i < n; i++) {
        if (all[i].t0 > from && all[i].t0 < to) cuts[k++] = all[i].t0;
        if (all[i].t1 > from && all[i].t1 < to) cuts[k++] = all[i].t1;
    }
    qsort(cuts, k, sizeof *cuts, by_time);
    for (size_t c = 0; c + 1 < k; c++) {
        double weight = 0;

        for (size_t i = 0; i < n; i++) {
            if (all[i].t0 <= cuts[c] && all[i].t1 >= cuts[c + 1]) weight++;
        }
        sum += (sim_curve_j(curve, cuts[c + 1]) - sim_curve_j(curve, cuts[c])) / weight;
    }
    return sum;
}

/* windows: the ends of what is asked for, too; else they come too late to be told. */
static void tell(struct ipw_ledger *l, struct asked *all, size_t n, bool windows)
{
    double times[4 * MOST];

    for (size_t i = 0; i < n; i++) memcpy(times + 4 * i, &all[i], 4 * sizeof *times);
    qsort(times, 4 * n, sizeof *times, by_time);
    for (size_t k = 0; k < 4 * n; k++) {
        for (size_t i = 0; i < n && (!k || times[k] > times[k - 1]); i++) {
            if (all[i].t0 == times[k]) all[i].query = ipw_ledger_query_begin(l, S(all[i].t0));
            if (windows && all[i].from == times[k])
                ipw_ledger_instant(l, all[i].query, S(all[i].from));
            if (windows && all[i].to == times[k]) ipw_ledger_instant(l, all[i].query, S(all[i].to));
            if (all[i].t1 == times[k]) ipw_ledger_query_end(l, all[i].query, S(all[i].t1));
        }
    }
}

/* The bounds of a part of a query follow from those at its ends and at each edge in it, by the
 * share on either side: alone, two in flight, alone again. */
static void test_bounds_follow_the_share(void **state)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 400);
    const int64_t at[] = {S(1.52), S(2.03), S(3.01), S(4.03)};
    int64_t below[4], above[4], q1, q2 = 0;
    struct ipw_ledger *l;
    struct ipw_series s;
    struct ipw_figure f;

    (void)state;
    c.period_ns = S(0.1);
    ipw_series_init(&s, &c);
    l = ipw_ledger_new(&c, 1);
    ipw_ledger_set_share(l, IPW_SHARE_EQUAL);
    q1 = -1;
    for (int i = 0; i <= 600; i++) {
        int64_t t = i * S(0.01), uj = i / 10 * J(10 + i / 40);

        if (i == 100) q1 = ipw_ledger_query_begin(l, S(1));
        if (i == 204) q2 = ipw_ledger_query_begin(l, at[1]);
        if (i == 302) ipw_ledger_query_end(l, q2, at[2]);
        if (i == 500) ipw_ledger_query_end(l, q1, S(5));
        ipw_ledger_row(l, 0, 1, t, &uj);
        ipw_series_push(&s, t, uj);
    }
    for (int i = 0; i < 4; i++) ipw_series_bounds(&s, at[i], &below[i], &above[i]);
    f = ipw_ledger_figure(l, ask_query(q1, GPU, at[0], at[3]));
    assert_true(f.known);
    assert_near((f.hi_j - f.j) * 1e6,
                (double)below[0] + 0.5 * (double)(above[1] + below[2]) + (double)above[3], 1);
    assert_near((f.j - f.lo_j) * 1e6,
                (double)above[0] + 0.5 * (double)(below[1] + above[2]) + (double)below[3], 1);
    ipw_series_release(&s);
    ipw_ledger_free(l);
}

/* A power that jumps, queries that come and go within a step of the counter, and windows cut
 * anywhere, told or not: what a query is due of the true energy lies within the bounds of its
 * figure. */
static void test_52_shares_are_within_their_bounds(void **state)
{
    uint64_t seed = 4;
    double wide = 0, figures = 0;

    (void)state;
    for (int run = 0; run < RUNS; run++) {
        struct sim_curve curve = {0};
        struct asked all[MOST];
        size_t n = 2 + test_random(&seed) % (MOST - 1);
        struct sim_sensor s = {.curve = &curve, .quantum = 1000, .seed = seed};
        struct ipw_ledger *l;

        for (double t = 0; t < 8; t += test_uniform(&seed, 0.005, 0.4))
            sim_curve_add(&curve, t, test_uniform(&seed, 20, 480), 0);
        for (size_t i = 0; i < n; i++) {
            all[i].t0 = test_uniform(&seed, 1, 4);
            all[i].t1 = all[i].t0 + test_uniform(&seed, 0.02, 2.5);
            all[i].from = i ? test_uniform(&seed, all[i].t0, all[i].t1) : all[i].t0;
            all[i].to = i ? test_uniform(&seed, all[i].from, all[i].t1) : all[i].t1;
        }
        s.channel = test_counter("gpu0", GPU, 0, 500);
        if (run % 3) {
            s.publish_s = 0.1;
            s.phase_s = test_uniform(&seed, 0, 0.1);
            s.channel.period_ns = S(0.1);
        }
        l = ipw_ledger_new(&s.channel, 1);
        ipw_ledger_set_share(l, IPW_SHARE_EQUAL);
        tell(l, all, n, run / 6 % 2);
        for (double t = 0.5; t < 7.5; t += test_uniform(&seed, 0.01, run % 2 ? 0.03 : 0.2)) {
            int64_t v = sim_sensor_read(&s, t);

            ipw_ledger_row(l, 0, 1, S(t), &v);
        }
        for (size_t q = 0; q < n; q++) {
            double from = all[q].from, to = all[q].to, truth = due(&curve, all, n, from, to);
            struct ipw_figure f =
                ipw_ledger_figure(l, ask_query(all[q].query, GPU, S(from), S(to)));

            assert_true(f.known && f.lo_j >= 0 && f.lo_j <= f.j && f.j <= f.hi_j);
            if (to - from < 0.04) assert_true(f.u_j <= fmax(f.hi_j - f.lo_j, 0.03 * f.j));
            if (truth < f.lo_j - 2e-5 || truth > f.hi_j + 2e-5)
                fail_msg("run %d: %.6f J is not in [%.6f, %.6f]", run, truth, f.lo_j, f.hi_j);
            wide += f.hi_j - f.lo_j;
            figures += f.j;
        }
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
    print_message("bounds as wide as %.0f %% of the figures\n", 100 * wide / figures);
    assert_true(wide < figures); /* and they say something */
}

UNIT(ledger_bounds)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_follow_the_share),
        cmocka_unit_test(test_52_shares_are_within_their_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
