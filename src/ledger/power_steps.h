/* ledger/power_steps.h: power over time as steps, and their median.
 *
 * A step is the mean power between two neighbouring readings, and its duration.  Pure; the list
 * owns its steps. */
#ifndef IPW_LEDGER_POWER_STEPS_H
#define IPW_LEDGER_POWER_STEPS_H

#include <stddef.h>

struct ipw_power_step {
    double w, seconds;
};

struct ipw_power_steps {
    struct ipw_power_step *all;
    size_t n, cap;
    double seconds; /* sum over all steps */
};

void ipw_power_steps_add(struct ipw_power_steps *s, double w, double seconds);
/* The power that was exceeded during half of the time; there must be a step.  Sorts the steps by
 * power. */
double ipw_power_steps_median(struct ipw_power_steps *s);
void ipw_power_steps_release(struct ipw_power_steps *s);

#endif
