/* energy/belief.h: decides whether a sensor can be believed, and words the doubt.
 *
 * All commands decide here.  A self-test (energy/selftest.h) reports the findings about a channel;
 * a belief is the verdict on them.  It says whether energy values may use the channel, the reason
 * if they may not, and a line for a person.  This unit also knows how long a channel must be
 * watched before a verdict, and the text of each reason for a missing value.
 *
 * Pure: a self-test's findings in, words out. */
#ifndef IPW_ENERGY_BELIEF_H
#define IPW_ENERGY_BELIEF_H

#include "energy/selftest.h"

enum ipw_doubt {
    IPW_DOUBT_NONE,   /* believed, or too few readings to doubt it */
    IPW_DOUBT_UNREAD, /* every read failed */
    IPW_DOUBT_STUCK,  /* a counter that does not move, without a gauge beside it to compare */
    IPW_DOUBT_FROZEN, /* a counter that stands still while its device's gauge shows power */
    /* A gauge that stands still although its device's counter shows a change. */
    IPW_DOUBT_STUCK_GAUGE,
};

struct ipw_belief {
    bool believed;
    enum ipw_doubt doubt;
    const char
        *reason; /* reason of a value that would use it: "stuck", "no_samples"; NULL: believed */
    /* "does not move: not believed"; "ok" or a remark if believed; "" after too few readings. */
    char words[80];
};
struct ipw_belief ipw_belief_of(const struct ipw_selftest *t, size_t channel);
/* Among the channels in a domain's sum: the first that is not believed, or NULL; *out is its
 * belief. */
const char *ipw_belief_doubtful(struct ipw_belief *out, const struct ipw_selftest *t,
                                const struct ipw_source_set *set, enum ipw_domain domain);

/* The same from a saved self-test: the name of the channel's state, and whether it was frozen. */
enum ipw_doubt ipw_belief_saved(const char *state, bool frozen);

/* How long a channel must be watched before an unchanged value proves anything: five of its periods
 * and a little more.  1.2 s if the period is unknown, or so short that only a real register keeps
 * to it (a virtual machine's register is written by its host from time to time).  0 for channels
 * that may stand still: gauges, metrics. */
int64_t ipw_belief_watch_ns(const struct ipw_channel *channel);

/* Why a value is missing, for a person: "the counter does not move" for "stuck".  An unknown reason
 * is returned unchanged. */
const char *ipw_belief_reason_words(const char *reason);

#endif
