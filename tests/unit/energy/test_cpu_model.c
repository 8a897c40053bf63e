/* The estimate in the place of a sensor, by files as /proc and powercap show them. */
#include "energy/sources/cpu_model.h"

#include <math.h>

#include "base/buf.h"
#include "base/clock.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

static int64_t now_ns;

static int64_t clock_now(void) { return now_ns; }

/* 100 W idle and 200 W at full load, a fifth less and more; what the facts were. */
static char facts_seen[4096];

static int estimate(struct ipw_buf *model, const struct ipw_buf *facts, struct ipw_err *err)
{
    (void)err;
    snprintf(facts_seen, sizeof facts_seen, "%s", facts->data);
    for (int k = 0; k < 3; k++) {
        ipw_buf_addf(model, "%s\"%s\":[", k ? "]," : "{\"about\":\"a table\",",
                     (const char *[]){"mid", "lo", "hi"}[k]);
        for (int i = 0; i <= 100; i++)
            ipw_buf_addf(model, "%s%g", i ? "," : "",
                         (100 + i) * (k == 1   ? 0.8
                                      : k == 2 ? 1.2
                                               : 1));
    }
    ipw_buf_adds(model, "]}");
    return 0;
}

static int odd_estimate(struct ipw_buf *model, const struct ipw_buf *facts, struct ipw_err *err)
{
    (void)facts;
    (void)err;
    ipw_buf_adds(model, "{\"about\":\"\",\"mid\":[1,2]}");
    return 0;
}

static struct ipw_source *open_model(void)
{
    static char proc[128], powercap[128];
    struct ipw_source_place o = {.proc = proc, .powercap = powercap, .estimate = estimate};
    struct ipw_source *source;
    struct ipw_err err = {0};

    snprintf(proc, sizeof proc, "%s/proc", tree_root);
    snprintf(powercap, sizeof powercap, "%s/powercap", tree_root);
    if (ipw_cpu_model_open(&source, &o, "model", &err)) fail_msg("%s", err.text);
    source->now = clock_now;
    return source;
}

static void put_machine(void)
{
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: a processor\nflags\t: fpu sse\n");
    put("proc/stat", "cpu  100 0 0 100 0 0 0 0\n");
}

/* The share is that of the time between the two lines; no line, or no time between them, gives no
 * number. */
static void test_busy(void **state)
{
    static const struct {
        const char *before, *after;
        double busy; /* NAN: none */
    } table[] = {
        {"cpu 0 0 0 0", "cpu 25 0 0 75", 0.25},
        {"cpu 0 0 0 0 0 0 0 0", "cpu 10 10 10 40 20 10 0 0", 0.4}, /* waiting is not work */
        {"cpu 0 0 0 0 0 0 0 0", "cpu 50 0 0 25 0 0 0 25", 0.5},    /* nor is the host's time */
        {"cpu 50 0 0 50", "cpu 40 0 0 80", 0},                     /* counters may step back */
        {"cpu 1 1 1 1", "cpu 1 1 1 1", NAN},
        {"cpu 1 1 1 1", "cpu 0 0 0 1", NAN},
        {"cpu 1 1 1", "cpu 2 2 2 2", NAN},
        {"cpu 1 1 1 1", "intr 5", NAN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double busy = ipw_cpu_model_busy(table[i].before, table[i].after);

        if (isnan(busy) != isnan(table[i].busy)) fail_msg("row %zu: %g", i, busy);
        if (!isnan(busy)) assert_near(busy, table[i].busy, 1e-12);
    }
}

/* Without cpuinfo or stat there is no estimate; the message names the file. */
static void test_without_proc(void **state)
{
    char proc[128];
    struct ipw_source_place o = {.proc = proc, .powercap = "/nonexistent", .estimate = estimate};
    struct ipw_source *source;
    struct ipw_err err = {0};

    (void)state;
    snprintf(proc, sizeof proc, "%s/proc", tree_root);
    assert_int_equal(ipw_cpu_model_open(&source, &o, "model", &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "proc/cpuinfo cannot be read"));
    assert_null(source);
    put("proc/cpuinfo", "");
    assert_int_equal(ipw_cpu_model_open(&source, &o, "model", &err), IPW_EUNSUPPORTED);
    put("proc/cpuinfo", "processor\t: 0\n");
    assert_int_equal(ipw_cpu_model_open(&source, &o, "model", &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "proc/stat cannot be read"));
    put("proc/stat", "");
    assert_int_equal(ipw_cpu_model_open(&source, &o, "model", &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "proc/stat cannot be read"));
    assert_non_null(strstr(facts_seen, "\"limit_w\":null,\"peak_w\":null"));
    o.estimate = odd_estimate;
    assert_int_equal(ipw_cpu_model_open(&source, &o, "model", &err), IPW_EPARSE);
    assert_string_equal(err.text, "mid: expected 101 numbers");
}

/* The limit is the sum of the packages' first limits: no core, no memory-mapped copy, no platform
 * zone. */
static void test_limits(void **state)
{
    struct ipw_source *source;
    int64_t values[IPW_CPU_MODEL_CHANNELS];

    (void)state;
    put_machine();
    for (int i = 0; i < 2; i++) {
        char file[80];

        snprintf(file, sizeof file, "powercap/intel-rapl:%d/name", i);
        put(file, i ? "package-1\n" : "package-0\n");
        snprintf(file, sizeof file, "powercap/intel-rapl:%d/energy_uj", i);
        put(file, "1\n");
        snprintf(file, sizeof file, "powercap/intel-rapl:%d/constraint_0_power_limit_uw", i);
        put(file, "50000000\n");
    }
    put("powercap/intel-rapl:1/constraint_1_power_limit_uw", "80000000\n");
    put("powercap/intel-rapl:0:0/name", "core\n");
    put("powercap/intel-rapl:0:0/energy_uj", "1\n");
    put("powercap/intel-rapl:0:0/constraint_0_power_limit_uw", "7000000\n");
    put("powercap/intel-rapl:2/name", "psys\n");
    put("powercap/intel-rapl:2/energy_uj", "1\n");
    put("powercap/intel-rapl:2/constraint_0_power_limit_uw", "900000000\n");
    put("powercap/intel-rapl:3/name", "package-2\n"); /* says no limit: not counted */
    put("powercap/intel-rapl:3/energy_uj", "1\n");
    put("powercap/intel-rapl-mmio:0/name", "package-0\n");
    put("powercap/intel-rapl-mmio:0/energy_uj", "1\n");
    put("powercap/intel-rapl-mmio:0/constraint_0_power_limit_uw", "50000000\n");
    source = open_model();
    assert_non_null(strstr(facts_seen, "\"limit_w\":100.0,\"peak_w\":130.0"));
    assert_string_equal(source->channels[0].device, "a table");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(source->channels[i].kind, IPW_CHANNEL_ESTIMATE);
        assert_false(source->channels[i].in_sum);
    }
    assert_int_equal(source->channels[0].domain, IPW_DOMAIN_CPU);
    /* Half busy over one second. */
    now_ns = IPW_NS_PER_S;
    source->read(source, values);
    assert_int_equal(values[IPW_CPU_MODEL_MID], 0); /* energy counts from the first reading */
    put("proc/stat", "cpu  150 0 0 150 0 0 0 0\n");
    now_ns += IPW_NS_PER_S;
    source->read(source, values);
    assert_near((double)values[IPW_CPU_MODEL_MID], 150e6, 1);
    assert_true(values[IPW_CPU_MODEL_LO] < values[IPW_CPU_MODEL_MID]);
    assert_true(values[IPW_CPU_MODEL_HI] > values[IPW_CPU_MODEL_MID]);
    /* No tick passed: as busy as before.  No time passed: no energy. */
    now_ns += IPW_NS_PER_S;
    source->read(source, values);
    assert_near((double)values[IPW_CPU_MODEL_MID], 300e6, 1);
    source->read(source, values);
    assert_near((double)values[IPW_CPU_MODEL_MID], 300e6, 1);
    /* A file that says nothing any more is no value, not 0 W. */
    put("proc/stat", "");
    now_ns += IPW_NS_PER_S;
    source->read(source, values);
    for (int i = 0; i < IPW_CPU_MODEL_CHANNELS; i++) assert_int_equal(values[i], IPW_NO_VALUE);
    source->close(source);
}

UNIT(cpu_model)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busy),
        WITH_TREE(test_without_proc),
        WITH_TREE(test_limits),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
