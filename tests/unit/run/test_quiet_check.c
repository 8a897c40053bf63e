/* The check before a run: what it asks of ipw.quiet (for which this test answers, and for NVML),
 * and which sensors are not believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/overlap.h"
#include "energy/sources/nvml.h"
#include "run/quiet_check.h"
#include "script/lua_text.h"
#include "unit/unit.h"

static struct {
    const char *answer;
    char asked[4096]; /* the facts after the looks */
} world;

int ipw_lua_text(struct ipw_buf *out, const char *module, const struct ipw_buf *json,
                 const struct ipw_lua_text_style *style, struct ipw_err *err)
{
    const char *after = strstr(json->data, ",\"gpu\":");

    (void)style;
    assert_string_equal(module, "ipw.quiet");
    assert_non_null(after);
    assert_non_null(strstr(json->data, "\"before\":{\"processes\":[\""));
    snprintf(world.asked, sizeof world.asked, "%s", after);
    if (!world.answer) return ipw_fail(err, IPW_EINVAL, "no answer");
    ipw_buf_adds(out, world.answer);
    return 0;
}

int ipw_nvml_processes(struct ipw_gpu_process **out, size_t *n, struct ipw_source *source,
                       struct ipw_err *err)
{
    (void)err;
    assert_string_equal(source->name, "nvml");
    *out = ipw_calloc(1, sizeof **out);
    *n = 1;
    **out = (struct ipw_gpu_process){.channel = "gpu0", .pid = 666};
    return 0;
}

static void reset(void)
{
    memset(&world, 0, sizeof world);
    world.answer = "{\"known\":true,\"not_quiet\":\"\"}";
}

struct machine {
    struct ipw_source_set sources;
    struct ipw_start_findings found;
};

static int check(struct machine *m, const char *url, bool require, struct ipw_err *err)
{
    const char *servers[] = {url, NULL};
    int rc = ipw_start_check(&m->found, &m->sources, servers, require, err);

    ipw_trust_free(m->found.trust);
    m->found.trust = NULL;
    return rc;
}

/* A server of this machine is looked for by its port. */
static void the_ports_of_servers(void **state)
{
    static const struct {
        const char *url, *ports;
    } rows[] = {
        {"http://127.0.0.1:8000/v1", "[8000]"},
        {"http://localhost/v1", "[80]"},
        {"https://localhost/v1", "[443]"},
        {"http://[::1]:9/v1", "[9]"},
        {"http://0.0.0.0:8000/v1", "[8000]"},
        {"http://10.0.0.1:8000/v1", "[]"},
        {"https://api.example.org/v1", "[]"},
        {"http://localhost.example.org:8000/v1", "[]"},
        {NULL, "[]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine machine = {0};
        struct ipw_err err = {0};
        char want[120];

        reset();
        assert_int_equal(check(&machine, rows[i].url, true, &err), 0);
        snprintf(want, sizeof want, ",\"gpu\":[],\"pid\":%d,\"ports\":%s,\"seconds\":0.", getpid(),
                 rows[i].ports);
        if (strncmp(world.asked, want, strlen(want))) fail_msg("%s, want %s", world.asked, want);
    }
}

static void read_nothing(struct ipw_source *self, int64_t *values)
{
    (void)self;
    (void)values;
}

static void what_is_said(void **state)
{
    struct ipw_source source = {.name = "nvml", .read = read_nothing};
    struct machine machine = {.sources = {.n = 1, .sources = {&source}}};
    struct ipw_err err = {0};

    (void)state;
    reset();
    world.answer = "{\"info\":\"a remark\",\"known\":true,\"not_quiet\":\"it is loud\"}";
    assert_int_equal(check(&machine, NULL, false, &err), 0);
    assert_string_equal(machine.found.not_quiet, "it is loud");
    assert_non_null(strstr(world.asked, "\"gpu\":[{\"channel\":\"gpu0\",\"pid\":666}]"));
    assert_int_equal(check(&machine, NULL, true, &err), IPW_ECANCELLED);
    assert_string_equal(err.text, "--require-quiet: it is loud");
    world.answer = "{\"known\":false,\"not_quiet\":\"\"}"; /* nothing can be promised */
    assert_int_equal(check(&machine, NULL, false, &err), 0);
    assert_string_equal(machine.found.not_quiet, "");
    assert_int_equal(check(&machine, NULL, true, &err), IPW_ECANCELLED);
    assert_non_null(strstr(err.text, "/proc/stat cannot be read"));
    world.answer = NULL;
    assert_int_equal(check(&machine, NULL, false, &err), IPW_EINVAL);
}

/* A counter that stands still while its device draws power, one that moves, and a source that is
 * not read in a hurry. */
static void read_board(struct ipw_source *self, int64_t *values)
{
    static int64_t uj;

    (void)self;
    values[0] = 1000;
    values[1] = 250000;
    values[2] = uj += 1000000;
}

static void read_never(struct ipw_source *self, int64_t *values)
{
    (void)values;
    fail_msg("%s was read", self->name);
}

static void a_frozen_counter_is_rejected(void **state)
{
    struct ipw_channel c[3] = {
        {.name = "gpu0", .domain = IPW_DOMAIN_GPU, .in_sum = true},
        {.name = "gpu0/power", .domain = IPW_DOMAIN_GPU, .kind = IPW_CHANNEL_GAUGE},
        {.name = "package-0", .domain = IPW_DOMAIN_CPU, .in_sum = true},
    };
    struct ipw_channel far = {.name = "exporter", .domain = IPW_DOMAIN_DRAM, .in_sum = true};
    struct ipw_source board = {
        .name = "amdgpu", .channels = c, .n_channels = 3, .read = read_board};
    struct ipw_source exporter = {.name = "prometheus",
                                  .channels = &far,
                                  .n_channels = 1,
                                  .period_ns = IPW_NS_PER_S,
                                  .read = read_never};
    struct machine machine = {.sources = {.n = 2, .sources = {&board, &exporter}}};
    struct ipw_err err = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        c[i].period_ns = 20 * IPW_NS_PER_MS;
        strcpy(c[i].device, i < 2 ? "0000:03:00.0" : "cpu0");
    }
    c[0].kind = c[2].kind = far.kind = IPW_CHANNEL_COUNTER;
    reset();
    ipw_source_set_cover(&machine.sources);
    assert_int_equal(machine.sources.n_channels, 4);
    assert_int_equal(check(&machine, NULL, false, &err), 0);
    assert_true(machine.sources.rejected[0]);
    for (int i = 1; i < 4; i++) assert_false(machine.sources.rejected[i]);
    assert_true(machine.sources.channels[1].in_sum); /* power is integrated instead */
    machine.sources.n = 0;                           /* nobody closes what is ours */
    ipw_source_set_close(&machine.sources);
}

/* The same of boards as they are: NVML's publish every 100 ms, of others the period is not known.
 * Each is watched for as long as it needs to be judged. */
static void a_frozen_counter_of_a_real_board_is_rejected(void **state)
{
    static const int64_t periods[] = {100 * IPW_NS_PER_MS, 0};

    (void)state;
    for (size_t k = 0; k < sizeof periods / sizeof *periods; k++) {
        struct ipw_channel c[3] = {
            {.name = "gpu0", .domain = IPW_DOMAIN_GPU, .in_sum = true},
            {.name = "gpu0/power", .domain = IPW_DOMAIN_GPU, .kind = IPW_CHANNEL_GAUGE},
            {.name = "package-0", .domain = IPW_DOMAIN_CPU, .in_sum = true},
        };
        struct ipw_source board = {
            .name = "amdgpu", .channels = c, .n_channels = 3, .read = read_board};
        struct machine machine = {.sources = {.n = 1, .sources = {&board}}};
        struct ipw_err err = {0};

        for (int i = 0; i < 3; i++) {
            c[i].period_ns = periods[k];
            strcpy(c[i].device, i < 2 ? "0000:03:00.0" : "cpu0");
        }
        c[0].kind = c[2].kind = IPW_CHANNEL_COUNTER;
        reset();
        ipw_source_set_cover(&machine.sources);
        assert_int_equal(check(&machine, NULL, false, &err), 0);
        assert_true(machine.sources.rejected[0]);
        assert_true(machine.sources.channels[1].in_sum);
        assert_string_equal(machine.found.doubts, ""); /* the gauge is believed */
        machine.sources.n = 0;
        ipw_source_set_close(&machine.sources);
    }
}

static void read_packages(struct ipw_source *self, int64_t *values)
{
    static int64_t uj;

    (void)self;
    values[0] = 1000;
    values[1] = uj += 1000000;
}

/* One package of two stands still, and no gauge is beside it: it stays in the sum, which is then
 * not known, and the run knows why. */
static void a_dead_package_stays_in_the_sum(void **state)
{
    struct ipw_channel c[2] = {
        {.name = "package-0", .domain = IPW_DOMAIN_CPU, .scope = IPW_SCOPE_PACKAGE},
        {.name = "package-1", .domain = IPW_DOMAIN_CPU, .scope = IPW_SCOPE_PACKAGE},
    };
    struct ipw_source rapl = {
        .name = "rapl", .channels = c, .n_channels = 2, .read = read_packages};
    struct machine machine = {.sources = {.n = 1, .sources = {&rapl}}};
    struct ipw_err err = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        c[i].kind = IPW_CHANNEL_COUNTER;
        c[i].in_sum = true;
        c[i].period_ns = IPW_NS_PER_MS;
    }
    reset();
    ipw_source_set_cover(&machine.sources);
    assert_int_equal(check(&machine, NULL, false, &err), 0);
    assert_false(machine.sources.rejected[0] || machine.sources.rejected[1]);
    assert_true(machine.sources.channels[0].in_sum && machine.sources.channels[1].in_sum);
    assert_string_equal(machine.found.doubts, "package-0 does not move: not believed");
    assert_string_equal(machine.found.doubted[IPW_DOMAIN_CPU], "stuck");
    assert_null(machine.found.doubted[IPW_DOMAIN_GPU]);
    machine.sources.n = 0;
    ipw_source_set_close(&machine.sources);
}

UNIT(quiet_check)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ports_of_servers),
        cmocka_unit_test(what_is_said),
        cmocka_unit_test(a_frozen_counter_is_rejected),
        cmocka_unit_test(a_frozen_counter_of_a_real_board_is_rejected),
        cmocka_unit_test(a_dead_package_stays_in_the_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
