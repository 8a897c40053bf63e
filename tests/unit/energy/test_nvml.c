/* The NVML source against the stand-in library (tests/fake/nvml/stub_nvml.c says what it can be
 * told). */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "energy/sources/nvml.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define STUB       IPW_BINARY_DIR "/tests/fake/libnvidia-ml-stub.so"
#define INCOMPLETE IPW_BINARY_DIR "/tests/fake/libnvidia-ml-incomplete.so"

#define NOWHERE "/nonexistent/pci"

static char script[64];
static int64_t clock_ns;

static int64_t now(void) { return clock_ns; }

static void tell(const char *text)
{
    FILE *f = fopen(script, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(setenv("IPW_STUB_NVML", script, 1), 0);
}

static int make_script(void **state)
{
    int fd;

    (void)state;
    snprintf(script, sizeof script, "/tmp/ipw-nvml-XXXXXX");
    fd = mkstemp(script);
    return fd < 0 || close(fd);
}

static int drop_script(void **state)
{
    (void)state;
    return unlink(script);
}

static struct ipw_source *open_stub(const char *text)
{
    struct ipw_source *s;
    struct ipw_err err = {0};
    const struct ipw_source_place options = {
        .nvml = STUB, .pci = NOWHERE, .now = now, .no_metrics = true};

    clock_ns = S(1000);
    tell(text);
    if (ipw_nvml_open(&s, &options, "nvml", &err)) fail_msg("%s", err.text);
    assert_string_equal(s->name, "nvml");
    return s;
}

/* Reads after so much time. */
static void read_after(struct ipw_source *s, double seconds, int64_t *values)
{
    clock_ns += S(seconds);
    s->read(s, values);
}

static void refused(const char *text, enum ipw_code code, const char *why)
{
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};

    tell(text);
    assert_int_equal(
        ipw_nvml_open(&s,
                      &(struct ipw_source_place){.pci = NOWHERE, .no_metrics = true, .nvml = STUB},
                      "nvml", &err),
        code);
    assert_null(s);
    if (!strstr(err.text, why)) fail_msg("'%s' is not in '%s'", why, err.text);
    assert_null(strchr(err.text, '\n'));
}

/* How often the stand-in was asked about a device: a second handle on the same library. */
static long calls(unsigned device)
{
    void *library = dlopen(STUB, RTLD_NOW | RTLD_LOCAL), *symbol;
    long (*ask)(unsigned) = NULL, n;

    assert_non_null(library);
    symbol = dlsym(library, "stub_nvml_calls");
    assert_non_null(symbol);
    memcpy(&ask, &symbol, sizeof symbol);
    n = ask(device);
    dlclose(library);
    return n;
}

static void test_energy_with_power_beside(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa NVIDIA_H100_80GB 700000\n"
                                     "energy 0 counter watts=300 start_mj=5000000\n"
                                     "power 0 gauge watts=321.5\n"
                                     "device GPU-bbbb NVIDIA_H100_80GB 300000 700000\n"
                                     "energy 1 counter watts=0 start_mj=7\n");
    int64_t v[3];

    (void)state;
    assert_int_equal(s->n_channels, 3);
    assert_string_equal(s->channels[0].name, "gpu0");
    assert_string_equal(s->channels[0].device, "GPU-aaaa NVIDIA H100 80GB");
    assert_int_equal(s->channels[0].domain, IPW_DOMAIN_GPU);
    assert_int_equal(s->channels[0].kind, IPW_CHANNEL_COUNTER);
    assert_true(s->channels[0].in_sum);
    assert_int_equal(s->channels[0].modulus_uj, 0);
    assert_int_equal(s->channels[0].max_w, 910);
    assert_string_equal(s->channels[1].name, "gpu0/power");
    assert_int_equal(s->channels[1].kind, IPW_CHANNEL_GAUGE);
    assert_false(s->channels[1].in_sum);
    assert_string_equal(s->channels[2].name, "gpu1");
    assert_int_equal(s->channels[2].max_w, 910); /* set to 300 W, but it can be set to 700 */
    assert_string_equal(s->note, "");
    assert_int_equal(s->period_ns, 20000000);
    read_after(s, 0.1, v);
    assert_true(v[0] >= INT64_C(5000000000));
    assert_int_equal(v[0] % 30000000, INT64_C(5000000000) % 30000000); /* steps of 100 ms */
    assert_int_equal(v[1], 321500);
    assert_int_equal(v[2], 7000);
    s->close(s);
}

/* Without an energy counter the power is what there is, and it is said. */
static void test_power_only(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa Tesla_P100 250000\n"
                                     "power 0 gauge watts=100\n"
                                     "device GPU-bbbb vGPU 0\n");
    int64_t v;

    (void)state;
    assert_int_equal(s->n_channels, 1);
    assert_string_equal(s->channels[0].name, "gpu0");
    assert_int_equal(s->channels[0].kind, IPW_CHANNEL_GAUGE);
    assert_true(s->channels[0].in_sum);
    assert_string_equal(s->note,
                        "gpu0: energy not supported (3), power is integrated instead; gpu1 not "
                        "counted: energy not supported (3), power not supported (3)");
    read_after(s, 0.1, &v);
    assert_int_equal(v, 100000);
    s->close(s);
}

/* A gauge that says 0 W of a board that is awake has no reading, beside a counter and without. */
static void test_zero_watts(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=300\n"
                                     "power 0 gauge watts=0\n"
                                     "device GPU-bbbb P100 250000\n"
                                     "power 1 gauge watts=0\n");
    int64_t v[3];

    (void)state;
    assert_int_equal(s->n_channels, 3);
    for (int i = 0; i < 3; i++) {
        read_after(s, 0.1, v);
        assert_true(v[0] > 0);
        assert_true(v[1] == IPW_NO_VALUE);
        assert_true(v[2] == IPW_NO_VALUE);
    }
    assert_non_null(strstr(s->note, "gpu1: ignored 0 W while awake"));
    assert_non_null(strstr(s->note, "gpu0: ignored 0 W while awake"));
    s->close(s);
}

/* "Not supported" once is not "not supported" always. */
static void test_energy_that_is_shy(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=300\n"
                                     "fail 0 energy 3 times=2\n");

    (void)state;
    assert_int_equal(s->channels[0].kind, IPW_CHANNEL_COUNTER);
    s->close(s);
}

/* Case 13: a lost GPU is asked again only after 1 s, 2 s, 4 s ... 64 s; the others go on. */
static void test_13_lost(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=300\n"
                                     "power 0 gauge watts=300\n"
                                     "lost 0 after_reads=8\n"
                                     "device GPU-bbbb H100 700000\n"
                                     "energy 1 counter watts=100 start_mj=1000\n");
    int64_t v[3];
    long before;

    (void)state;
    for (int i = 0; i < 2; i++) { /* four calls when it was opened, and four here */
        read_after(s, 0.1, v);
        assert_true(v[0] > 0 && v[1] == 300000 && v[2] > 0);
        assert_true(!s->lost[0] && !s->lost[1] && !s->lost[2]);
    }
    read_after(s, 0.1, v);
    assert_true(v[0] == IPW_NO_VALUE && v[1] == IPW_NO_VALUE && v[2] > 0);
    assert_true(s->lost[0] && s->lost[1] && !s->lost[2]);
    assert_string_equal(s->note, "gpu0: GPU is lost (15)"); /* once, however often it is asked */
    before = calls(0);
    assert_int_equal(before, 9); /* the power was not even asked for */
    for (int i = 0; i < 99; i++) read_after(s, 0.01, v);
    assert_true(v[0] == IPW_NO_VALUE && v[2] > 0);
    assert_int_equal(calls(0), before);                      /* 0.99 s later */
    for (int i = 0; i < 100000; i++) read_after(s, 0.01, v); /* 1000 s */
    assert_true(v[0] == IPW_NO_VALUE && v[2] > 0);
    /* 1 2 4 8 16 32 64 and then every 64 s */
    assert_in_range(calls(0) - before, 18, 22);
    assert_true(s->lost[0] && s->lost[1] && !s->lost[2]);
    assert_string_equal(s->note, "gpu0: GPU is lost (15)");
    s->close(s);
}

/* Lost between its energy and its power: the loss shows in a reading without a value before the
 * device is asked again, however long that is in coming. */
static void test_13_lost_within_a_reading(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=300\n"
                                     "power 0 gauge watts=300\n"
                                     "lost 0 after_reads=5\n");
    int64_t v[2];

    (void)state;
    read_after(s, 0.1, v);
    assert_true(v[0] > 0 && v[1] == IPW_NO_VALUE);
    tell("device GPU-aaaa H100 700000\nenergy 0 counter watts=300\npower 0 gauge watts=300\n");
    read_after(s, 10, v); /* its back-off is over */
    assert_true(v[0] == IPW_NO_VALUE && v[1] == IPW_NO_VALUE && s->lost[0] && s->lost[1]);
    read_after(s, 0.1, v);
    assert_true(v[0] > 0 && v[1] == 300000 && !s->lost[0] && !s->lost[1]);
    s->close(s);
}

/* One that is lost already has a place in the sum, without a value: the others do not pass for all.
 * When it comes back it is read.  One that may not be asked is somebody else's and has none. */
static void test_13_lost_when_opened(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=300 start_mj=5\n"
                                     "device GPU-bbbb H100 700000\n"
                                     "energy 1 counter watts=0 start_mj=7\n"
                                     "fail 1 handle 15 times=1\n"
                                     "device GPU-cccc H100 700000\n"
                                     "energy 2 counter watts=100\n"
                                     "fail 2 handle 4\n"
                                     "device GPU-dddd H100 700000\n"
                                     "energy 3 counter watts=100\n"
                                     "fail 3 energy 16\n");
    int64_t v[3];

    (void)state;
    assert_int_equal(s->n_channels, 3);
    assert_string_equal(s->channels[1].name, "gpu1");
    assert_string_equal(s->channels[2].name, "gpu3");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s->channels[i].kind, IPW_CHANNEL_COUNTER);
        assert_true(s->channels[i].in_sum);
    }
    assert_string_equal(s->note, "gpu1: GPU is lost (15); gpu2 not counted: no permission (4); "
                                 "gpu3: reset required (16)");
    read_after(s, 0.1, v);
    assert_true(v[0] > 0 && v[1] == IPW_NO_VALUE && v[2] == IPW_NO_VALUE);
    assert_true(!s->lost[0] && s->lost[1] && s->lost[2]);
    read_after(s, 1, v); /* found by its index: nothing else is known of it */
    assert_int_equal(v[1], 7000);
    assert_true(v[2] == IPW_NO_VALUE && !s->lost[1] && s->lost[2]);
    s->close(s);
}

/* When all of them are lost there is still something that could be read. */
static void test_13_all_lost_when_opened(void **state)
{
    struct ipw_source *s = open_stub("device A B 1\nfail 0 handle 15\n");
    int64_t v;

    (void)state;
    assert_int_equal(s->n_channels, 1);
    assert_string_equal(s->note, "gpu0: GPU is lost (15)");
    read_after(s, 0.1, &v);
    assert_true(v == IPW_NO_VALUE && s->lost[0]);
    s->close(s);
}

/* The driver is reloaded while we watch: all handles die, and the device is found again by its
 * UUID, at another place, its counter starting anew. */
static void test_13_06_driver_reloaded(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=0 start_mj=5000\n"
                                     "lost 0 after_reads=7\n");
    int64_t v;

    (void)state;
    assert_int_equal(s->n_channels, 1);
    read_after(s, 0.1, &v);
    assert_int_equal(v, 5000000);
    tell("init 9\n"); /* unloaded */
    read_after(s, 0.1, &v);
    assert_true(v == IPW_NO_VALUE);
    read_after(s, 1.0, &v);
    assert_true(v == IPW_NO_VALUE);
    tell("device GPU-zzzz H100 700000\ndevice GPU-aaaa H100 700000\n"
         "energy 0 counter watts=0 start_mj=77\nenergy 1 counter watts=0 start_mj=3\n");
    read_after(s, 1.9, &v); /* not before 2 s */
    assert_true(v == IPW_NO_VALUE);
    read_after(s, 0.2, &v);
    assert_int_equal(v, 3000);
    s->close(s);
}

static void link_to(const char *path, const char *library)
{
    unlink(path);
    if (library) assert_int_equal(symlink(library, path), 0);
}

/* Late reload: the driver is replaced by another version while we watch.  The library that we
 * opened never works with it; so it is opened again, with each try, until the new one is in its
 * place. */
static void test_13_14_library_replaced(void **state)
{
    static const char text[] = "device GPU-aaaa H100 700000\n"
                               "energy 0 counter watts=0 start_mj=5000\n"
                               "device GPU-bbbb H100 700000\n"
                               "energy 1 counter watts=0 start_mj=6000\n";
    char path[] = "/tmp/ipw-nvml-lib-XXXXXX", library[64];
    const struct ipw_source_place options = {
        .nvml = library, .pci = NOWHERE, .now = now, .no_metrics = true};
    struct ipw_source *s;
    struct ipw_err err = {0};
    int64_t v[2];

    (void)state;
    assert_non_null(mkdtemp(path));
    snprintf(library, sizeof library, "%s/libnvidia-ml.so.1", path);
    link_to(library, STUB);
    tell(text);
    clock_ns = S(1000);
    if (ipw_nvml_open(&s, &options, "nvml", &err)) fail_msg("%s", err.text);
    s->close(s);
    tell("device GPU-aaaa H100 700000\nenergy 0 counter watts=0 start_mj=5000\n"
         "fail 0 energy 18 after_reads=2\n"
         "device GPU-bbbb H100 700000\nenergy 1 counter watts=0 start_mj=6000\n"
         "fail 1 energy 18 after_reads=2\n");
    if (ipw_nvml_open(&s, &options, "nvml", &err)) fail_msg("%s", err.text);
    read_after(s, 0.1, v);
    assert_true(v[0] == 5000000 && v[1] == 6000000);
    read_after(s, 0.1, v); /* 18 */
    assert_true(v[0] == IPW_NO_VALUE && v[1] == IPW_NO_VALUE);
    link_to(library, NULL); /* between the old one and the new one */
    tell(text);
    read_after(s, 1.1, v);
    assert_true(v[0] == IPW_NO_VALUE && v[1] == IPW_NO_VALUE);
    link_to(library, INCOMPLETE); /* nothing that can be used */
    read_after(s, 2.1, v);
    assert_true(v[0] == IPW_NO_VALUE && v[1] == IPW_NO_VALUE);
    link_to(library, STUB);
    read_after(s, 3.9, v); /* after 1 s and 2 s comes 4 s */
    assert_true(v[0] == IPW_NO_VALUE && v[1] == IPW_NO_VALUE);
    tell("device GPU-aaaa H100 700000\nenergy 0 counter watts=0 start_mj=11\n"
         "device GPU-bbbb H100 700000\nenergy 1 counter watts=0 start_mj=12\n");
    read_after(s, 0.2, v);
    assert_true(v[0] == 11000 && v[1] == 12000); /* both, and counting from where it stands now */
    s->close(s);
    link_to(library, NULL);
    assert_int_equal(rmdir(path), 0);
}

static void test_passing_failures(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=300\n"
                                     "fail 0 energy 999 after_reads=2 times=1\n"
                                     "zero 0 after_reads=2 times=2\n");
    int64_t v;

    (void)state;
    read_after(s, 0.1, &v); /* the one at opening was the first */
    assert_true(v > 0);
    read_after(s, 0.1, &v); /* 999 */
    assert_true(v == IPW_NO_VALUE);
    for (int i = 0; i < 2; i++) {
        read_after(s, 0.1, &v);
        assert_true(v == IPW_NO_VALUE); /* 0 after a number */
    }
    read_after(s, 0.1, &v);
    assert_true(v > 0);
    s->close(s);
}

/* Case 6 from the driver's side: it starts again. */
static void test_06_reset(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=1 period_ms=1 start_mj=999999999\n"
                                     "power 0 gauge watts=1\n"
                                     "fail 0 power 999 after_reads=1\n"
                                     "energy 0 counter watts=1 period_ms=1 start_mj=999999999 "
                                     "reset_after_reads=2\n");
    int64_t v[2], t = ipw_now_ns();

    (void)state;
    read_after(s, 0.1, v);
    assert_true(v[0] >= INT64_C(999999999000));
    do { /* exactly 0 is no reading; the stand-in's first millijoule is due in a millisecond */
        read_after(s, 0.1, v);
    } while (v[0] == IPW_NO_VALUE && ipw_now_ns() - t < S(60));
    assert_true(v[0] > 0 && v[0] < INT64_C(60000000));
    s->close(s);
}

/* Case 14. */
static void test_14_absent(void **state)
{
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(
        ipw_nvml_open(&s,
                      &(struct ipw_source_place){.pci = NOWHERE,
                                                 .no_metrics = true,
                                                 .nvml = "/nonexistent/libnvidia-ml.so.1"},
                      "nvml", &err),
        IPW_EUNSUPPORTED);
    assert_null(s);
    assert_non_null(strstr(err.text, "/nonexistent/libnvidia-ml.so.1"));
    assert_int_equal(
        ipw_nvml_open(
            &s, &(struct ipw_source_place){.pci = NOWHERE, .no_metrics = true, .nvml = INCOMPLETE},
            "nvml", &err),
        IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "it has no nvmlDeviceGetCount_v2"));
    refused("init 9\n", IPW_EUNSUPPORTED, "nvmlInit_v2: driver not loaded (9): modprobe nvidia");
    refused("init 18\n", IPW_EUNSUPPORTED,
            "nvmlInit_v2: library and driver versions differ (18): reload the nvidia module");
    refused("init 4\n", IPW_EPERM, "nvmlInit_v2: no permission (4)");
    refused("init 12345\n", IPW_EUNSUPPORTED, "nvmlInit_v2: unlisted error (12345)");
    refused("count 999\n", IPW_EUNSUPPORTED, "nvmlDeviceGetCount_v2: unknown error (999)");
    refused("", IPW_EUNSUPPORTED, "no device with an energy or power reading");
    refused("device A B 1\nfail 0 handle 4\n", IPW_EUNSUPPORTED,
            "gpu0 not counted: no permission (4)");
}

/* Power beside a counter is asked for as often as it moves, energy always. */
static void test_42_calls_a_second(void **state)
{
    struct ipw_source *s = open_stub("device GPU-aaaa H100 700000\n"
                                     "energy 0 counter watts=300\n"
                                     "field 0 186 1 watts=250.5\n");
    int64_t v[2];
    long before = calls(0);

    (void)state;
    assert_string_equal(s->channels[1].method, "field 186 (instant)");
    for (int i = 0; i < 50; i++) {
        read_after(s, 0.02, v);
        assert_true(v[0] > 0);
        assert_int_equal(v[1], 250500);
    }
    assert_int_equal(calls(0) - before, 50 + 10);
    s->close(s);
}

/* Instant, else average, else what nvidia-smi shows; in whatever type the driver answers. */
static void test_power_fields(void **state)
{
    static const struct {
        const char *lines, *method;
        int64_t mw;
    } cases[] = {
        {"field 0 185 1 watts=100\nfield 0 186 1 watts=120\npower 0 gauge watts=90\n",
         "field 186 (instant)", 120000},
        {"field 0 185 1 watts=100\npower 0 gauge watts=90\n", "field 185 (average)", 100000},
        {"power 0 gauge watts=90\n", "nvmlDeviceGetPowerUsage", 90000},
        {"field 0 186 0 watts=120\n", "field 186 (instant)", 120000},
        {"field 0 186 2 watts=120\n", "field 186 (instant)", 120000},
        {"field 0 186 3 watts=120\n", "field 186 (instant)", 120000},
        {"field 0 186 4 watts=120\n", "field 186 (instant)", 120000},
        {"field 0 186 5 watts=120\n", "field 186 (instant)", 120000},
        {"field 0 186 6 watts=60\n", "field 186 (instant)", 60000},
        /* values that are no power: the next way is taken */
        {"field 0 186 9 watts=120\npower 0 gauge watts=90\n", "nvmlDeviceGetPowerUsage", 90000},
        {"field 0 186 4 watts=-1\npower 0 gauge watts=90\n", "nvmlDeviceGetPowerUsage", 90000},
        {"field 0 186 0 watts=nan\npower 0 gauge watts=90\n", "nvmlDeviceGetPowerUsage", 90000},
        {"field 0 186 0 watts=inf\npower 0 gauge watts=90\n", "nvmlDeviceGetPowerUsage", 90000},
        {"field 0 186 3 watts=1e13\npower 0 gauge watts=90\n", "nvmlDeviceGetPowerUsage", 90000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        struct ipw_source *s;
        int64_t v;

        snprintf(text, sizeof text, "device A B 1000\n%s", cases[i].lines);
        s = open_stub(text);
        assert_string_equal(s->channels[0].method, cases[i].method);
        assert_string_equal(s->channels[0].unit, "mW");
        read_after(s, 0.1, &v);
        assert_int_equal(v, cases[i].mw);
        s->close(s);
    }
}

/* Case 50: every return code, from every call: no crash, one line. */
static void test_50_every_code(void **state)
{
    static const char *const calls_[] = {"handle", "energy", "power", "field", "metrics"};
    const struct ipw_source_place options = {.nvml = STUB, .pci = NOWHERE, .now = now};

    (void)state;
    for (int code = -1; code <= 40; code++) {
        for (int c = 0; c < 5; c++) {
            struct ipw_source *s;
            struct ipw_err err = {0};
            char text[300];
            int64_t v[8];

            if (code == 0) continue;
            snprintf(text, sizeof text,
                     "device A B 1000\nenergy 0 counter watts=5\nfield 0 186 1 watts=5\n"
                     "power 0 gauge watts=5\nutil 0 gpu=5 memory=6\nmemory 0 used=7 total=8\n"
                     "fail 0 %s %d\n",
                     calls_[c], code);
            tell(text);
            if (ipw_nvml_open(&s, &options, "nvml", &err)) { /* somebody else's device */
                assert_true(c == 0 && code == 4);
                assert_true(err.text[0]);
                continue;
            }
            assert_true(s->channels[0].in_sum);
            for (int i = 0; i < 3; i++) read_after(s, 0.1, v);
            if (c == 0) assert_true(v[0] == IPW_NO_VALUE && s->lost[0]);
            if (c > 1) assert_true(v[0] > 0); /* a code may mean that the device is lost */
            s->close(s);
        }
        for (int c = 1; c < 5; c++) { /* and when it begins later */
            struct ipw_source *s;
            char text[300];
            int64_t v[8];

            if (code == 0) continue;
            snprintf(text, sizeof text,
                     "device A B 1000\nenergy 0 counter watts=5\nfield 0 186 1 watts=5\n"
                     "power 0 gauge watts=5\nutil 0 gpu=5 memory=6\nmemory 0 used=7 total=8\n"
                     "fail 0 %s %d after_reads=4\n",
                     calls_[c], code);
            tell(text);
            assert_int_equal(ipw_nvml_open(&s, &options, "nvml", NULL), 0);
            for (int i = 0; i < 30; i++) {
                read_after(s, 0.1, v);
                for (size_t k = 0; k < s->n_channels; k++) {
                    assert_true(v[k] >= 0 || v[k] == IPW_NO_VALUE);
                }
            }
            s->close(s);
        }
    }
}

UNIT(nvml)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_energy_with_power_beside),
        cmocka_unit_test(test_power_only),
        cmocka_unit_test(test_zero_watts),
        cmocka_unit_test(test_energy_that_is_shy),
        cmocka_unit_test(test_13_lost),
        cmocka_unit_test(test_13_lost_within_a_reading),
        cmocka_unit_test(test_13_lost_when_opened),
        cmocka_unit_test(test_13_all_lost_when_opened),
        cmocka_unit_test(test_13_06_driver_reloaded),
        cmocka_unit_test(test_13_14_library_replaced),
        cmocka_unit_test(test_42_calls_a_second),
        cmocka_unit_test(test_power_fields),
        cmocka_unit_test(test_passing_failures),
        cmocka_unit_test(test_06_reset),
        cmocka_unit_test(test_14_absent),
        cmocka_unit_test(test_50_every_code),
    };

    return cmocka_run_group_tests(tests, make_script, drop_script);
}
