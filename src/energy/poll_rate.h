/* energy/poll_rate.h: decides when to read a sensor.
 *
 * A counter that publishes every 100 ms has a new value once in 100 ms.  Readings close to that
 * instant tell when the value came; readings in between tell nothing.  This unit learns how often
 * the channels of a source publish, from its readings.  During the first second it polls every
 * 5 ms.  From then on it predicts each publication from the one before.  It reads every 2 ms from
 * about 4 ms before that instant until the new value has come, and then not until the next
 * publication.  Jitter, and readings that come late on a busy machine, open these windows earlier.
 *
 * Every reading is paid for from an allowance, which grows by a reading in a fifth of the period.
 * The less is left of it, the wider are the steps in a window, up to even polls.  So the total
 * never exceeds even polls of a fifth of the period, and channels that publish at many different
 * times are polled evenly.  A publication that was missed ends a channel's prediction; even polls
 * find it again.  The distance of even polls is not a divisor of the period, so that polls do not
 * meet each publication at the same phase.  With slow drivers, at most half of the time is spent
 * reading.
 *
 * Some sources are read by the given schedule alone: those with channels that move within 5 ms,
 * those that take over 200 ms to read, and those of another machine.  So is everything if `adapt`
 * is off.
 *
 * Pure: readings in, the time of the next reading out.
 *     ipw_poll_rate_init(&p, source, interval_ns, adapt, now);
 *     for (;;) {
 *         ... read the source; t is the middle of the reading ...
 *         ipw_poll_rate_push(&p, t, values);
 *         wait until ipw_poll_rate_next(&p, now);     now: after the reading
 *     }
 * Readings at other times (a query has just ended) are pushed, and paid for, in the same way. */
#ifndef IPW_ENERGY_POLL_RATE_H
#define IPW_ENERGY_POLL_RATE_H

#include "energy/source.h"

enum { IPW_POLL_RATE_CHANNELS = 8 };

struct ipw_poll_rate_channel {
    size_t at;              /* its index in a row */
    int64_t most_step_ns;   /* a gauge: a longer step is not a publication; 0: any */
    int64_t value, read_ns; /* newest value, and when it was last read; 0: never */
    int64_t change_ns;      /* about when it came; 0: unknown */
    int64_t step_ns;        /* running mean of the distances of its changes */
    unsigned steps, odd;    /* steps in it; that differ from it, in a row */
    unsigned moved, still;  /* consecutive readings that all moved; that did not */
    int64_t period_ns;      /* 0: unknown */
    int64_t due_ns;         /* predicted next publication; 0: not predicted */
    int64_t moved_ns;       /* when it was last seen to move; 0: never */
    int64_t blur_ns;        /* how far the last publication may lie from where it was placed */
    int64_t early_ns;       /* how much earlier than predicted publications come, recent maximum */
};

struct ipw_poll_rate {
    int64_t poll_ns;   /* mean distance of readings; five times that without a reading is a gap */
    int64_t period_ns; /* learned publication period of the fastest channel; 0: unknown */
    bool fast;         /* it changes with every reading at the highest useful rate */

    int64_t base_ns, least_ns, learn_until_ns;
    int64_t start_ns;     /* start of the schedule */
    int64_t read_ns;      /* last reading; INT64_MIN: none */
    int64_t took_ns;      /* approximate duration of a reading */
    int64_t planned_ns;   /* when the next reading was planned; 0: it came */
    int64_t late_ns;      /* how late readings come, recent maximum */
    int64_t allowance_ns; /* for readings: each costs poll_ns, and time restores it */
    struct ipw_poll_rate_channel channels[IPW_POLL_RATE_CHANNELS];
    size_t n; /* 0: nothing is learned */
};

void ipw_poll_rate_init(struct ipw_poll_rate *p, const struct ipw_source *source,
                        int64_t interval_ns, bool adapt, int64_t now_ns);
/* Adds one row of the source, read at t_ns. */
void ipw_poll_rate_push(struct ipw_poll_rate *p, int64_t t_ns, const int64_t *values);
/* How long nothing but the schedule may read after the last reading, so that readings at other
 * times stay within the allowance; 0: as soon as one likes. */
int64_t ipw_poll_rate_rest(const struct ipw_poll_rate *p);
/* When to read again after the last reading; later than now_ns. */
int64_t ipw_poll_rate_next(struct ipw_poll_rate *p, int64_t now_ns);

#endif
