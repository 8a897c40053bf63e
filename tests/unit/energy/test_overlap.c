/* Which channels are added: cases 17, 18 and 20 of tests/cases.txt, and what else
 * must never be added. */
#include "energy/overlap.h"

#include <stdlib.h>

#include "ledger/ledger.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* One line a channel; `in` is what its source thinks, `out` what must come of it. */
struct line {
    const char *source, *name, *device;
    enum ipw_domain domain;
    enum ipw_scope scope;
    enum ipw_channel_kind kind;
    bool remote, rejected, whole, in, out;
};

#define CPU     IPW_DOMAIN_CPU
#define GPU     IPW_DOMAIN_GPU
#define DRAM    IPW_DOMAIN_DRAM
#define MACHINE IPW_DOMAIN_MACHINE
#define COUNTER IPW_CHANNEL_COUNTER
#define GAUGE   IPW_CHANNEL_GAUGE
#define METRIC  IPW_CHANNEL_METRIC

static void check(const struct line *lines, size_t n, const char *const basis[IPW_DOMAIN_COUNT])
{
    struct ipw_channel channels[16];
    struct ipw_overlap_item items[16];
    char got[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES];
    size_t remote[IPW_DOMAIN_COUNT], index = 0;

    assert_true(n <= 16);
    for (size_t i = 0; i < n; i++) {
        const struct line *l = &lines[i];

        if (i && strcmp(l->source, l[-1].source)) index++;
        channels[i] = (struct ipw_channel){.domain = l->domain,
                                           .scope = l->scope,
                                           .kind = l->kind,
                                           .remote = l->remote,
                                           .whole_gpu = l->whole,
                                           .in_sum = l->in};
        snprintf(channels[i].name, sizeof channels[i].name, "%s", l->name);
        snprintf(channels[i].device, sizeof channels[i].device, "%s", l->device);
        items[i] = (struct ipw_overlap_item){.channel = &channels[i],
                                             .source = l->source,
                                             .index = index,
                                             .machine = index,
                                             .rejected = l->rejected};
    }
    ipw_overlap_choose(items, n, got, remote);
    for (size_t i = 0; i < n; i++)
        if (channels[i].in_sum != lines[i].out)
            fail_msg("%s of %s: in the sum: %d", lines[i].name, lines[i].source,
                     channels[i].in_sum);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *others = strstr(got[d], "remote: ");

        assert_string_equal(got[d], basis[d] ? basis[d] : "");
        assert_string_equal(got[d] + remote[d], others ? others : "");
    }
}
#define CHECK(lines, ...)                                                                          \
    check(lines, sizeof(lines) / sizeof *(lines), (const char *const[4]){__VA_ARGS__})

/* psys + package + core + uncore + dram + mmio: the package once, psys for the machine alone. */
static void test_17_psys_package_core_dram_mmio(void **state)
{
    static const struct line lines[] = {
        {"rapl", "psys", "intel-rapl:1", MACHINE, IPW_SCOPE_PLATFORM, COUNTER, .out = true},
        {"rapl", "package-0", "intel-rapl:0", CPU, IPW_SCOPE_PACKAGE, COUNTER, .in = true,
         .out = true},
        {"rapl", "package-0/core", "intel-rapl:0:0", CPU, IPW_SCOPE_CORE, COUNTER},
        {"rapl", "package-0/uncore", "intel-rapl:0:1", CPU, IPW_SCOPE_UNCORE, COUNTER, .in = true},
        {"rapl", "package-0/dram", "intel-rapl:0:2", DRAM, IPW_SCOPE_DRAM, COUNTER, .in = true,
         .out = true},
        {"rapl", "mmio/package-0", "intel-rapl-mmio:0", CPU, IPW_SCOPE_PACKAGE, COUNTER},
    };

    (void)state;
    CHECK(lines, [CPU] = "1 package (rapl)", [DRAM] = "1 memory zone (rapl)",
          [MACHINE] = "1 platform (rapl), perhaps without discrete GPUs");
}

/* The same tree in numbers, over 10 s: psys 140 W around package 100 W (core 70 W, uncore 10 W
 * within it), memory 20 W beside it, mmio showing the package again: 1400 J of the machine, 1000 J
 * of the processor, 200 J of memory, and nothing twice. */
static void test_17_joules_once(void **state)
{
    static const struct {
        const char *name;
        enum ipw_domain domain;
        enum ipw_scope scope;
        bool in;
        int watts;
    } zones[] = {
        {"psys", MACHINE, IPW_SCOPE_PLATFORM, false, 140},
        {"package-0", CPU, IPW_SCOPE_PACKAGE, true, 100},
        {"package-0/core", CPU, IPW_SCOPE_CORE, false, 70},
        {"package-0/uncore", CPU, IPW_SCOPE_UNCORE, false, 10},
        {"package-0/dram", DRAM, IPW_SCOPE_DRAM, true, 20},
        {"mmio/package-0", CPU, IPW_SCOPE_PACKAGE, false, 100},
    };
    enum { N = sizeof zones / sizeof *zones };
    struct ipw_channel channels[N];
    struct ipw_overlap_item items[N];
    char basis[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES];
    size_t remote[IPW_DOMAIN_COUNT];
    struct ipw_ledger *l;

    (void)state;
    for (size_t i = 0; i < N; i++) {
        channels[i] = test_counter(zones[i].name, zones[i].domain, 0, 400);
        channels[i].scope = zones[i].scope;
        channels[i].in_sum = zones[i].in;
        items[i] = (struct ipw_overlap_item){.channel = &channels[i], .source = "rapl"};
    }
    ipw_overlap_choose(items, N, basis, remote);
    l = ipw_ledger_new(channels, N);
    for (int k = 0; k <= 100; k++) {
        int64_t v[N];

        for (size_t i = 0; i < N; i++) v[i] = J(0.1 * zones[i].watts * k);
        ipw_ledger_row(l, 0, N, S(1 + 0.1 * k), v);
    }
    assert_figure(ipw_ledger_figure(l, ask_total(MACHINE, S(1), S(11))), 1400, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_total(CPU, S(1), S(11))), 1000, IPW_PROV_MEASURED);
    assert_figure(ipw_ledger_figure(l, ask_total(DRAM, S(1), S(11))), 200, IPW_PROV_MEASURED);
    ipw_ledger_free(l);
}

/* The mmio zone alone counts; psys twice counts once; perf before powercap. */
static void test_17_duplicates(void **state)
{
    static const struct line mmio[] = {
        {"rapl", "mmio/package-0", "x", CPU, IPW_SCOPE_PACKAGE, COUNTER, .in = true, .out = true},
    };
    static const struct line both[] = {
        {"perf", "package-0", "", CPU, IPW_SCOPE_PACKAGE, COUNTER, .in = true, .out = true},
        {"rapl", "package-0", "", CPU, IPW_SCOPE_PACKAGE, COUNTER, .in = true},
        {"rapl", "dram", "", DRAM, IPW_SCOPE_DRAM, COUNTER, .in = true, .out = true},
        {"rapl", "psys", "", MACHINE, IPW_SCOPE_PLATFORM, COUNTER, .out = true},
        {"rapl", "mmio/psys", "", MACHINE, IPW_SCOPE_PLATFORM, COUNTER},
    };

    (void)state;
    CHECK(mmio, [CPU] = "1 package (rapl)");
    CHECK(both, [CPU] = "1 package (perf)", [DRAM] = "1 memory zone (rapl)",
          [MACHINE] = "1 platform (rapl), perhaps without discrete GPUs");
}

/* Two die zones over one register: the source has left one out, and it stays out; a domain of which
 * a part cannot be read has no sum. */
static void test_18_die_twins_and_partial_domains(void **state)
{
    static const struct line twins[] = {
        {"rapl", "package-0-die-0", "", CPU, IPW_SCOPE_PACKAGE, COUNTER, .in = true, .out = true},
        {"rapl", "package-0-die-1", "", CPU, IPW_SCOPE_PACKAGE, COUNTER},
    };
    static const struct line partial[] = {
        {"rapl", "package-0", "", CPU, IPW_SCOPE_PACKAGE, COUNTER},
        {"rapl", "package-1", "", CPU, IPW_SCOPE_PACKAGE, COUNTER},
    };

    (void)state;
    CHECK(twins, [CPU] = "1 package (rapl)");
    CHECK(partial, NULL);
}

static void test_20_mig_is_the_whole_gpu(void **state)
{
    static const struct line lines[] = {
        {"nvml", "gpu0", "GPU-1 NVIDIA H100 MIG", GPU, IPW_SCOPE_DEVICE, COUNTER, .whole = true,
         .in = true, .out = true},
        {"nvml", "gpu0/power", "GPU-1 NVIDIA H100 MIG", GPU, IPW_SCOPE_DEVICE, GAUGE},
    };

    (void)state;
    CHECK(lines, [GPU] = "1 GPU (nvml), whole_gpu: MIG slices have no reading of their own");
}

/* A board is counted once, whoever shows it; a gauge stands in for a counter that is not there. */
static void test_boards_once(void **state)
{
    static const struct line lines[] = {
        {"nvml", "gpu0", "GPU-aa NVIDIA H100", GPU, IPW_SCOPE_DEVICE, COUNTER, .in = true,
         .out = true},
        {"nvml", "gpu0/power", "GPU-aa NVIDIA H100", GPU, IPW_SCOPE_DEVICE, GAUGE},
        {"nvml", "gpu0/use", "GPU-aa NVIDIA H100", GPU, IPW_SCOPE_DEVICE, METRIC, .in = true},
        {"nvml", "gpu1", "GPU-bb NVIDIA H100", GPU, IPW_SCOPE_DEVICE, GAUGE, .in = true},
        {"dcgm", "gpu0", "GPU-aa", GPU, IPW_SCOPE_DEVICE, COUNTER, .in = true},
        {"dcgm", "gpu1", "GPU-bb", GPU, IPW_SCOPE_DEVICE, COUNTER, .in = true, .out = true},
        {"amdgpu", "gpu", "0000:03:00.0", GPU, IPW_SCOPE_DEVICE, GAUGE, .in = true, .out = true},
    };

    (void)state;
    CHECK(lines, [GPU] = "3 GPUs (several sources), 1 of them by power");
}

/* Case 41: the counter is frozen, the power is integrated. */
static void test_41_frozen_counter_gives_way_to_the_gauge(void **state)
{
    static const struct line lines[] = {
        {"amdgpu", "gpu0", "0000:03:00.0", GPU, IPW_SCOPE_DEVICE, COUNTER, .in = true,
         .rejected = true},
        {"amdgpu", "gpu0/power", "0000:03:00.0", GPU, IPW_SCOPE_DEVICE, GAUGE, .out = true},
    };

    (void)state;
    CHECK(lines, [GPU] = "1 GPU (amdgpu, power integrated)");
}

/* A module holds the CPU and the GPU: not beside the GPU alone. */
static void test_module_and_gpu(void **state)
{
    static const struct line both[] = {
        {"nvml", "gpu0", "GPU-1", GPU, IPW_SCOPE_MODULE, COUNTER, .in = true},
        {"nvml", "gpu0/power", "GPU-1", GPU, IPW_SCOPE_DEVICE, GAUGE, .in = true, .out = true},
    };
    static const struct line module[] = {
        {"nvml", "gpu0", "GPU-1", GPU, IPW_SCOPE_MODULE, COUNTER, .in = true, .out = true},
    };
    static const struct line grace[] = {
        {"hwmon", "module", "", MACHINE, IPW_SCOPE_MODULE, GAUGE, .in = true, .out = true},
        {"hwmon", "cpu", "", CPU, IPW_SCOPE_PACKAGE, GAUGE, .in = true, .out = true},
    };

    (void)state;
    CHECK(both, [GPU] = "1 GPU (nvml, power integrated)");
    CHECK(module, [GPU] = "1 module (nvml), the whole module: CPU and GPU");
    CHECK(grace, [CPU] = "1 package (hwmon, power integrated)",
          [MACHINE] = "1 module (hwmon, power integrated)");
}

/* The meter at the wall before psys, the battery last; a sum column stands for the others. */
static void test_machine(void **state)
{
    static const struct line wall[] = {
        {"battery", "BAT0", "", MACHINE, IPW_SCOPE_MACHINE, GAUGE, .in = true},
        {"rapl", "psys", "", MACHINE, IPW_SCOPE_PLATFORM, COUNTER},
        {"powerlog", "pm1", "", MACHINE, IPW_SCOPE_MACHINE, GAUGE},
        {"powerlog", "sum", "", MACHINE, IPW_SCOPE_MACHINE, GAUGE, .in = true, .out = true},
    };
    static const struct line laptop[] = {
        {"battery", "BAT0", "", MACHINE, IPW_SCOPE_MACHINE, GAUGE, .in = true},
        {"acpi", "power_meter", "", MACHINE, IPW_SCOPE_MACHINE, GAUGE, .in = true, .out = true},
    };

    /* Nobody knows whether psys holds the board: a machine of 140 W beside a board of 450 W it is
     * not. */
    static const struct line board[] = {
        {"rapl", "psys", "", MACHINE, IPW_SCOPE_PLATFORM, COUNTER},
        {"rapl", "package-0", "", CPU, IPW_SCOPE_PACKAGE, COUNTER, .in = true, .out = true},
        {"nvml", "gpu0", "GPU-1", GPU, IPW_SCOPE_DEVICE, COUNTER, .in = true, .out = true},
        {"nvml", "gpu0/util", "GPU-1", GPU, IPW_SCOPE_DEVICE, METRIC},
    };
    static const struct line elsewhere[] = {
        {"rapl", "psys", "", MACHINE, IPW_SCOPE_PLATFORM, COUNTER, .out = true},
        {"prometheus", "gpu0", "GPU-1", GPU, IPW_SCOPE_DEVICE, COUNTER, .remote = true, .in = true,
         .out = true},
    };

    (void)state;
    CHECK(wall, [MACHINE] = "1 machine meter (powerlog, power integrated)");
    CHECK(laptop, [MACHINE] = "1 machine meter (acpi, power integrated)");
    CHECK(board, [CPU] = "1 package (rapl)", [GPU] = "1 GPU (nvml)");
    CHECK(elsewhere, [GPU] = "remote: 1 GPU (prometheus)",
          [MACHINE] = "1 platform (rapl), perhaps without discrete GPUs");
}

/* Files that nobody can place are in no sum; a meter on the boards' supply stands for the
 * boards. */
static void test_unplaced_and_outside(void **state)
{
    static const struct line unplaced[] = {
        {"hwmon", "x/power1", "", MACHINE, IPW_SCOPE_DEVICE, GAUGE},
        {"ina3221", "rail", "", MACHINE, IPW_SCOPE_RAIL, GAUGE},
    };
    static const struct line outside[] = {
        {"nvml", "gpu0", "GPU-1", GPU, IPW_SCOPE_DEVICE, COUNTER, .in = true},
        {"powerlog", "gpu", "meter.csv", GPU, IPW_SCOPE_DEVICE, GAUGE, .in = true, .out = true},
    };

    (void)state;
    CHECK(unplaced, NULL);
    CHECK(outside, [GPU] = "1 GPU (powerlog, power integrated)");
}

/* Another machine's channels are no duplicates of ours: both count. */
static void test_remote(void **state)
{
    static const struct line lines[] = {
        {"rapl", "package-0", "", CPU, IPW_SCOPE_PACKAGE, COUNTER, .in = true, .out = true},
        {"prometheus", "a/package-0", "", CPU, IPW_SCOPE_PACKAGE, COUNTER, .remote = true,
         .in = true, .out = true},
        {"prometheus", "a/gpu0", "GPU-1", GPU, IPW_SCOPE_DEVICE, COUNTER, .remote = true,
         .in = true, .out = true},
        {"prometheus2", "b/gpu0", "GPU-1", GPU, IPW_SCOPE_DEVICE, COUNTER, .remote = true,
         .in = true, .out = true},
    };

    (void)state;
    CHECK(lines, [CPU] = "1 package (rapl) + remote: 1 package (prometheus)",
          [GPU] = "remote: 1 GPU (prometheus) + remote: 1 GPU (prometheus2)");
}

static void test_nothing(void **state)
{
    char basis[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES];
    size_t remote[IPW_DOMAIN_COUNT];

    (void)state;
    ipw_overlap_choose(NULL, 0, basis, remote);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) assert_string_equal(basis[d], "");
}

UNIT(overlap)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_17_psys_package_core_dram_mmio),
        cmocka_unit_test(test_17_joules_once),
        cmocka_unit_test(test_17_duplicates),
        cmocka_unit_test(test_18_die_twins_and_partial_domains),
        cmocka_unit_test(test_20_mig_is_the_whole_gpu),
        cmocka_unit_test(test_boards_once),
        cmocka_unit_test(test_41_frozen_counter_gives_way_to_the_gauge),
        cmocka_unit_test(test_module_and_gpu),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_unplaced_and_outside),
        cmocka_unit_test(test_remote),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
