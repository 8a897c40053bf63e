#include "energy/sources/cpu_model.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/rapl.h"
#include "energy/sources/sysfs.h"

#define PERIOD_NS (50 * IPW_NS_PER_MS) /* /proc/stat counts hundredths of a second */
#define LEAST_MW  1.0                  /* so that the counter always moves */
enum { LINE_BYTES = 256, CPUINFO_BYTES = 1 << 20 };

struct cpu_model {
    struct ipw_source source;
    struct ipw_channel channels[IPW_CPU_MODEL_CHANNELS];
    struct ipw_power_model model;
    int fd; /* descriptor of /proc/stat */
    char last[LINE_BYTES];
    int64_t last_ns;
    double busy;
    double uj[IPW_CPU_MODEL_CHANNELS];
};

/* "cpu  user nice system idle iowait irq softirq steal ...", in ticks. */
static bool times_of(const char *line, double *busy, double *all)
{
    double v[8] = {0};

    if (sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4],
               &v[5], &v[6], &v[7]) < 4)
        return false;
    *all = 0;
    for (int i = 0; i < 8; i++) *all += v[i];
    /* Without idle, waiting, and time taken by other virtual machines. */
    *busy = *all - v[3] - v[4] - v[7];
    return true;
}

double ipw_cpu_model_busy(const char *before, const char *after)
{
    double busy0, all0, busy1, all1;

    if (!times_of(before, &busy0, &all0) || !times_of(after, &busy1, &all1)) return NAN;
    if (!(all1 > all0)) return NAN;
    return busy1 > busy0 ? fmin((busy1 - busy0) / (all1 - all0), 1) : 0;
}

static bool read_line(int fd, char *line)
{
    ssize_t n = pread(fd, line, LINE_BYTES - 1, 0);

    if (n <= 0) return false;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return true;
}

/* Ticks are coarse: until the next tick, assume that the processors are as busy as before. */
static void model_read(struct ipw_source *self, int64_t *values)
{
    struct cpu_model *m = (struct cpu_model *)self;
    int64_t now = self->now();
    char line[LINE_BYTES];
    struct ipw_power_model_watts w;
    double seconds = (double)(now - m->last_ns) / 1e9, busy;

    if (!read_line(m->fd, line)) {
        for (int i = 0; i < IPW_CPU_MODEL_CHANNELS; i++) values[i] = IPW_NO_VALUE;
        return;
    }
    busy = ipw_cpu_model_busy(m->last, line);
    if (!isnan(busy)) {
        m->busy = busy;
        memcpy(m->last, line, sizeof line);
    }
    w = ipw_power_model_at(&m->model, m->busy);
    if (m->last_ns && seconds > 0) {
        m->uj[IPW_CPU_MODEL_MID] += fmax(w.mid, LEAST_MW / 1e3) * seconds * 1e6;
        m->uj[IPW_CPU_MODEL_LO] += fmax(w.lo, LEAST_MW / 1e3) * seconds * 1e6;
        m->uj[IPW_CPU_MODEL_HI] += fmax(w.hi, LEAST_MW / 1e3) * seconds * 1e6;
    }
    m->last_ns = now;
    for (int i = 0; i < IPW_CPU_MODEL_CHANNELS; i++) values[i] = (int64_t)m->uj[i];
}

static void model_close(struct ipw_source *self)
{
    struct cpu_model *m = (struct cpu_model *)self;

    close(m->fd);
    free(m);
}

/* The power limits of all packages together: for long, and for boosts. */
static void read_limits(struct ipw_power_model_facts *facts, const char *powercap)
{
    struct rapl_zone *zones;
    size_t n;

    if (ipw_rapl_scan(&zones, &n, powercap) < 0) return;
    for (size_t i = 0; i < n; i++) {
        int64_t limit_uw, peak_uw;

        if (zones[i].mmio || zones[i].sub || strncmp(zones[i].name, "package-", 8)) continue;
        limit_uw = ipw_sysfs_number(zones[i].path, "constraint_0_power_limit_uw");
        peak_uw = ipw_sysfs_number(zones[i].path, "constraint_1_power_limit_uw");
        if (limit_uw <= 0) continue;
        facts->limit_w += (double)limit_uw / 1e6;
        facts->peak_w += (double)(peak_uw > limit_uw ? peak_uw : limit_uw) / 1e6;
    }
    free(zones);
}

static bool read_cpuinfo(const char *proc, char *text)
{
    char path[600];
    size_t used = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "%s/cpuinfo", proc);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    while (used < CPUINFO_BYTES - 1 && (n = read(fd, text + used, CPUINFO_BYTES - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    close(fd);
    return used > 0;
}

static void describe(struct cpu_model *m)
{
    static const char *const names[] = {"cpu-model", "cpu-model/least", "cpu-model/most"};

    for (int i = 0; i < IPW_CPU_MODEL_CHANNELS; i++) {
        struct ipw_channel *c = &m->channels[i];

        *c = (struct ipw_channel){.kind = IPW_CHANNEL_ESTIMATE,
                                  .domain = IPW_DOMAIN_CPU,
                                  .scope = IPW_SCOPE_PACKAGE,
                                  .period_ns = PERIOD_NS,
                                  .own_zero = true,
                                  .max_w = 100000,
                                  .unit = "uJ",
                                  .method = "/proc/stat"};
        snprintf(c->name, sizeof c->name, "%s", names[i]);
        snprintf(c->device, sizeof c->device, "%.63s", m->model.about);
    }
}

int ipw_cpu_model_open(struct ipw_source **out, const struct ipw_source_place *place,
                       const char *name, struct ipw_err *err)
{
    struct ipw_power_model_facts facts;
    struct cpu_model *m;
    char path[600], *text;
    bool told;

    *out = NULL;
    text = ipw_malloc(CPUINFO_BYTES);
    told = read_cpuinfo(place->proc, text);
    if (told) ipw_power_model_facts_read(&facts, text);
    free(text);
    if (!told) return ipw_fail(err, IPW_EUNSUPPORTED, "%.300s/cpuinfo cannot be read", place->proc);
    read_limits(&facts, place->powercap);
    m = ipw_calloc(1, sizeof *m);
    snprintf(path, sizeof path, "%s/stat", place->proc);
    m->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (m->fd < 0 || !read_line(m->fd, m->last)) {
        if (m->fd >= 0) close(m->fd);
        free(m);
        return ipw_fail(err, IPW_EUNSUPPORTED, "%.300s cannot be read", path);
    }
    m->source = (struct ipw_source){.name = name,
                                    .read = model_read,
                                    .close = model_close,
                                    .channels = m->channels,
                                    .n_channels = IPW_CPU_MODEL_CHANNELS,
                                    .period_ns = PERIOD_NS,
                                    .now = ipw_now_ns};
    ipw_power_model_choose(&m->model, &facts);
    describe(m);
    ipw_source_add_note(&m->source, "an estimate, not a sensor: %s", m->model.about);
    *out = &m->source;
    return 0;
}
