/* energy/sampler.h: the threads that read the sensors.
 *
 * One thread a source, so that a slow driver call never delays another.  Each wakes on absolute
 * monotonic deadlines, reads a row with time stamps before and after, and puts it into a
 * single-producer ring; `notify` is called (on that thread) when there is something to take, at most
 * every 20 ms unless somebody waits.  The owner's thread takes rows with ipw_sampler_drain() in the
 * order of their time stamps per source.  A full ring makes the thread wait rather than drop.
 * ipw_sampler_kick() asks for one reading soon, outside the schedule: a query has just ended and
 * waits for a sample after its end.  ipw_sampler_mark() reads the CPU's counters at once, on the
 * caller's thread: a phase begins or ends here.
 * The sampler owns its threads and rings, not the sources. */
#ifndef IPW_ENERGY_SAMPLER_H
#define IPW_ENERGY_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "energy/source.h"

struct ipw_sampler;

/* Rows of a source that wait to be taken before its thread waits too (at 100 Hz: 20 s). */
#define IPW_SAMPLER_ROWS ((size_t)2046)

struct ipw_sampler_row {
    size_t source;         /* index in the set */
    size_t first_channel;  /* index of its first channel over all sources of the set */
    size_t n;              /* its channels */
    int64_t t_ns;          /* midpoint of the read, in whole microseconds */
    int64_t half_ns;       /* half of its duration, with those before it that were thrown away */
    const int64_t *values; /* borrowed for the callback */
};

/* A stretch without readings: the thread did not run, or the driver did not answer. */
struct ipw_sampler_gap {
    size_t source;
    int64_t from_ns, to_ns; /* the readings around it */
    bool slow_read;         /* it was one read that took so long */
};

/* A channel's device is gone, or back (its next value is the first of another count). */
struct ipw_sampler_loss {
    size_t source, channel; /* channel: over all sources of the set */
    int64_t t_ns;
    bool back;
};

struct ipw_sampler_options {
    int64_t interval_ns;
    bool adapt; /* slow sources when they publish (energy/poll_rate.h) */
    /* A reading in the middle of which the thread was interrupted (it took far longer than they
     * usually do) is thrown away and taken again, twice at the most: nobody knows when within it the
     * values held, and bounds that rest on its time would not hold either. */
    bool retake;
    void (*notify)(void *ud);
    void (*gap)(void *ud, const struct ipw_sampler_gap *gap); /* called by the drain, before the row
                                                                 that ended it; may be NULL */
    void (*loss)(void *ud, const struct ipw_sampler_loss *loss); /* likewise, before the row that
                                                                    shows it; may be NULL */
    void *ud;
    /* The clock, for tests and benches; NULL: CLOCK_MONOTONIC.  sleep_until replaces waiting. */
    int64_t (*now)(void *clock);
    void (*sleep_until)(void *clock, int64_t t_ns);
    void *clock;
};
/* Takes the first reading of every source itself (so `notify` is called on this thread, too): what
 * the caller does next lies after it.  A source is read every max(interval_ns, its period_ns), or
 * when its pace says so. */
int ipw_sampler_start_with(struct ipw_sampler **out, const struct ipw_source_set *set,
                           const struct ipw_sampler_options *options, struct ipw_err *err);
/* The same without adapting and without being told of gaps. */
int ipw_sampler_start(struct ipw_sampler **out, const struct ipw_source_set *set,
                      int64_t interval_ns, void (*notify)(void *ud), void *ud, struct ipw_err *err);
/* At the earliest one period_ns of the source after its last reading.  A source that is read by its
 * schedule by then is left to that. */
void ipw_sampler_kick(struct ipw_sampler *s);
/* From now on kicks and marks come at least so far after a source's last reading: the more happens at a
 * time, the less a reading at each edge says, and the more it costs.  0: as often as a source can.  NULL
 * is fine. */
void ipw_sampler_space(struct ipw_sampler *s, int64_t apart_ns);
/* Reads this machine's fast CPU counters (published within 2 ms) now and on this thread, unless one
 * was read within its period or is just being read by its own thread.  Rows are taken by the next
 * drain.  NULL and a sampler without such a counter: nothing, at the price of a test. */
void ipw_sampler_mark(struct ipw_sampler *s);
/* Takes everything that is there. */
void ipw_sampler_drain(struct ipw_sampler *s,
                       void (*row)(void *ud, const struct ipw_sampler_row *row), void *ud);
/* One last reading of every source, then the threads end and are joined; drain once more after. */
void ipw_sampler_stop(struct ipw_sampler *s);
/* CPU time the sampler threads have used. */
int64_t ipw_sampler_cpu_ns(const struct ipw_sampler *s);
void ipw_sampler_free(struct ipw_sampler *s); /* stops first if need be */

#endif
