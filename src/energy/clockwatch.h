/* energy/clockwatch.h: did the clocks behave?
 *
 * Looks at (realtime, monotonic, boottime) once a second.  Realtime that moves against monotonic by
 * more than a millisecond was stepped; boottime that does means that the machine slept.  Neither
 * changes a figure (windows are cut with the monotonic clock), but a reader of the run should know,
 * and a sensor's counter may have gone on while the machine slept.  Pure but for
 * ipw_clockwatch_take(). */
#ifndef IPW_ENERGY_CLOCKWATCH_H
#define IPW_ENERGY_CLOCKWATCH_H

#include <stdbool.h>

#include "base/clock.h"

struct ipw_clockwatch {
    struct ipw_anchor last;
    bool seen;
};

struct ipw_clock_moves {
    int64_t step_ns;        /* realtime jumped by this; 0: it did not */
    int64_t suspend_ns;     /* the machine slept for so long; 0: it did not */
    int64_t from_ns, to_ns; /* monotonic: somewhere between the two */
};

/* Compares with the last look; true when something moved. */
bool ipw_clockwatch_look(struct ipw_clockwatch *w, const struct ipw_anchor *now,
                         struct ipw_clock_moves *out);
/* The three clocks at one instant: false when we were interrupted between them each time, so that
 * a difference would mean nothing. */
bool ipw_clockwatch_take(struct ipw_anchor *now);

#endif
