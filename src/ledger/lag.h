/* ledger/lag.h: how long after the start of a phase the device's power follows.
 *
 * Pure.  Clocks rise, queues fill and capacitors charge, so power follows a change of phase some
 * milliseconds late.  A ledger that splits a step of a slow counter at the instant of the change
 * gives too much to the phase that begins.  This unit holds one fit (ledger/phase.h) for each of a
 * dozen delays.  Each fit gets the same measured steps against the phases of so much earlier.  The
 * answer is the delay whose fit leaves the least energy unexplained, refined by a parabola through
 * it and its neighbours.  It is 0 until the steps show a delay clearly. An exponential approach of
 * time constant tau moves as much energy as a step tau later.
 *
 * A counter that publishes old values looks the same in its steps.  No device settles for longer
 * than IPW_LAG_MOST_NS.  A longer delay is therefore taken for old values: it is not removed but
 * reported as doubt, and the doubt widens the bounds. */
#ifndef IPW_LEDGER_LAG_H
#define IPW_LEDGER_LAG_H

#include "ledger/phase.h"

enum { IPW_LAG_DELAYS = 12 };
#define IPW_LAG_MOST_NS INT64_C(15000000)

struct ipw_lag {
    struct ipw_phase_fit fits[IPW_LAG_DELAYS]; /* the first has no delay */
    size_t best;                               /* index of the chosen fit */
    int64_t lag_ns;                            /* the delay that is removed */
    int64_t doubt_ns;                          /* how old the counter's values may be; 0: not old */
    /* Number of steps at which the delay is estimated again. */
    int64_t judge_at;
    bool learns; /* false: only the first fit gets steps, and the lag stays 0 */
};

/* most_w: the device's highest power; 0: unknown. */
void ipw_lag_init(struct ipw_lag *lag, double most_w);
/* Adds a step of a counter, as ipw_phase_fit_add() does. */
void ipw_lag_add(struct ipw_lag *lag, const struct ipw_phase_line *line, int64_t t0_ns,
                 int64_t t1_ns, int64_t uj);
/* Solves the chosen fit; estimates the lag anew at growing intervals. */
void ipw_lag_solve(struct ipw_lag *lag);
const struct ipw_phase_fit *ipw_lag_fit(const struct ipw_lag *lag);

#endif
