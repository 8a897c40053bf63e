/* energy/sources/perf_priv.h: the description of the `power` PMU.
 *
 * perf_pmu.c reads the PMU's folder into this; perf.c opens and reads the events.  Internal to
 * both. */
#ifndef IPW_ENERGY_SOURCES_PERF_PRIV_H
#define IPW_ENERGY_SOURCES_PERF_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/sources/perf.h"

#define PERF_MAX_CPUS 256

struct perf_event {
    const char *file; /* "energy-pkg" */
    uint64_t config;
    long double scale; /* joules per count */
    bool present;
};

enum perf_event_kind { PERF_PKG, PERF_CORES, PERF_GPU, PERF_RAM, PERF_PSYS, PERF_KINDS };

struct perf_pmu {
    uint32_t type;
    int cpus[PERF_MAX_CPUS]; /* one processor of each package (or die) */
    size_t n_cpus;
    struct perf_event events[PERF_KINDS];
    char note[120]; /* about an event that could not be understood, or "" */
};

/* Returns 0, IPW_EUNSUPPORTED (no such PMU, or no events), IPW_EPARSE (its files are invalid). */
int ipw_perf_pmu_load(struct perf_pmu *pmu, const char *root, struct ipw_err *err);

/* Parses "0", "0,28", "0-3,8" strictly; returns the number of processors, or -1 for another
 * text. */
int ipw_perf_parse_cpus(int *cpus, size_t max, const char *text);
/* Places the value of "event=0x02" into the bits of "config:0-7". */
bool ipw_perf_parse_config(uint64_t *config, const char *event, const char *format);

#endif
