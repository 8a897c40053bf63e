/* energy/sources/perf.h: RAPL through the kernel's perf PMU `power`.
 *
 * These are the same registers as powercap's (rapl), but the kernel extends them to 64 bits, so
 * that nothing wraps.  A user without access to powercap may read them: the kernel requires
 * kernel.perf_event_paranoid at most 0, or CAP_PERFMON.  Channels have the names and scopes of
 * rapl's zones ("package-0", "package-0/dram", "psys"), so that one source can replace the other;
 * never use both.  The PMU describes itself in files: type, cpumask, format/event, events/energy-*
 * with .scale and .unit.  There is one descriptor per event and processor of the mask. */
#ifndef IPW_ENERGY_SOURCES_PERF_H
#define IPW_ENERGY_SOURCES_PERF_H

#include <stdint.h>

#include "energy/source.h"

struct ipw_perf_options {
    const char *root;     /* NULL: "/sys/bus/event_source/devices" */
    const char *cpu_root; /* topology; NULL: "/sys/devices/system/cpu" */
    const char *powercap; /* the zones' limits bound the channels; NULL: 1 kW each */
    const char *paranoid; /* for the message; NULL: "/proc/sys/kernel/perf_event_paranoid" */
    /* Opens an event that counts all processes on one processor: returns a descriptor whose reads
     * give 8 bytes, or -1 with errno.  NULL: perf_event_open(2). */
    int (*open_event)(void *ud, uint32_t type, uint64_t config, int cpu);
    void *ud;
};
/* `options` may be NULL. */
int ipw_perf_open(struct ipw_source **out, const struct ipw_perf_options *options,
                  struct ipw_err *err);

#endif
