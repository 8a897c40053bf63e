/* energy/pace.h: how often a source is worth reading.
 *
 * A counter that publishes every 100 ms tells its edges when it is read every 20 ms, and nothing
 * more when it is read every 5 ms; one that moves all the time is read as often as was asked for.
 * The pace learns the publication period of a source from what is read: 5 ms polls during the first
 * second, then the median distance of changes, for as long as it runs, so that a driver that
 * changes its mind is noticed (reference/energy.md 2d; cases 42 and 43).  A source whose channels
 * say that they move within 5 ms, one that is slower than 200 ms to read, and one of another
 * machine are read by the given schedule alone, as is everything when `adapt` is off.
 *
 * Pure: readings in, the distance of the next reading out. */
#ifndef IPW_ENERGY_PACE_H
#define IPW_ENERGY_PACE_H

#include "energy/source.h"

enum { IPW_PACE_CHANNELS = 8, IPW_PACE_STEPS = 9 };

struct ipw_pace_channel {
    size_t at; /* its index in a row */
    bool seen;
    int64_t value, change_ns; /* newest value; the reading that first showed it, 0: not known */
    int64_t steps[IPW_PACE_STEPS]; /* distances of its last changes */
    unsigned n_steps;
    unsigned moved; /* readings in a row that all moved */
    unsigned still; /* readings in a row that did not */
};

struct ipw_pace {
    int64_t poll_ns;   /* read again after this */
    int64_t period_ns; /* publication period as learned; 0: not known */
    bool fast;         /* it moves with every reading at the fastest pace that is worth it */

    int64_t base_ns, least_ns, learn_ns, learn_until_ns;
    struct ipw_pace_channel channels[IPW_PACE_CHANNELS];
    size_t n; /* 0: nothing is learned */
};

void ipw_pace_init(struct ipw_pace *p, const struct ipw_source *source, int64_t interval_ns,
                   bool adapt, int64_t now_ns);
/* One row of the source, read at t_ns. */
void ipw_pace_push(struct ipw_pace *p, int64_t t_ns, const int64_t *values);

#endif
