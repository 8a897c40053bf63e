/* energy/selftest.h: checks that each sensor works as it claims.
 *
 * It gets the rows of the first seconds.  Does the value move?  How often is it published?  Does a
 * counter agree with the power that the same device reports (within 5 %)?  Is the counter frozen
 * while the device clearly draws power?  Is the gauge stuck while the counter shows changes?  It
 * also gives each channel's watts over the same time.  energy/belief.h draws the conclusions:
 * whether the sensor is believed, and in which words.  Pure: rows in, verdicts out. */
#ifndef IPW_ENERGY_SELFTEST_H
#define IPW_ENERGY_SELFTEST_H

#include "base/buf.h"
#include "energy/sampler.h"

enum ipw_selftest_state {
    IPW_SELFTEST_UNREAD, /* every read failed */
    /* A counter that did not move for five periods, or for a second if its period is unknown or
     * very short; a gauge: see `frozen`. */
    IPW_SELFTEST_STUCK,
    IPW_SELFTEST_STEADY, /* a gauge or metric that did not change, which is normal */
    IPW_SELFTEST_MOVES,
    IPW_SELFTEST_SHORT, /* too few readings for a verdict */
};
const char *ipw_selftest_state_name(enum ipw_selftest_state state); /* "unread", "stuck", ... */

struct ipw_selftest_verdict {
    enum ipw_selftest_state state;
    bool gauge; /* a gauge; its `frozen` has another meaning */
    bool moved; /* at least once */
    /* A counter that stands still while its device's gauge says 0 W, which only suspended devices
     * report. */
    bool asleep;
    int64_t reads, failed;
    int64_t period_ns; /* median distance of changes; 0: unknown */
    double watts;      /* NAN: unknown, or a metric */
    double value;      /* of a metric: the newest value in its unit; else NAN */
    /* Of a counter: its power relative to the gauge's; NAN: nothing to compare. */
    double ratio;
    bool disagrees; /* by more than 5 % */
    /* A counter: it stands still while its device's gauge shows power.  A gauge: it has stood still
     * for 5 s while its device's counter shows that the power is different or has changed. */
    bool frozen;
};
/* Rows after this time add nothing. */
#define IPW_SELFTEST_NS INT64_C(6000000000)

struct ipw_selftest;
struct ipw_selftest *ipw_selftest_new(const struct ipw_source_set *set);
void ipw_selftest_free(struct ipw_selftest *t);
void ipw_selftest_row(struct ipw_selftest *t, const struct ipw_sampler_row *row);
/* The time that its rows cover so far. */
int64_t ipw_selftest_span_ns(const struct ipw_selftest *t);
/* The verdict so far on a channel of the set, numbered in the order of its sources. */
struct ipw_selftest_verdict ipw_selftest_verdict(const struct ipw_selftest *t, size_t channel);
/* Number of devices of the GPU domain that were read. */
size_t ipw_selftest_gpus(const struct ipw_selftest *t);
/* Marks the set's frozen channels as rejected and chooses the sums again; returns how many there
 * were. */
size_t ipw_selftest_reject(const struct ipw_selftest *t, struct ipw_source_set *set);
/* Appends a JSON array: one object per channel. */
void ipw_selftest_json(struct ipw_buf *out, const struct ipw_selftest *t);

#endif
