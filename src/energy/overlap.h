/* energy/overlap.h: which channels may be added to each other.
 *
 * Sensors overlap: a package holds its cores, psys holds the package, an mmio zone shows the same
 * register again, a module holds the CPU and the GPU on it, a meter at the wall holds everything.
 * For each domain this chooses one covering set and says in words what it
 * is: the basis.  Nothing that is inside something chosen is chosen too, and nothing twice.
 *
 * A machine is this one, or one behind a remote source; each gets a set of its own, and those of
 * different machines are added.  On one machine a domain takes the first of these that is there:
 *   cpu      packages; else a module; else rails
 *   dram     memory beside the packages; else rails
 *   gpu      boards, each once whoever shows it; else modules; else rails
 *   machine  a meter of all of it (at the wall, the BMC; the battery last); else the platform
 *            (psys) where no board is metered beside it, which it may hold or not; else modules; else
 *            rails
 * from one source alone (boards excepted), counters before gauges.  Channels keep `in_sum` false
 * where their source said so, the platform excepted.
 *
 * Pure: looks at descriptions, writes `in_sum` and the basis. */
#ifndef IPW_ENERGY_OVERLAP_H
#define IPW_ENERGY_OVERLAP_H

#include "energy/source.h"

struct ipw_overlap_item {
    struct ipw_channel *channel; /* in_sum: in what its source thinks, out what was chosen */
    const char *source;          /* its source's name */
    size_t index;                /* and which source it is */
    bool rejected;               /* found unusable (a frozen counter): as if it were not there */
};

void ipw_overlap_choose(struct ipw_overlap_item *items, size_t n,
                        char basis[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES]);
/* Chooses the covering sets of an open set, and again after one of its channels was rejected. */
void ipw_source_set_cover(struct ipw_source_set *set);

#endif
