/* The perf PMU over a folder of the test's own; an event is a pipe into which the test counts. */
#include "energy/sources/perf.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

/* What the source asked to be opened. */
static struct {
    uint32_t type;
    uint64_t config;
    int cpu, write_fd;
} opened[64];
static size_t n_opened;
static int fail_errno; /* of events ... */
static uint64_t fail_config;
static int fail_cpu; /* -1: of any processor */

static int open_event(void *ud, uint32_t type, uint64_t config, int cpu)
{
    int fds[2];

    assert_ptr_equal(ud, opened);
    if (fail_errno && (!fail_config || fail_config == config) &&
        (fail_cpu < 0 || fail_cpu == cpu)) {
        errno = fail_errno;
        return -1;
    }
    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    opened[n_opened].type = type;
    opened[n_opened].config = config;
    opened[n_opened].cpu = cpu;
    opened[n_opened++].write_fd = fds[1];
    return fds[0];
}

static struct ipw_source_place options;
static char cpu_root[128], pmu_root[128];

static int setup(void **state)
{
    n_opened = 0;
    fail_errno = 0;
    fail_config = 0;
    fail_cpu = -1;
    if (tree_setup(state)) return 1;
    snprintf(pmu_root, sizeof pmu_root, "%s/devices", tree_root);
    snprintf(cpu_root, sizeof cpu_root, "%s/cpu", tree_root);
    put("sys/kernel/perf_event_paranoid", "2\n");
    options = (struct ipw_source_place){.events = pmu_root,
                                        .cpus = cpu_root,
                                        .proc = tree_root,
                                        .open_event = open_event,
                                        .ud = opened};
    return 0;
}

static int teardown(void **state)
{
    for (size_t i = 0; i < n_opened; i++) close(opened[i].write_fd);
    return tree_teardown(state);
}

static void pmu(const char *cpumask)
{
    put("devices/power/type", "9\n");
    put("devices/power/cpumask", cpumask);
    put("devices/power/format/event", "config:0-7\n");
}

static void event(const char *name, const char *code)
{
    char file[96];

    snprintf(file, sizeof file, "devices/power/events/energy-%s", name);
    put(file, code);
    snprintf(file, sizeof file, "devices/power/events/energy-%s.scale", name);
    put(file, "2.3283064365386962890625e-10");
    snprintf(file, sizeof file, "devices/power/events/energy-%s.unit", name);
    put(file, "Joules");
}

static void all_events(void)
{
    event("pkg", "event=0x02");
    event("cores", "event=0x01");
    event("ram", "event=0x03");
    event("gpu", "event=0x04");
    event("psys", "event=0x05");
}

static void cpu(int n, int package, int die)
{
    char file[96];

    snprintf(file, sizeof file, "cpu/cpu%d/topology/physical_package_id", n);
    put_number(file, package);
    snprintf(file, sizeof file, "cpu/cpu%d/topology/die_id", n);
    put_number(file, die);
}

static struct ipw_source *open_pmu(void)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    if (ipw_perf_open(&s, &options, "perf", &err)) fail_msg("%s", err.text);
    assert_string_equal(s->name, "perf");
    return s;
}

static void count(size_t i, uint64_t n)
{
    assert_int_equal(write(opened[i].write_fd, &n, sizeof n), sizeof n);
}

/* Names, domains and scopes are rapl's: one can stand in for the other. */
static void test_17_two_sockets(void **state)
{
    static const struct {
        const char *name;
        enum ipw_domain domain;
        enum ipw_scope scope;
        bool in_sum;
        uint64_t config;
        int cpu;
    } want[] = {
        {"package-0", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE, true, 2, 0},
        {"package-0/core", IPW_DOMAIN_CPU, IPW_SCOPE_CORE, false, 1, 0},
        {"package-0/uncore", IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE, false, 4, 0},
        {"package-0/dram", IPW_DOMAIN_DRAM, IPW_SCOPE_DRAM, true, 3, 0},
        {"psys", IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM, false, 5, 0},
        {"package-1", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE, true, 2, 28},
        {"package-1/core", IPW_DOMAIN_CPU, IPW_SCOPE_CORE, false, 1, 28},
        {"package-1/uncore", IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE, false, 4, 28},
        {"package-1/dram", IPW_DOMAIN_DRAM, IPW_SCOPE_DRAM, true, 3, 28},
        {"platform-1", IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM, false, 5, 28},
    };
    struct ipw_source *s;

    (void)state;
    pmu("0,28\n");
    all_events();
    cpu(0, 0, 0);
    cpu(28, 1, 0);
    s = open_pmu();
    assert_int_equal(s->n_channels, 10);
    assert_int_equal(n_opened, 10);
    for (size_t i = 0; i < 10; i++) {
        const struct ipw_channel *c = &s->channels[i];
        assert_string_equal(c->name, want[i].name);
        assert_int_equal(c->domain, want[i].domain);
        assert_int_equal(c->scope, want[i].scope);
        assert_int_equal(c->in_sum, want[i].in_sum);
        assert_int_equal(c->kind, IPW_CHANNEL_COUNTER);
        assert_int_equal(c->modulus_uj, 0); /* 64 bits: it does not wrap */
        assert_string_equal(c->unit, "uJ");
        assert_int_equal(opened[i].type, 9);
        assert_int_equal(opened[i].config, want[i].config);
        assert_int_equal(opened[i].cpu, want[i].cpu);
    }
    assert_string_equal(s->channels[8].device, "power/energy-ram cpu28");
    assert_string_equal(s->note, "");
    s->close(s);
}

/* Counts of 2^-32 J; nothing is lost at the far end of 63 bits. */
static void test_01_counts_to_microjoules(void **state)
{
    static const struct {
        uint64_t count;
        int64_t uj;
    } cases[] = {
        {0, 0},
        {UINT64_C(1) << 32, 1000000},
        {(UINT64_C(1) << 32) - 1, 999999},
        {(UINT64_C(1) << 32) * 262143 + 4295, INT64_C(262143000001)}, /* 1.00001 uJ more */
        {UINT64_C(0x7fffffff00000000), INT64_C(2147483647000000)},
        {UINT64_C(0x8000000000000000), IPW_NO_VALUE},
        {UINT64_MAX, IPW_NO_VALUE},
    };
    struct ipw_source *s;
    int64_t v;

    (void)state;
    pmu("0\n");
    event("pkg", "event=0x02\n");
    cpu(0, 0, 0);
    s = open_pmu();
    assert_int_equal(s->n_channels, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        count(0, cases[i].count);
        s->read(s, &v);
        if (v != cases[i].uj) fail_msg("case %zu: %lld", i, (long long)v);
    }
    s->read(s, &v); /* nothing there: EAGAIN */
    assert_true(v == IPW_NO_VALUE);
    assert_int_equal(write(opened[0].write_fd, "1234", 4), 4);
    s->read(s, &v); /* half a count */
    assert_true(v == IPW_NO_VALUE);
    close(opened[0].write_fd);
    opened[0].write_fd = -1;
    s->read(s, &v); /* the end */
    assert_true(v == IPW_NO_VALUE);
    s->close(s);
}

/* Case 21: dies of one package are named as powercap names them; without a topology, by place. */
static void test_21_names(void **state)
{
    struct ipw_source *s;

    (void)state;
    pmu("0-1,64\n");
    event("pkg", "event=0x02");
    event("ram", "event=0x03");
    cpu(0, 0, 0);
    cpu(1, 0, 1);
    cpu(64, 3, 0);
    s = open_pmu();
    assert_int_equal(s->n_channels, 6);
    assert_string_equal(s->channels[0].name, "package-0-die-0");
    assert_string_equal(s->channels[3].name, "package-0-die-1/dram");
    assert_string_equal(s->channels[4].name, "package-3");
    s->close(s);
    put("cpu/cpu1/topology/physical_package_id", "-1\n");
    s = open_pmu();
    assert_string_equal(s->channels[0].name, "package-0");
    assert_string_equal(s->channels[2].name, "package-1");
    s->close(s);
}

/* Case 15: not permitted: one line with the remedy; partly: what opens is there, without a sum. */
static void test_15_permission(void **state)
{
    static const int codes[] = {EACCES, EPERM};
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};

    (void)state;
    pmu("0,1\n");
    event("pkg", "event=0x02");
    event("ram", "event=0x03");
    for (size_t i = 0; i < 2; i++) {
        fail_errno = codes[i];
        assert_int_equal(ipw_perf_open(&s, &options, "perf", &err), IPW_EPERM);
        assert_null(s);
        assert_string_equal(
            err.text, "perf power events are not permitted (kernel.perf_event_paranoid is 2): "
                      "sysctl kernel.perf_event_paranoid=0, or setcap cap_perfmon+ep on ipw-agent "
                      "(as root)");
    }
    fail_errno = ENODEV;
    fail_cpu = 1;
    fail_config = 2;
    s = open_pmu();
    assert_int_equal(s->n_channels, 3);
    assert_false(channel(s, "package-0", NULL)->in_sum);
    assert_true(channel(s, "package-0/dram", NULL)->in_sum);
    assert_true(channel(s, "package-1/dram", NULL)->in_sum);
    assert_string_equal(s->note, "no cpu energy: some events cannot be opened: No such device");
    s->close(s);
    fail_cpu = -1;
    fail_config = 0;
    assert_int_equal(ipw_perf_open(&s, &options, "perf", &err), IPW_EUNSUPPORTED);
    assert_string_equal(err.text, "perf power events cannot be opened: No such device");
}

static void refused(enum ipw_code code, const char *why)
{
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};

    assert_int_equal(ipw_perf_open(&s, &options, "perf", &err), code);
    assert_null(s);
    if (!strstr(err.text, why)) fail_msg("'%s' is not in '%s'", why, err.text);
    assert_int_equal(ipw_perf_open(&s, &options, "perf", NULL), code);
}

static void test_14_nothing_there(void **state)
{
    (void)state;
    refused(IPW_EUNSUPPORTED, "no power PMU");
    put("devices/power/type", "nine\n");
    refused(IPW_EPARSE, "power/type: not a number");
    put("devices/power/type", "9\n");
    refused(IPW_EPARSE, "power/cpumask: not a list of processors");
    put("devices/power/cpumask", "0-\n");
    refused(IPW_EPARSE, "power/cpumask: not a list of processors");
    put("devices/power/cpumask", "0\n");
    refused(IPW_EUNSUPPORTED, "no energy events in "); /* as virtual machines have it */
    event("pkg", "event=0x02,umask=0x1");
    refused(IPW_EUNSUPPORTED, "energy-pkg is not understood");
    event("pkg", "event=0x02");
    put("devices/power/events/energy-pkg.unit", "Watts\n");
    refused(IPW_EUNSUPPORTED, "energy-pkg is not understood");
    put("devices/power/events/energy-pkg.unit", "Joules\n");
    put("devices/power/events/energy-pkg.scale", "-1\n");
    refused(IPW_EUNSUPPORTED, "energy-pkg is not understood");
    put("devices/power/events/energy-pkg.scale", "nan\n");
    refused(IPW_EUNSUPPORTED, "energy-pkg is not understood");
    put("devices/power/events/energy-pkg.scale", "0.001\n");
    put("devices/power/events/energy-ram", "event=\n");
    {
        struct ipw_source *s = open_pmu();
        assert_int_equal(s->n_channels, 1);
        assert_string_equal(s->note, "energy-ram is not understood, so it is left out");
        count(0, 7);
        assert_int_equal(value(s, "package-0"), 7000);
        s->close(s);
    }
}

static void test_50_cpu_lists(void **state)
{
    static const struct {
        const char *text;
        int n, first, last;
    } cases[] = {
        {"0", 1, 0, 0},        {"0,28", 2, 0, 28},  {"0-3", 4, 0, 3},
        {"0-1,8", 3, 0, 8},    {"7-7", 1, 7, 7},    {"65535", 1, 65535, 65535},
        {"", -1, 0, 0},        {",", -1, 0, 0},     {"0,", -1, 0, 0},
        {"3-1", -1, 0, 0},     {"-1", -1, 0, 0},    {"0-", -1, 0, 0},
        {"a", -1, 0, 0},       {"0 1", -1, 0, 0},   {"65536", -1, 0, 0},
        {"0-99999", -1, 0, 0}, {"0-300", -1, 0, 0}, {"99999999999999999999", -1, 0, 0},
    };
    uint64_t seed = 50;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int cpus[256];
        int n = ipw_perf_parse_cpus(cpus, 256, cases[i].text);
        if (n != cases[i].n) fail_msg("'%s': %d", cases[i].text, n);
        if (n < 0) continue;
        assert_int_equal(cpus[0], cases[i].first);
        assert_int_equal(cpus[n - 1], cases[i].last);
    }
    for (int i = 0; i < 20000; i++) {
        static const char alphabet[] = "0123456789,-x \n";
        int cpus[8];
        char text[24] = "";
        size_t len = test_random(&seed) % sizeof text;
        int n;
        for (size_t k = 0; k + 1 < len; k++) {
            text[k] = alphabet[test_random(&seed) % (sizeof alphabet - 1)];
        }
        n = ipw_perf_parse_cpus(cpus, 8, text);
        assert_true(n == -1 || (n >= 1 && n <= 8));
    }
}

static void test_50_configs(void **state)
{
    static const struct {
        const char *event, *format;
        bool good;
        uint64_t config;
    } cases[] = {
        {"event=0x02", "config:0-7", true, 2},
        {"event=0xff", "config:0-7", true, 255},
        {"event=3", "config:0-7", true, 3},
        {"event=0x02", "config:8-15", true, 0x200},
        {"event=1", "config:63", true, UINT64_C(1) << 63},
        {"event=0xffffffffffffffff", "config:0-63", true, UINT64_MAX},
        {"event=0x100", "config:0-7", false, 0},
        {"event=2", "config:63", false, 0},
        {"event=", "config:0-7", false, 0},
        {"event=0x", "config:0-7", false, 0},
        {"event=0x02,inv", "config:0-7", false, 0},
        {"event=-2", "config:0-7", false, 0},
        {"event= 2", "config:0-7", false, 0},
        {"umask=2", "config:0-7", false, 0},
        {"", "config:0-7", false, 0},
        {"event=2", "config1:0-7", false, 0},
        {"event=2", "config:7-0", false, 0},
        {"event=2", "config:0-64", false, 0},
        {"event=2", "config:0-7,32-35", false, 0},
        {"event=2", "config:", false, 0},
        {"event=2", "", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t config = 0;
        bool good = ipw_perf_parse_config(&config, cases[i].event, cases[i].format);
        if (good != cases[i].good) fail_msg("'%s' '%s'", cases[i].event, cases[i].format);
        if (good && config != cases[i].config) fail_msg("'%s' gives %#lx", cases[i].event, config);
    }
}

/* The real call is made and refused, or there is no such PMU here: one of our codes, no crash. */
static void test_on_this_machine(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};
    const struct ipw_source_place here = {.events = "/sys/bus/event_source/devices",
                                          .cpus = "/sys/devices/system/cpu",
                                          .proc = "/proc"};
    int rc = ipw_perf_open(&s, &here, "perf", &err);

    (void)state;
    if (rc == 0) {
        int64_t values[256 * 5];
        s->read(s, values);
        for (size_t i = 0; i < s->n_channels; i++) {
            assert_true(values[i] >= 0 || values[i] == IPW_NO_VALUE);
        }
        s->close(s);
        return;
    }
    assert_true(rc == IPW_EUNSUPPORTED || rc == IPW_EPERM);
    assert_true(err.text[0]);
}

/* An event whose unit or scale is not understood is left out, never read at a guessed scale. */
static void test_odd_events(void **state)
{
    static const struct {
        const char *file, *text;
    } odd[] = {
        {"energy-pkg", "event=0xzz"},    {"energy-pkg", "event=0X1ffffffffffffffff"},
        {"energy-pkg", "umask=0x02"},    {"energy-pkg.unit", "Watts"},
        {"energy-pkg.unit", ""},         {"energy-pkg.scale", ""},
        {"energy-pkg.scale", "a scale"}, {"energy-pkg.scale", "nan"},
        {"energy-pkg.scale", "0"},       {"energy-pkg.scale", "1e9"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct ipw_source *s;
        char file[96];

        pmu("0\n");
        cpu(0, 0, 0);
        event("pkg", "event=0x02");
        s = open_pmu(); /* with the event as it should be */
        s->close(s);
        snprintf(file, sizeof file, "devices/power/events/%s", odd[i].file);
        put(file, odd[i].text);
        refused(IPW_EUNSUPPORTED, "no energy events in ");
    }
    put("devices/power/type", "4294967296\n");
    refused(IPW_EPARSE, "power/type: not a number");
}

UNIT(perf)
{
#undef WITH_TREE
#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_17_two_sockets),    WITH_TREE(test_01_counts_to_microjoules),
        WITH_TREE(test_21_names),          WITH_TREE(test_15_permission),
        WITH_TREE(test_14_nothing_there),  cmocka_unit_test(test_50_cpu_lists),
        cmocka_unit_test(test_50_configs), cmocka_unit_test(test_on_this_machine),
        WITH_TREE(test_odd_events),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
