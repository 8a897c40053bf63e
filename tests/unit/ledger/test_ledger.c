/* Shares and phases of the ledger: docs/method.md, "Splitting a step" and
 * "Sharing between queries", and cases of tests/cases.txt. */
#include "ledger/ledger.h"

#include <stdlib.h>

#include "sim/ask.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU
#define CPU IPW_DOMAIN_CPU

static int64_t uj_of(double j) { return (int64_t)(j * 1e6 + (j < 0 ? -0.5 : 0.5)); }

static void feed(struct ipw_ledger *l, struct sim_sensor *s, double t0, double t1, double every)
{
    for (int64_t i = 0; t0 + (double)i * every <= t1 + 1e-9; i++) {
        double t = t0 + (double)i * every;
        int64_t v = sim_sensor_read(s, t);
        ipw_ledger_row(l, 0, 1, S(t), &v);
    }
}

static struct sim_sensor meter(const struct sim_curve *curve, enum ipw_domain domain)
{
    struct sim_sensor s = {.curve = curve, .seed = 1};

    s.channel = test_counter("meter", domain, 0, 1000);
    return s;
}

/* A run of many queries side by side, told in order of time. */
struct event {
    double t;
    int query, kind; /* -1: begins; IPW_PHASE_COUNT: ends; else a phase begins */
};

struct crowd {
    struct event events[4000];
    size_t n;
    double t0[64], t1[64];
    int64_t ordinal[64];
    int queries;
};

static struct crowd crowd;

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    if (x->t != y->t) return x->t < y->t ? -1 : 1;
    if (x->query != y->query) return x->query < y->query ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static void add_event(double t, int query, int kind)
{
    crowd.events[crowd.n++] = (struct event){t, query, kind};
}

/* Queries 0..n-1, at most `at_a_time` at once; and the device's truth: base plus what each adds. */
static void make_crowd(int n, int at_a_time, uint64_t *seed, struct sim_curve *curve)
{
    static const double adds[IPW_PHASE_COUNT] = {0, 180, 110, 120, 5, 0};
    int phase_of[64];
    double free_at[64] = {0}, base = 80;

    crowd.n = 0;
    crowd.queries = n;
    for (int q = 0; q < n; q++) {
        double t, *lane = &free_at[0];

        for (int k = 1; k < at_a_time; k++) {
            if (free_at[k] < *lane) lane = &free_at[k];
        }
        t = 10 + *lane + sim_uniform(seed, 0, 0.5);
        crowd.t0[q] = t;
        add_event(t, q, -1);
        for (int i = 1 + (int)(test_random(seed) % 4); i > 0; i--) {
            add_event(t, q, IPW_PHASE_PREFILL);
            t += sim_uniform(seed, 0.03, 0.3);
            add_event(t, q, IPW_PHASE_DECODE);
            t += sim_uniform(seed, 0.1, 1);
            add_event(t, q, IPW_PHASE_TOOL);
            t += sim_uniform(seed, 0.02, 0.6);
        }
        crowd.t1[q] = t;
        add_event(t, q, IPW_PHASE_COUNT);
        *lane = t - 10;
    }
    qsort(crowd.events, crowd.n, sizeof *crowd.events, by_time);
    sim_curve_add(curve, 5, base, 0);
    for (int q = 0; q < n; q++) phase_of[q] = -1;
    for (size_t i = 0; i < crowd.n; i++) {
        double w = base;

        phase_of[crowd.events[i].query] =
            crowd.events[i].kind < IPW_PHASE_COUNT ? crowd.events[i].kind : -1;
        for (int q = 0; q < n; q++) w += phase_of[q] >= 0 ? adds[phase_of[q]] : 0;
        sim_curve_add(curve, crowd.events[i].t, w, 0);
    }
}

static double crowd_end(void)
{
    double end = 0;

    for (int q = 0; q < crowd.queries; q++) end = crowd.t1[q] > end ? crowd.t1[q] : end;
    return end;
}

static void tell_event(struct ipw_ledger *l, const struct event *e)
{
    int64_t q = crowd.ordinal[e->query], t = S(e->t);

    if (e->kind == -1) {
        crowd.ordinal[e->query] = ipw_ledger_query_begin(l, t);
        return;
    }
    if (e->kind == IPW_PHASE_COUNT) {
        ipw_ledger_query_end(l, q, t);
    } else {
        tell_phase(l, q, (enum ipw_phase)e->kind, t, INT64_MAX);
    }
}

/* Rows arrive `batch` at a time, after what happened up to the last of them, as from a ring. */
static struct ipw_ledger *run_crowd(struct sim_sensor *s, enum ipw_share share, double baseline,
                                    double every, int64_t batch, struct ipw_figure *figures)
{
    struct ipw_ledger *l = ipw_ledger_new(&s->channel, 1);
    double end = crowd_end() + 1;
    bool booked[64] = {false};
    size_t told = 0;
    int64_t row = 0;

    ipw_ledger_set_share(l, share);
    if (baseline > 0) ipw_ledger_set_baseline(l, s->channel.domain, baseline);
    for (int64_t i = 0; 8 + (double)i * every <= end; i++) {
        double t = 8 + (double)i * every;

        if (i % batch != batch - 1 && t + every <= end) continue;
        for (; told < crowd.n && crowd.events[told].t <= t; told++) {
            tell_event(l, &crowd.events[told]);
        }
        for (; row <= i; row++) {
            int64_t v = sim_sensor_read(s, 8 + (double)row * every);
            ipw_ledger_row(l, 0, 1, S(8 + (double)row * every), &v);
        }
        for (int q = 0; q < crowd.queries && figures; q++) {
            if (booked[q] || crowd.t1[q] > t || S(crowd.t1[q]) > ipw_ledger_covered_ns(l)) continue;
            booked[q] = true;
            figures[q] = ipw_ledger_figure(
                l, ask_query(crowd.ordinal[q], s->channel.domain, S(crowd.t0[q]), S(crowd.t1[q])));
        }
    }
    return l;
}

/* Case 49: however the rows are bunched, the figures are the same to the bit. */
static void test_49_bunched_rows(void **state)
{
    uint64_t seed = 49;

    (void)state;
    for (int run = 0; run < 24; run++) {
        struct sim_curve curve = {0};
        struct ipw_figure f[2][64];

        make_crowd(30, 1 + run % 6, &seed, &curve);
        for (int k = 0; k < 2; k++) {
            struct sim_sensor s = meter(&curve, GPU);
            if (run % 2) {
                s.channel.period_ns = S(0.1);
                s.publish_s = 0.1;
                s.phase_s = 0.0137;
            }
            ipw_ledger_free(
                run_crowd(&s, (enum ipw_share)(run / 2 % 2), 70, 0.02, k ? 17 : 1, f[k]));
        }
        for (int q = 0; q < crowd.queries; q++) {
            assert_true(f[0][q].known && f[1][q].known);
            assert_near(f[0][q].j, f[1][q].j, 0);
            assert_near(f[0][q].lo_j, f[1][q].lo_j, 0);
            assert_near(f[0][q].hi_j, f[1][q].hi_j, 0);
            assert_near(f[0][q].split_fraction, f[1][q].split_fraction, 0);
            assert_int_equal(f[0][q].provenance, f[1][q].provenance);
        }
        sim_curve_release(&curve);
    }
}

/* Case 33: at 1, 2, 8 and 32 at a time, by each rule, queries and idle are the total to the
 * microjoule; what was booked when it was covered stays; the parts of a query are the query; and
 * no figure is without bounds. */
static void test_33_exact_balance_by_each_rule(void **state)
{
    static const int at_a_time[] = {1, 2, 8, 32};
    uint64_t seed = 33;

    (void)state;
    for (int run = 0; run < 60; run++) {
        int many = at_a_time[run % 4];
        struct sim_curve curve = {0};
        struct sim_sensor s;
        enum ipw_share share = (enum ipw_share)(run / 4 % 2);
        struct ipw_figure booked[64];
        int64_t sum = 0, idle, total, start, stop;
        struct ipw_ledger *l;

        make_crowd(many == 32 ? 64 : 20, many, &seed, &curve);
        s = meter(&curve, GPU);
        if (run % 2) {
            s.channel.period_ns = S(0.1);
            s.publish_s = 0.1;
            s.quantum = 1000;
        }
        s.channel.max_w = 8000;
        l = run_crowd(&s, share, run % 5 ? 75 : 0, sim_uniform(&seed, 0.01, 0.1), 1, booked);
        start = S(9);
        stop = S(crowd_end() + 0.5);
        for (int q = 0; q < crowd.queries; q++) {
            int64_t cuts[6] = {S(crowd.t0[q])}, parts = 0;
            struct ipw_figure f[5],
                whole = ipw_ledger_figure(
                    l, ask_query(crowd.ordinal[q], GPU, S(crowd.t0[q]), S(crowd.t1[q])));

            assert_true(whole.known && whole.j >= 0);
            assert_true(whole.lo_j >= 0 && whole.lo_j <= whole.j && whole.j <= whole.hi_j);
            for (int k = 1; k < 5; k++) {
                cuts[k] = cuts[k - 1] + (int64_t)(sim_uniform(&seed, 0, 0.5) *
                                                  (double)(S(crowd.t1[q]) - cuts[k - 1]));
            }
            cuts[5] = S(crowd.t1[q]);
            for (int k = 0; k < 5; k++) {
                f[k] = ipw_ledger_figure(l, ask_query(crowd.ordinal[q], GPU, cuts[k], cuts[k + 1]));
                assert_true(f[k].known && f[k].j >= 0);
                parts += uj_of(f[k].j);
            }
            assert_int_equal(parts, uj_of(whole.j));
            assert_near(booked[q].j, whole.j, 0);
            sum += uj_of(whole.j);
        }
        idle = uj_of(ipw_ledger_figure(l, ask_idle(GPU, start, stop)).j);
        total = uj_of(ipw_ledger_figure(l, ask_total(GPU, start, stop)).j);
        assert_int_equal(sum + idle, total);
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
}

/* A run that ends with queries in flight: up to its end they have their shares by phase, as if an
 * edge were there.  300 W in decode, 60 W while waiting; learned from queries that were alone. */
static void test_close_ends_a_cell(void **state)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 900);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    int64_t q[4] = {0}, uj = 0;
    double waits, decodes;

    (void)state;
    ipw_ledger_set_share(l, IPW_SHARE_PHASE);
    for (int i = 0; i <= 400; i++) {
        bool lone = i >= 100 && i < 200, both = i >= 200;

        if (i == 20 || i == 100 || i == 200) {
            q[i / 100] = ipw_ledger_query_begin(l, i * S(0.05));
            tell_phase(l, q[i / 100], i == 100 ? IPW_PHASE_WAIT : IPW_PHASE_DECODE, i * S(0.05),
                       INT64_MAX);
        }
        if (i == 90 || i == 190) ipw_ledger_query_end(l, q[i / 100], i * S(0.05));
        if (i == 200) {
            q[3] = ipw_ledger_query_begin(l, i * S(0.05));
            tell_phase(l, q[3], IPW_PHASE_WAIT, i * S(0.05), INT64_MAX);
        }
        ipw_ledger_row(l, 0, 1, i * S(0.05), &uj);
        uj += (i >= 20 && i < 90 ? 300 : lone && i < 190 ? 60 : both ? 360 : 40) * J(0.05);
    }
    ipw_ledger_close(l, S(20));
    decodes = ipw_ledger_figure(l, ask_query(q[2], GPU, S(10), S(20))).j;
    waits = ipw_ledger_figure(l, ask_query(q[3], GPU, S(10), S(20))).j;
    assert_near(decodes + waits, 3600, 36);
    assert_true(decodes > 2 * waits);
    ipw_ledger_free(l);
}

/* The rule by phases comes closer to what each query added than equal slices do. */
static void test_33_phases_come_closer_than_slices(void **state)
{
    uint64_t seed = 7;
    double off[2] = {0};

    (void)state;
    for (int share = 0; share < 2; share++) {
        struct sim_curve curve = {0};
        struct sim_sensor s;
        struct ipw_ledger *l;

        seed = 7;
        make_crowd(40, 4, &seed, &curve);
        s = meter(&curve, GPU);
        l = run_crowd(&s, (enum ipw_share)share, 80, 0.01, 1, NULL);
        for (int q = 0; q < 40; q++) {
            static const double adds[IPW_PHASE_COUNT] = {0, 180, 110, 120, 5, 0};
            struct ipw_account a = ipw_ledger_account(
                l, ask_query(crowd.ordinal[q], GPU, S(crowd.t0[q]), S(crowd.t1[q])));
            double added = 0, since = 0;
            int doing = -1;

            for (size_t i = 0; i < crowd.n; i++) {
                const struct event *e = &crowd.events[i];
                if (e->query != q) continue;
                if (doing >= 0) added += adds[doing] * (e->t - since);
                doing = e->kind < IPW_PHASE_COUNT ? e->kind : -1;
                since = e->t;
            }
            assert_true(a.attributed.known);
            assert_true(a.exclusive_j >= 0 && a.exclusive_j <= a.attributed.j + 1e-6);
            assert_true(a.marginal_j <= a.attributed.j);
            off[share] += fabs(a.marginal_j - added) / added / 40;
        }
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
    print_message("off from what each added: equal %.1f %%, phase %.1f %%\n", off[0] * 100,
                  off[1] * 100);
    assert_true(off[1] < 0.05);
    assert_true(off[1] < off[0] / 3);
}

/* Cases 29, 30, 32, 35 and 36. */
static void test_30_suspended(void **state)
{
    struct sim_curve curve = {0};
    struct sim_sensor s;
    struct ipw_ledger *l;
    int64_t q;

    (void)state;
    sim_curve_add(&curve, 0, 100, 0);
    s = meter(&curve, GPU);
    l = ipw_ledger_new(&s.channel, 1);
    q = ipw_ledger_query_begin(l, S(2));
    feed(l, &s, 1, 5, 0.1);
    ipw_ledger_break(l, "suspended");
    s.offset_uj = J(3000); /* it went on counting */
    feed(l, &s, 5.05, 10, 0.1);
    ipw_ledger_query_end(l, q, S(9));
    assert_near(ipw_ledger_figure(l, ask_query(q, GPU, S(2), S(4))).j, 200, 1e-3);
    assert_unknown(ipw_ledger_figure(l, ask_query(q, GPU, S(4), S(6))), "suspended");
    assert_near(ipw_ledger_figure(l, ask_query(q, GPU, S(6), S(9))).j, 300, 1e-3);
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

static void test_32_meters_out_of_phase(void **state)
{
    struct ipw_channel c[2] = {test_counter("a", GPU, 0, 1000), test_counter("b", GPU, 0, 1000)};
    struct ipw_ledger *l = ipw_ledger_new(c, 2);

    (void)state;
    for (int i = 0; i <= 20; i++) { /* 1 Hz each, half a second apart */
        int64_t a = J(100 * i), b = J(50 * i);
        ipw_ledger_row(l, 0, 1, S(1 + i), &a);
        ipw_ledger_row(l, 1, 1, S(1.5 + i), &b);
    }
    ipw_ledger_query_begin(l, S(4.25));
    ipw_ledger_query_end(l, 0, S(9.75));
    assert_near(ipw_ledger_figure(l, ask_query(0, GPU, S(4.25), S(9.75))).j, 5.5 * 150, 1e-3);
    ipw_ledger_free(l);
}

static void test_35_remote(void **state)
{
    struct sim_curve curve = {0};
    struct sim_sensor s;
    struct ipw_ledger *l;
    int64_t q;

    (void)state;
    sim_curve_add(&curve, 0, 100, 0);
    s = meter(&curve, CPU);
    l = ipw_ledger_new(&s.channel, 1);
    ipw_ledger_set_reason(l, GPU, "remote");
    q = ipw_ledger_query_begin(l, S(2));
    tell_phase(l, q, IPW_PHASE_LM, S(2), S(4)); /* 36: the first token was not seen */
    ipw_ledger_query_end(l, q, S(5));
    feed(l, &s, 1, 6, 0.1);
    assert_unknown(ipw_ledger_figure(l, ask_query(q, GPU, S(2), S(4))), "remote");
    assert_near(ipw_ledger_figure(l, ask_query(q, CPU, S(2), S(4))).j, 200, 1e-3);
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

/* Case 53: all powers times k; all clocks moved; a turn cut in two; a constant load beside. And
 * case 49: the same again to the bit. */
static void test_49_53_metamorphic(void **state)
{
    static struct sim_turn turns[30];
    double base[30] = {0};

    (void)state;
    for (int k = 0; k < 5; k++) {
        struct sim_script script = {.lm_s = 0.5,
                                    .prefill_part = 0.3,
                                    .tool_s = 0.3,
                                    .base_w = 70,
                                    .prefill_w = 500,
                                    .decode_w = 350,
                                    .tool_w = 90,
                                    .turns = 30,
                                    .start_s = k == 1 ? 5123 : 123,
                                    .seed = 5};
        struct sim_curve curve = {0};
        struct sim_sensor s;
        struct ipw_ledger *l;
        double scale = k == 2 ? 3 : 1, more = k == 3 ? 40 : 0, end;
        int64_t q;

        script.base_w = script.base_w * scale + more;
        script.prefill_w = script.prefill_w * scale + more;
        script.decode_w = script.decode_w * scale + more;
        script.tool_w = script.tool_w * scale + more;
        end = sim_run(&script, turns, &curve);
        s = meter(&curve, GPU);
        s.publish_s = 0.1;
        s.phase_s = 0.013;
        s.quantum = 1;
        s.channel.max_w = 3000;
        s.channel.period_ns = S(0.1);
        l = ipw_ledger_new(&s.channel, 1);
        q = sim_feed(l, &s, 1, script.start_s - 1, end + 1, 0.02, 0, turns, 30, true);
        for (int i = 0; i < 30; i++) {
            int64_t t0 = S(turns[i].t0), t1 = S(turns[i].t1), mid = S(turns[i].lm_end);
            double j = ipw_ledger_figure(l, ask_query(q, GPU, t0, t1)).j;

            if (k == 0) base[i] = j;
            if (k == 1) assert_near(j, base[i], 1e-3 * j);
            if (k == 2) assert_near(j, base[i] * 3, 1e-3 * j);
            if (k == 3) assert_near(j - base[i], 40 * (turns[i].t1 - turns[i].t0), 0.03 * j);
            if (k == 4) assert_memory_equal(&j, &base[i], sizeof j);
            assert_int_equal(uj_of(ipw_ledger_figure(l, ask_query(q, GPU, t0, mid)).j) +
                                 uj_of(ipw_ledger_figure(l, ask_query(q, GPU, mid, t1)).j),
                             uj_of(j));
        }
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
}

/* A long run with phases, trimmed as it goes, still balances and keeps little. */
static void test_25_long_run_with_phases(void **state)
{
    struct sim_curve curve = {0};
    struct sim_sensor s;
    struct ipw_ledger *l;
    int64_t sum = 0, q = -1, v;
    double begun = 0;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        sim_curve_add(&curve, i, 400, 0);
        sim_curve_add(&curve, i + 0.6, 80, 0);
    }
    s = meter(&curve, GPU);
    l = ipw_ledger_new(&s.channel, 1);
    for (int i = 0; i <= 40000; i++) {
        double t = 1 + i * 0.1;

        v = sim_sensor_read(&s, t);
        ipw_ledger_row(l, 0, 1, S(t), &v);
        if (i % 10 == 5 && i > 50) { /* half way into each second */
            if (q >= 0) {
                ipw_ledger_query_end(l, q, S(t));
                sum += uj_of(ipw_ledger_figure(l, ask_query(q, GPU, S(begun), S(t))).j);
                ipw_ledger_forget(l, q);
            }
            begun = t;
            q = ipw_ledger_query_begin(l, S(t));
            tell_phase(l, q, IPW_PHASE_DECODE, S(t), INT64_MAX);
        }
        if (i % 10 == 6 && q >= 0) tell_phase(l, q, IPW_PHASE_TOOL, S(t - 0.03), INT64_MAX);
    }
    ipw_ledger_query_end(l, q, S(4001));
    sum += uj_of(ipw_ledger_figure(l, ask_query(q, GPU, S(begun), S(4001))).j);
    assert_int_equal(sum + uj_of(ipw_ledger_figure(l, ask_idle(GPU, S(1), S(4001))).j),
                     uj_of(ipw_ledger_figure(l, ask_total(GPU, S(1), S(4001))).j));
    assert_unknown(ipw_ledger_figure(l, ask_query(3, GPU, S(10), S(11))), "not_covered");
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

UNIT(ledger)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_49_bunched_rows),
        cmocka_unit_test(test_33_exact_balance_by_each_rule),
        cmocka_unit_test(test_close_ends_a_cell),
        cmocka_unit_test(test_33_phases_come_closer_than_slices),
        cmocka_unit_test(test_30_suspended),
        cmocka_unit_test(test_32_meters_out_of_phase),
        cmocka_unit_test(test_35_remote),
        cmocka_unit_test(test_49_53_metamorphic),
        cmocka_unit_test(test_25_long_run_with_phases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
