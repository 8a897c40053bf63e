/* ledger/series.h: what one channel read over time, as cumulative energy.
 *
 * Pure: samples in, figures out; no clock, no thread.  Counter readings are unwrapped when they are
 * pushed, against the channel's modulus and a plausibility gate (docs/method.md, "Counters"): an
 * implausible step starts a new chain, across which no energy is claimed, once the reading after
 * it agrees; one that the next reading contradicts was a glitch, and is refused.  Gauge readings
 * are integrated by the trapezoid rule between neighbours.  A failed read is counted and skipped:
 * the next difference spans it, and it never sets a baseline.  The first reading is the zero.
 *
 * Between two samples the cumulative energy is interpolated linearly.  What a sample is depends on
 * how the counter behaves:
 *   - A counter that moves between readings (RAPL) gives a sample with every reading.
 *   - A counter that publishes more slowly than it is polled (NVML: about every 100 ms) repeats its
 *     value; it is exact only at the instant it publishes.  Such a counter (the channel says so, or
 *     two of its last four changes came after a repeat) gives a sample at each *edge*: the new
 *     value, at the midpoint between the last old and the first new reading.
 * A repeat is never a sample: of when the energy was drawn it says nothing, and no device that is
 * awake draws 0 W.  The next change covers the whole silence.  Until a counter has moved once since
 * it was opened it has no figure ("stuck"); nor has a window that ends in a silence longer than its
 * period allows (ipw_series_quiet_ns()).  Only a device that says that it sleeps is taken at its
 * word (ipw_series_sleep()).
 * Sums telescope in both cases: the energy from the first to the last reading is the counter's own
 * difference, to the microjoule.
 *
 * What has been said stays said: the energy at an instant up to ipw_series_settled_ns() does not
 * change any more, whatever is pushed later.  After it (the unfinished step of a slow counter) the
 * answer is a straight line to the newest reading, and may change.  Only the ledger bends the line
 * between two samples (ipw_series_bend()), once, before it answers for it.
 *
 * Lag: a value read at t held at some instant of (t - U, t], U the publication period, and
 * after the last reading that showed another value.  For a channel of U >= 10 ms the sample lies
 * in the middle of that: at the edge when polled faster than U, at t - U/2 when polled more slowly.
 * A gauge's sample lies at t - U/2 - W/2, W the window that its value is the mean over; up to t its
 * value is held.
 *
 * A series owns its samples; old ones are dropped with ipw_series_trim(). */
#ifndef IPW_LEDGER_SERIES_H
#define IPW_LEDGER_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/source.h"
#include "trace/figure.h"

struct ipw_series_sample {
    int64_t t_ns;   /* when the value held: a reading, or the edge of a slow counter */
    int64_t uj;     /* cumulative since the first sample, unwrapped; a break adds nothing */
    int64_t raw;    /* as it was read: microjoules of the counter, or milliwatts */
    uint32_t chain; /* samples of different chains have no energy between them */
    uint32_t reads; /* readings accepted up to here (modulo 2^32) */
    uint32_t early_ns, late_ns; /* the value held at some instant of [t - early, t + late] */
    uint32_t usual_us;          /* usual distance of samples by then; 0: not known */
    uint32_t most_w : 31;       /* the most that the device draws, by what was known then */
    uint32_t slept : 1;         /* the device slept up to here: its silence is believed */
};

/* A corner of the line between two samples: the energy there as the ledger modelled it. */
struct ipw_series_knot {
    int64_t t_ns, uj;
};

struct ipw_series_break {
    int64_t from_ns, to_ns; /* last sample of the old chain, first of the new one */
    const char *reason;     /* "counter_reset", "implausible_step", "gap_too_long" */
};

/* A gauge showed one value from here to there. */
struct ipw_series_still {
    int64_t from_ns, to_ns;
};

struct ipw_series {
    struct ipw_channel channel;
    struct ipw_series_sample *samples;
    size_t n, cap, first;     /* live samples are [first, n) */
    int64_t rejected;         /* readings refused (failed, absurd, or contradicted by the next) */
    int64_t breaks;           /* chains beyond the first */
    const char *break_reason; /* of the last break: "counter_reset", "gap_too_long", ... or NULL */

    struct ipw_series_break *gaps; /* the breaks among the live samples */
    size_t n_gaps, cap_gaps;
    struct ipw_series_still *stills; /* of a gauge: where it stood still for 5 s or more */
    size_t n_stills, cap_stills;
    int64_t trimmed_gap_ns;         /* the length of those that were trimmed */
    struct ipw_series_sample *head; /* kept from before the trimmed part: see ipw_series_keep() */
    size_t n_head;
    int64_t keep_ns; /* INT64_MIN: nothing is kept */

    struct ipw_series_sample last;    /* the newest reading, sample or not; valid when n > 0 */
    struct ipw_series_sample suspect; /* an implausible reading, to be judged by the next one */
    const char *suspect_why;          /* NULL: there is none */
    int64_t last_change_ns;           /* the reading that first showed the present value */
    int64_t before_change_ns;         /* the one before it */
    int64_t changes;                  /* how often it has moved since it was opened */
    int64_t failing_since_ns;         /* first of the failed reads since `last`; INT64_MIN: none */
    int64_t last_failed_ns;
    int64_t moves_ns;   /* publication period, learned from edges; 0: not known */
    int64_t doubt_ns;   /* its values may be so much older than they look, says its ledger */
    int64_t longest_ns; /* the longest time it may have stood still, as seen; 0: never did */
    int64_t spacing_ns; /* usual distance of samples; 0: not known */
    uint32_t
        gauge_chain; /* of a counter that was handed over: its chains from here on are a gauge's */
    uint32_t most_w; /* channel.max_w, or more when more was seen */
    double plain_uj,
        plain_off_uj;     /* of an undone mean: the readings' integral; its offset at rest */
    int64_t gauge_rest;   /* what the trapezoid rule has not yet booked, in half picojoules */
    unsigned repeat_bits; /* the last four changes: did repeats precede them? */
    bool repeated;        /* it has repeated since its last change */
    bool asleep;          /* the device sleeps: ipw_series_sleep() */

    struct ipw_series_knot *knots; /* in order, each strictly between two samples of a chain */
    size_t n_knots, cap_knots;
    struct ipw_series_knot *head_knots; /* of the head */
    size_t n_head_knots;
    const char *cut_reason; /* ipw_series_cut(): why the next reading starts a chain; or NULL */
    bool lost;              /* ipw_series_lose(): nothing was read since */
};

void ipw_series_init(struct ipw_series *s, const struct ipw_channel *channel);
void ipw_series_release(struct ipw_series *s);
/* Times must increase (a reading that does not is refused); IPW_NO_VALUE is counted and skipped. */
void ipw_series_push(struct ipw_series *s, int64_t t_ns, int64_t value);
/* Drops samples that only matter before `before_ns`, keeping one at or before it. */
void ipw_series_trim(struct ipw_series *s, int64_t before_ns);
/* Instants up to `until_ns` stay answerable whatever is trimmed (set once, before any trim): the
 * start of a run, from which its total is taken. */
void ipw_series_keep(struct ipw_series *s, int64_t until_ns);

/* Adds a corner to the line between two samples: later than all corners before, and strictly
 * between its neighbours in time.  The energy is held between theirs. */
void ipw_series_bend(struct ipw_series *s, int64_t t_ns, int64_t uj);
/* The next reading starts a new chain: something happened across which nothing is known (the
 * machine was suspended).  `reason` is static text. */
void ipw_series_cut(struct ipw_series *s, const char *reason);
/* The counter is dead: what is pushed from now on are readings of this gauge of the same device, in a
 * chain of its own. */
void ipw_series_hand_over(struct ipw_series *s, const struct ipw_channel *gauge,
                          const char *reason);
/* The device is gone (it fell off the bus, its driver was unloaded): what is read next, if anything,
 * is another count.  Instants after the newest reading are not known for this reason (static text);
 * another cut does not change it. */
void ipw_series_lose(struct ipw_series *s, const char *reason);

/* Does it publish more slowly than it is read (or say so)? */
bool ipw_series_is_slow(const struct ipw_series *s);
/* The device reports that it sleeps: the repeat that was pushed last is believed, nothing was drawn
 * since the sample before. */
void ipw_series_sleep(struct ipw_series *s);
/* Are the samples of this chain a gauge's? */
bool ipw_series_is_gauge(const struct ipw_series *s, uint32_t chain);
/* How often a gauge publishes, as far as is known; and the shortest window that it can resolve: three
 * of that, or of what it averages over.  0 of a counter. */
int64_t ipw_series_gauge_step_ns(const struct ipw_series *s);
int64_t ipw_series_resolution_ns(const struct ipw_series *s);
/* For how long the counter may stand still before that is told: three periods, as learned; half a
 * second at least. */
int64_t ipw_series_quiet_ns(const struct ipw_series *s);
/* For how long it has stood still, when that is longer; 0: it is not silent. */
int64_t ipw_series_silence_ns(const struct ipw_series *s);
/* So long that nobody waits for it any more: 3 s at least. */
bool ipw_series_is_stuck(const struct ipw_series *s);
/* Has the counter moved since it was opened?  A gauge need not. */
bool ipw_series_has_moved(const struct ipw_series *s);

/* Up to here the cumulative energy is final; INT64_MIN while there is no sample, and of
 * a counter until it has moved. */
int64_t ipw_series_settled_ns(const struct ipw_series *s);
/* The cumulative microjoules at an instant; at the nearest sample when it lies outside them, at
 * the last sample of the old chain inside a break.  0 while there is no sample. */
int64_t ipw_series_at(const struct ipw_series *s, int64_t t_ns);
/* Index of the last live sample at or before t; s->first when there is none. */
size_t ipw_series_find(const struct ipw_series *s, int64_t t_ns);

/* Energy of this channel between two instants.  Known only when both are bracketed by samples of
 * one chain (an instant up to `slack_ns` outside the samples is taken as at the nearest one, as
 * long as half of the window is inside them).
 *
 * The label (docs/method.md, "Provenance").  "measured": a sample lies within max(the channel's
 * period, 2 ms) of each end and half of hi - lo is at most 2 % of the figure.  "interpolated": at
 * most 10 %, and no end in a hole between samples (over 250 ms and over 2.5 times their usual
 * distance).  "distributed": else.  "estimated": any gauge.  A window of no length inside the
 * samples is exactly 0, measured.
 *
 * Bounds of a gauge.  Its values are means over W (its window; where it does not say, the time since
 * its last value), published every U, so that each end of the window may have H = W/2 + U of what was
 * drawn around it on the wrong side: no more than H * max_w, and no more than it read within 2 H on
 * either side.  Where W is less than U the rest of the time was not observed at all and may have had
 * anything from 0 to max_w; so may the time when it stood still for 5 s.
 * Reasons: "no_samples" (none was ever read, or reads have been failing since), "not_covered"
 * (outside what was sampled), that of the loss (ipw_series_lose()), or that of the first break
 * inside the window. */
struct ipw_figure ipw_series_between(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns,
                                     int64_t slack_ns);
/* The bounds of the energy at an instant: the truth is within [at - *below, at + *above], by the
 * samples around it, the counter's unit (61 uJ of one that wraps, else 1 mJ) and the most the
 * device draws (max_w; 1 kW when it does not say).  Relative to the first sample's truth. */
void ipw_series_bounds(const struct ipw_series *s, int64_t t_ns, int64_t *below_uj,
                       int64_t *above_uj);
/* The same instants by a straight line between samples, whatever corners there are. */
int64_t ipw_series_straight(const struct ipw_series *s, int64_t t_ns);
/* The last sample at or before t among all that are kept, and the one after it (NULL: none; the
 * newest reading when that is no sample yet).  NULL when t lies before all. */
const struct ipw_series_sample *ipw_series_around(const struct ipw_series *s, int64_t t_ns,
                                                  const struct ipw_series_sample **next);
/* ipw_series_at() between those two. */
int64_t ipw_series_along(const struct ipw_series *s, const struct ipw_series_sample *at,
                         const struct ipw_series_sample *next, int64_t t_ns);
/* The most the device draws, in watts. */
int64_t ipw_series_most_w(const struct ipw_series *s);
/* A model of a window that ipw_series_between() does not know, in watts of the whole device, for the
 * part of it that no chain holds: what the gauge of the same device (may be NULL) read there, else
 * what was drawn last: in the window, else in the second before the samples end or break.  False:
 * there is nothing to go by. */
bool ipw_series_guess(const struct ipw_series *s, const struct ipw_series *gauge, int64_t t0_ns,
                      int64_t t1_ns, double *watts, const char **by);
/* The part of a window that lies inside unbroken chains, from 0 to 1. */
double ipw_series_coverage(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns);
/* Power statistics over a window, in watts, from differences of neighbouring samples; false when
 * there are none.  The peak is the mean at least: corners may put more than the whole step's power
 * into the part of a step that a short window holds. */
bool ipw_series_power(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns, double *mean_w,
                      double *peak_w);

#endif
