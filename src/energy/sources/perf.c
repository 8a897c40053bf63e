#include "energy/sources/perf.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "energy/sources/rapl.h"
#include "energy/sources/sysfs.h"

#define PERIOD_NS      IPW_NS_PER_MS
#define UNKNOWN_MAX_W  1000
#define PLATFORM_MAX_W 4000

enum { MAX_CPU = 65535, MAX_CPUS = 256, KINDS = 5 };

/* The kinds of events of a package, and their channels. */
static const struct kind {
    const char *file;
    const char *suffix; /* of the package's name; NULL: the platform */
    enum ipw_domain domain;
    enum ipw_scope scope;
    bool in_sum;
} kinds[KINDS] = {
    {"energy-pkg", "", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE, true},
    {"energy-cores", "/core", IPW_DOMAIN_CPU, IPW_SCOPE_CORE, false},
    {"energy-gpu", "/uncore", IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE, false},
    {"energy-ram", "/dram", IPW_DOMAIN_DRAM, IPW_SCOPE_DRAM, true},
    {"energy-psys", NULL, IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM, false},
};

struct event {
    uint64_t config;
    long double scale; /* joules per count; 0: there is no such event */
};

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
    /* How the PMU describes itself. */
    uint32_t type;
    int cpus[MAX_CPUS]; /* one processor of each package (or die) */
    size_t n_cpus;
    struct event events[KINDS];
};

/* ---- the files of the PMU ---- */

/* Reads a decimal number at *p and moves *p past it; -1 if there is none or it is too large. */
static int64_t take_number(const char **p, int64_t most)
{
    const char *start = *p;
    int64_t v = 0;

    while (**p >= '0' && **p <= '9') {
        v = v * 10 + (**p - '0');
        if (v > most) return -1;
        ++*p;
    }
    return *p == start ? -1 : v;
}

int ipw_perf_parse_cpus(int *cpus, size_t max, const char *text)
{
    const char *p = text;
    size_t n = 0;

    for (;;) {
        int64_t from = take_number(&p, MAX_CPU), to = from;

        if (from < 0) return -1;
        if (*p == '-') {
            p++;
            to = take_number(&p, MAX_CPU);
        }
        if (to < from) return -1;
        for (int64_t cpu = from; cpu <= to; cpu++) {
            if (n == max) return -1;
            cpus[n++] = (int)cpu;
        }
        if (*p == '\0') return (int)n;
        if (*p++ != ',') return -1;
    }
}

static bool parse_value(uint64_t *out, const char *text)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hex ? text + 2 : text;
    size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

    if (n == 0 || n > 16 || digits[n] != '\0') return false;
    *out = strtoull(digits, NULL, hex ? 16 : 10);
    return true;
}

bool ipw_perf_parse_config(uint64_t *config, const char *event, const char *format)
{
    const char *p = format;
    int64_t low, high;
    uint64_t value;

    if (strncmp(event, "event=", 6) || !parse_value(&value, event + 6)) return false;
    if (strncmp(p, "config:", 7)) return false;
    p += 7;
    low = high = take_number(&p, 63);
    if (*p == '-') {
        p++;
        high = take_number(&p, 63);
    }
    if (low < 0 || high < low || *p) return false;
    if (high - low < 63 && value >> (high - low + 1)) return false; /* the value does not fit */
    *config = value << low;
    return true;
}

static bool load_event(struct event *e, const char *file, const char *dir, const char *format)
{
    char text[64], more[64];
    double scale;

    if (!ipw_sysfs_line(text, sizeof text, dir, file)) return false;
    if (!ipw_perf_parse_config(&e->config, text, format)) return false;
    snprintf(more, sizeof more, "%s.unit", file);
    if (!ipw_sysfs_line(text, sizeof text, dir, more) || strcmp(text, "Joules")) return false;
    snprintf(more, sizeof more, "%s.scale", file);
    if (!ipw_sysfs_line(text, sizeof text, dir, more)) return false;
    if (ipw_parse_double(&scale, text, NULL) || scale < 1e-15 || scale > 1e3) return false;
    e->scale = scale;
    return true;
}

/* IPW_EUNSUPPORTED: no such PMU, or no events; IPW_EPARSE: its files are invalid. */
static int load_pmu(struct perf *p, const char *root, struct ipw_err *err)
{
    char dir[PATH_MAX], events[PATH_MAX + 16], text[512], format[64], note[IPW_NOTE_BYTES];
    size_t found = 0;
    int64_t type;
    int n;

    if (snprintf(dir, sizeof dir, "%s/power", root) >= (int)sizeof dir)
        return ipw_fail(err, IPW_EINVAL, "path too long: %.80s...", root);
    if (access(dir, F_OK)) return ipw_fail(err, IPW_EUNSUPPORTED, "no %.300s: no power PMU", dir);
    type = ipw_sysfs_number(dir, "type");
    if (type < 0 || type > INT32_MAX)
        return ipw_fail(err, IPW_EPARSE, "%.300s/type: not a number", dir);
    p->type = (uint32_t)type;
    if (!ipw_sysfs_line(text, sizeof text, dir, "cpumask") ||
        (n = ipw_perf_parse_cpus(p->cpus, MAX_CPUS, text)) < 0)
        return ipw_fail(err, IPW_EPARSE, "%.300s/cpumask: not a list of processors", dir);
    p->n_cpus = (size_t)n;
    if (!ipw_sysfs_line(format, sizeof format, dir, "format/event"))
        snprintf(format, sizeof format, "config:0-7");
    snprintf(events, sizeof events, "%s/events", dir);
    for (int k = 0; k < KINDS; k++) {
        if (!ipw_sysfs_line(text, sizeof text, events, kinds[k].file)) continue;
        if (load_event(&p->events[k], kinds[k].file, events, format))
            found++;
        else
            ipw_source_set_note(&p->source, "%s is not understood, so it is left out",
                                kinds[k].file);
    }
    if (found) return 0;
    ipw_source_note(&p->source, note);
    return ipw_fail(err, IPW_EUNSUPPORTED, "no energy events in %.300s%s%s", events,
                    note[0] ? ": " : "", note);
}

/* ---- counters ---- */

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
static void name_package(char *out, size_t size, const struct perf *p, const char *cpu_root,
                         size_t i)
{
    int64_t package = topology(cpu_root, p->cpus[i], "physical_package_id");
    bool alone = true;

    for (size_t k = 0; k < p->n_cpus && package >= 0; k++)
        if (k != i && topology(cpu_root, p->cpus[k], "physical_package_id") == package)
            alone = false;
    if (alone)
        snprintf(out, size, "package-%d", package < 0 ? (int)i : (int)package);
    else
        snprintf(out, size, "package-%d-die-%d", (int)package,
                 (int)topology(cpu_root, p->cpus[i], "die_id"));
}

static void describe(struct ipw_channel *c, const struct kind *k, const char *package, int cpu,
                     bool first)
{
    *c = (struct ipw_channel){.kind = IPW_CHANNEL_COUNTER,
                              .domain = k->domain,
                              .scope = k->scope,
                              .in_sum = k->in_sum,
                              .max_w = k->suffix ? UNKNOWN_MAX_W : PLATFORM_MAX_W,
                              .period_ns = PERIOD_NS,
                              .own_zero = true,
                              .unit = "uJ",
                              .method = "perf power"};
    if (k->suffix)
        snprintf(c->name, sizeof c->name, "%.40s%s", package, k->suffix);
    else if (first)
        snprintf(c->name, sizeof c->name, "psys");
    else
        snprintf(c->name, sizeof c->name, "platform-%.40s", package + strlen("package-"));
    snprintf(c->device, sizeof c->device, "power/%s cpu%d", k->file, cpu);
}

static void open_all(struct perf *p, const struct ipw_source_place *place)
{
    bool partial[IPW_DOMAIN_COUNT] = {false};

    for (size_t i = 0; i < p->n_cpus; i++) {
        char package[48];

        name_package(package, sizeof package, p, place->cpus, i);
        for (int k = 0; k < KINDS; k++) {
            struct ipw_channel *c = &p->channels[p->n];
            int fd;

            if (!(p->events[k].scale > 0)) continue;
            describe(c, &kinds[k], package, p->cpus[i], i == 0);
            fd = (place->open_event ? place->open_event : open_event)(
                place->ud, p->type, p->events[k].config, p->cpus[i]);
            if (fd < 0) {
                p->last_errno = errno;
                partial[c->domain] |= c->in_sum;
                continue;
            }
            ipw_channel_unique(p->channels, p->n, p->n);
            p->counters[p->n++] = (struct counter){.fd = fd, .scale = p->events[k].scale};
        }
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (partial[d])
            ipw_source_no_sum(&p->source, p->channels, p->n, (enum ipw_domain)d, p->last_errno,
                              "some events cannot be opened", "");
}

static int refuse(const struct perf *p, const struct ipw_source_place *place, struct ipw_err *err)
{
    char level[32];

    if (p->last_errno != EACCES && p->last_errno != EPERM)
        return ipw_fail(err, IPW_EUNSUPPORTED, "perf power events cannot be opened: %s",
                        strerror(p->last_errno));
    if (!ipw_sysfs_line(level, sizeof level, place->proc, "sys/kernel/perf_event_paranoid"))
        snprintf(level, sizeof level, "?");
    return ipw_fail(err, IPW_EPERM,
                    "perf power events are not permitted (kernel.perf_event_paranoid is %s): "
                    "sysctl kernel.perf_event_paranoid=0, or setcap cap_perfmon+ep on ipw-agent "
                    "(as root)",
                    level);
}

int ipw_perf_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                  struct ipw_err *err)
{
    struct perf *p = ipw_calloc(1, sizeof *p);
    int rc = load_pmu(p, place->events, err);

    *out = NULL;
    if (rc == 0) {
        p->counters = ipw_calloc(p->n_cpus * KINDS, sizeof *p->counters);
        /* One extra, because a channel is described before its event is known to open. */
        p->channels = ipw_calloc(p->n_cpus * KINDS + 1, sizeof *p->channels);
        open_all(p, place);
        if (p->n == 0) rc = refuse(p, place, err);
    }
    if (rc < 0) {
        perf_close(&p->source);
        return rc;
    }
    if (place->powercap) ipw_rapl_limits(p->channels, p->n, place->powercap);
    p->source.name = name;
    p->source.read = perf_read;
    p->source.close = perf_close;
    p->source.now = ipw_now_ns;
    p->source.period_ns = PERIOD_NS;
    p->source.channels = p->channels;
    p->source.n_channels = p->n;
    *out = &p->source;
    return 0;
}
