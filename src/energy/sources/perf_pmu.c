#include "energy/sources/perf_priv.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "energy/sources/sysfs.h"

#define MAX_CPU 65535

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

static bool load_event(struct perf_event *e, const char *dir, const char *format)
{
    char text[64], file[64];
    double scale;

    if (!ipw_sysfs_line(text, sizeof text, dir, e->file)) return false;
    if (!ipw_perf_parse_config(&e->config, text, format)) return false;
    snprintf(file, sizeof file, "%s.unit", e->file);
    if (!ipw_sysfs_line(text, sizeof text, dir, file) || strcmp(text, "Joules")) return false;
    snprintf(file, sizeof file, "%s.scale", e->file);
    if (!ipw_sysfs_line(text, sizeof text, dir, file)) return false;
    if (ipw_parse_double(&scale, text, NULL) || scale < 1e-15 || scale > 1e3) return false;
    e->scale = scale;
    return true;
}

int ipw_perf_pmu_load(struct perf_pmu *pmu, const char *root, struct ipw_err *err)
{
    static const char *const files[PERF_KINDS] = {"energy-pkg", "energy-cores", "energy-gpu",
                                                  "energy-ram", "energy-psys"};
    char dir[PATH_MAX], events[PATH_MAX + 16], text[512], format[64];
    int64_t type;
    size_t found = 0;
    int n;

    *pmu = (struct perf_pmu){0};
    if (snprintf(dir, sizeof dir, "%s/power", root) >= (int)sizeof dir) {
        return ipw_fail(err, IPW_EINVAL, "too long a path: %.80s...", root);
    }
    if (access(dir, F_OK)) return ipw_fail(err, IPW_EUNSUPPORTED, "no %.300s: no power PMU", dir);
    type = ipw_sysfs_number(dir, "type");
    if (type < 0 || type > INT32_MAX) {
        return ipw_fail(err, IPW_EPARSE, "%.300s/type: no number", dir);
    }
    pmu->type = (uint32_t)type;
    if (!ipw_sysfs_line(text, sizeof text, dir, "cpumask") ||
        (n = ipw_perf_parse_cpus(pmu->cpus, PERF_MAX_CPUS, text)) < 0) {
        return ipw_fail(err, IPW_EPARSE, "%.300s/cpumask: no list of processors", dir);
    }
    pmu->n_cpus = (size_t)n;
    if (!ipw_sysfs_line(format, sizeof format, dir, "format/event")) {
        snprintf(format, sizeof format, "config:0-7");
    }
    snprintf(events, sizeof events, "%s/events", dir);
    for (int k = 0; k < PERF_KINDS; k++) {
        struct perf_event *e = &pmu->events[k];
        e->file = files[k];
        if (!ipw_sysfs_line(text, sizeof text, events, e->file)) continue;
        e->present = load_event(e, events, format);
        found += e->present;
        if (!e->present) {
            snprintf(pmu->note, sizeof pmu->note, "%s is not understood and left out", e->file);
        }
    }
    if (found == 0) {
        return ipw_fail(err, IPW_EUNSUPPORTED, "no energy events in %.300s%s%s", events,
                        pmu->note[0] ? ": " : "", pmu->note);
    }
    return 0;
}
