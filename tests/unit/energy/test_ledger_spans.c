/* Labelled windows, baselines and gauges beside counters: reference/energy.md 2c, 2e, and 6. */
#include "energy/ledger_spans.h"

#include "energy/ledger_baseline.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"

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

/* Cases 26 to 28: tools that overlap, a tool after the last call, a tool that calls the model. */
static void test_26_27_28_tools(void **state)
{
    struct sim_curve curve = {0};
    struct sim_sensor s;
    struct ipw_ledger *l;
    struct ipw_figure f[4], all;
    struct ipw_window same_name[2] = {{S(4), S(6), 0}, {S(5), S(8), 0}};
    struct ipw_window last[1] = {{S(9), S(10), 0}};
    struct ipw_window nested[2] = {{S(4), S(8), 0}, {S(5), S(6), 0}};
    int64_t q;

    (void)state;
    sim_curve_add(&curve, 0, 100, 0);
    s = meter(&curve, GPU);
    l = ipw_ledger_new(&s.channel, 1);
    q = ipw_ledger_query_begin(l, S(2));
    ipw_ledger_query_leave(l, q, S(10));
    feed(l, &s, 1, 12, 0.1);
    ipw_ledger_spans(l, q, GPU, same_name, 2, f);
    assert_near(f[0].j, 150, 1e-3);
    assert_near(f[1].j, 250, 1e-3);
    all = ipw_ledger_union(l, q, GPU, same_name, 2);
    assert_near(all.j, 400, 1e-3);
    assert_int_equal(uj_of(f[0].j) + uj_of(f[1].j), uj_of(all.j));
    assert_string_equal(ipw_provenance_name(f[0].provenance), "distributed");
    ipw_ledger_spans(l, q, GPU, last, 1, f);
    assert_near(f[0].j, 100, 1e-3);
    assert_string_equal(ipw_provenance_name(f[0].provenance), "measured");
    /* Inclusive: the window; exclusive: less what the call inside has to itself. */
    all = ipw_ledger_query_window(l, q, GPU, S(4), S(8));
    f[0] = ipw_ledger_query_window(l, q, GPU, S(5), S(6));
    assert_near(all.j, 400, 1e-3);
    assert_near(all.j - f[0].j, 300, 1e-3);
    assert_near(ipw_ledger_union(l, q, GPU, nested, 2).j, 400, 1e-3);
    assert_near(ipw_ledger_union(l, q, GPU, nested, 0).j, 0, 0);
    nested[1].t1_ns = S(1); /* turned round: case 23 */
    assert_near(ipw_ledger_union(l, q, GPU, nested, 2).j, 400, 1e-3);
    nested[0].t1_ns = S(40);
    assert_unknown(ipw_ledger_union(l, q, GPU, nested, 2), "not_covered");
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

static void test_waste_and_idle_tax(void **state)
{
    struct sim_curve curve = {0};
    struct sim_sensor s;
    struct ipw_ledger *l;
    struct ipw_figure waste[IPW_WASTE_COUNT];
    struct ipw_window bad[3] = {{S(3), S(5), IPW_WASTE_FAILED},
                                {S(4), S(6), IPW_WASTE_TIMEOUT},
                                {S(8), S(9), IPW_WASTE_MALFORMED}};
    struct ipw_window quiet[2] = {{S(5), S(7), 0}, {S(6.5), S(7.5), 0}};
    int64_t q;

    (void)state;
    sim_curve_add(&curve, 0, 100, 0);
    s = meter(&curve, GPU);
    l = ipw_ledger_new(&s.channel, 1);
    q = ipw_ledger_query_begin(l, S(2));
    ipw_ledger_query_leave(l, q, S(10));
    feed(l, &s, 1, 12, 0.1);
    ipw_ledger_waste(l, q, GPU, bad, 3, waste);
    assert_near(waste[IPW_WASTE_CANCELLED].j, 0, 0);
    assert_near(waste[IPW_WASTE_TIMEOUT].j, 200, 1e-3);
    assert_near(waste[IPW_WASTE_FAILED].j, 100, 1e-3); /* the rest of it is the timeout's */
    assert_near(waste[IPW_WASTE_MALFORMED].j, 100, 1e-3);
    assert_near(ipw_ledger_union(l, q, GPU, bad, 3).j, 400, 1e-3);
    assert_near(ipw_ledger_union(l, q, GPU, quiet, 2).j, 250, 1e-3);
    assert_string_equal(ipw_waste_name(IPW_WASTE_MALFORMED), "malformed");
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

/* Cases 38 and 39, and the tail after a load. */
static void test_38_39_baseline(void **state)
{
    struct sim_curve curve = {0};
    struct sim_sensor s;
    struct ipw_ledger *l;
    struct ipw_baseline before, after, late;
    struct ipw_idle_verdict v;
    struct ipw_figure gross = {.known = true, .j = 500, .lo_j = 490, .hi_j = 510}, net;

    (void)state;
    sim_curve_add(&curve, 0, 75, 0);
    sim_curve_add(&curve, 10, 95, 0); /* a disturbance of 2 s in 30 s */
    sim_curve_add(&curve, 12, 75, 0);
    sim_curve_add(&curve, 40, 400, 0);
    sim_curve_add(&curve, 60, 90, 0);
    s = meter(&curve, GPU);
    l = ipw_ledger_new(&s.channel, 1);
    feed(l, &s, 1, 100, 0.1);
    before = ipw_ledger_baseline(l, GPU, S(5), S(35));
    after = ipw_ledger_baseline(l, GPU, S(65), S(95));
    late = ipw_ledger_baseline(l, GPU, S(95), S(125));
    assert_true(before.known && after.known && !late.known);
    assert_near(before.w, 75, 0.01);
    assert_near(after.w, 90, 0.01);
    assert_string_equal(late.reason, "not_covered");
    assert_string_equal(ipw_ledger_baseline(l, CPU, S(5), S(35)).reason, "no_sensor");
    v = ipw_baseline_judge(&before, &after);
    assert_false(v.usable);
    assert_near(v.drift_w, 15, 0.02);
    net = ipw_baseline_net(&gross, &v, 10);
    assert_unknown(net, "baseline_drift");
    v = ipw_baseline_judge(&before, &before);
    assert_true(v.usable);
    net = ipw_baseline_net(&gross, &v, 10); /* below the baseline: as it is */
    assert_true(net.known);
    assert_near(net.j, -250, 0.2);
    assert_near(net.lo_j, -260, 0.2);
    assert_true(ipw_baseline_judge(&before, NULL).usable);
    assert_string_equal(ipw_baseline_judge(&before, &late).reason, "not_covered");
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

/* A counter of 100 ms and a gauge of 10 ms that reads low: 2c's fusion, and its self-test. */
static void test_40_gauge_beside_a_counter(void **state)
{
    static const double gains[] = {0.95, 0.6};

    (void)state;
    for (int g = 0; g < 2; g++) {
        struct sim_curve curve = {0};
        struct sim_sensor sensors[2];
        struct ipw_channel c[2];
        struct ipw_ledger *l;
        double ratio, fused = 0, straight = 0;
        bool odd;
        int64_t q;

        sim_curve_add(&curve, 0, 75, 0);
        for (int i = 0; i < 40; i++) {
            sim_curve_add(&curve, 5.013 + i, 450, 0.01);
            sim_curve_add(&curve, 5.533 + i, 80, 0.01);
        }
        sensors[0] = (struct sim_sensor){
            .curve = &curve, .publish_s = 0.1, .phase_s = 0.03, .quantum = 1000, .seed = 3};
        sensors[0].channel = test_counter("gpu0", GPU, 0, 800);
        sensors[0].channel.period_ns = S(0.1);
        sensors[1] = (struct sim_sensor){.curve = &curve, .gain = gains[g], .seed = 4};
        sensors[1].channel = test_gauge("gpu0.power", 800);
        sensors[1].channel.in_sum = false;
        snprintf(sensors[0].channel.device, sizeof c->device, "GPU-1");
        snprintf(sensors[1].channel.device, sizeof c->device, "GPU-1");
        c[0] = sensors[0].channel;
        c[1] = sensors[1].channel;
        l = ipw_ledger_new(c, 2);
        q = ipw_ledger_query_begin(l, S(4));
        ipw_ledger_query_leave(l, q, S(46));
        for (int i = 0; i <= 4800; i++) {
            double t = 2 + i * 0.01;
            int64_t v[2] = {sim_sensor_read(&sensors[0], t), sim_sensor_read(&sensors[1], t)};
            ipw_ledger_row(l, 0, 2, S(t), v);
        }
        for (int i = 0; i < 40; i++) {
            double t0 = 5.013 + i, t1 = 5.533 + i;
            double truth = sim_curve_j(&curve, t1) - sim_curve_j(&curve, t0);
            struct ipw_figure f = ipw_ledger_query_window(l, q, GPU, S(t0), S(t1));
            fused += fabs(f.j - truth) / truth / 40;
            f = ipw_ledger_window_by(l, IPW_METHOD_LINEAR, q, GPU, S(t0), S(t1));
            straight += fabs(f.j - truth) / truth / 40;
        }
        print_message("gauge reads %.0f %%: straight %.1f %%, shaped %.1f %%\n", gains[g] * 100,
                      straight * 100, fused * 100);
        assert_true(fused < 0.02 && fused < straight / 2);
        assert_true(ipw_ledger_ratio(l, GPU, S(5), S(45), &ratio, &odd));
        assert_near(ratio, 1 / gains[g], 0.01);
        assert_int_equal(odd, g == 1 || ratio > 1.05);
        assert_false(ipw_ledger_ratio(l, GPU, S(5), S(9), &ratio, &odd));
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_26_27_28_tools),
        cmocka_unit_test(test_waste_and_idle_tax),
        cmocka_unit_test(test_38_39_baseline),
        cmocka_unit_test(test_40_gauge_beside_a_counter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
