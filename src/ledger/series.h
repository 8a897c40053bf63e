/* ledger/series.h: the readings of one channel over time, as cumulative energy.
 *
 * Pure: samples in, figures out; no clock, no thread.  Counter readings are unwrapped when they are
 * pushed, by the channel's modulus and a plausibility gate (docs/method.md, "Counters").  If the
 * next reading confirms an implausible step, a new chain starts there, and no energy is claimed
 * across it. If the next reading contradicts it, the step was a glitch and is refused.  Gauge
 * readings are integrated by the trapezoid rule between neighbours.  A failed read is counted and
 * skipped: the next difference spans it, and it never sets a baseline.  The first reading is the
 * zero.
 *
 * Between two samples the cumulative energy is interpolated linearly.  Which readings are samples
 * depends on how the counter behaves:
 *   - A counter that moves between readings (RAPL) gives a sample with every reading.
 *   - A counter that publishes more slowly than it is polled (NVML: about every 100 ms) repeats its
 *     value.  The value is exact only at the instant of publication.  Such a counter gives a sample
 *     at each *edge*: the new value, at the midpoint between the last old and the first new
 *     reading.  A counter counts as slow if its channel says so, or if two of its last four changes
 *     came after a repeat.
 * A repeat is never a sample: it does not say when the energy was used, and no device that is awake
 * draws 0 W.  The next change covers the whole silence.  A counter that has not moved since it was
 * opened has no figure ("stuck").  Neither has a window that ends in a silence longer than its
 * period allows (ipw_series_quiet_ns()), unless the device reports that it sleeps
 * (ipw_series_sleep()). Sums telescope in both cases: the energy from the first to the last reading
 * is the counter's own difference, to the microjoule.
 *
 * The energy at an instant up to ipw_series_settled_ns() is final, whatever is pushed later.  After
 * it (the unfinished step of a slow counter) the answer is a straight line to the newest reading
 * and may change.  Only the ledger bends the line between two samples (ipw_series_bend()), once,
 * before it answers for it.
 *
 * Lag: let U be the publication period.  A value read at t held at some instant of (t - U, t], and
 * after the last reading that showed another value.  For a channel of U >= 10 ms the sample lies in
 * the middle of that interval: at the edge if polled faster than U, at t - U/2 if polled more
 * slowly. Let W be a gauge's averaging window.  A gauge's sample lies at t - U/2 - W/2; up to t its
 * value is held.
 *
 * A series owns its samples; old ones are dropped with ipw_series_trim(). */
#ifndef IPW_LEDGER_SERIES_H
#define IPW_LEDGER_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/counter.h"
#include "trace/figure.h"

/* How much later than the power's edge a client's event is assumed to come, at most: it does not
 * see the server's queue and scheduler (docs/method.md, "Edges"). */
#define IPW_SERIES_EDGE_NS INT64_C(20000000)

struct ipw_series_sample {
    int64_t t_ns;   /* when the value held: a reading, or the edge of a slow counter */
    int64_t uj;     /* cumulative since the first sample, unwrapped; a break adds nothing */
    int64_t raw;    /* as read: microjoules of the counter, or milliwatts */
    uint32_t chain; /* no energy is known between samples of different chains */
    uint32_t reads; /* readings accepted up to here (modulo 2^32) */
    uint32_t early_ns, late_ns; /* the value held at some instant of [t - early, t + late] */
    uint32_t usual_us;          /* usual distance of samples at that time; 0: unknown */
    uint32_t most_w : 31;       /* the device's highest power as known then */
    uint32_t slept : 1;         /* the device slept until here, so its silence is believed */
};

/* A corner of the line between two samples: the energy there by the ledger's model. */
struct ipw_series_knot {
    int64_t t_ns, uj;
};

struct ipw_series_break {
    int64_t from_ns, to_ns; /* last sample of the old chain, first of the new one */
    const char *reason;     /* "counter_reset", "implausible_step", "gap_too_long" */
};

/* A time in which a gauge showed one value. */
struct ipw_series_still {
    int64_t from_ns, to_ns;
};

/* What is kept from the trimmed part: see ipw_series_keep(). */
struct ipw_series_head {
    struct ipw_series_sample *samples;
    size_t n;
    struct ipw_series_knot *knots; /* corners between them */
    size_t n_knots;
    int64_t keep_ns; /* INT64_MIN: nothing is kept */
};

/* How a counter was seen to publish its values. */
struct ipw_series_pace {
    int64_t last_change_ns;   /* the reading that first showed the present value */
    int64_t before_change_ns; /* the reading before it */
    int64_t changes;          /* how often it has moved since it was opened */
    int64_t moves_ns;         /* publication period, learned from edges; 0: unknown */
    int64_t longest_ns;       /* the longest time that it was seen to stand still; 0: never */
    int64_t spacing_ns;       /* usual distance of samples; 0: unknown */
    unsigned repeat_bits;     /* bits for the last four changes: did repeats precede them? */
    bool repeated;            /* it has repeated since its last change */
};

struct ipw_series {
    struct ipw_channel channel;
    struct ipw_series_sample *samples;
    size_t n, cap, first;     /* live samples are [first, n) */
    int64_t rejected;         /* readings refused: failed, absurd, or contradicted by the next */
    int64_t breaks;           /* chains beyond the first */
    const char *break_reason; /* of the last break: "counter_reset", "gap_too_long", ... or NULL */

    struct ipw_series_break *gaps; /* the breaks among the live samples */
    size_t n_gaps, cap_gaps;
    struct ipw_series_still *stills; /* where a gauge showed one value for 5 s or more */
    size_t n_stills, cap_stills;
    int64_t trimmed_gap_ns; /* total length of the trimmed breaks */
    struct ipw_series_head head;

    struct ipw_series_sample last; /* the newest reading, sample or not; valid when n > 0 */
    struct ipw_counter counter;    /* the gate of its steps, with an implausible reading */
    struct ipw_series_pace pace;
    int64_t failing_since_ns; /* first failed read since `last`; INT64_MIN: none */
    int64_t last_failed_ns;
    /* How far the times of readings may be off, on either side: of those that come, and the most so
     * far (sources/stream.h). */
    int64_t clock_ns, most_clock_ns;
    uint32_t gauge_chain; /* of a replaced counter: chains from here on belong to a gauge */
    uint32_t most_w;      /* channel.max_w, or more if more was seen */
    double largest_mw;    /* of a gauge's readings, or of the steps of a counter without a limit */
    int64_t gauge_rest;   /* rest of the trapezoid rule, in half picojoules */
    bool asleep;          /* the device sleeps: ipw_series_sleep() */

    struct ipw_series_knot *knots; /* in order, each strictly between two samples of a chain */
    size_t n_knots, cap_knots;
    const char *cut_reason; /* ipw_series_cut(): why the next reading starts a chain, or NULL */
    const char *doubt;      /* why none of its readings is believed (static text), or NULL */
    bool lost;              /* ipw_series_lose(): no reading came since */
};

void ipw_series_init(struct ipw_series *s, const struct ipw_channel *channel);
void ipw_series_release(struct ipw_series *s);
/* Times must increase (others are refused); IPW_NO_VALUE is counted and skipped. */
void ipw_series_push(struct ipw_series *s, int64_t t_ns, int64_t value);
/* How far the times of the readings that follow may be off. */
void ipw_series_clock(struct ipw_series *s, int64_t half_ns);
/* Drops samples that only matter before `before_ns`; keeps one at or before it. */
void ipw_series_trim(struct ipw_series *s, int64_t before_ns);
/* Keeps instants up to `until_ns` answerable regardless of trimming.  For the start of a run, from
 * which its total is taken; set it once, before any trim. */
void ipw_series_keep(struct ipw_series *s, int64_t until_ns);

/* Adds a corner to the line between two samples.  It must be later than all earlier corners and
 * strictly between its neighbours in time.  Its energy is limited to the range between theirs. */
void ipw_series_bend(struct ipw_series *s, int64_t t_ns, int64_t uj);
/* The next reading starts a new chain, such as after a suspend.  `reason` is static text. */
void ipw_series_cut(struct ipw_series *s, const char *reason);
/* The counter is dead.  From now on push readings of this gauge of the same device; they form a new
 * chain. */
void ipw_series_hand_over(struct ipw_series *s, const struct ipw_channel *gauge,
                          const char *reason);
/* The device is lost (it fell off the bus, or its driver was unloaded).  A later reading belongs to
 * another count.  Instants after the newest reading are unknown for this reason (static text);
 * another cut does not change it. */
void ipw_series_lose(struct ipw_series *s, const char *reason);

/* The device reports that it sleeps.  The last repeat is believed: no energy was used since the
 * sample before it. */
void ipw_series_sleep(struct ipw_series *s);
/* Do the samples of this chain belong to a gauge? */
bool ipw_series_is_gauge(const struct ipw_series *s, uint32_t chain);
/* How often a gauge publishes, as far as known.  The resolution is the shortest window that it can
 * resolve: three times that, or three times its averaging window.  Both are 0 for a counter. */
int64_t ipw_series_gauge_step_ns(const struct ipw_series *s);
int64_t ipw_series_resolution_ns(const struct ipw_series *s);
/* How long the counter may stand still: three learned periods, at least half a second. */
int64_t ipw_series_quiet_ns(const struct ipw_series *s);
/* How long it has stood still, if longer than ipw_series_quiet_ns(); else 0. */
int64_t ipw_series_silence_ns(const struct ipw_series *s);
/* Has it been silent for so long (at least 3 s) that it is not waited for? */
bool ipw_series_is_stuck(const struct ipw_series *s);
/* Has the counter moved since it was opened?  True for a gauge, which need not move. */
bool ipw_series_has_moved(const struct ipw_series *s);

/* Up to here the cumulative energy is final.  INT64_MIN while there is no sample, and for a counter
 * that has not moved. */
int64_t ipw_series_settled_ns(const struct ipw_series *s);
/* The cumulative microjoules at an instant.  Outside the samples: at the nearest sample.  Inside a
 * break: at the last sample of the old chain.  0 while there is no sample. */
int64_t ipw_series_at(const struct ipw_series *s, int64_t t_ns);
/* Index of the last live sample at or before t; s->first if there is none. */
size_t ipw_series_find(const struct ipw_series *s, int64_t t_ns);

/* Energy of this channel between two instants.  It is known only if samples of one chain bracket
 * both. An instant up to `slack_ns` outside the samples is taken as at the nearest one, as long as
 * half of the window is inside them.
 *
 * The provenance (docs/method.md, "Provenance").  "measured": a sample lies within max(the
 * channel's period, 2 ms) of each end, and half of hi - lo is at most 2 % of the figure.
 * "interpolated": that half is at most 10 %, and no end lies in a gap between samples (over 250 ms
 * and over 2.5 times their usual distance).  "distributed": all other counters.  "estimated": any
 * gauge.  A window of no length inside the samples is exactly 0, measured.
 *
 * Bounds of a gauge.  Its values are means over W: its window or, if the channel does not say, the
 * time since its last value.  It publishes every U.  So each end of the window may have H = W/2 + U
 * of the power around it on the wrong side.  That is at most H * max_w, and at most the energy that
 * it read within 2 H on either side.  If W is less than U, nothing observed the rest of the time,
 * whose power may be anything from 0 to max_w.  The same holds for a time of 5 s or more with one
 * value.
 *
 * Reasons for an unknown value: "no_samples" (none was ever read, or reads have been failing
 * since), "not_covered" (outside the samples), the reason of the loss (ipw_series_lose()), or the
 * reason of the first break inside the window. */
struct ipw_figure ipw_series_between(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns,
                                     int64_t slack_ns);
/* The same, and what ipw_series_bounds() says at both ends of a known window. */
struct ipw_series_ends {
    int64_t below0_uj, above0_uj, below1_uj, above1_uj;
};
struct ipw_figure ipw_series_window(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns,
                                    int64_t slack_ns, struct ipw_series_ends *ends);
/* Whether that figure is known; if so, its joules and coverage. */
bool ipw_series_joules(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns, int64_t slack_ns,
                       double *joules, double *coverage);
/* ipw_series_at(), and the bounds of the energy at that instant: the truth is within [at - *below,
 * at + *above], relative to the first sample's truth.  They follow from the samples around it, the
 * counter's unit (61 uJ if it wraps, else 1 mJ) and the device's highest power (max_w; 1 kW if the
 * channel does not say). */
int64_t ipw_series_bounds(const struct ipw_series *s, int64_t t_ns, int64_t *below_uj,
                          int64_t *above_uj);
/* The last sample at or before t among all that are kept, and the one after it.  *next is NULL if
 * there is none, or the newest reading if that is not a sample yet.  Returns NULL if t lies before
 * all samples. */
const struct ipw_series_sample *ipw_series_around(const struct ipw_series *s, int64_t t_ns,
                                                  const struct ipw_series_sample **next);
/* The device's highest power, in watts.  Of a meter, whose device has no limit that is known: twice
 * the largest that it has shown. */
int64_t ipw_series_most_w(const struct ipw_series *s);
/* The power of the whole device in the part of an unknown window that no chain covers.  It is the
 * reading of the device's gauge (may be NULL), else the last known power: in the window, else in
 * the second before the samples end or break.  False: none is known. */
bool ipw_series_guess(const struct ipw_series *s, const struct ipw_series *gauge, int64_t t0_ns,
                      int64_t t1_ns, double *watts, const char **by);
/* The part of a window that lies inside unbroken chains, from 0 to 1. */
double ipw_series_coverage(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns);
/* Power over a window, in watts, from differences of neighbouring samples; false if there are none.
 * The peak is at least the mean: in a short window, corners may put more than the step's mean power
 * into its part of the step. */
bool ipw_series_power(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns, double *mean_w,
                      double *peak_w);

#endif
