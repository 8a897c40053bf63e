/* run/quiet_check.h: a look around before a run's first query.
 *
 * Is the machine quiet (energy/quiet.h for its processors, NVML's list for its GPUs; the model's
 * server and its children are not foreign), and can its counters be believed (energy/belief.h)?  That
 * takes a quarter of a second, and longer only while a counter of a sum has not moved: as long as it
 * needs to be judged (600 ms for NVML, 1.2 s where the period is not known). */
#ifndef IPW_RUN_QUIET_CHECK_H
#define IPW_RUN_QUIET_CHECK_H

#include "run/run.h"

/* Fills run->not_quiet and run->doubts with what was found, and rejects frozen counters: the gauge of
 * their device stands in.  A dead counter without a gauge stays in its sum, which then is not known:
 * what is left of it must not pass for the whole.  IPW_ECANCELLED when the machine is not quiet and
 * has to be (--require-quiet). */
int ipw_before_check(struct ipw_run *run, struct ipw_err *err);

#endif
