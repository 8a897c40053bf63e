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
#include "json/json.h"
#include "json/jsonl.h"
#include "json/write.h"

#define PERIOD_NS (50 * IPW_NS_PER_MS) /* /proc/stat counts hundredths of a second */
#define LEAST_MW  1.0                  /* so that the counter always moves */
enum { LINE_BYTES = 256, STEPS = 100 };

struct cpu_model {
    struct ipw_source source;
    struct ipw_channel channels[IPW_CPU_MODEL_CHANNELS];
    double watts[IPW_CPU_MODEL_CHANNELS][STEPS + 1]; /* over utilisation, from 0 to 1 */
    char about[120];                                 /* the model, for a person */
    int fd;                                          /* descriptor of /proc/stat */
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

static double watts_at(const double *table, double u)
{
    int i = (int)fmin(u * STEPS, STEPS - 1);

    return table[i] + (table[i + 1] - table[i]) * (u * STEPS - i);
}

/* Ticks are coarse: until the next tick, assume that the processors are as busy as before. */
static void model_read(struct ipw_source *self, int64_t *values)
{
    struct cpu_model *m = (struct cpu_model *)self;
    int64_t now = self->now();
    char line[LINE_BYTES];
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
    for (int i = 0; i < IPW_CPU_MODEL_CHANNELS && m->last_ns && seconds > 0; i++)
        m->uj[i] += fmax(watts_at(m->watts[i], m->busy), LEAST_MW / 1e3) * seconds * 1e6;
    m->last_ns = now;
    for (int i = 0; i < IPW_CPU_MODEL_CHANNELS; i++) values[i] = (int64_t)m->uj[i];
}

static void model_close(struct ipw_source *self)
{
    struct cpu_model *m = (struct cpu_model *)self;

    if (m->fd >= 0) close(m->fd);
    free(m);
}

/* The power limits of all packages together: for long, and for boosts; 0: none is named. */
static void read_limits(double *limit_w, double *peak_w, const char *powercap)
{
    struct rapl_zone *zones;
    size_t n;

    *limit_w = *peak_w = 0;
    if (ipw_rapl_scan(&zones, &n, powercap) < 0) return;
    for (size_t i = 0; i < n; i++) {
        int64_t limit_uw, peak_uw;

        if (zones[i].mmio || zones[i].sub || strncmp(zones[i].name, "package-", 8)) continue;
        limit_uw = ipw_sysfs_number(zones[i].path, "constraint_0_power_limit_uw");
        peak_uw = ipw_sysfs_number(zones[i].path, "constraint_1_power_limit_uw");
        if (limit_uw <= 0) continue;
        *limit_w += (double)limit_uw / 1e6;
        *peak_w += (double)(peak_uw > limit_uw ? peak_uw : limit_uw) / 1e6;
    }
    free(zones);
}

static int gather_facts(struct ipw_buf *out, const struct ipw_source_place *place,
                        struct ipw_err *err)
{
    struct ipw_buf cpuinfo = IPW_BUF(IPW_MIB);
    double limit_w, peak_w;
    struct ipw_jw w;
    char path[600];
    bool told;

    snprintf(path, sizeof path, "%s/cpuinfo", place->proc);
    told = ipw_file_read(&cpuinfo, path, NULL) == 0 && cpuinfo.len > 0;
    read_limits(&limit_w, &peak_w, place->powercap);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "cpuinfo", ipw_buf_str(&cpuinfo));
    ipw_jw_knum(&w, "limit_w", limit_w > 0 ? limit_w : (double)NAN);
    ipw_jw_knum(&w, "peak_w", peak_w > 0 ? peak_w : (double)NAN);
    ipw_jw_obj_end(&w);
    ipw_buf_release(&cpuinfo);
    return told ? 0 : ipw_fail(err, IPW_EUNSUPPORTED, "%.300s cannot be read", path);
}

static int read_table(double *watts, const struct ipw_json *model, const char *key,
                      struct ipw_err *err)
{
    const struct ipw_json *list, *v;
    int i = 0, rc = ipw_json_need_arr(&list, model, key, "", err);

    if (rc) return rc;
    for (v = ipw_json_first(list); v && i <= STEPS; v = ipw_json_next(v), i++)
        watts[i] = ipw_json_num(v, 0);
    return i == STEPS + 1 && !v
               ? 0
               : ipw_fail(err, IPW_EPARSE, "%s: expected %d numbers", key, STEPS + 1);
}

static int choose_model(struct cpu_model *m, const struct ipw_source_place *place,
                        struct ipw_err *err)
{
    static const char *const keys[] = {"mid", "lo", "hi"};
    struct ipw_buf facts = IPW_BUF(2 * IPW_MIB), text = IPW_BUF(IPW_MIB);
    struct ipw_json *model = NULL;
    int rc = gather_facts(&facts, place, err);

    if (!rc) rc = place->ask(&text, "ipw.power_model", &facts, err);
    if (!rc) rc = ipw_json_parse(&model, ipw_buf_str(&text), text.len, NULL, err);
    for (int i = 0; i < IPW_CPU_MODEL_CHANNELS && !rc; i++)
        rc = read_table(m->watts[i], model, keys[i], err);
    snprintf(m->about, sizeof m->about, "%s", ipw_json_str(ipw_json_get(model, "about"), ""));
    ipw_json_free(model);
    ipw_buf_release(&facts);
    ipw_buf_release(&text);
    return rc;
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
        snprintf(c->device, sizeof c->device, "%.95s", m->about);
    }
}

int ipw_cpu_model_open(struct ipw_source **out, const struct ipw_source_place *place,
                       const char *name, struct ipw_err *err)
{
    struct cpu_model *m = ipw_calloc(1, sizeof *m);
    char path[600];
    int rc;

    *out = NULL;
    m->fd = -1;
    rc = choose_model(m, place, err);
    snprintf(path, sizeof path, "%s/stat", place->proc);
    if (!rc) m->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (!rc && (m->fd < 0 || !read_line(m->fd, m->last)))
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "%.300s cannot be read", path);
    if (rc) {
        model_close(&m->source);
        return rc;
    }
    m->source = (struct ipw_source){.name = name,
                                    .read = model_read,
                                    .close = model_close,
                                    .channels = m->channels,
                                    .n_channels = IPW_CPU_MODEL_CHANNELS,
                                    .period_ns = PERIOD_NS,
                                    .now = ipw_now_ns};
    describe(m);
    ipw_source_add_note(&m->source, "an estimate, not a sensor: %s", m->about);
    *out = &m->source;
    return 0;
}
