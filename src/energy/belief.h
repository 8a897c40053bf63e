/* energy/belief.h: can a sensor be believed, and in what words is a doubt told?
 *
 * The one place that decides it, for every command.  A self-test (energy/selftest.h) tells what was
 * seen of a channel; a belief is the verdict on it: whether figures may rest on the channel, the
 * reason that they have when they may not, and a line for a person.  Also how long a channel must be
 * watched before that can be said, and the words for each reason for which a figure is missing.
 *
 * Pure: a self-test's findings in, words out. */
#ifndef IPW_ENERGY_BELIEF_H
#define IPW_ENERGY_BELIEF_H

#include "energy/selftest.h"

enum ipw_doubt {
    IPW_DOUBT_NONE,        /* believed, or too little was seen to doubt it */
    IPW_DOUBT_UNREAD,      /* not one reading succeeded */
    IPW_DOUBT_STUCK,       /* a counter that has not moved, and nothing beside it to ask */
    IPW_DOUBT_FROZEN,      /* a counter that stands still while its device's gauge shows power */
    IPW_DOUBT_STUCK_GAUGE, /* a gauge that stands still while its device's counter says otherwise */
};

struct ipw_belief {
    bool believed;
    enum ipw_doubt doubt;
    const char
        *reason;    /* of a figure that would rest on it: "stuck", "no_samples"; NULL: believed */
    char words[80]; /* "does not move: not believed"; "ok", or a remark, when it is believed; ""
                           when too little was seen */
};
struct ipw_belief ipw_belief_of(const struct ipw_selftest *t, size_t channel);
/* Of the channels in a domain's sum: the first that is not believed, or NULL; *out is its belief. */
const char *ipw_belief_doubtful(struct ipw_belief *out, const struct ipw_selftest *t,
                                const struct ipw_source_set *set, enum ipw_domain domain);

/* The same by what a saved self-test says of a channel: its state's name, and whether it was frozen. */
enum ipw_doubt ipw_belief_saved(const char *state, bool frozen);

/* How long a channel must be watched before a value that does not change tells something: five of its
 * periods and a little more, 1.2 s where the period is not known or is so short that only a real
 * register keeps to it (a virtual machine's is written by its host now and then).  0 for what may
 * well stand still: gauges, metrics. */
int64_t ipw_belief_watch_ns(const struct ipw_channel *channel);

/* Why a figure is missing, for a person: "the counter does not move" for "stuck".  A reason that is
 * not known comes back as it is. */
const char *ipw_belief_reason_words(const char *reason);

#endif
