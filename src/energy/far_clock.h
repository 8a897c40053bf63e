/* energy/far_clock.h: the clock of another machine, on this machine's.
 *
 * Pure.  A round trip asks the other machine for its monotonic clock: it read `far_ns` at an
 * instant of this machine's clock between sending and the answer.  So each round trip bounds the
 * offset of the clocks, and the bounds widen with the distance from it, by the most that two clocks
 * drift apart.  The newest round trips together give the offset with its bounds.  Round trips that
 * contradict each other show a clock that was set or slept: the older ones are forgotten. */
#ifndef IPW_ENERGY_FAR_CLOCK_H
#define IPW_ENERGY_FAR_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two quartz clocks drift apart by less; a test holds 100 ppm. */
#define IPW_FAR_CLOCK_PPM 200

enum { IPW_FAR_CLOCK_TRIPS = 32 };

struct ipw_far_clock {
    struct {
        int64_t far_ns, lo_ns, hi_ns; /* the offset (this clock minus far) at that instant */
    } trips[IPW_FAR_CLOCK_TRIPS];
    size_t n;
    int64_t offset_ns; /* at the newest round trip */
    uint64_t steps;    /* how often the older round trips were forgotten */
};

/* False: the answer came before it was asked for; nothing is added. */
bool ipw_far_clock_add(struct ipw_far_clock *c, int64_t sent_ns, int64_t far_ns, int64_t back_ns);
/* The instant of this machine's clock, and how far from it the true one may lie on either side.
 * False: no round trip is known. */
bool ipw_far_clock_at(const struct ipw_far_clock *c, int64_t far_ns, int64_t *here_ns,
                      int64_t *half_ns);

#endif
