/* energy/selftest.h: does each sensor do what it says?
 *
 * Fed with the rows of the first seconds: does the value move, how often is it published, does a
 * counter agree with the power that the same device reports (within 5 %), is it frozen while the
 * device plainly draws power, is the power stuck while the counter shows that it changes.  Also what each
 * channel reads in watts, over the same time.  What follows from it (is the sensor believed, in what
 * words is that told) is energy/belief.h.  Pure: rows in, verdicts out. */
#ifndef IPW_ENERGY_SELFTEST_H
#define IPW_ENERGY_SELFTEST_H

#include "base/buf.h"
#include "energy/sampler.h"

enum ipw_selftest_state {
    IPW_SELFTEST_UNREAD, /* not one reading succeeded */
    IPW_SELFTEST_STUCK,  /* a counter that did not move for five of its periods, for a second where
                            these are not known or very short; a gauge: see `frozen` */
    IPW_SELFTEST_STEADY, /* a gauge or metric that did not change: it may well be so */
    IPW_SELFTEST_MOVES,
    IPW_SELFTEST_SHORT, /* too little was seen to say */
};
const char *ipw_selftest_state_name(enum ipw_selftest_state state); /* "unread", "stuck", ... */

struct ipw_selftest_verdict {
    enum ipw_selftest_state state;
    bool gauge;  /* a gauge, of which `frozen` says something else */
    bool moved;  /* once at least */
    bool asleep; /* a counter that rests while its device's gauge says 0 W: that is only said of a
                    device that is suspended */
    int64_t reads, failed;
    int64_t period_ns; /* median distance of changes; 0: not known */
    double watts;      /* NAN: not known, or a metric */
    double value;      /* of a metric, the newest, in its unit; else NAN */
    double ratio;      /* of a counter: its power over the gauge's; NAN: nothing to compare */
    bool disagrees;    /* by more than 5 % */
    /* A counter that stands still while its device's gauge shows power; a gauge that has stood
     * still for 5 s while its device's counter says that the power is another or has changed. */
    bool frozen;
};
/* How long it is worth feeding. */
#define IPW_SELFTEST_NS INT64_C(6000000000)

struct ipw_selftest;
struct ipw_selftest *ipw_selftest_new(const struct ipw_source_set *set);
void ipw_selftest_free(struct ipw_selftest *t);
void ipw_selftest_row(struct ipw_selftest *t, const struct ipw_sampler_row *row);
/* How long it has been fed. */
int64_t ipw_selftest_span_ns(const struct ipw_selftest *t);
/* Of a channel of the set, in the order of its sources; what has been seen so far. */
struct ipw_selftest_verdict ipw_selftest_verdict(const struct ipw_selftest *t, size_t channel);
/* Boards of the GPU domain that were read. */
size_t ipw_selftest_gpus(const struct ipw_selftest *t);
/* Marks the set's frozen channels as rejected and covers it anew; how many there were. */
size_t ipw_selftest_reject(const struct ipw_selftest *t, struct ipw_source_set *set);
/* A JSON array: one object a channel. */
void ipw_selftest_json(struct ipw_buf *out, const struct ipw_selftest *t);

#endif
