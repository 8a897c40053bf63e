/* energy/watch.h: watches the sensors for a moment before their values are used.
 *
 * Reads a set's sources for the self-test, for as long as its slowest counter needs for a verdict
 * (energy/belief.h), but no longer once every counter of a sum has moved.  A run does so before its
 * first query, doctor and `list sensors` before they print.  Sources that are slow to read (an
 * exporter, a log) are left out: nothing is known of them afterwards. */
#ifndef IPW_ENERGY_WATCH_H
#define IPW_ENERGY_WATCH_H

#include "energy/selftest.h"

/* Watches for at least least_ns. */
void ipw_watch_sensors(struct ipw_selftest *test, struct ipw_source_set *set, int64_t least_ns);

#endif
