/* The ledger against a simulated device whose truth is exact, and cases of tests/cases.txt:
 * docs/method.md, "What is assumed, and not claimed". */
#include <stdlib.h>

#include "ledger/ledger.h"
#include "sim/ask.h"
#include "sim/sim.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU        IPW_DOMAIN_GPU
#define MOST_TURNS 2400

static struct sim_turn turns[MOST_TURNS];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* An H100-like script, as in section 7. */
static struct sim_script h100(double lm_s, size_t n, uint64_t seed)
{
    return (struct sim_script){.lm_s = lm_s,
                               .prefill_part = 0.25,
                               .tool_s = 0.5,
                               .base_w = 75,
                               .prefill_w = 600,
                               .decode_w = 430,
                               .tool_w = 75,
                               .spread = 0.15,
                               .tau = 0.004,
                               .turns = n,
                               .start_s = 100,
                               .seed = seed};
}

static struct sim_sensor nvml(const struct sim_curve *curve, uint64_t seed)
{
    struct sim_sensor s = {.curve = curve,
                           .publish_s = 0.1,
                           .phase_s = 0.0371,
                           .quantum = 1000,
                           .offset_uj = J(12345),
                           .seed = seed};

    s.channel = test_counter("gpu0", GPU, 0, 900);
    s.channel.period_ns = S(0.1);
    return s;
}

static struct sim_sensor rapl(const struct sim_curve *curve, uint64_t seed)
{
    struct sim_sensor s = {.curve = curve,
                           .publish_s = 0.001,
                           .phase_s = 0.00037,
                           .jitter = 0.2,
                           .quantum = 61,
                           .offset_uj = RANGE_61 - J(500),
                           .seed = seed};

    s.channel = test_counter("package-0", GPU, RANGE_61 + 61, 900);
    s.channel.period_ns = S(0.001);
    return s;
}

struct errors {
    double median, p95, p95_prefill;
    size_t unknown, outside;
};

static struct errors errors_of(const struct ipw_ledger *l, int64_t query,
                               const struct sim_curve *curve, size_t n, enum ipw_ledger_what method)
{
    static double e[MOST_TURNS], p[MOST_TURNS];
    struct errors out = {0};
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        const struct sim_turn *x = &turns[i];
        double truth = sim_curve_j(curve, x->lm_end) - sim_curve_j(curve, x->t0);
        double prefill = sim_curve_j(curve, x->first_token) - sim_curve_j(curve, x->t0);
        struct ipw_figure f = ipw_ledger_figure(l, ask(method, query, GPU, S(x->t0), S(x->lm_end)));
        struct ipw_figure g =
            ipw_ledger_figure(l, ask(method, query, GPU, S(x->t0), S(x->first_token)));

        if (!f.known || !g.known) {
            out.unknown++;
            continue;
        }
        if (truth < f.lo_j - 1e-6 || truth > f.hi_j + 1e-6) out.outside++;
        p[k] = fabs(g.j - prefill) / prefill * 100;
        e[k++] = fabs(f.j - truth) / truth * 100;
    }
    if (!k) return out;
    qsort(e, k, sizeof *e, by_value);
    qsort(p, k, sizeof *p, by_value);
    out.median = e[k / 2];
    out.p95 = e[k * 95 / 100];
    out.p95_prefill = p[k * 95 / 100];
    return out;
}

struct cell {
    double lm_s, every, limit_p95;
};

/* Power within a phase as real loads have it: growing, noisy, with bursts. */
static struct sim_script lively(struct sim_script x)
{
    x.ramp = 0.25;
    x.noise = 0.08;
    x.burst = 0.3;
    return x;
}

static void run_cells_of(const char *name, bool live,
                         struct sim_sensor (*make)(const struct sim_curve *, uint64_t),
                         const struct cell *cells, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        struct sim_script steady = h100(cells[c].lm_s, 240, 11 + c);
        struct sim_script script = live ? lively(steady) : steady;
        struct sim_curve curve = {0};
        double end = sim_run(&script, turns, &curve);
        struct sim_sensor sensor = make(&curve, 5 + c);
        struct ipw_ledger *l = ipw_ledger_new(&sensor.channel, 1);
        int64_t q = sim_feed(l, &sensor, 1, 99, end + 1, cells[c].every, 0.3, turns, 240, true);
        struct errors phase = errors_of(l, q, &curve, 240, IPW_LEDGER_QUERY);

        print_message("%s T %.2f s h %3.0f ms: %.1f/%.1f (prefill p95 %.1f)\n", name, cells[c].lm_s,
                      cells[c].every * 1e3, phase.median, phase.p95, phase.p95_prefill);
        assert_int_equal(phase.unknown, 0);
        assert_int_equal(phase.outside, 0);
        if (phase.p95 > cells[c].limit_p95) {
            fail_msg("p95 is %.2f %%, more than %.2f %%", phase.p95, cells[c].limit_p95);
        }
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
}

static void run_cells(const char *name,
                      struct sim_sensor (*make)(const struct sim_curve *, uint64_t),
                      const struct cell *cells, size_t n)
{
    run_cells_of(name, false, make, cells, n);
}

/* The targets of a counter that publishes every 100 ms. */
static void test_targets_gpu_counter(void **state)
{
    static const struct cell cells[] = {
        {0.2, 0.01, 5}, {0.2, 0.02, 5}, {0.5, 0.01, 2.5}, {0.5, 0.02, 2.5}, {1, 0.01, 1.3},
        {1, 0.02, 1.3}, {5, 0.01, 0.3}, {5, 0.02, 0.3},   {0.5, 0.05, 5},   {0.1, 0.01, 15},
    };

    (void)state;
    run_cells("100 ms counter", nvml, cells, sizeof cells / sizeof *cells);
}

/* Without forced reads at the boundaries: a counter of 1 ms read every 50 ms. */
static void test_targets_cpu_counter(void **state)
{
    static const struct cell cells[] = {
        {0.05, 0.01, 6}, {0.2, 0.05, 3}, {0.5, 0.05, 1.5}, {1, 0.05, 0.8}, {0.5, 0.1, 2.5},
    };

    (void)state;
    run_cells("1 ms counter", rapl, cells, sizeof cells / sizeof *cells);
}

/* The same where power varies within phases, which a split by phases cannot know of: errors grow by
 * a third or so (the p95 of 0.5 s turns from 0.9 to 1.2 %), and the targets hold all the same. */
static void test_targets_with_variation_within_phases(void **state)
{
    static const struct cell gpu[] = {
        {0.1, 0.01, 15},  {0.2, 0.01, 5}, {0.5, 0.01, 2.5},
        {0.5, 0.02, 2.5}, {1, 0.02, 1.3}, {5, 0.02, 0.3},
    };
    static const struct cell cpu[] = {
        {0.05, 0.01, 8}, {0.2, 0.05, 3}, {0.5, 0.05, 1.5}, {1, 0.05, 0.8}};

    (void)state;
    run_cells_of("100 ms counter, lively", true, nvml, gpu, sizeof gpu / sizeof *gpu);
    run_cells_of("1 ms counter, lively", true, rapl, cpu, sizeof cpu / sizeof *cpu);
}

/* With a read at each boundary (within 0.2 ms): at most 2 % at 50 ms, 0.5 % from 0.2 s on. */
static void test_targets_forced_reads(void **state)
{
    static const struct cell cells[] = {{0.05, 0.1, 2}, {0.2, 0.1, 0.5}, {0.5, 0.1, 0.5}};
    const size_t n = sizeof cells / sizeof *cells;

    (void)state;
    for (size_t k = 0; k < 2 * n; k++) { /* once more with variation: it makes no difference here */
        size_t c = k % n;
        struct sim_script steady = h100(cells[c].lm_s, 240, 31 + c);
        struct sim_script script = k < n ? steady : lively(steady);
        struct sim_curve curve = {0};
        double end = sim_run(&script, turns, &curve), read = 99;
        struct sim_sensor sensor = rapl(&curve, 8 + c);
        struct ipw_ledger *l = ipw_ledger_new(&sensor.channel, 1);
        uint64_t seed = c + 1;
        struct errors e;
        int64_t q = -1, v;

        for (size_t i = 0; i < 3 * 240; i++) {
            const struct sim_turn *x = &turns[i / 3];
            double at = i % 3 == 0 ? x->t0 : i % 3 == 1 ? x->first_token : x->lm_end;

            for (; read + cells[c].every < at; read += cells[c].every) {
                v = sim_sensor_read(&sensor, read);
                ipw_ledger_row(l, 0, 1, S(read), &v);
            }
            if (!i) q = ipw_ledger_query_begin(l, S(at));
            tell_phase(l, q,
                       i % 3 == 0   ? IPW_PHASE_PREFILL
                       : i % 3 == 1 ? IPW_PHASE_DECODE
                                    : IPW_PHASE_TOOL,
                       S(at), INT64_MAX);
            read = at + sim_uniform(&seed, 0.00002, 0.0002);
            v = sim_sensor_read(&sensor, read);
            ipw_ledger_row(l, 0, 1, S(read), &v);
            read += 0.001;
        }
        ipw_ledger_query_end(l, q, S(end));
        for (; read < end + 1; read += cells[c].every) {
            v = sim_sensor_read(&sensor, read);
            ipw_ledger_row(l, 0, 1, S(read), &v);
        }
        e = errors_of(l, q, &curve, 240, IPW_LEDGER_QUERY);
        print_message("forced reads, T %.2f s: %.2f/%.2f\n", cells[c].lm_s, e.median, e.p95);
        assert_int_equal(e.unknown, 0);
        assert_int_equal(e.outside, 0);
        assert_true(e.p95 <= cells[c].limit_p95);
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
}

/* Case 24: a thousand turns of 60 ms without pause at h 100 ms: none unknown, the sum is the whole,
 * and the median error is no more than that of sharing the query by wall clock. */
static void test_24_short_turns_against_wall_clock(void **state)
{
    static int64_t t[1001];
    static struct ipw_figure f[1000];
    static double e[1000], wall[1000];
    struct sim_script script = h100(0.06, 1000, 24);
    struct sim_curve curve = {0};
    struct sim_sensor sensor;
    struct ipw_ledger *l;
    struct ipw_figure whole;
    double end;
    int64_t q, sum = 0;

    (void)state;
    script.tool_s = 0;
    end = sim_run(&script, turns, &curve);
    sensor = nvml(&curve, 24);
    l = ipw_ledger_new(&sensor.channel, 1);
    q = sim_feed(l, &sensor, 1, 99, end + 1, 0.1, 0.1, turns, 1000, true);
    for (int i = 0; i < 1000; i++) t[i] = S(turns[i].t0);
    t[1000] = S(end);
    ipw_ledger_figures(l, ask_windows(q, GPU), t, 1000, f);
    whole = ipw_ledger_figure(l, ask_query(q, GPU, t[0], t[1000]));
    for (int i = 0; i < 1000; i++) {
        double truth = sim_curve_j(&curve, turns[i].t1) - sim_curve_j(&curve, turns[i].t0);

        assert_true(f[i].known);
        assert_string_equal(ipw_provenance_name(f[i].provenance), "distributed");
        assert_true(f[i].lo_j >= 0 && f[i].lo_j <= f[i].j && f[i].j <= f[i].hi_j);
        sum += (int64_t)(f[i].j * 1e6 + 0.5);
        e[i] = fabs(f[i].j - truth) / truth;
        wall[i] = fabs(whole.j * (turns[i].t1 - turns[i].t0) / (end - turns[0].t0) - truth) / truth;
    }
    assert_int_equal(sum, (int64_t)(whole.j * 1e6 + 0.5));
    qsort(e, 1000, sizeof *e, by_value);
    qsort(wall, 1000, sizeof *wall, by_value);
    print_message("1000 turns of 60 ms: median %.1f %%, by wall clock %.1f %%\n", e[500] * 100,
                  wall[500] * 100);
    assert_true(e[500] <= wall[500] + 1e-6);
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

/* Case 37: prefills of 20 ms under a counter of 100 ms. */
static void test_37_prefill_shorter_than_the_period(void **state)
{
    struct sim_script script = h100(0.5, 100, 37);
    struct sim_curve curve = {0};
    struct sim_sensor sensor;
    struct ipw_ledger *l;
    double end;
    int64_t q;

    (void)state;
    script.prefill_part = 0.04;
    end = sim_run(&script, turns, &curve);
    sensor = nvml(&curve, 37);
    l = ipw_ledger_new(&sensor.channel, 1);
    q = sim_feed(l, &sensor, 1, 99, end + 1, 0.02, 0.1, turns, 100, true);
    for (int i = 0; i < 100; i++) {
        const struct sim_turn *x = &turns[i];
        struct ipw_figure f = ipw_ledger_figure(l, ask_query(q, GPU, S(x->t0), S(x->first_token)));
        double truth = sim_curve_j(&curve, x->first_token) - sim_curve_j(&curve, x->t0);

        assert_true(f.known);
        assert_string_equal(ipw_provenance_name(f.provenance), "distributed");
        assert_true(f.lo_j >= 0 && f.lo_j <= truth && truth <= f.hi_j);
        assert_true(f.split_fraction > 0);
    }
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

static struct sim_sensor random_sensor(const struct sim_curve *curve, uint64_t *seed, bool *faults)
{
    struct sim_sensor s =
        test_random(seed) % 2 ? nvml(curve, test_random(seed)) : rapl(curve, test_random(seed));

    s.phase_s = sim_uniform(seed, 0, s.publish_s);
    if (test_random(seed) % 3 == 0 && s.publish_s >= 0.05)
        s.publish_s = sim_uniform(seed, 0.05, 0.1);
    if (test_random(seed) % 3 == 0) s.jitter = 0.2;
    if (test_random(seed) % 4 == 0) { /* late: its period says so */
        s.lag_s = sim_uniform(seed, 0, 0.002);
        if (s.publish_s < 0.05) s.channel.period_ns += S(s.lag_s);
        if (s.publish_s >= 0.05) s.lag_s = 0;
    }
    *faults = test_random(seed) % 3 == 0;
    if (*faults) s.fail_per_1000 = test_random(seed) % 100;
    return s;
}

/* Case 52, and 24's "no null inside an unbroken chain": 10,000 random scripts. */
static void test_52_truth_is_within_the_bounds(void **state)
{
    uint64_t seed = 52;
    int64_t asked = 0, outside = 0;

    (void)state;
    for (int run = 0; run < 10000; run++) {
        struct sim_script script =
            h100(sim_uniform(&seed, 0.02, 1), 1 + test_random(&seed) % 6, test_random(&seed));
        struct sim_curve curve = {0};
        struct sim_sensor sensor;
        struct ipw_ledger *l;
        double end;
        bool faults;
        int64_t q;

        script.tool_s = sim_uniform(&seed, 0, 0.6);
        script.prefill_part = sim_uniform(&seed, 0.02, 0.9);
        script.tau = test_random(&seed) % 2 ? sim_uniform(&seed, 0.001, 0.2) : 0;
        script.base_w = sim_uniform(&seed, 5, 100);
        script.spread = sim_uniform(&seed, 0, 0.1);
        if (run % 3 == 0) { /* the board's 1,000 W stay out of reach */
            script.ramp = sim_uniform(&seed, 0, 0.2);
            script.noise = sim_uniform(&seed, 0, 0.03);
            script.burst = sim_uniform(&seed, 0, 0.1);
        }
        end = sim_run(&script, turns, &curve);
        sensor = random_sensor(&curve, &seed, &faults);
        sensor.channel.max_w = 1000;
        l = ipw_ledger_new(&sensor.channel, 1);
        q = sim_feed(l, &sensor, 1, 99, end + 2.5, sim_uniform(&seed, 0.005, 0.15), 0.5, turns,
                     script.turns, test_random(&seed) % 4 > 0);
        for (int k = 0; k < 6; k++) {
            double t0 = turns[0].t0, t1 = end, truth;
            struct ipw_figure f;

            if (k > 0) {
                t0 = sim_uniform(&seed, turns[0].t0, end);
                t1 = sim_uniform(&seed, t0, end);
            }
            f = ipw_ledger_figure(l, ask_query(q, GPU, S(t0), S(t1)));
            truth = sim_curve_j(&curve, t1) - sim_curve_j(&curve, t0);
            if (!f.known) fail_msg("run %d: %s", run, f.reason);
            assert_true(f.lo_j >= 0 && f.lo_j <= f.j && f.j <= f.hi_j);
            asked++;
            outside += truth < f.lo_j - 2e-6 || truth > f.hi_j + 2e-6;
        }
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
    print_message("%lld of %lld windows outside their bounds\n", (long long)outside,
                  (long long)asked);
    assert_true(outside * 1000 <= asked);
}

/* The example that shames the field: five turns of 2 s inference and 8 s tool at 300 W
 * throughout. */
static void test_five_turns_of_tools(void **state)
{
    static int64_t t[6];
    struct ipw_figure turn[5];
    struct sim_curve curve = {0};
    struct sim_sensor sensor;
    struct ipw_ledger *l;
    double sum = 0;
    int64_t q;

    (void)state;
    sim_curve_add(&curve, 90, 300, 0);
    for (int i = 0; i < 5; i++) {
        turns[i] =
            (struct sim_turn){100.013 + 10 * i, 100.5 + 10 * i, 102.013 + 10 * i, 110.013 + 10 * i};
        t[i] = S(turns[i].t0);
    }
    t[5] = S(turns[4].t1);
    sensor = rapl(&curve, 1);
    l = ipw_ledger_new(&sensor.channel, 1);
    q = sim_feed(l, &sensor, 1, 99, 151, 0.05, 0, turns, 5, true);
    ipw_ledger_figures(l, ask_windows(q, GPU), t, 5, turn);
    for (int i = 0; i < 5; i++) {
        int64_t tool0 = S(turns[i].lm_end), tool1 = S(turns[i].t1);

        assert_true(turn[i].known);
        assert_near(turn[i].j, 3000, 3000 * 0.001);
        assert_near(ipw_ledger_figure(l, ask_query(q, GPU, tool0, tool1)).j, 2400, 2400 * 0.001);
        sum += turn[i].j;
    }
    assert_near(sum, 15000, 1);
    ipw_ledger_free(l);
    sim_curve_release(&curve);
}

UNIT(sim)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_gpu_counter),
        cmocka_unit_test(test_targets_cpu_counter),
        cmocka_unit_test(test_targets_with_variation_within_phases),
        cmocka_unit_test(test_targets_forced_reads),
        cmocka_unit_test(test_24_short_turns_against_wall_clock),
        cmocka_unit_test(test_37_prefill_shorter_than_the_period),
        cmocka_unit_test(test_52_truth_is_within_the_bounds),
        cmocka_unit_test(test_five_turns_of_tools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
