/* calibrate: fits the power model to this machine, once, against a real meter. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/options.h"
#include "base/clock.h"
#include "base/mem.h"
#include "energy/calibration.h"
#include "energy/sources/cpu_model.h"
#include "io/http_get.h"
#include "io/http_stream.h"
#include "telemetry/telemetry.h"

#define SETTLE     5 /* a fifth of a step is not counted: the machine settles */
#define LEAST_STEP IPW_NS_PER_S
enum { N_LOADS = 4, LINE_BYTES = 256, CPUINFO_BYTES = 1 << 20 };

struct calibrate_options {
    struct ipw_opt_list telemetry;
    const char *output;
    int64_t step_ns;
};

#define AT(field) offsetof(struct calibrate_options, field)
/* clang-format off */
static const struct ipw_opt options[] = {
    {"telemetry", 0, IPW_OPT_LIST, AT(telemetry), "METER", "battery, log=FILE or exec=COMMAND"},
    {"step", 0, IPW_OPT_DURATION, AT(step_ns), "TIME", "length of each load (default: 15s)", LEAST_STEP},
    {"output", 'o', IPW_OPT_STR, AT(output), "FILE", "file of the fit (default: in ~/.config/ipw-agent)"},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "calibrate",
    .usage = "calibrate --telemetry METER [options]",
    .about = "Measure with a meter how this machine's power depends on its load: with none,\n"
             "a quarter, half and all of its processors busy. Later runs on this machine use\n"
             "the result for their estimates and label them \"calibrated\". Close other\n"
             "programs first. If the meter is the battery, unplug the charger.",
    .options = options,
    .max_args = 0,
};

/* Threads that compute until they are stopped. */
struct load {
    pthread_t threads[1024];
    int n;
    atomic_bool stop;
};

static void *spin(void *ud)
{
    struct load *l = ud;
    volatile double x = 1;

    while (!atomic_load_explicit(&l->stop, memory_order_relaxed))
        for (int i = 0; i < 10000; i++) x = x * 1.0000001 + 1e-9;
    return NULL;
}

static void start(struct load *l, int n)
{
    atomic_store(&l->stop, false);
    for (l->n = 0; l->n < n && l->n < (int)(sizeof l->threads / sizeof *l->threads); l->n++)
        if (pthread_create(&l->threads[l->n], NULL, spin, l)) break;
}

static void stop(struct load *l)
{
    atomic_store(&l->stop, true);
    while (l->n > 0) pthread_join(l->threads[--l->n], NULL);
}

static const char *proc_root(void)
{
    const char *root = getenv("IPW_PROC_ROOT");

    return root && root[0] ? root : "/proc";
}

static int read_text(char *out, size_t size, const char *name, struct ipw_err *err)
{
    char path[600];
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", proc_root(), name);
    f = fopen(path, "re");
    if (!f) return ipw_fail_errno(err, errno, "%s", path);
    n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    fclose(f);
    return n ? 0 : ipw_fail(err, IPW_EIO, "%s: nothing in it", path);
}

/* The meter's joules so far; NAN: it was not read. */
static double joules(struct ipw_telemetry *t, size_t channel)
{
    double j;

    ipw_telemetry_take(t);
    pthread_mutex_lock(&t->lock);
    j = t->live[channel].seen ? (double)t->live[channel].uj / 1e6 : NAN;
    pthread_mutex_unlock(&t->lock);
    return j;
}

static void nap(struct ipw_telemetry *t, int64_t ns)
{
    int64_t end = ipw_now_ns() + ns;

    while (ipw_now_ns() < end) {
        usleep(20000);
        ipw_telemetry_take(t);
    }
}

static int one_load(struct ipw_calibration *c, struct ipw_telemetry *t, size_t channel, int threads,
                    int64_t step_ns, struct ipw_err *err)
{
    struct ipw_calibration_point *p = &c->points[c->n];
    char before[LINE_BYTES], after[LINE_BYTES];
    double j0, j1;
    int64_t t0, t1;
    struct load load = {0};
    int rc;

    start(&load, threads);
    nap(t, step_ns / SETTLE);
    rc = read_text(before, sizeof before, "stat", err);
    j0 = joules(t, channel);
    t0 = ipw_now_ns();
    if (!rc) nap(t, step_ns - step_ns / SETTLE);
    if (!rc) rc = read_text(after, sizeof after, "stat", err);
    j1 = joules(t, channel);
    t1 = ipw_now_ns();
    stop(&load);
    if (rc) return rc;
    p->busy = ipw_cpu_model_busy(before, after);
    p->watts = (j1 - j0) / ((double)(t1 - t0) / 1e9);
    if (isnan(p->busy)) return ipw_fail(err, IPW_EIO, "%s/stat does not count", proc_root());
    if (isnan(p->watts) || !(p->watts > 0))
        return ipw_fail(err, IPW_EIO, "%s gave no power for %.0f s: see ipw-agent telemetry",
                        c->meter, (double)step_ns / 1e9);
    printf("%7d %7.0f %% %9.2f W\n", threads, p->busy * 100, p->watts);
    fflush(stdout);
    c->n++;
    return 0;
}

/* The meter's channel, which measures this whole machine. */
static int find_meter(size_t *out, const struct ipw_telemetry *t, struct ipw_err *err)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_channel *c = &t->live[i].channel;

        if (c->domain != IPW_DOMAIN_MACHINE || !c->in_sum || c->remote) continue;
        *out = i;
        return 0;
    }
    for (size_t i = 0; i < t->set.n_verdicts; i++) {
        const struct ipw_source_verdict *v = &t->set.verdicts[i];

        if (v->named && v->code)
            return ipw_fail(err, v->code, "--telemetry %s: %s", v->name, v->text);
    }
    return ipw_fail(
        err, IPW_ENOTFOUND,
        "--telemetry: nothing there reads the whole machine; a battery that discharges does, "
        "or a power meter's log");
}

static int measure(struct ipw_calibration *c, const struct calibrate_options *o, int *exit_code,
                   struct ipw_err *err)
{
    struct ipw_source_options so = {
        .telemetry = (const char *const *)o->telemetry.items,
        .fetch = {ipw_http_get, ipw_http_get_release},
        .link = {ipw_http_stream_open, ipw_http_stream_read, ipw_http_stream_close}};
    struct ipw_telemetry t;
    size_t channel = 0;
    int rc = ipw_telemetry_open(&t, &so, 50 * IPW_NS_PER_MS, true, err);

    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    if (!rc) rc = find_meter(&channel, &t, err);
    if (!rc) {
        snprintf(c->meter, sizeof c->meter, "%.20s %.50s", t.live[channel].source,
                 t.live[channel].channel.name);
        printf("  busy threads   load     power   (%s, %d loads of %.0f s)\n", c->meter, N_LOADS,
               (double)o->step_ns / 1e9);
        fflush(stdout);
    }
    for (int i = 0; i < N_LOADS && !rc; i++) {
        static const double parts[N_LOADS] = {0, 0.25, 0.5, 1};

        rc = one_load(c, &t, channel, (int)ceil(parts[i] * c->threads), o->step_ns, err);
    }
    ipw_telemetry_stop(&t);
    ipw_telemetry_close(&t);
    return rc;
}

static int run(const struct calibrate_options *o, int *exit_code, struct ipw_err *err)
{
    struct ipw_calibration c = {0};
    struct ipw_power_model_facts facts;
    char *cpuinfo = ipw_malloc(CPUINFO_BYTES), path[1024];
    int rc = read_text(cpuinfo, CPUINFO_BYTES, "cpuinfo", err);

    if (!rc) ipw_power_model_facts_read(&facts, cpuinfo);
    free(cpuinfo);
    if (rc) return rc;
    snprintf(c.cpu, sizeof c.cpu, "%s", facts.cpu);
    c.threads = facts.threads;
    if (o->output)
        snprintf(path, sizeof path, "%s", o->output);
    else
        ipw_calibration_path(path, sizeof path);
    if (!path[0])
        return ipw_fail(err, IPW_ENOTFOUND,
                        "$HOME is not set: say where to keep it, --output FILE");
    rc = measure(&c, o, exit_code, err);
    if (!rc) rc = ipw_calibration_fit(&c, err);
    if (!rc) rc = ipw_calibration_write(&c, path, err);
    if (rc) return rc;
    printf(
        "\n%.1f W idle, %.1f W with all processors busy, within %.1f W of the meter\nsaved in %s\n",
        c.idle_w, c.full_w, c.off_w, path);
    return 0;
}

int ipw_cmd_calibrate(int argc, char **argv)
{
    struct calibrate_options o = {.step_ns = 15 * IPW_NS_PER_S};
    struct ipw_err err = {0};
    char **args;
    int n, exit_code = IPW_EXIT_FAILED;
    int rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) {
        free(o.telemetry.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    if (!o.telemetry.items || !o.telemetry.items[0]) {
        ipw_fail(&err, IPW_EINVAL,
                 "calibrate needs a meter: --telemetry battery, log=FILE or exec=COMMAND");
        free(o.telemetry.items);
        return ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    rc = run(&o, &exit_code, &err);
    free(o.telemetry.items);
    return rc ? ipw_exit_with(&err, exit_code) : IPW_EXIT_OK;
}
