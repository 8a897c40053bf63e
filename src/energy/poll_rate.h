/* energy/poll_rate.h: when a source is worth reading.
 *
 * A counter that publishes every 100 ms says something new once in 100 ms: readings close to that
 * instant tell when it came, and readings in between tell nothing.  The pace learns the publication
 * period of a source from what is read: 5 ms polls during the first second, then the distance of
 * changes, for as long as it runs, so that a driver that changes its period is noticed.  From then on it predicts each publication from the
 * publications before it.  It reads every 2 ms from about 4 ms before that instant until the new
 * value has come, and not at all until the next one.  Jitter, and readings that come late on a busy
 * machine, open these windows earlier.
 *
 * All readings together are never more than even polls of a fifth of the period: every reading is
 * paid for out of that allowance, windows use wider steps where it is small, and where several
 * channels publish at so many different times that windows would fill the period, the source is
 * polled evenly.  The distance of even polls is not a divisor of the period, so that they do not
 * meet a publication at the same phase again and again.  Publications that are missed, a period that
 * is no longer true, and a counter that stands still end the prediction: even polls, and closer ones
 * while some allowance is left, find the period again.  Slow drivers: at most half of the time is
 * spent reading.
 *
 * A source whose channels say that they move within 5 ms, one that is slower than 200 ms to read,
 * and one of another machine are read by the given schedule alone, as is everything when `adapt` is
 * off.
 *
 * Pure: readings in, the time of the next reading out.
 *     ipw_poll_rate_init(&p, source, interval_ns, adapt, now);
 *     for (;;) {
 *         ... read the source; t is the middle of the reading ...
 *         ipw_poll_rate_push(&p, t, values);
 *         wait until ipw_poll_rate_next(&p, now);     now: after the reading
 *     }
 * Readings at other times (a query has just ended) are pushed likewise. */
#ifndef IPW_ENERGY_POLL_RATE_H
#define IPW_ENERGY_POLL_RATE_H

#include "energy/source.h"

enum { IPW_POLL_RATE_CHANNELS = 8, IPW_POLL_RATE_STEPS = 9, IPW_POLL_RATE_ERRORS = 16 };

struct ipw_poll_rate_channel {
    size_t at;            /* its index in a row */
    int64_t most_step_ns; /* of a gauge that says how often it publishes: a longer step is none */
    bool seen;
    int64_t value, read_ns;             /* newest value, and when it was last read */
    int64_t change_ns;                  /* about when it came; 0: not known */
    int64_t moved_ns;                   /* the reading that first showed it */
    int64_t steps[IPW_POLL_RATE_STEPS]; /* distances of its last changes */
    unsigned n_steps;
    unsigned moved; /* readings in a row that all moved */
    unsigned still; /* readings in a row that did not */

    int64_t period_ns; /* 0: not known */
    int64_t due_ns;    /* its next publication, as predicted; 0: not predicted */
    int64_t blur_ns;   /* how long the window was in which the last one lay */
    int64_t early_ns[IPW_POLL_RATE_ERRORS]; /* by how much the last ones came before their time */
    unsigned n_early;
    unsigned misses; /* publications that came before their window, less those that did not */
};

struct ipw_poll_rate {
    int64_t poll_ns;   /* the mean distance of readings; 5 of it without one are a hole */
    int64_t period_ns; /* publication period as learned, of the quickest channel; 0: not known */
    bool fast;         /* it moves with every reading at the fastest pace that is worth it */

    int64_t base_ns, least_ns, learn_ns, learn_until_ns;
    int64_t start_ns;     /* of the schedule */
    int64_t read_ns;      /* last reading; INT64_MIN: none */
    int64_t took_ns;      /* how long a reading takes, about */
    int64_t planned_ns;   /* when the next one was to come; 0: it has */
    int64_t late_ns;      /* how late they come, at worst of late */
    int64_t allowance_ns; /* of readings: each costs poll_ns, and time gives it back */
    struct ipw_poll_rate_channel channels[IPW_POLL_RATE_CHANNELS];
    size_t n; /* 0: nothing is learned */
};

void ipw_poll_rate_init(struct ipw_poll_rate *p, const struct ipw_source *source,
                        int64_t interval_ns, bool adapt, int64_t now_ns);
/* One row of the source, read at t_ns. */
void ipw_poll_rate_push(struct ipw_poll_rate *p, int64_t t_ns, const int64_t *values);
/* When to read again, given that the last reading is over; later than now_ns. */
int64_t ipw_poll_rate_next(struct ipw_poll_rate *p, int64_t now_ns);

#endif
