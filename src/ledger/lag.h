/* ledger/lag.h: how long after a phase begins the device's power follows.
 *
 * Pure.  A device settles: clocks rise, queues fill, capacitors charge, so that power follows a
 * change of phase some milliseconds late.  A ledger that splits a step of a slow counter at the
 * instant of the change gives the phase that begins too much.  This unit holds one fit
 * (ledger/phase.h) for each of a dozen delays, feeds each with the same measured steps against the
 * phases so much earlier, and answers the delay whose fit leaves least unexplained, by a parabola
 * through it and its neighbours; 0 until the steps say more than that clearly.
 * An exponential approach of time constant tau moves as much energy as a step tau later.
 *
 * A counter whose values are old when it publishes them looks the same in its steps.  No device
 * settles for longer than IPW_LAG_MOST_NS: a longer delay is taken for old values, and is not removed
 * but told as doubt, by which bounds are widened. */
#ifndef IPW_LEDGER_LAG_H
#define IPW_LEDGER_LAG_H

#include "ledger/phase.h"

enum { IPW_LAG_DELAYS = 12 };
#define IPW_LAG_MOST_NS INT64_C(15000000)

struct ipw_lag {
    struct ipw_phase_fit fits[IPW_LAG_DELAYS]; /* the first is of no delay */
    size_t best;                               /* the fit to go by */
    int64_t lag_ns;                            /* what is removed */
    int64_t doubt_ns;                          /* so old its values may be; 0: they are not */
    int64_t judge_at;                          /* at so many steps it looks again */
    bool learns; /* false: the first fit alone is fed, the lag stays 0 */
};

/* most_w: all that the device can draw; 0: not told. */
void ipw_lag_init(struct ipw_lag *lag, double most_w);
/* A step of a counter, as ipw_phase_fit_add(). */
void ipw_lag_add(struct ipw_lag *lag, const struct ipw_phase_line *line, int64_t t0_ns,
                 int64_t t1_ns, int64_t uj);
/* Finds the watts of the fit to go by, and now and then the lag. */
void ipw_lag_solve(struct ipw_lag *lag);
const struct ipw_phase_fit *ipw_lag_fit(const struct ipw_lag *lag);

#endif
