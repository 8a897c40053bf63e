/* A power gauge beside the counter of the same device: docs/method.md, "Splitting a step". */
#include "ledger/ledger.h"

#include "sim/ask.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU

/* A counter of 100 ms and a gauge of 10 ms that reads low: the joules are the counter's, the shape
 * is the gauge's. */
static void test_40_gauge_beside_a_counter(void **state)
{
    static const double gains[] = {0.95, 0.6};

    (void)state;
    for (int g = 0; g < 2; g++) {
        struct sim_curve curve = {0};
        struct sim_sensor sensors[2];
        struct ipw_channel c[2];
        struct ipw_ledger *l;
        double fused = 0, straight = 0;
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
        ipw_ledger_query_end(l, q, S(46));
        for (int i = 0; i <= 4800; i++) {
            double t = 2 + i * 0.01;
            int64_t v[2] = {sim_sensor_read(&sensors[0], t), sim_sensor_read(&sensors[1], t)};
            ipw_ledger_row(l, 0, 2, S(t), v);
        }
        for (int i = 0; i < 40; i++) {
            double t0 = 5.013 + i, t1 = 5.533 + i;
            double truth = sim_curve_j(&curve, t1) - sim_curve_j(&curve, t0);
            struct ipw_figure f = ipw_ledger_figure(l, ask_query(q, GPU, S(t0), S(t1)));
            fused += fabs(f.j - truth) / truth / 40;
            f = ipw_ledger_figure(l, ask(IPW_LEDGER_LINEAR, q, GPU, S(t0), S(t1)));
            straight += fabs(f.j - truth) / truth / 40;
        }
        print_message("gauge reads %.0f %%: straight %.1f %%, shaped %.1f %%\n", gains[g] * 100,
                      straight * 100, fused * 100);
        assert_true(fused < 0.02 && fused < straight / 2);
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
}

UNIT(ledger_gauge)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_40_gauge_beside_a_counter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
