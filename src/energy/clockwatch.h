/* energy/clockwatch.h: notices clock steps and suspends.
 *
 * Compares realtime, monotonic and boottime once a second.  If realtime moved against monotonic by
 * more than a millisecond, it was stepped.  If boottime did, the machine slept.  Neither changes an
 * energy value (the monotonic clock defines all windows), but a reader of the run should know.  A
 * sensor's counter may also have continued while the machine slept.  Pure except for
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
    int64_t step_ns;        /* realtime was stepped by this; 0: no step */
    int64_t suspend_ns;     /* the machine slept for so long; 0: it did not */
    int64_t from_ns, to_ns; /* monotonic: it happened between these two instants */
};

/* Compares with the last look; true if a clock stepped or the machine slept. */
bool ipw_clockwatch_look(struct ipw_clockwatch *w, const struct ipw_anchor *now,
                         struct ipw_clock_moves *out);
/* Reads the three clocks at one instant.  False if every attempt was interrupted between them, so
 * that a difference would mean nothing. */
bool ipw_clockwatch_take(struct ipw_anchor *now);

#endif
