/* Which sensors are opened: the words of --telemetry, the choice between perf and powercap,
 * --gpu. */
#include "base/buf.h"
#include "energy/overlap.h"
#include "energy/select.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "energy/sources/perf.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define STUB IPW_BINARY_DIR "/tests/fake/libnvidia-ml-stub.so"

static char root[] = "/tmp/ipw-select-XXXXXX", tree[128], script[128];

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

/* hwmonN/device leads to the board. */
static void lead(const char *hwmon, const char *bus_id)
{
    char from[256], to[256];

    snprintf(to, sizeof to, "sys/devices/%s/x", bus_id);
    put(to, "");
    snprintf(to, sizeof to, "%s/sys/devices/%s", root, bus_id);
    snprintf(from, sizeof from, "%s/sys/class/hwmon/%s/device", root, hwmon);
    assert_int_equal(symlink(to, from), 0);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(root)) return -1;
    put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    put("sys/class/powercap/intel-rapl:0/energy_uj", "1000\n");
    put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    put("nvml", "device GPU-aa NVIDIA_H100 700000\nenergy 0 counter watts=300\n"
                "device GPU-bb NVIDIA_H100 700000\nenergy 1 counter watts=200\n");
    snprintf(tree, sizeof tree, "%s/sys", root);
    snprintf(script, sizeof script, "%s/nvml", root);
    setenv("IPW_STUB_NVML", script, 1);
    unsetenv("IPW_POWERCAP_ROOT");
    unsetenv("IPW_SYSFS_ROOT");
    unsetenv("IPW_NVML_LIBRARY");
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* Nobody answers. */
static int no_page(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns,
                   bool *here, struct ipw_err *err)
{
    (void)kept, (void)body, (void)timeout_ns, (void)here;
    return ipw_fail(err, IPW_EINVAL, "%s: no page", url);
}

static void nothing_kept(void *kept) { assert_null(kept); }

static int open_set(struct ipw_source_set *set, const char *const *words, const char *gpu,
                    struct ipw_err *err)
{
    struct ipw_source_options o = {.telemetry = words,
                                   .gpu = gpu,
                                   .sysfs_root = tree,
                                   .nvml_library = STUB,
                                   .fetch = {no_page, nothing_kept}};

    return ipw_source_set_open_with(set, &o, err);
}

/* Every source that was opened, one name after another. */
static const char *names(const struct ipw_source_set *set)
{
    static char text[256];

    text[0] = '\0';
    for (size_t i = 0; i < set->n; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", set->sources[i]->name);
    }
    return text;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_lists(void **state)
{
    static const struct {
        const char *words[4], *opened;
    } table[] = {
        {{NULL}, "rapl nvml"},        {{"auto"}, "rapl nvml"},         {{"rapl"}, "rapl"},
        {{"nvml,rapl"}, "nvml rapl"}, {{"nvml", "rapl"}, "nvml rapl"}, {{"none"}, ""},
        {{"rapl", "rapl"}, "rapl"},   {{"auto,rapl"}, "nvml rapl"},    {{"rapl,"}, "rapl"},
    };
    struct ipw_source_set set;
    struct ipw_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int rc = open_set(&set, table[i].words[0] ? table[i].words : NULL, NULL, &err);
        if (rc) fail_msg("row %zu: %s", i, err.text);
        if (strcmp(names(&set), table[i].opened)) fail_msg("row %zu: %s", i, names(&set));
        ipw_source_set_close(&set);
    }
    assert_true(ipw_source_select_none(WORDS("none")));
    assert_false(ipw_source_select_none(WORDS("auto")));
    assert_false(ipw_source_select_none(NULL));
}

static void test_wrong_words(void **state)
{
    static const struct {
        const char *word, *message;
    } table[] = {
        {"rappl", "(did you mean 'rapl'?)"},
        {"nvlm", "(did you mean 'nvml'?)"},
        {"prometeus=http://x", "(did you mean 'prometheus='?)"},
        {"prometheus", "--telemetry prometheus: expected prometheus=..."},
        {"prometheus=", "nothing after the '='"},
        {"stream=http://x,host=", "nothing after host="},
        {"rapl,none", "none cannot be combined with sensors"},
        {"xyzzy", "there are auto, none, "},
    };
    struct ipw_source_set set;
    struct ipw_err err;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(open_set(&set, WORDS(table[i].word), NULL, &err), IPW_EINVAL);
        if (!strstr(err.text, table[i].message)) fail_msg("%s: %s", table[i].word, err.text);
        assert_int_equal(set.n, 0);
    }
}

/* Files, commands and exporters are opened by the word's argument, which may hold commas; a command
 * named twice runs once, two different ones run both. */
static void test_arguments(void **state)
{
    struct ipw_source_set set;
    struct ipw_err err = {0};
    char log[160];

    (void)state;
    put("meter.csv", "time,w\n1,5\n");
    snprintf(log, sizeof log, "log=%s/meter.csv", root);
    if (open_set(&set, WORDS(log, "exec=echo 5 W, 7; sleep 60", "exec=echo 5 W; sleep 60"), NULL,
                 &err))
        fail_msg("%s", err.text);
    assert_int_equal(set.n_verdicts, 3);
    assert_string_equal(set.verdicts[0].name, "log=");
    assert_int_equal(set.verdicts[0].code, IPW_OK);
    assert_string_equal(set.verdicts[2].text, "2 channels");
    ipw_source_set_close(&set);
    assert_int_equal(
        open_set(&set, WORDS("exec=echo 5 W; sleep 60", "exec=echo 5 W; sleep 60"), NULL, NULL), 0);
    assert_int_equal(set.n, 1);
    ipw_source_set_close(&set);
    assert_int_equal(open_set(&set, WORDS("rapl,prometheus=http://h/a b"), NULL, NULL), 0);
    assert_int_equal(set.n_verdicts, 2);
    assert_int_equal(set.verdicts[1].code, IPW_EINVAL);
    assert_non_null(strstr(set.verdicts[1].text, "http://h/a b"));
    assert_string_equal(names(&set), "rapl");
    ipw_source_set_close(&set);
}

static int fetch_page(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns,
                      bool *here, struct ipw_err *err)
{
    (void)kept, (void)timeout_ns, (void)err;
    assert_null(strchr(url, ','));
    *here = true; /* this end of a tunnel */
    ipw_buf_adds(body, "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
                       "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-1\"} 5000\n");
    return 0;
}

static void fetch_release(void *kept) { (void)kept; }

/* A tunnel ends on this machine, and its sensors are of another. */
static void test_whose_machine(void **state)
{
    static const struct {
        const char *word;
        bool remote;
    } table[] = {
        {"prometheus=http://127.0.0.1:9400", false},
        {"prometheus=http://127.0.0.1:9400,host=gpu-box", true},
        {"prometheus=http://127.0.0.1:9400,host=localhost", false},
    };
    struct ipw_source_set set;
    struct ipw_err err;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_source_options o = {.telemetry = WORDS(table[i].word),
                                       .fetch = {fetch_page, fetch_release}};

        if (ipw_source_set_open_with(&set, &o, &err)) fail_msg("%s", err.text);
        if (set.n != 1) fail_msg("%s: %s", table[i].word, set.verdicts[0].text);
        assert_int_equal(set.sources[0]->channels[0].remote, table[i].remote);
        assert_int_equal(set.channels[0].remote, table[i].remote);
        ipw_source_set_close(&set);
    }
}

/* Each list has a ceiling; beyond it there is a message, and nothing is left open. */
static void test_limits(void **state)
{
    static char many[40][64], gpus[4000];
    const char *words[41] = {NULL};
    struct ipw_source_set set;
    struct ipw_err err = {0};
    size_t used = 0;

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        snprintf(many[i], sizeof many[i], "log=/nonexistent/%zu", i);
        words[i] = many[i];
    }
    assert_int_equal(open_set(&set, words, NULL, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "--telemetry: more than 32"));
    assert_int_equal(set.n, 0);
    words[32] = NULL;
    assert_int_equal(open_set(&set, words, NULL, &err), 0); /* as many as are told of */
    assert_true(set.n_verdicts > 0 && set.n_verdicts <= 32);
    ipw_source_set_close(&set);
    /* Each of 31 logs is a source, beside the tree's two: none is closed without a word. */
    for (size_t i = 0; i < 31; i++) {
        char file[24];

        snprintf(file, sizeof file, "m%zu.csv", i);
        put(file, "time,watts\n");
        snprintf(many[i], sizeof many[i], "log=%s/%s", root, file);
    }
    words[30] = NULL;
    assert_int_equal(open_set(&set, words, NULL, &err), 0);
    assert_int_equal(set.n, 30);
    ipw_source_set_close(&set);
    words[30] = many[30];
    words[31] = "auto";
    assert_int_equal(open_set(&set, words, NULL, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "1 more than the 32 sources"));
    assert_int_equal(set.n, 0);
    for (int i = 0; i < 300; i++)
        used += (size_t)snprintf(gpus + used, sizeof gpus - used, "GPU-%04d,", i);
    assert_int_equal(open_set(&set, NULL, gpus, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "--gpu: more than 512 characters"));
    assert_int_equal(open_set(&set, WORDS("rapl"), "", NULL), 0); /* no GPU named: all */
    ipw_source_set_close(&set);
    assert_int_equal(open_set(&set, WORDS(",,rapl,,auto"), NULL, NULL), 0);
    assert_string_equal(names(&set), "rapl nvml");
    ipw_source_set_close(&set);
    assert_false(ipw_source_select_none(WORDS("none", "rapl")));
    assert_false(ipw_source_select_none(WORDS(NULL)));
}

/* The environment stands in for options that were not given; an empty variable is as none. */
static void test_environment(void **state)
{
    const struct ipw_source_options o = {.telemetry = WORDS("rapl")};
    struct ipw_source_set set;
    char powercap[256];

    (void)state;
    snprintf(powercap, sizeof powercap, "%s/class/powercap", tree);
    setenv("IPW_SYSFS_ROOT", tree, 1);
    setenv("IPW_POWERCAP_ROOT", "", 1);
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_int_equal(set.n, 1);
    ipw_source_set_close(&set);
    setenv("IPW_SYSFS_ROOT", "/nonexistent", 1);
    setenv("IPW_POWERCAP_ROOT", powercap, 1);
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_int_equal(set.n, 1);
    ipw_source_set_close(&set);
    unsetenv("IPW_POWERCAP_ROOT");
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_int_equal(set.n, 0);
    ipw_source_set_close(&set);
    unsetenv("IPW_SYSFS_ROOT");
}

/* Every word that may be given is told, those with an argument by their '='. */
static void test_kinds(void **state)
{
    const char *const *kinds = ipw_source_kinds();
    size_t n = 0, with_argument = 0;

    (void)state;
    for (; kinds[n]; n++) with_argument += strchr(kinds[n], '=') != NULL;
    assert_true(n >= 10);
    assert_int_equal(with_argument, 4);
    assert_string_equal(kinds[0], "perf");
}

/* A watt, whatever the load. */
static int one_watt(struct ipw_buf *model, const struct ipw_buf *facts, struct ipw_err *err)
{
    (void)facts;
    (void)err;
    for (int k = 0; k < 3; k++) {
        ipw_buf_addf(model, "%s\"%s\":[1", k ? "]," : "{\"about\":\"a watt\",",
                     (const char *[]){"mid", "lo", "hi"}[k]);
        for (int i = 1; i <= 100; i++) ipw_buf_adds(model, ",1");
    }
    ipw_buf_adds(model, "]}");
    return 0;
}

/* An estimate is added only where no sensor of this machine's processors is believed. */
static void test_estimate(void **state)
{
    static const char *const believed[IPW_DOMAIN_COUNT];
    const char *doubted[IPW_DOMAIN_COUNT] = {[IPW_DOMAIN_CPU] = "stuck"};
    struct ipw_source_options o = {.sysfs_root = tree, .nvml_library = STUB};
    struct ipw_source_set set;
    char proc[128];

    (void)state;
    setenv("IPW_CALIBRATION", "/nonexistent", 1);
    snprintf(proc, sizeof proc, "%s/proc", root);
    o.proc_root = proc;
    o.estimate = one_watt;
    assert_int_equal(open_set(&set, WORDS("nvml"), NULL, NULL), 0);
    assert_false(ipw_source_set_estimate(&set, &o, believed)); /* no /proc to go by */
    put("proc/cpuinfo", "processor\t: 0\n");
    put("proc/stat", "cpu  1 1 1 1\n");
    o.estimate = NULL; /* nobody makes a model */
    assert_false(ipw_source_set_estimate(&set, &o, believed));
    o.estimate = one_watt;
    assert_true(ipw_source_set_estimate(&set, &o, believed));
    assert_string_equal(names(&set), "nvml model");
    ipw_source_set_close(&set);
    assert_int_equal(open_set(&set, WORDS("rapl"), NULL, NULL), 0);
    assert_false(ipw_source_set_estimate(&set, &o, believed));
    assert_true(ipw_source_set_estimate(&set, &o, doubted));
    assert_string_equal(names(&set), "rapl model");
    ipw_source_set_close(&set);
}

/* ---- case 15: as a user who may not read powercap ---- */

static int perf_errno; /* 0: events open, and count nothing */

static int open_event(void *ud, uint32_t type, uint64_t config, int cpu)
{
    int fds[2];

    (void)ud, (void)type, (void)config, (void)cpu;
    errno = perf_errno;
    if (perf_errno || pipe(fds)) return -1;
    close(fds[1]);
    return fds[0];
}

static void put_perf(void)
{
    put("sys/bus/event_source/devices/power/type", "9\n");
    put("sys/bus/event_source/devices/power/cpumask", "0\n");
    put("sys/bus/event_source/devices/power/format/event", "config:0-7\n");
    put("sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02");
    put("sys/bus/event_source/devices/power/events/energy-pkg.scale",
        "2.3283064365386962890625e-10");
    put("sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules");
    put("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
}

/* Where perf has all of powercap's registers, powercap is closed; with one more of its own, or when
 * it was named, it stays. */
static void test_perf_and_powercap(void **state)
{
    struct ipw_source_options o = {
        .sysfs_root = tree, .nvml_library = "/nonexistent", .open_event = open_event};
    struct ipw_source_set set;
    char command[256];

    (void)state;
    put_perf();
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_string_equal(names(&set), "perf");
    assert_int_equal(set.verdicts[1].code, IPW_EEXISTS);
    assert_string_equal(set.verdicts[1].text, "not needed: perf reads the same registers");
    ipw_source_set_close(&set);
    o.telemetry = WORDS("perf,rapl");
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_string_equal(names(&set), "perf rapl");
    ipw_source_set_close(&set);
    o.telemetry = NULL;
    put("sys/class/powercap/intel-rapl:0:0/name", "dram\n");
    put("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n");
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_string_equal(names(&set), "perf rapl");
    ipw_source_set_close(&set);
    snprintf(command, sizeof command,
             "rm -r %s/sys/class/powercap/intel-rapl:0:0 %s/sys/bus/event_source", root, root);
    assert_int_equal(system(command), 0);
}

#define look_for(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const struct ipw_source_verdict *verdict(const struct ipw_source_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_verdicts; i++)
        if (!strcmp(set->verdicts[i].name, name)) return &set->verdicts[i];
    look_for(!"such a verdict");
    return NULL;
}

static void look_as_user(void)
{
    struct ipw_source_options o = {
        .sysfs_root = tree, .nvml_library = "/nonexistent", .open_event = open_event};
    struct ipw_source_set set;
    const char *text;

    /* perf is allowed: it is used */
    look_for(ipw_source_set_open_with(&set, &o, NULL) == 0);
    look_for(!strcmp(names(&set), "perf"));
    look_for(!strcmp(set.basis[IPW_DOMAIN_CPU], "1 package (perf)"));
    look_for(set.channels[0].max_w == 560); /* powercap's limits may be read all the same */
    look_for(verdict(&set, "perf")->code == IPW_OK);
    look_for(verdict(&set, "rapl")->code == IPW_EPERM);
    ipw_source_set_close(&set);

    /* neither is: no source, and of each one line that says what to do */
    perf_errno = EACCES;
    look_for(ipw_source_set_open_with(&set, &o, NULL) == 0);
    look_for(set.n == 0 && !set.basis[IPW_DOMAIN_CPU][0]);
    look_for(verdict(&set, "perf")->code == IPW_EPERM);
    text = verdict(&set, "perf")->text;
    look_for(strstr(text, "sysctl kernel.perf_event_paranoid=0") && !strchr(text, '\n'));
    look_for(verdict(&set, "rapl")->code == IPW_EPERM);
    text = verdict(&set, "rapl")->text;
    look_for(strstr(text, "chmod a+r ") && !strchr(text, '\n'));
    ipw_source_set_close(&set);
}

/* Root reads everything: what a user sees is seen by a child that is one. */
static void test_15_perf_where_powercap_is_denied(void **state)
{
    char path[256];
    pid_t child;
    int status;

    (void)state;
    put_perf();
    put("sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw", "280000000\n");
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:0/energy_uj", root);
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(chmod(path, geteuid() == 0 ? 0400 : 0), 0);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534))) _exit(3);
        look_as_user();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(path, 0644), 0);
    snprintf(path, sizeof path, "rm -r %s/sys/bus/event_source", root);
    assert_int_equal(system(path), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A named source that is not there is said so, with its name; nothing else is looked for. */
static void test_named_and_absent(void **state)
{
    struct ipw_source_options o = {
        .telemetry = WORDS("rapl"), .sysfs_root = "/nonexistent", .nvml_library = STUB};
    struct ipw_source_set set;

    (void)state;
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_int_equal(set.n, 0);
    assert_int_equal(set.n_verdicts, 1);
    assert_true(set.verdicts[0].named);
    assert_int_equal(set.verdicts[0].code, IPW_EUNSUPPORTED);
    ipw_source_set_close(&set);
}

/* Case 19: by UUID, by index, and what is not there. */
static void test_19_gpus(void **state)
{
    struct ipw_source_set set;
    struct ipw_err err;

    (void)state;
    assert_int_equal(open_set(&set, NULL, "GPU-bb", &err), 0);
    assert_string_equal(set.basis[IPW_DOMAIN_GPU], "1 GPU (nvml)");
    assert_string_equal(set.sources[1]->channels[0].name, "gpu1");
    ipw_source_set_close(&set);
    assert_int_equal(open_set(&set, NULL, "0,1", &err), 0);
    assert_string_equal(set.basis[IPW_DOMAIN_GPU], "2 GPUs (nvml)");
    ipw_source_set_close(&set);
    assert_int_equal(open_set(&set, NULL, "GPU-zz", &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "--gpu GPU-zz"));
    assert_int_equal(set.n, 0);
    assert_int_equal(open_set(&set, WORDS("rapl"), "0", &err), IPW_EINVAL);
}

/* Case 19 on a machine with boards of three makers: each word finds its own, in any order. */
static void test_19_mixed_gpus(void **state)
{
    static const struct {
        const char *gpu, *basis, *opened;
    } table[] = {
        {"GPU-bb", "1 GPU (nvml)", "rapl nvml"},
        {"gpu1", "1 GPU (nvml)", "rapl nvml"},
        {"0000:43:00.0", "1 GPU (amdgpu, power integrated)", "rapl amdgpu"},
        {"amdgpu1,intelgpu0", "2 GPUs (several sources), 1 of them by power",
         "rapl amdgpu intel_gpu"},
        {"03:00.0, 1 ,0000:83:00.0", "3 GPUs (several sources), 1 of them by power",
         "rapl nvml amdgpu intel_gpu"},
        {"00000000:00:00.0,00000000:43:00.0", "2 GPUs (several sources), 1 of them by power",
         "rapl nvml amdgpu"},
    };
    struct ipw_source_set set;
    struct ipw_err err;

    (void)state;
    put("sys/class/hwmon/hwmon0/name", "amdgpu\n");
    put("sys/class/hwmon/hwmon0/power1_average", "35000000\n");
    put("sys/class/hwmon/hwmon1/name", "xe\n");
    put("sys/class/hwmon/hwmon1/energy1_input", "1\n");
    put("sys/class/hwmon/hwmon2/name", "amdgpu\n");
    put("sys/class/hwmon/hwmon2/power1_average", "45000000\n");
    lead("hwmon0", "0000:03:00.0");
    lead("hwmon1", "0000:83:00.0");
    lead("hwmon2", "0000:43:00.0");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (open_set(&set, NULL, table[i].gpu, &err)) fail_msg("%s: %s", table[i].gpu, err.text);
        assert_string_equal(set.basis[IPW_DOMAIN_GPU], table[i].basis);
        assert_string_equal(names(&set), table[i].opened);
        ipw_source_set_close(&set);
    }
    /* One word that nobody knows is an error, whatever the others are. */
    assert_int_equal(open_set(&set, NULL, "amdgpu0,7", &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "--gpu 7: "));
    assert_int_equal(open_set(&set, NULL, "0,0000:99:00.0", &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "0000:99:00.0"));
    assert_int_equal(open_set(&set, WORDS("nvml"), "amdgpu0", &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "--gpu amdgpu0: amdgpu is not selected"));
    assert_int_equal(set.n, 0);
}

static int64_t noon(void) { return INT64_C(43200000000000); }

/* Every source goes by the clock that it is given. */
static void test_clock_is_injected(void **state)
{
    struct ipw_source_options o = {.sysfs_root = tree, .nvml_library = STUB, .now = noon};
    struct ipw_source_set set;

    (void)state;
    assert_int_equal(ipw_source_set_open_with(&set, &o, NULL), 0);
    assert_true(set.n >= 2);
    for (size_t i = 0; i < set.n; i++) assert_ptr_equal(set.sources[i]->now, noon);
    ipw_source_set_close(&set);
}

/* The set's channels are the covering set's; a rejected counter leaves the sum, and the originals
 * are untouched. */
static void test_cover_again(void **state)
{
    struct ipw_source_set set;

    (void)state;
    assert_int_equal(open_set(&set, WORDS("rapl"), NULL, NULL), 0);
    assert_int_equal(set.n_channels, 1);
    assert_ptr_equal(set.sources[0]->channels, set.channels);
    assert_true(set.channels[0].in_sum);
    set.rejected[0] = true;
    ipw_source_set_cover(&set);
    assert_false(set.channels[0].in_sum);
    assert_true(set.own[0][0].in_sum);
    assert_string_equal(set.basis[IPW_DOMAIN_CPU], "");
    assert_int_equal(ipw_source_set_first(&set, 1), 1);
    ipw_source_set_close(&set);
}

UNIT(select)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_wrong_words),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_whose_machine),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_perf_and_powercap),
        cmocka_unit_test(test_15_perf_where_powercap_is_denied),
        cmocka_unit_test(test_named_and_absent),
        cmocka_unit_test(test_19_gpus),
        cmocka_unit_test(test_clock_is_injected),
        cmocka_unit_test(test_cover_again),
        cmocka_unit_test(test_19_mixed_gpus), /* last: it adds boards to the tree */
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
