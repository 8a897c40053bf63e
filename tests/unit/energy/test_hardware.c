/* Labels of hardware: the upstream project's for each kind of device, and ours; facts from a
 * tree. */
#include "energy/hardware.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static void test_upstream_table(void **state)
{
    static const struct {
        const char *gpu, *cpu, *label;
    } table[] = {
        {"NVIDIA H100 80GB HBM3", NULL, "H10080GB"},
        {"NVIDIA H100 80GB HBM3 x8", NULL, "H10080GB"},
        {"NVIDIA A100-SXM4-80GB", NULL, "A100SXM4"},
        {"NVIDIA H200", NULL, "H200"},
        {"NVIDIA H200 x1", NULL, "H200x1"},
        {"NVIDIA GeForce RTX 4090", NULL, "RTX4090"},
        {"NVIDIA GeForce RTX 4090 x1", NULL, "RTX4090"},
        {"nvidia rtx 3090", NULL, "RTX3090"},
        {"NVIDIA RTX 6000 Ada Generation", NULL, "RTX6000"},
        {"Tesla V100", NULL, "V100"},
        {"Tesla T4 x1", NULL, "T4x1"},
        {"NVIDIA L40S x4", NULL, "L40Sx4"},
        {"NVIDIA (2 GPUs)", NULL, "2"},
        {"NVIDIA GPU 0", NULL, "GPU0"},
        {"NVIDIA GPU group", NULL, "GROUP"},
        {"AMD Instinct MI300X", NULL, "MI300X"},
        {"AMD Radeon RX 7900 XTX", NULL, "RX7900"},
        {NULL, "Apple M2 Pro", "M2"},
        {NULL, "Apple M4 Max", "M4"},
        {NULL, "Intel(R) Core(TM) i9-13900K", "TMi9"},
        {NULL, "13th Gen Intel(R) Core(TM) i7-13700H", "TMi7"},
        {NULL, "Intel Core i9", "I9"},
        {NULL, "AMD EPYC 9654 96-Core Processor", "EPYC9654"},
        {NULL, "AMD Ryzen 9 7950X 16-Core Processor", "7950X16"},
        {NULL, "Intel(R) Xeon(R) Gold 6430", "6430"},
        {NULL, "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "CPUE5"},
        {"Apple GPU", "Apple M1", "M1"},
        {NULL, "VirtualApple", "VirtualApple"},
        {NULL, "", "UNKNOWN_HW"},
        {NULL, "---", "UNKNOWN_HW"},
        {"Graphics", "Processor", "Graphics"},
        {"Orin (nvgpu)", "ARMv8 Processor rev 1 (v8l)", "REV1"},
        {"NVIDIA Jetson Orin Nano Developer Kit", "Cortex-A78AE", "A78AE"},
    };
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char label[64];

        ipw_hardware_label_upstream(label, sizeof label, table[i].gpu, table[i].cpu);
        if (!strcmp(label, table[i].label)) continue;
        print_error("%s | %s: %s, not %s\n", table[i].gpu ? table[i].gpu : "",
                    table[i].cpu ? table[i].cpu : "", label, table[i].label);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void put_label(char *out, size_t size, const char *gpu, size_t gpus, const char *cpu)
{
    struct ipw_hardware f = {.gpu.n = gpus};

    snprintf(f.gpu.model, sizeof f.gpu.model, "%s", gpu ? gpu : "");
    snprintf(f.cpu, sizeof f.cpu, "%s", cpu ? cpu : "");
    ipw_hardware_label(out, size, &f);
}

static void test_ours(void **state)
{
    static const struct {
        const char *gpu;
        size_t gpus;
        const char *cpu, *label;
    } table[] = {
        {"NVIDIA H100 80GB HBM3", 1, "x", "H100 80GB HBM3"},
        {"NVIDIA H100 80GB HBM3", 8, "x", "8x H100 80GB HBM3"},
        {"NVIDIA GeForce RTX 4090", 2, "x", "2x RTX 4090"},
        {"NVIDIA A100-SXM4-80GB", 4, "x", "4x A100-SXM4-80GB"},
        {NULL, 0, "AMD EPYC 9654 96-Core Processor", "EPYC 9654"},
        {NULL, 0, "AMD Ryzen 9 7950X 16-Core Processor", "Ryzen 9 7950X"},
        {NULL, 0, "13th Gen Intel(R) Core(TM) i7-13700H", "i7-13700H"},
        {NULL, 0, "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "Xeon E5-2690 v4"},
        {NULL, 0, "", "unknown"},
        {"GPU", 3, "", "3x GPU"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char label[64];

        put_label(label, sizeof label, table[i].gpu, table[i].gpus, table[i].cpu);
        assert_string_equal(label, table[i].label);
    }
}

static char root[] = "/tmp/ipw-facts-XXXXXX";

static void put(const char *path, const char *text)
{
    char full[256], *slash;
    FILE *f;

    snprintf(full, sizeof full, "%s/%s", root, path);
    for (slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_gather(void **state)
{
    char proc[64], sys[64], command[64];
    struct ipw_hardware f;
    struct ipw_channel gpus[4] = {
        {.name = "gpu0", .device = "GPU-aa NVIDIA H100 80GB", .domain = IPW_DOMAIN_GPU},
        {.name = "gpu0/mem_total",
         .device = "GPU-aa NVIDIA H100 80GB",
         .domain = IPW_DOMAIN_GPU,
         .kind = IPW_CHANNEL_METRIC},
        {.name = "gpu1", .device = "GPU-bb NVIDIA H100 80GB", .domain = IPW_DOMAIN_GPU},
        {.name = "gpu0/power", /* not beside its counter */
         .device = "GPU-aa NVIDIA H100 80GB",
         .domain = IPW_DOMAIN_GPU,
         .kind = IPW_CHANNEL_GAUGE},
    };
    struct ipw_source source = {.name = "nvml", .channels = gpus, .n_channels = 4};
    struct ipw_source_set set = {.sources = {&source}, .n = 1};

    (void)state;
    assert_non_null(mkdtemp(root));
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n"
                        "physical id\t: 0\ncore id\t: 0\nflags\t: fpu hypervisor sse\n\n"
                        "processor\t: 1\nmodel name\t: x\nphysical id\t: 0\ncore id\t: 1\n\n"
                        "processor\t: 2\nphysical id\t: 1\ncore id\t: 0\n\n"
                        "processor\t: 3\nphysical id\t: 1\ncore id\t: 0\n");
    put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  "
                                      "Tue Mar  5\nGCC version: 12\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put("sys/class/dmi/id/sys_vendor", "QEMU\n");
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(sys, sizeof sys, "%s/sys", root);
    ipw_hardware_gather(&f, proc, sys, &set);
    assert_string_equal(f.cpu, "AMD EPYC 9654 96-Core Processor");
    assert_int_equal(f.sockets, 2);
    assert_int_equal(f.cores, 3);
    assert_int_equal(f.threads, 4);
    assert_string_equal(f.governor, "performance");
    assert_true(f.virtualised_known);
    assert_string_equal(f.virtualised, "QEMU");
    assert_string_equal(f.driver, "550.54.15");
    assert_int_equal(f.gpu.n, 2);
    assert_string_equal(f.gpu.model, "NVIDIA H100 80GB");
    ipw_hardware_gather(&f, "/nonexistent", "/nonexistent", NULL);
    assert_string_equal(f.cpu, "");
    assert_int_equal(f.sockets, 0);
    assert_int_equal(f.gpu.n, 0);
    assert_false(f.virtualised_known);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* Gathers from a tree of its own: cpuinfo, the vendor, the driver's first line; NULL: no such
 * file. */
static struct ipw_hardware facts_of(const char *cpuinfo, const char *vendor, const char *driver)
{
    char proc[64], sys[64], command[64];
    struct ipw_hardware f;

    snprintf(root, sizeof root, "/tmp/ipw-facts-XXXXXX");
    assert_non_null(mkdtemp(root));
    if (cpuinfo) put("proc/cpuinfo", cpuinfo);
    if (vendor) put("sys/class/dmi/id/sys_vendor", vendor);
    if (driver) put("proc/driver/nvidia/version", driver);
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "");
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(sys, sizeof sys, "%s/sys", root);
    ipw_hardware_gather(&f, proc, sys, NULL);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
    assert_string_equal(f.governor, ""); /* an empty file tells nothing */
    return f;
}

/* Virtual or not: by the processor's flag, by a maker of virtual machines where there are no flags;
 * who also sells real ones does not count then. */
static void test_virtual_machines(void **state)
{
    static const struct {
        const char *cpuinfo, *vendor, *virtualised;
        bool known;
    } table[] = {
        {"flags\t: fpu hypervisor\n", NULL, "hypervisor", true},
        {"flags\t: fpu hypervisor\nflags\t: fpu hypervisor\n", "Amazon EC2\n", "Amazon EC2", true},
        {"flags\t: fpu hypervisor\n", "Dell Inc.\n", "hypervisor", true},
        {"flags\t: fpu sse\n", "Google\n", "", true},
        {"flags\t: fpu sse\n", NULL, "", true},
        {NULL, "QEMU\n", "QEMU", true},
        {NULL, "Google\n", "", false},
        {NULL, "\n", "", false},
        {"Features : fp asimd\n", NULL, "", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_hardware f = facts_of(table[i].cpuinfo, table[i].vendor, NULL);

        if (strcmp(f.virtualised, table[i].virtualised)) fail_msg("row %zu: %s", i, f.virtualised);
        assert_int_equal(f.virtualised_known, table[i].known);
    }
}

/* A key counts only as a whole: "model name" is not "model name of its maker". */
static void test_cpuinfo_keys(void **state)
{
    struct ipw_hardware f = facts_of("processor: 0\nprocessors\t: 8\nprocessor 1\n"
                                     "model name: a\nmodel name : b\nmodel namely\t: c\n",
                                     NULL, NULL);

    (void)state;
    assert_int_equal(f.threads, 1);
    assert_string_equal(f.cpu, "a");
}

/* The driver's version is the first word of digits and dots that has a dot. */
static void test_driver(void **state)
{
    static const struct {
        const char *line, *driver;
    } table[] = {
        {"NVRM version: NVIDIA UNIX 64 Module  535.1\n", "535.1"},
        {"NVRM version: 64 unknown\n", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_string_equal(facts_of(NULL, NULL, table[i].line).driver, table[i].driver);
}

/* Boards count by their identity, of the first source that has any; no remote board, no metric. */
static void test_boards(void **state)
{
    struct ipw_channel cpu = {.name = "package-0", .device = "cpu", .domain = IPW_DOMAIN_CPU};
    struct ipw_channel gpus[5] = {
        {.name = "a/power",
         .device = "GPU-aa",
         .domain = IPW_DOMAIN_GPU,
         .kind = IPW_CHANNEL_METRIC},
        {.name = "z", .device = "GPU-zz", .domain = IPW_DOMAIN_GPU, .remote = true},
        {.name = "p", .device = "GPU-aa", .domain = IPW_DOMAIN_CPU},
        {.name = "a", .device = "GPU-aa", .domain = IPW_DOMAIN_GPU},
        {.name = "b", .device = "GPU-ab", .domain = IPW_DOMAIN_GPU},
    };
    struct ipw_source sources[2] = {{.name = "rapl", .channels = &cpu, .n_channels = 1},
                                    {.name = "nvml", .channels = gpus, .n_channels = 5}};
    struct ipw_source_set set = {.sources = {&sources[0], &sources[1]}, .n = 2};
    struct ipw_hardware f;

    (void)state;
    ipw_hardware_gather(&f, "/nonexistent", "/nonexistent", &set);
    assert_int_equal(f.gpu.n, 2);
    assert_string_equal(f.gpu.model, "GPU-aa"); /* no name beside the identity: the identity */
    set.n = 1;
    ipw_hardware_gather(&f, "/nonexistent", "/nonexistent", &set);
    assert_int_equal(f.gpu.n, 0);
}

/* Boards of a second maker count beside the first's; an exporter's view of the same boards, which
 * is in no sum, does not. */
static void test_two_makers(void **state)
{
    struct ipw_channel nvidia[2] = {
        {.device = "GPU-aa NVIDIA H100 PCIe", .domain = IPW_DOMAIN_GPU, .in_sum = true},
        {.device = "GPU-bb NVIDIA H100 PCIe", .domain = IPW_DOMAIN_GPU, .in_sum = true}};
    struct ipw_channel page[1] = {{.device = "GPU-aa NVIDIA H100 PCIe", .domain = IPW_DOMAIN_GPU}};
    struct ipw_channel amd[1] = {
        {.device = "0000:03:00.0 AMD Radeon PRO W7900", .domain = IPW_DOMAIN_GPU, .in_sum = true}};
    struct ipw_source sources[3] = {{.channels = nvidia, .n_channels = 2},
                                    {.channels = page, .n_channels = 1},
                                    {.channels = amd, .n_channels = 1}};
    struct ipw_source_set set = {.sources = {&sources[0], &sources[1], &sources[2]}, .n = 2};
    struct ipw_hardware f;
    char label[64];

    (void)state;
    ipw_hardware_gather(&f, "/nonexistent", "/nonexistent", &set);
    ipw_hardware_label(label, sizeof label, &f);
    assert_string_equal(label, "2x H100 PCIe");
    set.n = 3;
    ipw_hardware_gather(&f, "/nonexistent", "/nonexistent", &set);
    ipw_hardware_label(label, sizeof label, &f);
    assert_string_equal(label, "2x H100 PCIe + PRO W7900");
}

/* Without other folders the facts are this machine's. */
static void test_this_machine(void **state)
{
    struct ipw_hardware f;

    (void)state;
    ipw_hardware_gather(&f, NULL, NULL, NULL);
    assert_true(f.threads > 0);
}

/* A label fits its buffer by whole words; without any part's name it says so. */
static void test_label_edges(void **state)
{
    char label[64], small[8];

    (void)state;
    put_label(label, sizeof label, "NVIDIA", 1, "x");
    assert_string_equal(label, "GPU");
    put_label(label, sizeof label, "", 2, "12th Gen Intel(R) Core(TM) i5-1240P");
    assert_string_equal(label, "i5-1240P");
    put_label(label, sizeof label, "NVIDIA H100", 0, NULL);
    assert_string_equal(label, "unknown");
    put_label(label, sizeof label, NULL, 0, "th Smith 7 Zenith");
    assert_string_equal(label, "th Smith 7 Zenith");
    put_label(label, sizeof label, NULL, 0,
              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "
              "cccccccccccccccccccccccccccccc dddddddddddddddddddddd");
    assert_int_equal(strlen(label), sizeof label - 1);
    put_label(small, sizeof small, "NVIDIA H100 80GB HBM3", 8, NULL);
    assert_string_equal(small, "8x H100");
}

UNIT(hardware)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upstream_table), cmocka_unit_test(test_ours),
        cmocka_unit_test(test_gather),         cmocka_unit_test(test_virtual_machines),
        cmocka_unit_test(test_cpuinfo_keys),   cmocka_unit_test(test_driver),
        cmocka_unit_test(test_boards),         cmocka_unit_test(test_two_makers),
        cmocka_unit_test(test_this_machine),   cmocka_unit_test(test_label_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
