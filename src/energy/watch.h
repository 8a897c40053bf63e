/* energy/watch.h: sensors are looked at before anything is made of what they say.
 *
 * Reads a set's sources for a moment, for the self-test: as long as its slowest counter needs to be
 * judged (energy/belief.h), and no longer once every counter of a sum has moved.  A run does it before
 * its first query, doctor and `list sensors` before they speak.  Sources that are slow to read (an
 * exporter, a log) are left out: nothing is known of them afterwards. */
#ifndef IPW_ENERGY_WATCH_H
#define IPW_ENERGY_WATCH_H

#include "energy/selftest.h"

/* For least_ns at least. */
void ipw_watch_sensors(struct ipw_selftest *test, struct ipw_source_set *set, int64_t least_ns);

#endif
