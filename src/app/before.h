/* app/before.h: a look around before a run's first query.
 *
 * In one quarter of a second: is the machine quiet (energy/quiet.h for its processors, NVML's list
 * for its GPUs; the model's server and its children are not foreign), and does a counter stand still
 * while its device draws power. */
#ifndef IPW_APP_BEFORE_H
#define IPW_APP_BEFORE_H

#include "app/run.h"

/* Fills run->not_quiet with what was found, and rejects frozen counters; IPW_ECANCELLED when the
 * machine is not quiet and has to be (--require-quiet). */
int ipw_before_check(struct ipw_run *run, struct ipw_err *err);

#endif
