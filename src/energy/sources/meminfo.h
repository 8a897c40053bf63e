/* energy/sources/meminfo.h: the memory that the machine's processors use.
 *
 * Not an energy sensor: one metric, MemTotal - MemAvailable of /proc/meminfo in bytes, which the
 * kernel counts for the whole machine.  It is read only when it is asked for by name, as `profile`
 * does. */
#ifndef IPW_ENERGY_SOURCES_MEMINFO_H
#define IPW_ENERGY_SOURCES_MEMINFO_H

#include "energy/source.h"

/* The channel; its ending tells it from the memory of a GPU ("/mem_used"). */
#define IPW_MEMINFO_USED "ram/used"

/* `proc`: "/proc".  IPW_EUNSUPPORTED if it has no such counts. */
int ipw_meminfo_open(struct ipw_source **out, const char *proc, struct ipw_err *err);

#endif
