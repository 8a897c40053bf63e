/* energy/overlap.h: which channels may be added to each other.
 *
 * Sensors overlap.  A package includes its cores, psys includes the package, and an mmio zone shows
 * the same register again.  A module includes its CPU and GPU, and a meter at the wall includes
 * everything.  For each domain this unit chooses one set of channels that covers it without
 * overlap, and describes the set in words: the basis.
 *
 * A machine is this one, or one behind a remote source.  Each gets its own set, and the sets of
 * different machines are added.  On one machine a domain uses the first of these that exists:
 *   cpu      packages; else a module; else rails
 *   dram     memory beside the packages; else rails
 *   gpu      GPUs, each once regardless of its source; else modules; else rails
 *   machine  a meter of the whole machine (at the wall, the BMC; the battery last); else the
 *            platform (psys), unless a GPU has a meter beside it, because psys may or may not
 *            include that GPU; else modules; else rails
 * All channels of a set come from one source (except GPUs), counters before gauges.  A channel that
 * its source excluded from the sum stays excluded, except the platform.
 *
 * Pure: reads descriptions, writes `in_sum` and the basis. */
#ifndef IPW_ENERGY_OVERLAP_H
#define IPW_ENERGY_OVERLAP_H

#include "energy/source.h"

struct ipw_overlap_item {
    struct ipw_channel *channel; /* in_sum: in: the source's proposal; out: the choice */
    const char *source;          /* name of its source */
    size_t index;                /* index of its source */
    size_t machine;              /* if remote: the first source of its machine */
    bool rejected;               /* found unusable (a frozen counter): ignore it */
};

/* remote[d]: the offset in basis[d] where the part of other machines begins; its length if there is
 * none. */
void ipw_overlap_choose(struct ipw_overlap_item *items, size_t n,
                        char basis[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES],
                        size_t remote[IPW_DOMAIN_COUNT]);
/* Chooses the channels of an open set, and again after one of its channels was rejected. */
void ipw_source_set_cover(struct ipw_source_set *set);

#endif
