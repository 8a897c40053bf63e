/* The perf PMU `power`: see perf.h and docs/hardware.md. */
#include "energy/sources/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/perf_priv.h"
#include "energy/sources/rapl.h"
#include "energy/sources/sysfs.h"

#define PERIOD_NS      IPW_NS_PER_MS
#define UNKNOWN_MAX_W  1000
#define PLATFORM_MAX_W 4000

struct counter {
    int fd;
    long double scale;
};

struct perf {
    struct ipw_source source;
    struct counter *counters;
    struct ipw_channel *channels;
    size_t n;
    int last_errno; /* of the events that could not be opened; 0: all were opened */
};

static int open_event(void *ud, uint32_t type, uint64_t config, int cpu)
{
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config};

    (void)ud;
    return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int64_t read_counter(const struct counter *c)
{
    uint64_t count;
    ssize_t n;
    long double uj;

    do {
        n = read(c->fd, &count, sizeof count);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof count || count > (uint64_t)INT64_MAX) return IPW_NO_VALUE;
    uj = floorl((long double)count * c->scale * 1e6L);
    return uj < 9e18L ? (int64_t)uj : IPW_NO_VALUE;
}

static void perf_read(struct ipw_source *self, int64_t *values)
{
    const struct perf *p = (struct perf *)self;

    for (size_t i = 0; i < p->n; i++) values[i] = read_counter(&p->counters[i]);
}

static void perf_close(struct ipw_source *self)
{
    struct perf *p = (struct perf *)self;

    for (size_t i = 0; i < p->n; i++) close(p->counters[i].fd);
    free(p->counters);
    free(p->channels);
    free(p);
}

static int64_t topology(const char *cpu_root, int cpu, const char *file)
{
    char path[64];

    snprintf(path, sizeof path, "cpu%d/topology/%s", cpu, file);
    return ipw_sysfs_number(cpu_root, path);
}

/* "package-0", or, if the mask names several dies of one package, "package-0-die-1", like
 * powercap's zones.  Without a topology use the position in the mask. */
static void name_package(char *out, size_t size, const struct perf_pmu *pmu, const char *cpu_root,
                         size_t i)
{
    int64_t package = topology(cpu_root, pmu->cpus[i], "physical_package_id");
    bool alone = true;

    if (package < 0) {
        snprintf(out, size, "package-%zu", i);
        return;
    }
    for (size_t k = 0; k < pmu->n_cpus; k++) {
        if (k != i && topology(cpu_root, pmu->cpus[k], "physical_package_id") == package) {
            alone = false;
        }
    }
    if (alone) {
        snprintf(out, size, "package-%d", (int)package);
    } else {
        snprintf(out, size, "package-%d-die-%d", (int)package,
                 (int)topology(cpu_root, pmu->cpus[i], "die_id"));
    }
}

static void describe(struct ipw_channel *c, enum perf_event_kind kind, const char *package,
                     const struct perf_pmu *pmu, size_t cpu)
{
    static const struct {
        const char *suffix;
        enum ipw_domain domain;
        enum ipw_scope scope;
        bool in_sum;
    } kinds[PERF_KINDS] = {
        [PERF_PKG] = {"", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE, true},
        [PERF_CORES] = {"/core", IPW_DOMAIN_CPU, IPW_SCOPE_CORE, false},
        [PERF_GPU] = {"/uncore", IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE, false},
        [PERF_RAM] = {"/dram", IPW_DOMAIN_DRAM, IPW_SCOPE_DRAM, true},
        [PERF_PSYS] = {"", IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM, false},
    };

    *c = (struct ipw_channel){.kind = IPW_CHANNEL_COUNTER,
                              .domain = kinds[kind].domain,
                              .scope = kinds[kind].scope,
                              .in_sum = kinds[kind].in_sum,
                              .max_w = kind == PERF_PSYS ? PLATFORM_MAX_W : UNKNOWN_MAX_W,
                              .period_ns = PERIOD_NS,
                              .own_zero = true,
                              .unit = "uJ",
                              .method = "perf power"};
    if (kind != PERF_PSYS) {
        snprintf(c->name, sizeof c->name, "%.40s%s", package, kinds[kind].suffix);
    } else if (cpu == 0) {
        snprintf(c->name, sizeof c->name, "psys");
    } else {
        snprintf(c->name, sizeof c->name, "platform-%.40s", package + strlen("package-"));
    }
    snprintf(c->device, sizeof c->device, "power/%s cpu%d", pmu->events[kind].file, pmu->cpus[cpu]);
}

static void open_all(struct perf *p, const struct perf_pmu *pmu, const struct ipw_perf_options *o)
{
    bool partial[IPW_DOMAIN_COUNT] = {false};

    for (size_t i = 0; i < pmu->n_cpus; i++) {
        char package[48];
        name_package(package, sizeof package, pmu, o->cpu_root, i);
        for (int k = 0; k < PERF_KINDS; k++) {
            struct ipw_channel *c = &p->channels[p->n];
            int fd;

            if (!pmu->events[k].present) continue;
            describe(c, (enum perf_event_kind)k, package, pmu, i);
            fd = o->open_event(o->ud, pmu->type, pmu->events[k].config, pmu->cpus[i]);
            if (fd < 0) {
                p->last_errno = errno;
                if (c->in_sum) partial[c->domain] = true;
                continue;
            }
            ipw_channel_unique(p->channels, p->n, p->n);
            p->counters[p->n++] = (struct counter){.fd = fd, .scale = pmu->events[k].scale};
        }
    }
    /* If a part of a domain is missing, the domain has no sum: a partial sum would pass for the
     * whole. */
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        size_t dropped = 0;
        for (size_t i = 0; partial[d] && i < p->n; i++) {
            if ((int)p->channels[i].domain != d || !p->channels[i].in_sum) continue;
            p->channels[i].in_sum = false;
            dropped++;
        }
        if (dropped) {
            p->source.missing[d].denied = p->last_errno == EACCES || p->last_errno == EPERM;
            snprintf(p->source.missing[d].text, sizeof p->source.missing[d].text,
                     "some events cannot be opened: %s", strerror(p->last_errno));
            ipw_source_add_note(&p->source, "no %s energy: some events cannot be opened: %s",
                                ipw_domain_name((enum ipw_domain)d), strerror(p->last_errno));
        }
    }
}

static int refuse(const struct perf *p, const struct ipw_perf_options *o, struct ipw_err *err)
{
    char level[32];

    if (p->last_errno != EACCES && p->last_errno != EPERM) {
        return ipw_fail(err, IPW_EUNSUPPORTED, "perf power events cannot be opened: %s",
                        strerror(p->last_errno));
    }
    if (!ipw_sysfs_line(level, sizeof level, "", o->paranoid)) snprintf(level, sizeof level, "?");
    return ipw_fail(err, IPW_EPERM,
                    "perf power events are not permitted (kernel.perf_event_paranoid is %s): "
                    "sysctl kernel.perf_event_paranoid=0, or setcap cap_perfmon+ep on ipw-agent "
                    "(as root)",
                    level);
}

int ipw_perf_open(struct ipw_source **out, const struct ipw_perf_options *options,
                  struct ipw_err *err)
{
    struct ipw_perf_options o = options ? *options : (struct ipw_perf_options){0};
    struct perf_pmu pmu;
    struct perf *p;
    int rc;

    *out = NULL;
    if (!o.root) o.root = "/sys/bus/event_source/devices";
    if (!o.cpu_root) o.cpu_root = "/sys/devices/system/cpu";
    if (!o.paranoid) o.paranoid = "/proc/sys/kernel/perf_event_paranoid";
    if (!o.open_event) o.open_event = open_event;
    rc = ipw_perf_pmu_load(&pmu, o.root, err);
    if (rc < 0) return rc;
    p = ipw_calloc(1, sizeof *p);
    p->counters = ipw_calloc(pmu.n_cpus * PERF_KINDS, sizeof *p->counters);
    /* One extra, because a channel is described before its event is known to open. */
    p->channels = ipw_calloc(pmu.n_cpus * PERF_KINDS + 1, sizeof *p->channels);
    open_all(p, &pmu, &o);
    if (p->n == 0) {
        rc = refuse(p, &o, err);
        perf_close(&p->source);
        return rc;
    }
    if (o.powercap) ipw_rapl_limits(p->channels, p->n, o.powercap);
    if (pmu.note[0]) ipw_source_add_note(&p->source, "%s", pmu.note);
    p->source.name = "perf";
    p->source.read = perf_read;
    p->source.close = perf_close;
    p->source.now = ipw_now_ns;
    p->source.period_ns = PERIOD_NS;
    p->source.channels = p->channels;
    p->source.n_channels = p->n;
    *out = &p->source;
    return 0;
}
