/* The energy of all queries together: its bounds are those of the sum.  Against simulated devices
 * whose truth is exact. */
#include <math.h>
#include <stdlib.h>

#include "ledger/balance.h"

#include "sim/ask.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU
enum { MOST_LANES = 32, MOST = 400, DEVICES = 2 };

struct run {
    size_t lanes, n, devices;
    bool gauge;
    double gap_s; /* between the queries of a lane */
    uint64_t seed;
    /* Made: */
    double t0[MOST], t1[MOST], start_s, end_s;
    struct sim_curve curve[DEVICES];
    struct sim_sensor sensor[DEVICES];
    struct ipw_ledger *l;
    int64_t query[MOST];
    double queries_j, own_lo, own_hi; /* of the queries' own figures */
};

struct change {
    double t;
    size_t query;
    bool begins;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->t != y->t) return x->t < y->t ? -1 : 1;
    return x->begins - y->begins;
}

/* Lane after lane takes the next query, some time after its last one has ended. */
static size_t plan(struct run *r, struct change *changes)
{
    double free_s[MOST_LANES];

    r->end_s = r->start_s + 2;
    for (size_t i = 0; i < r->lanes; i++)
        free_s[i] = r->start_s + 1 + sim_uniform(&r->seed, 0, 0.01);
    for (size_t i = 0; i < r->n; i++) {
        size_t lane = i % r->lanes;

        r->t0[i] = free_s[lane];
        r->t1[i] = r->t0[i] + sim_uniform(&r->seed, 0.1, 0.4);
        free_s[lane] = r->t1[i] + sim_uniform(&r->seed, 0.2, 1.8) * r->gap_s;
        if (r->t1[i] + 1 > r->end_s) r->end_s = r->t1[i] + 1;
        changes[2 * i] = (struct change){r->t0[i], i, true};
        changes[2 * i + 1] = (struct change){r->t1[i], i, false};
    }
    qsort(changes, 2 * r->n, sizeof *changes, by_time);
    return 2 * r->n;
}

/* What the devices draw: more, the more queries there are, and each time another power. */
static void draw(struct run *r, const struct change *changes, size_t n)
{
    for (size_t d = 0; d < r->devices; d++) {
        size_t in_flight = 0;

        sim_curve_add(&r->curve[d], r->start_s - 2, 70, 0);
        for (size_t i = 0; i < n; i++) {
            double w = 70;

            in_flight += changes[i].begins ? 1 : (size_t)-1;
            if (in_flight) w += 500 * (1 - exp(-(double)in_flight)) * sim_uniform(&r->seed, 0.5, 1);
            if (i + 1 < n && changes[i + 1].t <= changes[i].t) continue;
            sim_curve_add(&r->curve[d], changes[i].t, w, 0.004);
        }
    }
}

static struct sim_sensor sensor_of(const struct run *r, size_t d)
{
    struct sim_sensor s = {.curve = &r->curve[d],
                           .publish_s = 0.1,
                           .phase_s = 0.0371 * (double)(d + 1),
                           .quantum = r->gauge ? 1 : 1000,
                           .window_s = r->gauge ? 0.1 : 0,
                           .offset_uj = J(12345),
                           .seed = r->seed + d};

    s.channel = test_counter(d ? "gpu1" : "gpu0", GPU, 0, 700);
    if (r->gauge) s.channel.kind = IPW_CHANNEL_GAUGE;
    if (r->gauge) s.channel.window_ns = S(0.1);
    s.channel.period_ns = S(0.1);
    return s;
}

static void tell(struct run *r, const struct change *c)
{
    if (c->begins)
        r->query[c->query] = ipw_ledger_query_begin(r->l, S(c->t));
    else
        ipw_ledger_query_end(r->l, r->query[c->query], S(c->t));
}

/* As the program does: a query's figures are taken when it is covered, and then forgotten. */
static void take(struct run *r, size_t *taken)
{
    while (*taken < r->n && S(r->t1[*taken] + 0.5) <= ipw_ledger_covered_ns(r->l)) {
        size_t i = (*taken)++;
        struct ipw_figure f =
            ipw_ledger_figure(r->l, ask_query(r->query[i], GPU, S(r->t0[i]), S(r->t1[i])));

        assert_true(f.known);
        r->queries_j += f.j;
        r->own_lo += f.lo_j;
        r->own_hi += f.hi_j;
        ipw_ledger_forget(r->l, r->query[i]);
    }
}

static void run(struct run *r)
{
    static struct change changes[2 * MOST];
    struct ipw_channel channels[DEVICES];
    size_t n = plan(r, changes), told = 0, taken = 0;

    draw(r, changes, n);
    for (size_t d = 0; d < r->devices; d++) {
        r->sensor[d] = sensor_of(r, d);
        channels[d] = r->sensor[d].channel;
    }
    r->l = ipw_ledger_new(channels, r->devices);
    for (double t = r->start_s - 0.5; t < r->end_s + 1; t += sim_uniform(&r->seed, 0.018, 0.022)) {
        int64_t values[DEVICES];

        for (; told < n && changes[told].t <= t; told++) tell(r, &changes[told]);
        for (size_t d = 0; d < r->devices; d++) values[d] = sim_sensor_read(&r->sensor[d], t);
        ipw_ledger_row(r->l, 0, r->devices, S(t), values);
        if (t < r->end_s) take(r, &taken);
    }
    ipw_ledger_close(r->l, S(r->end_s));
    take(r, &taken);
    assert_int_equal(taken, r->n);
}

static double truth_of(const struct run *r, double t0, double t1)
{
    double j = 0;

    for (size_t d = 0; d < r->devices; d++)
        j += sim_curve_j(&r->curve[d], t1) - sim_curve_j(&r->curve[d], t0);
    return j;
}

/* The time in which a query was in flight: *in; between start and end, the rest. */
static double truth_together(const struct run *r)
{
    double j = 0, from = r->t0[0], to = from;

    for (;;) { /* by the next start: the lists are short */
        double next = INFINITY;

        for (size_t i = 0; i < r->n; i++)
            if (r->t0[i] <= to && r->t1[i] > to) to = r->t1[i], i = (size_t)-1;
        j += truth_of(r, from, to);
        for (size_t i = 0; i < r->n; i++)
            if (r->t0[i] > to && r->t0[i] < next) next = r->t0[i];
        if (isinf(next)) return j;
        from = to = next;
    }
}

static void hold(const struct ipw_figure *f, double truth)
{
    assert_true(f->known && f->lo_j <= f->j && f->j <= f->hi_j && f->u_j > 0);
    if (truth < f->lo_j - 1e-5 || truth > f->hi_j + 1e-5)
        fail_msg("%g J is not in [%g, %g]", truth, f->lo_j, f->hi_j);
}

/* Runs it, holds all bounds against the truth, and gives the half-width of the sum's in percent. */
static double half_width(struct run *r, struct ipw_balance *balance)
{
    double truth = 0, all;

    r->start_s = 100;
    run(r);
    ipw_balance_fill(balance, r->l, S(r->start_s), S(r->end_s));
    truth = truth_together(r);
    all = truth_of(r, r->start_s, r->end_s);
    assert_near(balance[GPU].queries.j, r->queries_j, 1e-5 * (double)r->n);
    assert_near(balance[GPU].total.j, r->queries_j + balance[GPU].idle.j, 1e-5 * (double)r->n);
    hold(&balance[GPU].queries, truth);
    hold(&balance[GPU].idle, all - truth);
    hold(&balance[GPU].total, all);
    /* The sensor's 5 % are in every query; what their ends add is little in the sum. */
    assert_true(balance[GPU].queries.u_j < 0.035 * r->queries_j);
    for (size_t d = 0; d < r->devices; d++) sim_curve_release(&r->curve[d]);
    ipw_ledger_free(r->l);
    return (balance[GPU].queries.hi_j - balance[GPU].queries.lo_j) / 2 / r->queries_j * 100;
}

/* The mean of 50 queries back to back is known to 5 %, where each query's own bounds are wide. */
static void test_back_to_back(void **state)
{
    struct ipw_balance balance[IPW_DOMAIN_COUNT];

    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct run r = {.lanes = 1, .n = 50, .devices = 1, .gap_s = 0.002, .seed = seed};

        assert_true(half_width(&r, balance) <= 5);
        assert_true((r.own_hi - r.own_lo) / 2 > 0.1 * r.queries_j);
    }
}

static void test_in_flight_together_and_several_devices(void **state)
{
    struct ipw_balance balance[IPW_DOMAIN_COUNT];

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct run four = {.lanes = 4, .n = 200, .devices = 2, .gap_s = 0.002, .seed = seed};
        struct run many = {.lanes = 32, .n = 400, .devices = 2, .gap_s = 0.002, .seed = seed};

        assert_true(half_width(&four, balance) <= 5);
        assert_true(half_width(&many, balance) <= 5);
    }
}

/* Gaps that are longer than the counter's period are bounded by its readings. */
static void test_long_gaps(void **state)
{
    struct ipw_balance balance[IPW_DOMAIN_COUNT];

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct run r = {.lanes = 1, .n = 50, .devices = 2, .gap_s = 0.8, .seed = seed};

        half_width(&r, balance);
        assert_true(balance[GPU].idle.hi_j < 2 * balance[GPU].idle.j);
        assert_true(balance[GPU].queries.hi_j <= r.own_hi + 1);
    }
}

static void test_gauges(void **state)
{
    struct ipw_balance balance[IPW_DOMAIN_COUNT];

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct run r = {
            .lanes = 1, .n = 50, .devices = 2, .gap_s = 0.002, .gauge = true, .seed = seed};

        half_width(&r, balance);
    }
}

/* Two sessions: their bounds add up. */
static void test_sessions_add_up(void **state)
{
    struct ipw_balance one[IPW_DOMAIN_COUNT], other[IPW_DOMAIN_COUNT];
    struct run a = {.lanes = 1, .n = 50, .devices = 1, .gap_s = 0.002, .seed = 3};
    struct run b = {.lanes = 4, .n = 50, .devices = 1, .gap_s = 0.002, .seed = 4};
    double lo, j;

    (void)state;
    half_width(&a, one);
    half_width(&b, other);
    lo = one[GPU].queries.lo_j + other[GPU].queries.lo_j;
    j = a.queries_j + b.queries_j;
    ipw_balance_add(&one[GPU], &other[GPU]);
    assert_near(one[GPU].queries.lo_j, lo, 1e-6);
    assert_near(one[GPU].queries.j, j, 1e-3);
    assert_true(one[GPU].queries.hi_j - lo <= 0.1 * j);
}

/* While a query is in flight, nothing is said of all of them. */
static void test_unknown_in_flight(void **state)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 700);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);

    (void)state;
    for (int i = 0; i < 20; i++) ipw_ledger_row(l, 0, 1, S(1) + i * S(0.1), &(int64_t){J(10) * i});
    assert_true(
        ipw_ledger_figure(l, ask(IPW_LEDGER_QUERIES, IPW_LEDGER_ANY, GPU, S(1), S(2))).known);
    ipw_ledger_query_begin(l, S(2.5));
    ipw_ledger_row(l, 0, 1, S(3.1), &(int64_t){J(10) * 21});
    assert_false(
        ipw_ledger_figure(l, ask(IPW_LEDGER_QUERIES, IPW_LEDGER_ANY, GPU, S(1), S(3))).known);
    ipw_ledger_free(l);
}

UNIT(ledger_together)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back_to_back),
        cmocka_unit_test(test_in_flight_together_and_several_devices),
        cmocka_unit_test(test_long_gaps),
        cmocka_unit_test(test_gauges),
        cmocka_unit_test(test_sessions_add_up),
        cmocka_unit_test(test_unknown_in_flight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
