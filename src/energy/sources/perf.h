/* energy/sources/perf.h: RAPL through the kernel's perf PMU `power`.
 *
 * The same registers as powercap (rapl), but accumulated by the kernel to 64 bits, so that nothing
 * wraps, and open to a user who may not read powercap: it wants kernel.perf_event_paranoid at most
 * 0 or CAP_PERFMON.  Channels have the names and scopes that rapl gives the same zones ("package-0",
 * "package-0/dram", "psys"), so that one source can stand in for the other; never use both.  What
 * the PMU has is read from its own files: type, cpumask, format/event, events/energy-* with .scale
 * and .unit.  One descriptor an event and processor of the mask. */
#ifndef IPW_ENERGY_SOURCES_PERF_H
#define IPW_ENERGY_SOURCES_PERF_H

#include <stdint.h>

#include "energy/source.h"

struct ipw_perf_options {
    const char *root;     /* NULL: "/sys/bus/event_source/devices" */
    const char *cpu_root; /* topology; NULL: "/sys/devices/system/cpu" */
    const char *powercap; /* its zones' limits bound the channels; NULL: 1 kW each */
    const char *paranoid; /* for the message; NULL: "/proc/sys/kernel/perf_event_paranoid" */
    /* Opens a counting event of all processes on one processor: a descriptor of which each read
     * gives 8 bytes, or -1 with errno.  NULL: perf_event_open(2). */
    int (*open_event)(void *ud, uint32_t type, uint64_t config, int cpu);
    void *ud;
};
/* `options` may be NULL. */
int ipw_perf_open(struct ipw_source **out, const struct ipw_perf_options *options,
                  struct ipw_err *err);

#endif
