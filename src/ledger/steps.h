/* ledger/steps.h: the steps of one device's counter, and the phases of the queries that use the
 * device (docs/method.md, "Splitting a step").
 *
 * Between two samples the energy of a counter is a straight line.  When steps are closed, the fit
 * learns the power of the phases from them, and each step that crosses a change of phase gets
 * corners.  The expected power of a piece is the power measured next to it in the same phases, if
 * there are whole steps in them; else it is the fit's.  A step's own energy stays as measured.
 *
 * Owns the line of phases.  Pure. */
#ifndef IPW_LEDGER_STEPS_H
#define IPW_LEDGER_STEPS_H

#include "ledger/phase.h"
#include "ledger/series.h"

struct ipw_steps {
    struct ipw_phase_line line; /* how many queries are in each phase: the caller adds to it */
    struct ipw_phase_fit fit;   /* the power of the phases */
    int64_t done_ns;            /* the sample up to which steps are closed; INT64_MIN: none yet */
};

/* most_w: the device's highest power, in watts. */
void ipw_steps_init(struct ipw_steps *steps, double most_w);
void ipw_steps_release(struct ipw_steps *steps);
/* Closes the steps up to the first sample at or after t.  Steps that begin before `straight_ns`
 * have been used and stay straight. */
void ipw_steps_close(struct ipw_steps *steps, struct ipw_series *s, int64_t t_ns,
                     int64_t straight_ns);
/* Drops the phases that only matter before `before_ns`, and those that no open step needs. */
void ipw_steps_trim(struct ipw_steps *steps, const struct ipw_series *s, int64_t before_ns);

#endif
