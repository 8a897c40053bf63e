/* The look around before a run: who is ours, who is not, and what is said of it.  What /proc and
 * NVML say stands here (the test's own functions stand in for energy/quiet's and for
 * ipw_nvml_processes(), which the linker then leaves out). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/overlap.h"
#include "energy/quiet.h"
#include "energy/sources/nvml.h"
#include "run/quiet_check.h"
#include "unit/unit.h"

enum { SERVER = 4242, TOOL = 4243, MINER = 666, HIDDEN = 7 };

static struct {
    bool readable;  /* /proc */
    double foreign; /* processors that others kept busy */
    int asked_port; /* who listens there? */
    pid_t listener;
    const char *listener_name;
    unsigned on_gpu[3];
    size_t n_on_gpu, n_looks;
    pid_t ours[8];
    size_t n_ours;
} world;

bool ipw_quiet_look(struct ipw_quiet_look *look, const char *proc)
{
    assert_null(proc);
    *look = (struct ipw_quiet_look){.cpus = 4};
    if (world.readable) world.n_looks++;
    return world.readable;
}

void ipw_quiet_release(struct ipw_quiet_look *look)
{
    (void)look;
    world.n_looks--;
}

pid_t ipw_quiet_listener(const char *proc, int port)
{
    assert_null(proc);
    world.asked_port = port;
    return world.listener;
}

const char *ipw_quiet_name(const struct ipw_quiet_look *look, pid_t pid)
{
    (void)look;
    switch (pid) {
    case SERVER: return world.listener_name;
    case TOOL: return "tool";
    case MINER: return "miner";
    default: return NULL;
    }
}

/* The tool is a child of ours, whoever else is. */
bool ipw_quiet_is_ours(const struct ipw_quiet_look *look, pid_t pid, const pid_t *ours, size_t n)
{
    (void)look;
    for (size_t i = 0; i < n; i++)
        if (ours[i] == (pid == TOOL ? getpid() : pid)) return true;
    return false;
}

void ipw_quiet_judge(struct ipw_quiet_load *out, const struct ipw_quiet_look *before,
                     const struct ipw_quiet_look *after, double seconds, double ticks_per_s,
                     const pid_t *ours, size_t n)
{
    assert_ptr_not_equal(before, after);
    assert_true(seconds > 0 && ticks_per_s > 0 && n <= 8);
    memcpy(world.ours, ours, n * sizeof *ours);
    world.n_ours = n;
    *out = (struct ipw_quiet_load){.foreign_cpus = world.foreign, .cpus = 4, .busiest = "backup"};
}

bool ipw_quiet_is_loud(const struct ipw_quiet_load *load) { return load->foreign_cpus > 0.4; }

int ipw_nvml_processes(struct ipw_gpu_process **out, size_t *n, struct ipw_source *source,
                       struct ipw_err *err)
{
    (void)err;
    assert_string_equal(source->name, "nvml");
    *out = ipw_calloc(world.n_on_gpu, sizeof **out);
    *n = world.n_on_gpu;
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = (struct ipw_gpu_process){.channel = "gpu0", .pid = world.on_gpu[i]};
    return 0;
}

static void reset(void)
{
    memset(&world, 0, sizeof world);
    world.readable = true;
    world.listener = SERVER;
    world.listener_name = "llama-server";
}

struct machine {
    struct ipw_source_set sources;
    struct ipw_start_findings found;
};

static int check(struct machine *m, const char *url, bool require, struct ipw_err *err)
{
    const char *servers[] = {url, NULL};
    int rc = ipw_start_check(&m->found, &m->sources, servers, require, err);

    assert_int_equal(world.n_looks, 0);
    ipw_trust_free(m->found.trust);
    m->found.trust = NULL;
    return rc;
}

/* The server is ours where it can be found by its port on this machine. */
static void the_server_is_ours(void **state)
{
    static const struct {
        const char *url;
        int port; /* 0: nobody is looked for */
    } rows[] = {
        {"http://127.0.0.1:8000/v1", 8000},
        {"http://localhost/v1", 80},
        {"https://localhost/v1", 443},
        {"http://[::1]:9/v1", 9},
        {"http://0.0.0.0:8000/v1", 8000},
        {"http://10.0.0.1:8000/v1", 0},
        {"https://api.example.org/v1", 0},
        {"http://localhost.example.org:8000/v1", 0},
        {NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine machine = {0};
        struct ipw_err err = {0};

        reset();
        assert_int_equal(check(&machine, rows[i].url, true, &err), 0);
        assert_int_equal(world.asked_port, rows[i].port);
        assert_int_equal(world.n_ours, rows[i].port ? 2 : 1);
        assert_int_equal(world.ours[0], getpid());
        if (rows[i].port) assert_int_equal(world.ours[1], SERVER);
    }
}

static void a_loud_machine(void **state)
{
    static const char said[] = "other programs use 1.5 of 4 processors (most of it: backup)";
    struct machine machine = {0};
    struct ipw_err err = {0};

    (void)state;
    reset();
    world.foreign = 1.5;
    assert_int_equal(check(&machine, NULL, false, &err), 0);
    assert_string_equal(machine.found.not_quiet, said);
    assert_int_equal(check(&machine, NULL, true, &err), IPW_ECANCELLED);
    assert_string_equal(err.text + strlen("--require-quiet: "), said);
    world.readable = false; /* not known: nothing is said, and nothing can be promised */
    machine.found.not_quiet[0] = '\0';
    assert_int_equal(check(&machine, NULL, false, &err), 0);
    assert_string_equal(machine.found.not_quiet, "");
    assert_int_equal(check(&machine, NULL, true, &err), IPW_ECANCELLED);
    assert_non_null(strstr(err.text, "/proc/stat cannot be read"));
}

static void read_nothing(struct ipw_source *self, int64_t *values)
{
    (void)self;
    (void)values;
}

static void who_computes_on_the_gpus(void **state)
{
    static const struct {
        const char *listener_name;
        pid_t listener;
        double foreign;
        unsigned on_gpu[3];
        const char *said;
    } rows[] = {
        {"llama-server", SERVER, 0, {SERVER, TOOL, HIDDEN}, ""},
        {"llama-server",
         SERVER,
         0,
         {HIDDEN, SERVER, MINER},
         "process 666 (miner) computes on gpu0"},
        {"llama-server",
         SERVER,
         2,
         {MINER},
         "other programs use 2.0 of 4 processors (most of it: backup); process 666 (miner) "
         "computes "
         "on gpu0"},
        /* Whose they are cannot be told when the server is hidden, or only its stand-in is seen. */
        {"llama-server", 0, 0, {MINER}, ""},
        {"docker-proxy", SERVER, 0, {MINER}, ""},
    };
    struct ipw_source source = {.name = "nvml", .read = read_nothing};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct machine machine = {.sources = {.n = 1, .sources = {&source}}};
        struct ipw_err err = {0};

        reset();
        world.listener = rows[i].listener;
        world.listener_name = rows[i].listener_name;
        world.foreign = rows[i].foreign;
        for (size_t k = 0; k < 3 && rows[i].on_gpu[k]; k++)
            world.on_gpu[world.n_on_gpu++] = rows[i].on_gpu[k];
        assert_int_equal(check(&machine, "http://127.0.0.1:8000/v1", false, &err), 0);
        assert_string_equal(machine.found.not_quiet, rows[i].said);
    }
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
        cmocka_unit_test(the_server_is_ours),
        cmocka_unit_test(a_loud_machine),
        cmocka_unit_test(who_computes_on_the_gpus),
        cmocka_unit_test(a_frozen_counter_is_rejected),
        cmocka_unit_test(a_frozen_counter_of_a_real_board_is_rejected),
        cmocka_unit_test(a_dead_package_stays_in_the_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
