/* energy/sampler.h: the threads that read the sensors.
 *
 * Each source has its own thread, so that a slow driver call never delays another source.  The
 * thread wakes on absolute monotonic deadlines, reads a row with time stamps before and after, and
 * puts it into a single-producer ring.  It calls `notify` (on that thread) when there are rows to
 * take, at most every 20 ms unless a caller waits.  The owner's thread takes rows with
 * ipw_sampler_drain(), in the order of their time stamps per source.  If the ring is full, the
 * thread waits; it drops no row.
 *
 * ipw_sampler_kick() asks for an extra reading soon, because a query has just ended and needs a
 * sample after its end.  ipw_sampler_mark() reads the CPU's counters at once, on the caller's
 * thread, because a phase begins or ends.  The sampler owns its threads and rings, but not the
 * sources. */
#ifndef IPW_ENERGY_SAMPLER_H
#define IPW_ENERGY_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "energy/source.h"

struct ipw_sampler;

/* Rows of a source that can wait to be taken before its thread has to wait (at 100 Hz: 20 s). */
#define IPW_SAMPLER_ROWS ((size_t)2046)

struct ipw_sampler_row {
    size_t source;         /* index in the set */
    size_t first_channel;  /* index of its first channel over all sources of the set */
    size_t n;              /* number of its channels */
    int64_t t_ns;          /* midpoint of the read, in whole microseconds */
    int64_t half_ns;       /* half of the reading's duration, including repeated attempts */
    const int64_t *values; /* borrowed for the callback */
};

/* A time without readings: the thread did not run, or the driver did not answer. */
struct ipw_sampler_gap {
    size_t source;
    int64_t from_ns, to_ns; /* the readings before and after it */
    bool slow_read;         /* a single read took so long */
};

/* A channel's device was lost, or is back (its next value begins a new count). */
struct ipw_sampler_loss {
    size_t source, channel; /* channel: index over all sources of the set */
    int64_t t_ns;
    bool back;
};

struct ipw_sampler_options {
    int64_t interval_ns;
    bool adapt; /* read slow sources when they publish (energy/poll_rate.h) */
    /* Throws away a reading during which the thread was interrupted (it took far longer than
     * usual), and takes it again, at most twice.  The instant of such a reading's values is
     * unknown, and bounds based on its time would be wrong. */
    bool retake;
    void (*notify)(void *ud);
    /* Called by the drain before the row that ended the gap; may be NULL. */
    void (*gap)(void *ud, const struct ipw_sampler_gap *gap);
    /* Called by the drain before the row that shows the loss; may be NULL. */
    void (*loss)(void *ud, const struct ipw_sampler_loss *loss);
    void *ud;
    /* A clock for tests and benches; NULL: CLOCK_MONOTONIC.  sleep_until replaces waiting. */
    int64_t (*now)(void *clock);
    void (*sleep_until)(void *clock, int64_t t_ns);
    void *clock;
};
/* Takes the first reading of every source itself (so it also calls `notify` on this thread): all
 * later actions of the caller lie after it.  A source is read every max(interval_ns, its
 * period_ns), or when its pace says so. */
int ipw_sampler_start(struct ipw_sampler **out, const struct ipw_source_set *set,
                      const struct ipw_sampler_options *options, struct ipw_err *err);
/* Asks every source for a reading, at the earliest one period_ns after its last one. */
void ipw_sampler_kick(struct ipw_sampler *s);
/* From now on kicks and marks come at least so far after a source's last reading: the more happens at a
 * time, the less a reading at each edge says, and the more it costs.  0: as often as a source can.  NULL
 * is fine. */
void ipw_sampler_space(struct ipw_sampler *s, int64_t apart_ns);
/* Reads this machine's fast CPU counters (published within 2 ms) now and on this thread, unless one
 * was read within its period or is just being read by its own thread.  Rows are taken by the next
 * drain.  NULL and a sampler without such a counter: nothing, at the price of a test. */
void ipw_sampler_mark(struct ipw_sampler *s);
/* Takes all waiting rows. */
void ipw_sampler_drain(struct ipw_sampler *s,
                       void (*row)(void *ud, const struct ipw_sampler_row *row), void *ud);
/* Takes one last reading of every source, then ends and joins the threads; drain once more
 * afterwards. */
void ipw_sampler_stop(struct ipw_sampler *s);
/* CPU time the sampler threads have used. */
int64_t ipw_sampler_cpu_ns(const struct ipw_sampler *s);
void ipw_sampler_free(struct ipw_sampler *s); /* stops first if necessary */

#endif
