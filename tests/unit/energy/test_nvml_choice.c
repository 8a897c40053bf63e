/* Which devices the NVML source takes, what it says of them besides their energy, and which it
 * lets sleep; against the stand-in library (tests/fake/nvml/stub_nvml.c). */
#include <dlfcn.h>

#include "energy/sources/nvml.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

#define STUB IPW_BINARY_DIR "/tests/fake/libnvidia-ml-stub.so"

/* Three boards; CUDA would call the H100 its device 0. */
#define THREE                                                                                      \
    "device GPU-aaaa1111-0000-0000-0000-000000000001 T400 31000\n"                                 \
    "energy 0 counter watts=0 start_mj=1\nbus 0 00000000:01:00.0\n"                                \
    "device GPU-bbbb2222-0000-0000-0000-000000000002 H100 700000\n"                                \
    "energy 1 counter watts=0 start_mj=2\nbus 1 00000000:41:00.0\n"                                \
    "device GPU-bbbb3333-0000-0000-0000-000000000003 H100 700000\n"                                \
    "energy 2 counter watts=0 start_mj=3\nbus 2 00000002:C1:00.0\n"

static char pci_root[128];
static int64_t clock_ns;
static void *stub; /* held through a test, so that it keeps its numbers */

static int64_t now(void) { return clock_ns; }

static int setup(void **state)
{
    if (tree_setup(state)) return 1;
    snprintf(pci_root, sizeof pci_root, "%s/pci", tree_root);
    clock_ns = S(1000);
    stub = dlopen(STUB, RTLD_NOW | RTLD_LOCAL);
    return !stub;
}

static int teardown(void **state)
{
    dlclose(stub);
    return tree_teardown(state);
}

static void tell(const char *text)
{
    put("script", text);
    assert_int_equal(setenv("IPW_STUB_NVML", tree_path("script"), 1), 0);
}

static int open_rc(struct ipw_source **s, const char *gpus, bool metrics, struct ipw_err *err)
{
    const struct ipw_source_place o = {
        .nvml = STUB, .gpus = gpus, .pci = pci_root, .no_metrics = !metrics, .now = now};

    return ipw_nvml_open(s, &o, "nvml", err);
}

static struct ipw_source *open_gpus(const char *gpus, bool metrics)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    if (open_rc(&s, gpus, metrics, &err)) fail_msg("%s", err.text);
    return s;
}

static void refused(const char *gpus, enum ipw_code code, const char *why)
{
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};

    assert_int_equal(open_rc(&s, gpus, false, &err), code);
    assert_null(s);
    if (!strstr(err.text, why)) fail_msg("'%s' is not in '%s'", why, err.text);
    assert_null(strchr(err.text, '\n'));
}

/* A number that the stand-in keeps. */
static long ask_stub(const char *function)
{
    void *symbol = dlsym(stub, function);
    long (*ask)(void) = NULL;

    assert_non_null(symbol);
    memcpy(&ask, &symbol, sizeof symbol);
    return ask();
}

/* Case 19: the list names devices for certain; the library's order and CUDA's do not matter. */
static void test_19_selection(void **state)
{
    static const struct {
        const char *gpus, *names;
        int64_t first_uj;
    } cases[] = {
        {NULL, "gpu0 gpu1 gpu2 ", 1000},
        {"", "gpu0 gpu1 gpu2 ", 1000},
        {"GPU-bbbb3333-0000-0000-0000-000000000003,GPU-bbbb2222-0000-0000-0000-000000000002",
         "gpu1 gpu2 ", 2000},
        {"GPU-bbbb3333-0000-0000-0000-000000000003", "gpu2 ", 3000},
        {"gpu-BBBB3333", "gpu2 ", 3000},
        {"GPU-bbbb", "gpu1 gpu2 ", 2000},
        {"0", "gpu0 ", 1000},
        {" 2 , 0,", "gpu0 gpu2 ", 1000},
        {"41:00.0", "gpu1 ", 2000},
        {"0000:41:00.0", "gpu1 ", 2000},
        {"00000002:c1:00.0", "gpu2 ", 3000},
        {"0002:C1:00.0,1,GPU-bbbb2222", "gpu1 gpu2 ", 2000},
    };

    (void)state;
    tell(THREE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_source *s = open_gpus(cases[i].gpus, false);
        char names[100] = "";
        int64_t v[3];

        for (size_t k = 0; k < s->n_channels; k++) {
            strcat(names, s->channels[k].name);
            strcat(names, " ");
        }
        if (strcmp(names, cases[i].names)) fail_msg("'%s' gives %s", cases[i].gpus, names);
        s->read(s, v);
        assert_int_equal(v[0], cases[i].first_uj);
        s->close(s);
    }
}

static void test_19_not_there(void **state)
{
    static const char *const words[] = {
        "3",    "GPU-cccc",     "GPU-", "42:00.0", "C1:00.0",
        "H100", "0001:41:00.0", "-1",   "41:00.8", "GPU-bbbb2222-0000-0000-0000-0000000000021"};
    struct ipw_source *s;

    (void)state;
    tell(THREE);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char gpus[100], why[120];
        snprintf(gpus, sizeof gpus, "0,%s", words[i]);
        snprintf(why, sizeof why,
                 "no GPU '%s': there is 0 GPU-aaaa1111-0000-0000-0000-000000000001 "
                 "00000000:01:00.0, 1 ",
                 words[i]);
        refused(gpus, IPW_ENOTFOUND, why);
    }
    tell("");
    refused("0", IPW_ENOTFOUND, "no GPU '0': there is none");
    tell("device GPU-a H100 1\nfail 0 handle 4\n");
    refused("0", IPW_ENOTFOUND, "there is none; gpu0 not counted: no permission (4)");
    tell("device GPU-a H100 1\nfail 0 handle 15\n"); /* lost, but known to be there */
    refused("GPU-a", IPW_ENOTFOUND, "there is 0  ; gpu0: GPU is lost (15)");
    s = open_gpus("0", false);
    s->close(s);
}

/* Case 20: slices have no reading of their own: the whole is counted, and it is said. */
static void test_20_mig(void **state)
{
    struct ipw_source *s;

    (void)state;
    tell(THREE "mig 1\n");
    s = open_gpus(NULL, false);
    assert_string_equal(s->note, "gpu1: MIG: whole GPU");
    assert_false(s->channels[0].whole_gpu);
    assert_true(s->channels[1].whole_gpu);
    assert_string_equal(s->channels[1].device,
                        "GPU-bbbb2222-0000-0000-0000-000000000002 MIG: whole GPU");
    assert_true(s->channels[1].in_sum);
    s->close(s);
    /* A slice's UUID chooses its device, in both spellings there are. */
    s = open_gpus("MIG-GPU-bbbb2222-0000-0000-0000-000000000002", false);
    assert_int_equal(s->n_channels, 1);
    assert_string_equal(s->channels[0].name, "gpu1");
    s->close(s);
    s = open_gpus("MIG-GPU-bbbb3333-0000-0000-0000-000000000003/1/0", false);
    assert_string_equal(s->channels[0].name, "gpu2");
    s->close(s);
    refused("MIG-8d5b1f6e", IPW_ENOTFOUND, "no GPU 'MIG-8d5b1f6e'");
    tell("device 8d5b1f6e H100 700000\nenergy 0 counter watts=1\nmig 0\n");
    s = open_gpus("MIG-8d5b1f6e", false); /* resolved by the library */
    assert_string_equal(s->channels[0].name, "gpu0");
    s->close(s);
}

static void test_17_grace_hopper_counts_the_module(void **state)
{
    struct ipw_source *s;

    (void)state;
    tell("device GPU-a NVIDIA_GH200_480GB 700000\nenergy 0 counter watts=1\n");
    s = open_gpus(NULL, false);
    assert_int_equal(s->channels[0].scope, IPW_SCOPE_MODULE);
    s->close(s);
    tell("device GPU-a NVIDIA_H200 700000\nenergy 0 counter watts=1\n");
    s = open_gpus(NULL, false);
    assert_int_equal(s->channels[0].scope, IPW_SCOPE_DEVICE);
    s->close(s);
}

static void test_metrics(void **state)
{
    static const struct {
        const char *name, *unit;
        int64_t value;
    } want[] = {
        {"gpu0/util", "pct", 87000},
        {"gpu0/mem_util", "pct", 12000},
        {"gpu0/mem_used", "bytes", INT64_C(70000000000000)},
        {"gpu0/mem_total", "bytes", INT64_C(85899345920000)},
        {"gpu0/temp", "celsius", 61000},
    };
    struct ipw_source *s;

    (void)state;
    tell("device GPU-a H100 700000\nenergy 0 counter watts=1\nutil 0 gpu=87 memory=12\n"
         "memory 0 used=70000000000 total=85899345920\ntemperature 0 61\n");
    s = open_gpus(NULL, true);
    assert_int_equal(s->n_channels, 6);
    for (size_t i = 0; i < 5; i++) {
        const struct ipw_channel *c = channel(s, want[i].name, NULL);
        assert_int_equal(c->kind, IPW_CHANNEL_METRIC);
        assert_string_equal(c->unit, want[i].unit);
        assert_false(c->in_sum);
        assert_int_equal(value(s, want[i].name), want[i].value);
    }
    s->close(s);
    s = open_gpus(NULL, false);
    assert_int_equal(s->n_channels, 1);
    s->close(s);
}

/* What a device does not tell is no channel; what it stops telling is no value; between two looks
 * the last value stands, and a reading never asks for more than one metric. */
static void test_metrics_in_turn(void **state)
{
    struct ipw_source *s;
    int64_t v[5];
    long before;

    (void)state;
    tell("device GPU-a H100 700000\nenergy 0 counter watts=1\nutil 0 gpu=150 memory=100\n"
         "temperature 0 61\nfail 0 metrics 999 after_reads=5\n");
    s = open_gpus(NULL, true);
    assert_int_equal(s->n_channels, 4);
    for (int i = 0; i < 20; i++) {
        before = ask_stub("stub_nvml_total");
        clock_ns += S(0.02);
        s->read(s, v);
        assert_in_range(ask_stub("stub_nvml_total") - before, 1, 2); /* energy, and a metric */
        if (i == 0) {
            assert_true(v[1] == IPW_NO_VALUE); /* 150 % is none */
            assert_int_equal(v[2], 100000);
            assert_int_equal(v[3], 61000);
        }
    }
    assert_true(v[1] == IPW_NO_VALUE && v[2] == IPW_NO_VALUE && v[3] == IPW_NO_VALUE);
    assert_true(v[0] > 0);
    s->close(s);
}

static void test_processes(void **state)
{
    struct ipw_gpu_process *list;
    struct ipw_err err = {0};
    struct ipw_source *s;
    char script[8192] = THREE "process 1 4242 1000000\nprocess 1 4243 -1\n";
    size_t n;

    (void)state;
    tell(script);
    s = open_gpus(NULL, false);
    assert_int_equal(ipw_nvml_processes(&list, &n, s, &err), 0);
    assert_int_equal(n, 2);
    assert_string_equal(list[0].channel, "gpu1");
    assert_int_equal(list[0].pid, 4242);
    assert_int_equal(list[0].bytes, 1000000);
    assert_int_equal(list[1].pid, 4243);
    assert_int_equal(list[1].bytes, -1);
    free(list);
    s->close(s);
    s = open_gpus("0", false); /* of the chosen devices only */
    assert_int_equal(ipw_nvml_processes(&list, &n, s, &err), 0);
    assert_int_equal(n, 0);
    assert_null(list);
    s->close(s);
    for (int i = 0; i < 120; i++) { /* more than there was room for at first */
        size_t at = strlen(script);
        snprintf(script + at, sizeof script - at, "process 0 %d 5\n", 1000 + i);
    }
    tell(script);
    s = open_gpus(NULL, false);
    assert_int_equal(ipw_nvml_processes(&list, &n, s, &err), 0);
    assert_int_equal(n, 122);
    assert_int_equal(list[119].pid, 1119);
    free(list);
    s->close(s);
    for (int length = 16; length <= 32; length += 8) { /* what a record is differs */
        snprintf(script, sizeof script,
                 THREE "record 0 %d\nprocess 0 7 70\nprocess 0 8 80\nprocess 0 9 -1\n", length);
        tell(script);
        s = open_gpus(NULL, false);
        assert_int_equal(ipw_nvml_processes(&list, &n, s, &err), 0);
        assert_int_equal(n, 3);
        for (size_t i = 0; i < 3; i++) assert_int_equal(list[i].pid, 7 + i);
        assert_int_equal(list[1].bytes, 80);
        assert_int_equal(list[2].bytes, -1);
        free(list);
        s->close(s);
    }
    for (int code = 1; code <= 30; code++) { /* case 50 */
        snprintf(script, sizeof script, THREE "process 0 1 1\nfail 1 metrics %d\n", code);
        tell(script);
        s = open_gpus(NULL, false);
        assert_true(ipw_nvml_processes(&list, &n, s, &err) < 0);
        assert_null(list);
        assert_int_equal(n, 0);
        assert_non_null(strstr(err.text, "nvml: processes of gpu1: "));
        s->close(s);
    }
}

static void pci(const char *bus, const char *vendor, const char *class_, const char *status)
{
    char file[128];

    snprintf(file, sizeof file, "pci/%s/vendor", bus);
    put(file, vendor);
    snprintf(file, sizeof file, "pci/%s/class", bus);
    put(file, class_);
    snprintf(file, sizeof file, "pci/%s/power/runtime_status", bus);
    put(file, status);
}

/* Case 46: a laptop's GPU that sleeps is not woken: not one call reaches the library. */
static void test_46_asleep(void **state)
{
    long before = ask_stub("stub_nvml_total");
    struct ipw_source *s;

    (void)state;
    tell("device GPU-a RTX_4060 115000\nenergy 0 counter watts=1\nbus 0 00000000:01:00.0\n");
    pci("0000:00:02.0", "0x8086\n", "0x030000\n", "active\n");
    pci("0000:01:00.0", "0x10de\n", "0x030000\n", "suspended\n");
    pci("0000:01:00.1", "0x10de\n", "0x040300\n", "active\n"); /* its sound */
    refused(NULL, IPW_EUNSUPPORTED,
            "the GPU at 0000:01:00.0 sleeps (runtime_status suspended) and is not woken");
    refused("0", IPW_EUNSUPPORTED, "0000:01:00.0 sleeps");
    refused("GPU-a", IPW_EUNSUPPORTED, "0000:01:00.0 sleeps");
    assert_int_equal(ask_stub("stub_nvml_total"), before);
    put("pci/0000:01:00.0/power/runtime_status", "active\n");
    s = open_gpus(NULL, false);
    assert_int_equal(s->n_channels, 1);
    s->close(s);
    assert_true(ask_stub("stub_nvml_total") > before);
}

/* Of two, the one that is awake is opened, and the other not even looked at. */
static void test_46_one_of_two_asleep(void **state)
{
    long (*calls)(unsigned) = NULL;
    void *symbol;
    struct ipw_source *s;

    (void)state;
    tell("device GPU-a RTX_4060 115000\nenergy 0 counter watts=1\nbus 0 00000000:01:00.0\n"
         "device GPU-b RTX_4090 450000\nenergy 1 counter watts=1\nbus 1 00000000:41:00.0\n");
    pci("0000:01:00.0", "0x10de\n", "0x030200\n", "suspended\n");
    pci("0000:41:00.0", "0x10de\n", "0x030000\n", "active\n");
    s = open_gpus(NULL, false);
    assert_int_equal(s->n_channels, 1);
    assert_string_equal(s->channels[0].name, "gpu1");
    assert_string_equal(s->note, "0000:01:00.0 sleeps and is not woken");
    symbol = dlsym(stub, "stub_nvml_calls");
    memcpy(&calls, &symbol, sizeof symbol);
    assert_int_equal(calls(0), 0);
    assert_true(calls(1) > 0);
    s->close(s);
    refused("01:00.0", IPW_EUNSUPPORTED, "0000:01:00.0 sleeps");
    refused("GPU-a", IPW_ENOTFOUND, "0000:01:00.0 sleeps and is not woken");
    s = open_gpus("41:00.0", false);
    s->close(s);
}

/* One that falls asleep while it is watched: the counter rests, 0 W, and no call wakes it. */
static void test_46_falls_asleep(void **state)
{
    struct ipw_source *s;
    int64_t v[3], energy;
    long before;

    (void)state;
    tell("device GPU-a RTX_4060 115000\nenergy 0 counter watts=10\nbus 0 00000000:01:00.0\n"
         "field 0 186 1 watts=10\ntemperature 0 50\n");
    pci("0000:01:00.0", "0x10de\n", "0x030000\n", "active\n");
    s = open_gpus(NULL, true);
    assert_int_equal(s->n_channels, 3);
    clock_ns += S(0.1);
    s->read(s, v);
    energy = v[0];
    assert_true(energy > 0);
    assert_int_equal(v[1], 10000);
    put("pci/0000:01:00.0/power/runtime_status", "suspended\n");
    before = ask_stub("stub_nvml_total");
    for (int i = 0; i < 50; i++) {
        clock_ns += S(0.1);
        s->read(s, v);
        assert_int_equal(v[0], energy);
        assert_int_equal(v[1], 0);
        assert_true(v[2] == IPW_NO_VALUE);
    }
    assert_int_equal(ask_stub("stub_nvml_total"), before);
    put("pci/0000:01:00.0/power/runtime_status", "active\n");
    s->read(s, v);
    assert_true(v[0] >= energy);
    assert_int_equal(v[1], 10000);
    s->close(s);
}

UNIT(nvml_choice)
{
#undef WITH_TREE
#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_19_selection),
        WITH_TREE(test_19_not_there),
        WITH_TREE(test_20_mig),
        WITH_TREE(test_17_grace_hopper_counts_the_module),
        WITH_TREE(test_metrics),
        WITH_TREE(test_metrics_in_turn),
        WITH_TREE(test_processes),
        WITH_TREE(test_46_asleep),
        WITH_TREE(test_46_one_of_two_asleep),
        WITH_TREE(test_46_falls_asleep),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
