/* The hwmon sources over folders of the test's own. */
#include "unit/energy/hwmon_tree.h"
#include "unit/unit.h"

static void refused(const char *name, const char *gpus, enum ipw_code code, const char *why)
{
    const struct ipw_source_place o = {.hwmon = tree_root, .gpus = gpus, .ask = test_ask};
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};

    assert_int_equal(ipw_hwmon_open(&s, &o, name, &err), code);
    assert_null(s);
    if (!strstr(err.text, why)) fail_msg("'%s' is not in '%s'", why, err.text);
    assert_int_equal(ipw_hwmon_open(&s, &o, name, NULL), code);
}

static void is(const struct ipw_source *s, const char *name, enum ipw_domain domain,
               enum ipw_channel_kind kind, enum ipw_scope scope, bool in_sum)
{
    const struct ipw_channel *c = channel(s, name, NULL);

    assert_int_equal(c->domain, domain);
    assert_int_equal(c->kind, kind);
    assert_int_equal(c->scope, scope);
    assert_int_equal(c->in_sum, in_sum);
    assert_int_equal(c->modulus_uj, 0);
    assert_true(c->max_w > 0);
    assert_string_equal(c->unit, kind == IPW_CHANNEL_COUNTER ? "uJ" : "mW");
    assert_true(c->device[0] && c->method[0]);
}

static void test_amdgpu(void **state)
{
    struct ipw_source *s;

    (void)state;
    put("hwmon0/name", "nvme\n");
    board(1, "amdgpu\n", "0000:03:00.0");
    put("hwmon1/power1_average", "35000000\n");
    put("hwmon1/power1_cap", "300000000\n");
    put("hwmon1/power1_cap_max", "350000000\n");
    put("hwmon1/energy1_input", "123456789\n");
    board(10, "amdgpu\n", "0000:83:00.0"); /* by number, not by letters: after hwmon2 */
    put("hwmon10/power1_input", "1000499\n");
    board(2, "amdgpu\n", "0000:43:00.0");
    put("hwmon2/power1_input", "1000500\n");
    put("hwmon2/power1_average", "2000000\n");
    s = open_with("amdgpu", NULL);
    assert_int_equal(s->n_channels, 4);
    is(s, "amdgpu0", IPW_DOMAIN_GPU, IPW_CHANNEL_COUNTER, IPW_SCOPE_DEVICE, true);
    is(s, "amdgpu0/power", IPW_DOMAIN_GPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_DEVICE, false);
    is(s, "amdgpu1", IPW_DOMAIN_GPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_DEVICE, true);
    is(s, "amdgpu2", IPW_DOMAIN_GPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_DEVICE, true);
    assert_int_equal(channel(s, "amdgpu0", NULL)->max_w, 455);
    assert_int_equal(channel(s, "amdgpu1", NULL)->max_w, 1000);
    assert_string_equal(channel(s, "amdgpu0", NULL)->device, "0000:03:00.0");
    assert_string_equal(channel(s, "amdgpu0/power", NULL)->method, "hwmon power1_average");
    assert_string_equal(channel(s, "amdgpu1", NULL)->method, "hwmon power1_average");
    assert_string_equal(channel(s, "amdgpu2", NULL)->method, "hwmon power1_input");
    assert_int_equal(value(s, "amdgpu0"), 123456789);
    assert_int_equal(value(s, "amdgpu0/power"), 35000);
    assert_int_equal(value(s, "amdgpu1"), 2000);
    assert_int_equal(value(s, "amdgpu2"), 1000);
    s->close(s);
    /* Case 19's rule for these boards: by bus id, in any spelling. */
    s = open_with("amdgpu", "GPU-1234,83:00.0");
    assert_int_equal(s->n_channels, 1);
    assert_string_equal(s->channels[0].name, "amdgpu2");
    s->close(s);
    refused("amdgpu", "0000:99:00.0,GPU-1", IPW_ENOTFOUND, "no AMD GPU '0000:99:00.0,GPU-1'");
    refused("intel_gpu", NULL, IPW_EUNSUPPORTED, "no Intel board in ");
}

/* The graphics of a processor: what it calls power is the package's, which RAPL has already. */
static void test_17_apu_is_no_board(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(0, "amdgpu\n", "0000:c5:00.0");
    put("hwmon0/in1_label", "vddnb\n");
    put("hwmon0/power1_average", "15000000\n");
    s = open_with("amdgpu", NULL);
    is(s, "amdgpu0", IPW_DOMAIN_CPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_PACKAGE, false);
    s->close(s);
}

/* Case 41: the accumulator stands still; the gauge beside it is there to take its place. */
static void test_41_frozen_accumulator_has_a_gauge(void **state)
{
    struct ipw_source *s;
    int64_t first;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/power1_average", "250000000\n");
    put("hwmon0/energy1_input", "5000000\n");
    s = open_with("amdgpu", NULL);
    first = value(s, "amdgpu0");
    for (int i = 0; i < 100; i++) assert_int_equal(value(s, "amdgpu0"), first);
    assert_int_equal(value(s, "amdgpu0/power"), 250000);
    assert_string_equal(channel(s, "amdgpu0", NULL)->device,
                        channel(s, "amdgpu0/power", NULL)->device);
    s->close(s);
}

/* Case 46: a board that sleeps is not touched (its files would fail); 0 W, and the counter
 * rests. */
static void test_46_asleep(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/power1_average", "35000000\n");
    put("hwmon0/energy1_input", "777\n");
    s = open_with("amdgpu", NULL);
    assert_int_equal(value(s, "amdgpu0"), 777);
    put("pci/0000:03:00.0/power/runtime_status", "suspended\n");
    put("hwmon0/energy1_input", "nobody reads this\n");
    put("hwmon0/power1_average", "nobody reads this\n");
    assert_int_equal(value(s, "amdgpu0"), 777);
    assert_int_equal(value(s, "amdgpu0/power"), 0);
    put("pci/0000:03:00.0/power/runtime_status", "active\n");
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE);
    put("hwmon0/energy1_input", "778\n");
    assert_int_equal(value(s, "amdgpu0"), 778);
    s->close(s);
}

static void test_46_asleep_from_the_start(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put("pci/0000:03:00.0/power/runtime_status", "suspended\n");
    put_unreadable("hwmon0/power1_average");
    put_unreadable("hwmon0/energy1_input");
    s = open_with("amdgpu", NULL);
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE); /* where it stands, nobody knows */
    assert_int_equal(value(s, "amdgpu0/power"), 0);
    s->close(s);
}

/* A board that is awake and says 0 W has no reading; the source says so once. */
static void test_zero_watts(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/power1_average", "0\n");
    put("hwmon0/energy1_input", "777\n");
    s = open_with("amdgpu", NULL);
    for (int i = 0; i < 3; i++) assert_true(value(s, "amdgpu0/power") == IPW_NO_VALUE);
    assert_string_equal(s->note, "amdgpu0/power: ignored 0 W while awake");
    assert_int_equal(value(s, "amdgpu0"), 777);
    put("pci/0000:03:00.0/power/runtime_status", "suspended\n");
    assert_int_equal(value(s, "amdgpu0/power"), 0);
    put("pci/0000:03:00.0/power/runtime_status", "active\n");
    put("hwmon0/power1_average", "35000000\n");
    assert_int_equal(value(s, "amdgpu0/power"), 35000);
    s->close(s);
}

static void test_intel(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(3, "xe\n", "0000:03:00.0");
    put("hwmon3/energy1_label", "card\n");
    put("hwmon3/energy1_input", "1000\n");
    put("hwmon3/energy2_label", "pkg\n");
    put("hwmon3/energy2_input", "900\n");
    put("hwmon3/power1_max", "190000000\n");
    board(4, "i915\n", "0000:04:00.0");
    put("hwmon4/energy1_input", "2000\n");
    board(5, "i915_gt0\n", "0000:04:00.0x");
    put("hwmon5/energy1_input", "3000\n");
    assert_int_equal(remove(tree_path("hwmon5/device")), 0);
    put_link("hwmon5/device", "../pci/0000:04:00.0");
    board(6, "xe\n", "0000:05:00.0");
    put("hwmon6/energy2_input", "4000\n"); /* an integrated one: no card */
    s = open_with("intel_gpu", NULL);
    assert_int_equal(s->n_channels, 5);
    is(s, "intelgpu0", IPW_DOMAIN_GPU, IPW_CHANNEL_COUNTER, IPW_SCOPE_DEVICE, true);
    is(s, "intelgpu0/pkg", IPW_DOMAIN_GPU, IPW_CHANNEL_COUNTER, IPW_SCOPE_RAIL, false);
    is(s, "intelgpu1", IPW_DOMAIN_GPU, IPW_CHANNEL_COUNTER, IPW_SCOPE_DEVICE, true);
    is(s, "intelgpu1/gt0", IPW_DOMAIN_GPU, IPW_CHANNEL_COUNTER, IPW_SCOPE_RAIL, false);
    is(s, "intelgpu2/pkg", IPW_DOMAIN_GPU, IPW_CHANNEL_COUNTER, IPW_SCOPE_DEVICE, true);
    assert_int_equal(channel(s, "intelgpu0", NULL)->max_w, 247);
    assert_int_equal(value(s, "intelgpu1/gt0"), 3000);
    assert_int_equal(value(s, "intelgpu2/pkg"), 4000);
    s->close(s);
    s = open_with("intel_gpu", "04:00.0");
    assert_int_equal(s->n_channels, 2);
    s->close(s);
}

static void meter(int n, const char *label, const char *uw)
{
    char file[64];

    snprintf(file, sizeof file, "hwmon%d/device/name", n); /* the old driver's place */
    put(file, "power_meter\n");
    snprintf(file, sizeof file, "hwmon%d/device/power1_average", n);
    put(file, uw);
    snprintf(file, sizeof file, "hwmon%d/device/power1_average_interval", n);
    put(file, "50\n");
    if (!label) return;
    snprintf(file, sizeof file, "hwmon%d/device/power1_oem_info", n);
    put(file, label);
}

static void test_power_meter_of_the_machine(void **state)
{
    struct ipw_source *s;

    (void)state;
    meter(0, NULL, "251000000\n");
    s = open_with("power_meter", NULL);
    assert_int_equal(s->n_channels, 1);
    is(s, "power_meter", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_MACHINE, true);
    assert_int_equal(s->channels[0].period_ns, 50000000);
    assert_int_equal(value(s, "power_meter"), 251000);
    /* "I have nothing to say", in milliwatts and as it is. */
    put("hwmon0/device/power1_average", "4294967295000\n");
    assert_true(value(s, "power_meter") == IPW_NO_VALUE);
    put("hwmon0/device/power1_average", "4294967295\n");
    assert_true(value(s, "power_meter") == IPW_NO_VALUE);
    put("hwmon0/device/power1_average", "252000000\n");
    assert_int_equal(value(s, "power_meter"), 252000);
    s->close(s);
}

/* Case 17 on Grace: the module holds Grace, Grace holds its parts. */
static void test_17_grace(void **state)
{
    struct ipw_source *s;

    (void)state;
    meter(1, "Module Power Socket 0\n", "600000000\n");
    meter(2, "Grace Power Socket 0\n", "150000000\n");
    meter(3, "CPU Power Socket 0\n", "90000000\n");
    meter(4, "SysIO Power Socket 0\n", "30000000\n");
    meter(5, "Grace Power Socket 1\n", "160000000\n");
    s = open_with("power_meter", NULL);
    assert_int_equal(s->n_channels, 5);
    is(s, "module-0", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_MODULE, true);
    is(s, "grace-0", IPW_DOMAIN_CPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_PACKAGE, true);
    is(s, "cpu-0", IPW_DOMAIN_CPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_CORE, false);
    is(s, "sysio-0", IPW_DOMAIN_CPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_UNCORE, false);
    is(s, "grace-1", IPW_DOMAIN_CPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_PACKAGE, true);
    assert_string_equal(channel(s, "grace-1", NULL)->device, "Grace Power Socket 1");
    assert_int_equal(value(s, "grace-1"), 160000);
    s->close(s);
}

static void test_grace_without_its_own_meter(void **state)
{
    struct ipw_source *s;

    (void)state;
    meter(3, "CPU Power Socket 0\n", "90000000\n");
    meter(4, "SysIO Power Socket 0\n", "30000000\n");
    meter(5, "Chassis Power Socket\n", "30000000\n");
    s = open_with("power_meter", NULL);
    is(s, "cpu-0", IPW_DOMAIN_CPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_PACKAGE, true);
    is(s, "sysio-0", IPW_DOMAIN_CPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_PACKAGE, true);
    is(s, "power_meter", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_MACHINE, true);
    s->close(s);
}

static void look_denied(void)
{
    const struct ipw_source_place o = {.hwmon = tree_root, .ask = test_ask};
    struct ipw_source *s;
    struct ipw_err err = {0};
    char want[300];

    look_for(ipw_hwmon_open(&s, &o, "power_meter", &err) == IPW_EPERM);
    snprintf(want, sizeof want,
             "%s/hwmon0/device/power1_average is not readable: chmod a+r it (as root), or run as "
             "root",
             tree_root);
    look_for(!strcmp(err.text, want));
}

static void look_partly_denied(void)
{
    const struct ipw_source_place o = {.hwmon = tree_root, .ask = test_ask};
    struct ipw_source *s;
    int64_t values[2];

    look_for(ipw_hwmon_open(&s, &o, "power_meter", NULL) == 0);
    look_for(s->n_channels == 2 && !s->channels[0].in_sum && !s->channels[1].in_sum);
    look_for(strstr(s->note, "no cpu energy: ") && strstr(s->note, "Permission denied"));
    s->read(s, values);
    look_for(values[0] == IPW_NO_VALUE && values[1] == 160000);
    s->close(s);
}

static void test_15_permission(void **state)
{
    (void)state;
    meter(0, "Grace Power Socket 0\n", "150000000\n");
    deny("hwmon0/device/power1_average");
    as_user(look_denied);
    meter(1, "Grace Power Socket 1\n", "160000000\n");
    as_user(look_partly_denied);
}

static void rail(int n, int i, const char *label, const char *mv, const char *ma)
{
    char file[64];

    snprintf(file, sizeof file, "hwmon%d/name", n);
    put(file, "ina3221\n");
    snprintf(file, sizeof file, "hwmon%d/in%d_label", n, i);
    if (label) put(file, label);
    snprintf(file, sizeof file, "hwmon%d/in%d_input", n, i);
    put(file, mv);
    snprintf(file, sizeof file, "hwmon%d/curr%d_input", n, i);
    put(file, ma);
}

static void test_17_ina3221_total(void **state)
{
    struct ipw_source *s;

    (void)state;
    rail(0, 1, "VDD_IN\n", "19112\n", "540\n");
    rail(0, 2, "VDD_CPU_GPU_CV\n", "19104\n", "48\n");
    rail(0, 3, "VDD_SOC\n", "19104\n", "120\n");
    rail(1, 1, "VDD_GPU\n", "5000\n", "-3\n");
    rail(1, 2, NULL, "5000\n", "3\n");
    s = open_with("ina3221", NULL);
    assert_int_equal(s->n_channels, 4);
    is(s, "VDD_IN", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_MACHINE, true);
    is(s, "VDD_CPU_GPU_CV", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_RAIL, false);
    is(s, "VDD_SOC", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_RAIL, false);
    is(s, "VDD_GPU", IPW_DOMAIN_GPU, IPW_CHANNEL_GAUGE, IPW_SCOPE_RAIL, true);
    assert_string_equal(channel(s, "VDD_SOC", NULL)->method, "hwmon in3 x curr3");
    assert_int_equal(value(s, "VDD_IN"), 10320);      /* 19.112 V * 0.540 A = 10.32048 W */
    assert_true(value(s, "VDD_GPU") == IPW_NO_VALUE); /* flows back: no consumption */
    put("hwmon1/curr1_input", "0\n");
    assert_int_equal(value(s, "VDD_GPU"), 0);
    put("hwmon1/curr1_input", "9223372036854775807\n");
    assert_true(value(s, "VDD_GPU") == IPW_NO_VALUE);
    s->close(s);
}

static void test_17_ina3221_rails(void **state)
{
    struct ipw_source *s;

    (void)state;
    rail(0, 1, "CPU\n", "19000\n", "500\n");
    rail(0, 2, "GPU\n", "19000\n", "600\n");
    rail(0, 3, "SOC\n", "19000\n", "100\n");
    s = open_with("ina3221", NULL);
    is(s, "CPU", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_RAIL, true);
    is(s, "GPU", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_RAIL, true);
    is(s, "SOC", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_RAIL, true);
    s->close(s);
}

static void test_other_drivers(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/power1_average", "1\n");
    put("hwmon1/name", "corsairpsu\n");
    put("hwmon1/power1_label", "power total\n");
    put("hwmon1/power1_input", "120000000\n");
    put("hwmon1/power2_input", "60000000\n");
    put("hwmon2/name", "corsairpsu\n");
    put("hwmon2/power1_label", "power total\n");
    put("hwmon2/power1_input", "130000000\n");
    put("hwmon3/name", "amd_energy\n");
    put("hwmon3/energy1_label", "Ecore000\n");
    put("hwmon3/energy1_input", "5\n");
    put("hwmon3/energy2_label", "Esocket0\n");
    put("hwmon3/energy2_input", "99\n");
    put("hwmon3/energy3_label", "Esocket1x\n");
    put("hwmon3/energy3_input", "99\n");
    put("hwmon4/name", "scmi_sensors\n");
    put("hwmon4/energy3_input", "42\n");
    put("hwmon5/power1_input", "1\n"); /* no name */
    put("hwmon6/name", "");
    s = open_with("hwmon", NULL);
    assert_int_equal(s->n_channels, 5);
    is(s, "corsairpsu/power total", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_DEVICE, false);
    is(s, "corsairpsu/power2", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_DEVICE, false);
    is(s, "corsairpsu/power total#2", IPW_DOMAIN_MACHINE, IPW_CHANNEL_GAUGE, IPW_SCOPE_DEVICE,
       false);
    is(s, "package-0", IPW_DOMAIN_CPU, IPW_CHANNEL_COUNTER, IPW_SCOPE_PACKAGE, true);
    is(s, "scmi_sensors/energy3", IPW_DOMAIN_MACHINE, IPW_CHANNEL_COUNTER, IPW_SCOPE_DEVICE, false);
    assert_int_equal(value(s, "corsairpsu/power total#2"), 130000);
    assert_int_equal(value(s, "package-0"), 99);
    s->close(s);
}

/* Case 9 and 50: whatever a file holds, a bad text is no reading, and the next good one is. */
static void test_09_50_bad_texts(void **state)
{
    static char long_text[3001];
    const char *bad[] = {"",        "nan\n", "-5\n", "18446744073709551615\n",
                         long_text, "\n",    "0x10", "1 2\n",
                         "5\n6\n",  "1e3"};
    struct ipw_source *s;
    uint64_t seed = 50;

    (void)state;
    memset(long_text, '7', 3000);
    board(0, "amdgpu\n", "0000:03:00.0");
    put("hwmon0/energy1_input", "1000\n");
    put("hwmon0/power1_average", "1000\n");
    s = open_with("amdgpu", NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("hwmon0/energy1_input", bad[i]);
        put("hwmon0/power1_average", bad[i]);
        assert_true(value(s, "amdgpu0") == IPW_NO_VALUE);
        assert_true(value(s, "amdgpu0/power") == IPW_NO_VALUE);
        put_number("hwmon0/energy1_input", 2000 + (int64_t)i);
        assert_int_equal(value(s, "amdgpu0"), 2000 + (int64_t)i);
    }
    for (int i = 0; i < 300; i++) {
        char noise[40] = "";
        size_t n = test_random(&seed) % (sizeof noise - 1);
        for (size_t k = 0; k < n; k++) noise[k] = (char)(1 + test_random(&seed) % 255);
        put("hwmon0/power1_average", noise);
        assert_true(value(s, "amdgpu0/power") >= 0 || value(s, "amdgpu0/power") == IPW_NO_VALUE);
    }
    s->close(s);
}

/* A sensor that is off says ENODATA to the reader of a file that opens well. */
static void test_off_is_no_value(void **state)
{
    struct ipw_source *s;

    (void)state;
    board(0, "amdgpu\n", "0000:03:00.0");
    put_unreadable("hwmon0/power1_average");
    s = open_with("amdgpu", NULL);
    assert_int_equal(s->n_channels, 1);
    assert_true(value(s, "amdgpu0") == IPW_NO_VALUE);
    s->close(s);
}

static void test_14_nothing_there(void **state)
{
    (void)state;
    refused("amdgpu", NULL, IPW_EUNSUPPORTED, "no AMD board in /tmp/");
    refused("intel_gpu", NULL, IPW_EUNSUPPORTED, "no Intel board in /tmp/");
    refused("power_meter", NULL, IPW_EUNSUPPORTED, "no ACPI power meter in /tmp/");
    refused("ina3221", NULL, IPW_EUNSUPPORTED, "no INA3221 with labelled rails in /tmp/");
    refused("hwmon", NULL, IPW_EUNSUPPORTED, "no other power or energy file in /tmp/");
    board(0, "amdgpu\n", "0000:03:00.0");
    refused("amdgpu", NULL, IPW_EUNSUPPORTED, "neither energy1_input nor power1_average");
    board(1, "xe\n", "0000:04:00.0");
    refused("intel_gpu", NULL, IPW_EUNSUPPORTED, "shows no energy counter");
    snprintf(tree_root + strlen(tree_root), 8, "/no");
    refused("hwmon", NULL, IPW_EUNSUPPORTED, "no other power or energy file in /tmp/");
    tree_root[strlen(tree_root) - 3] = '\0';
}

UNIT(hwmon)
{
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_amdgpu),
        WITH_TREE(test_17_apu_is_no_board),
        WITH_TREE(test_41_frozen_accumulator_has_a_gauge),
        WITH_TREE(test_46_asleep),
        WITH_TREE(test_46_asleep_from_the_start),
        WITH_TREE(test_zero_watts),
        WITH_TREE(test_intel),
        WITH_TREE(test_power_meter_of_the_machine),
        WITH_TREE(test_17_grace),
        WITH_TREE(test_grace_without_its_own_meter),
        WITH_TREE(test_15_permission),
        WITH_TREE(test_17_ina3221_total),
        WITH_TREE(test_17_ina3221_rails),
        WITH_TREE(test_other_drivers),
        WITH_TREE(test_09_50_bad_texts),
        WITH_TREE(test_off_is_no_value),
        WITH_TREE(test_14_nothing_there),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
