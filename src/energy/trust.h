/* energy/trust.h: which sensors are believed, and what follows if one is not.
 *
 * One unit decides for every channel, before, during and after a run.  It gets rows of readings,
 * holds each channel to the rules of one table (trust.c: name, threshold, action), and answers for
 * each channel: is it believed, if not why, and in which words.  A verdict that a reading was wrong
 * stays, whatever comes later.  What it says is obeyed, never only noted: the figures of a channel
 * that is not believed are null with the verdict's reason, and so is the sum that needs it.
 *
 * Two rules need no verdict, because they widen bounds: a step over a silence
 * (energy/counter.h, ledger/series.h), and a gauge that shows one value for 5 s
 * (ledger/series.h).
 *
 * Pure, except ipw_trust_watch(), which reads sensors. */
#ifndef IPW_ENERGY_TRUST_H
#define IPW_ENERGY_TRUST_H

#include "base/buf.h"
#include "energy/sampler.h"

enum ipw_doubt {
    IPW_DOUBT_NONE,   /* believed, or too few readings to doubt it */
    IPW_DOUBT_UNREAD, /* every read failed */
    IPW_DOUBT_STUCK,  /* a counter that does not move, without a gauge beside it to compare */
    IPW_DOUBT_FROZEN, /* a counter that stands still while its device's gauge shows power */
    IPW_DOUBT_HELD,   /* a gauge that stands still while its device's counter shows a change */
    IPW_DOUBT_LEAST,  /* it shows less than its device draws when it is awake */
    IPW_DOUBT_GAUGE,  /* a counter against the gauge of its device */
    IPW_DOUBT_PARTS,  /* a whole that is less than its parts */
};

enum ipw_trust_state {
    IPW_TRUST_UNREAD, /* every read failed */
    /* A counter that did not move for five periods, or for a second if its period is unknown or
     * very short; a gauge: IPW_DOUBT_HELD. */
    IPW_TRUST_STUCK,
    IPW_TRUST_STEADY, /* a gauge or metric that did not change, which is normal */
    IPW_TRUST_MOVES,
    IPW_TRUST_SHORT, /* too few readings for a verdict */
};
const char *ipw_trust_state_name(enum ipw_trust_state state); /* "unread", "stuck", ... */

struct ipw_trust_verdict {
    bool believed;
    enum ipw_doubt doubt;
    const char *reason; /* of a value that would use it: "stuck", "contradicted"; NULL: believed */
    /* "does not move: not believed"; "ok" or a remark if believed; "" after too few readings. */
    char words[120];
    enum ipw_trust_state state;
    bool moved; /* at least once */
    bool slept; /* the gauge of its device said 0 W at least once */
    int64_t reads, failed;
    int64_t period_ns; /* median distance of changes; 0: unknown */
    double watts;      /* NAN: unknown, or a metric */
    double value;      /* of a metric: the newest value in its unit; else NAN */
    /* Of a counter: its power relative to the gauge's; NAN: nothing to compare. */
    double ratio;
};

struct ipw_trust;
struct ipw_trust *ipw_trust_new(const struct ipw_channel *channels, size_t n);
void ipw_trust_free(struct ipw_trust *t); /* NULL is fine */
void ipw_trust_row(struct ipw_trust *t, const struct ipw_sampler_row *row);
/* The time that its rows cover so far. */
int64_t ipw_trust_span_ns(const struct ipw_trust *t);
/* The verdict so far on a channel, numbered in the order of the sources. */
struct ipw_trust_verdict ipw_trust_verdict(const struct ipw_trust *t, size_t channel);
/* Has it broken a rule whose verdict stays?  Costs nothing. */
bool ipw_trust_is_broken(const struct ipw_trust *t, size_t channel);
/* Among the channels in a domain's sum: the first that is not believed, with its verdict in *out;
 * -1: none. */
int ipw_trust_doubtful(struct ipw_trust_verdict *out, const struct ipw_trust *t,
                       enum ipw_domain domain);
/* Is a whole less than its parts, by more than two right sensors differ? */
bool ipw_trust_is_below(double whole, double parts);
/* Number of devices of the GPU domain that were read. */
size_t ipw_trust_gpus(const struct ipw_trust *t);
/* Rejects the set's counters that their device's gauge replaces, and chooses the sums again;
 * returns how many there were. */
size_t ipw_trust_reject(struct ipw_trust *t, struct ipw_source_set *set);
/* Appends a JSON array: one object per channel of the set. */
void ipw_trust_json(struct ipw_buf *out, const struct ipw_trust *t,
                    const struct ipw_source_set *set);

/* How long a channel must be watched before an unchanged value proves anything: five of its periods
 * and a little more.  1.2 s if the period is unknown, or so short that only a real register keeps
 * to it (a virtual machine's register is written by its host from time to time).  0 for channels
 * that may stand still: gauges, metrics. */
int64_t ipw_trust_watch_ns(const struct ipw_channel *channel);
/* Reads a set's sources for at least least_ns, and on until every counter of a sum has moved, or
 * has been watched for long enough.  With least_ns 0 it also takes the time to compare counters
 * with their gauges; a run does that with its own readings.  Sources that are slow to read (an
 * exporter, a log) are left out: nothing is known of them afterwards. */
void ipw_trust_watch(struct ipw_trust *t, struct ipw_source_set *set, int64_t least_ns);

/* Why a value is missing, for a person: "the counter does not move" for "stuck".  An unknown reason
 * is returned unchanged. */
const char *ipw_trust_reason_words(const char *reason);
/* The reason of a rule as static text, for a name that was read from a file; NULL: no rule gives
 * it. */
const char *ipw_trust_reason(const char *name);

#endif
