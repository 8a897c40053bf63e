/* energy/counter.h: the steps of a counter, behind one gate of plausibility.
 *
 * Every reader of counters (the ledger, the live pages, the self-test) takes its readings through
 * ipw_counter_take(), which undoes a wrap and refuses a step that no device could make.  Such a
 * reading becomes a suspect, and the next one decides.  If the next reading agrees with the
 * readings before the suspect, that was a glitch.  If it agrees with the suspect, the count begins
 * anew there, and no energy is known across the break.  The same holds for a counter that stood
 * still and lost what was used meanwhile: its step is far below the least that the device has drawn
 * elsewhere.
 *
 * Pure: readings in, steps out. */
#ifndef IPW_ENERGY_COUNTER_H
#define IPW_ENERGY_COUNTER_H

#include "energy/source.h"

#define IPW_COUNTER_DEFAULT_W 1000 /* the most of a channel whose highest power is unknown */
/* How long a counter may stand still at least, whatever its period. */
#define IPW_COUNTER_QUIET_NS INT64_C(500000000)

enum ipw_counter_fault {
    IPW_COUNTER_SOUND,
    IPW_COUNTER_RESET,    /* it went back, by more than a wrap explains */
    IPW_COUNTER_JUMPED,   /* further than the device can have driven it */
    IPW_COUNTER_TOO_LONG, /* it may have gone round its register since the last reading */
    IPW_COUNTER_LOST,     /* it stood still, and does not count what was used meanwhile */
};
const char *ipw_counter_reason(enum ipw_counter_fault fault); /* "counter_reset", ... */

struct ipw_counter {
    int64_t t_ns, raw; /* the newest reading that was taken */
    int64_t moved_ns;  /* since then it has not been seen to move */
    int64_t suspect_ns, suspect_raw;
    enum ipw_counter_fault suspect; /* IPW_COUNTER_SOUND: there is none */
    int64_t begin_ns, begin_raw;    /* of the count that began anew */
    enum ipw_counter_fault broken;  /* why it did */
    /* Its power over stretches of half a second, and the present one. */
    double least_w, most_w;
    int64_t stretch_ns, stretch_uj;
};

enum ipw_counter_taken {
    IPW_COUNTER_STEP,    /* *step_uj is the energy since the reading before */
    IPW_COUNTER_SUSPECT, /* nothing is taken: the next reading decides */
    IPW_COUNTER_ANEW,    /* the count begins at begin_ns; *step_uj is the energy since then */
};

/* The first reading. */
void ipw_counter_begin(struct ipw_counter *c, int64_t t_ns, int64_t value);
/* The next one, at a later time.  moves_ns: how often the counter publishes; quiet_ns: how long it
 * may stand still; 0 for either if it is not known. */
enum ipw_counter_taken ipw_counter_take(struct ipw_counter *c, const struct ipw_channel *channel,
                                        int64_t moves_ns, int64_t quiet_ns, int64_t t_ns,
                                        int64_t value, int64_t *step_uj);

#endif
