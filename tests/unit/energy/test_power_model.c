/* Estimates where there is no sensor: energy/power_model.h, energy/sources/cpu_model.h. */
#include "energy/power_model.h"

#include "energy/sources/cpu_model.h"
#include "unit/energy/tree.h"
#include "unit/unit.h"

static const char vm[] =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
    "model name\t: Intel(R) Xeon(R) Processor @ 2.90GHz\nstepping\t: 7\n"
    "flags\t\t: fpu vme hypervisor lahf_lm\n\nprocessor\t: 1\nmodel\t\t: 1\n";

static void test_facts(void **state)
{
    struct ipw_power_model_facts f;

    (void)state;
    ipw_power_model_facts_read(&f, vm);
    assert_int_equal(f.threads, 2);
    assert_string_equal(f.vendor, "GenuineIntel");
    assert_string_equal(f.cpu, "Intel(R) Xeon(R) Processor @ 2.90GHz");
    assert_int_equal(f.family, 6);
    assert_int_equal(f.model, 85);
    assert_int_equal(f.stepping, 7);
    assert_true(f.virtual);
    ipw_power_model_facts_read(&f, "flags : xhypervisor hypervisors\nprocessor:0");
    assert_false(f.virtual);
    ipw_power_model_facts_read(&f, "");
    assert_int_equal(f.threads, 1);
    ipw_power_model_facts_read(&f, "cpu family\t: -3\nmodel : 99999999999999999999\n");
    assert_int_equal(f.family, 0);
    assert_int_equal(f.model, 0);
}

/* A virtual machine of two processors at half load: 4.3 W, 2.5 to 11.3, when nothing is known of
 * them (worked out by hand from the published rows). */
static void test_unknown_vcpus(void **state)
{
    struct ipw_power_model_facts f = {.threads = 2, .virtual = true};
    struct ipw_power_model_watts w;
    struct ipw_power_model m;

    (void)state;
    ipw_power_model_choose(&m, &f);
    w = ipw_power_model_at(&m, 0.5);
    assert_near(w.mid, 4.24, 0.01);
    assert_near(w.lo, 2.47, 0.01);
    assert_near(w.hi, 11.29, 0.01);
    assert_string_equal(m.about, "Cloud Carbon Footprint's watts for 2 vCPUs, unknown processor");
}

static void test_known_vcpus_and_limit(void **state)
{
    struct ipw_power_model_facts f;
    struct ipw_power_model_watts w;
    struct ipw_power_model m;

    (void)state;
    ipw_power_model_facts_read(&f, vm);
    f.limit_w = 270; /* the host's: not this machine's */
    ipw_power_model_choose(&m, &f);
    assert_int_equal(m.kind, IPW_POWER_MODEL_VCPU);
    assert_non_null(strstr(m.about, "Cascade Lake"));
    w = ipw_power_model_at(&m, 1);
    assert_near(w.mid, 2 * 3.97, 1e-9);
    assert_near(w.lo, 2 * 3.97 * 0.7, 1e-9);
    assert_near(w.hi, 2 * 3.97 * 1.3, 1e-9);
    f.virtual = false;
    ipw_power_model_choose(&m, &f);
    assert_int_equal(m.kind, IPW_POWER_MODEL_LIMIT);
    w = ipw_power_model_at(&m, 0.5); /* Teads .75, linear .5, cubic .2125 */
    assert_near(w.mid, 270 * 0.75, 1e-9);
    assert_near(w.lo, 270 * 0.2125 * 0.7, 1e-9);
    assert_near(w.hi, 270 * 0.75 * 1.3, 1e-9);
    for (double u = -0.1; u <= 1.1; u += 0.01) {
        w = ipw_power_model_at(&m, u);
        assert_true(w.lo >= 0 && w.lo <= w.mid && w.mid <= w.hi);
    }
}

/* A laptop of 4 to 45 W whose power follows its load by a law of its own, with boosts and noise,
 * whatever its limit for long is, with all of its threads or half of them: of its queries' truths
 * at least 95 % lie within the bounds, from utilisation alone. */
static int held_of_1000(double limit_w, double threads)
{
    struct ipw_power_model_facts f = {.threads = 8, .limit_w = limit_w, .peak_w = 45};
    struct ipw_power_model m;
    uint64_t seed = 20261122;
    int held = 0;

    ipw_power_model_choose(&m, &f);
    for (int q = 0; q < 1000; q++) {
        double truth = 0, lo = 0, hi = 0, power = test_uniform(&seed, 0.6, 1.1);
        double boost = test_uniform(&seed, 1, 1.4), idle = test_uniform(&seed, 3, 6);

        for (int i = 0; i < 40; i++) { /* stretches of 50 ms */
            double u = test_uniform(&seed, 0, 1) < 0.4 ? test_uniform(&seed, 0, 0.1)
                                                       : test_uniform(&seed, 0.1, 1);
            /* Half of the threads draw more than half: they boost higher. */
            double load = pow(u, power) * pow(threads, 0.6) * (u < 0.3 ? boost : 1);
            double w = idle + (45 - idle) * load;
            struct ipw_power_model_watts e = ipw_power_model_at(&m, u * threads);

            if (w > 45) w = 45;
            truth += w * 0.05;
            lo += e.lo * 0.05;
            hi += e.hi * 0.05;
            assert_true(e.lo <= e.mid && e.mid <= e.hi);
        }
        held += lo <= truth && truth <= hi;
    }
    return held;
}

static void test_laptop(void **state)
{
    static const double limits[] = {15, 28, 45};

    (void)state;
    for (int i = 0; i < 3; i++) {
        for (double threads = 1; threads >= 0.5; threads /= 2) {
            int held = held_of_1000(limits[i], threads);

            if (held < 950) fail_msg("limit %.0f W, %.1f: %d of 1000", limits[i], threads, held);
        }
    }
}

static void test_busy(void **state)
{
    (void)state;
    assert_near(ipw_cpu_model_busy("cpu  100 0 50 850 0 0 0 0", "cpu  140 0 60 900 0 0 0 0"), 0.5,
                1e-9);
    /* Waiting for a disk is not work, and time that was stolen is another machine's. */
    assert_near(ipw_cpu_model_busy("cpu 0 0 0 0 0 0 0 0", "cpu 10 0 0 30 40 0 0 20"), 0.1, 1e-9);
    assert_true(isnan(ipw_cpu_model_busy("cpu 1 1 1 1 1 1 1 1", "cpu 1 1 1 1 1 1 1 1")));
    assert_true(isnan(ipw_cpu_model_busy("cpu 5 5 5 5 5 5 5 5", "cpu 1 1 1 1 1 1 1 1")));
    assert_true(isnan(ipw_cpu_model_busy("nonsense", "cpu 1 1 1 1 1 1 1 1")));
}

static int64_t now_ns;
static int64_t the_time(void) { return now_ns; }

/* From a /proc of its own: half busy for a second, then idle. */
static void test_source(void **state)
{
    struct ipw_source_place o = {.proc = tree_root, .powercap = tree_root};
    struct ipw_source *s = NULL;
    struct ipw_err err = {0};
    int64_t a[IPW_CPU_MODEL_CHANNELS], b[IPW_CPU_MODEL_CHANNELS];

    (void)state;
    assert_int_equal(ipw_cpu_model_open(&s, &o, "model", &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "cpuinfo"));
    put("cpuinfo", "processor : 0\nprocessor : 1\nflags : hypervisor\n");
    assert_int_equal(ipw_cpu_model_open(&s, &o, "model", &err), IPW_EUNSUPPORTED);
    put("stat", "cpu  0 0 0 100 0 0 0 0\ncpu0 ...\n");
    assert_int_equal(ipw_cpu_model_open(&s, &o, "model", &err), 0);
    s->now = the_time;
    assert_int_equal(s->n_channels, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(s->channels[i].kind, IPW_CHANNEL_ESTIMATE);
        assert_false(s->channels[i].in_sum);
    }
    now_ns = S(1);
    s->read(s, a);
    put("stat", "cpu  50 0 0 150 0 0 0 0\n");
    now_ns = S(2);
    s->read(s, b);
    assert_near((double)(b[IPW_CPU_MODEL_MID] - a[IPW_CPU_MODEL_MID]), 4.24e6, 1e4);
    assert_near((double)(b[IPW_CPU_MODEL_LO] - a[IPW_CPU_MODEL_LO]), 2.47e6, 1e4);
    assert_near((double)(b[IPW_CPU_MODEL_HI] - a[IPW_CPU_MODEL_HI]), 11.29e6, 1e4);
    assert_int_equal(remove(tree_path("stat")), 0);
    s->close(s);
}

/* A flag counts as a whole word of the flags' line alone, at either end of it too. */
static void test_flags(void **state)
{
    static const struct {
        const char *cpuinfo;
        bool virtual;
    } table[] = {
        {"processor : 0\nflags : hypervisor fpu\n", true},
        {"processor : 0\nflags : fpu hypervisor\n", true},
        {"processor : 0\nflags : fpu hypervisor", true},
        {"processor : 0\nflags : fpu nohypervisor hypervisors sse\n", false},
        {"processor : 0\nflags : fpu\nbugs : x hypervisor y\n", false},
        {"processor : 0\nflags\t \t:\tfpu hypervisor sse\n", true},
        {"processor : 0\nflags hypervisor\n", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_power_model_facts facts;

        ipw_power_model_facts_read(&facts, table[i].cpuinfo);
        if (facts.virtual != table[i].virtual) fail_msg("row %zu", i);
    }
}

UNIT(power_model)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_unknown_vcpus),
        cmocka_unit_test(test_known_vcpus_and_limit),
        cmocka_unit_test(test_laptop),
        cmocka_unit_test(test_busy),
        cmocka_unit_test_setup_teardown(test_source, tree_setup, tree_teardown),
        cmocka_unit_test(test_flags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
