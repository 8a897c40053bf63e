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

#include "energy/source.h"

/* Needs the place's events, cpus (the topology), proc (for a message) and powercap, whose limits
 * bound the channels. */
int ipw_perf_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                  struct ipw_err *err);

/* Parses "0", "0,28", "0-3,8" strictly; returns the number of processors, or -1 for another
 * text. */
int ipw_perf_parse_cpus(int *cpus, size_t max, const char *text);
/* Places the value of "event=0x02" into the bits of "config:0-7". */
bool ipw_perf_parse_config(uint64_t *config, const char *event, const char *format);

#endif
