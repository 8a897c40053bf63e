/* run/quiet_check.h: a look around before a run's first query.
 *
 * Is the machine quiet (energy/quiet.h for its processors, NVML's list for its GPUs; the model's
 * server and its children are not foreign), and can its counters be believed (energy/belief.h)?  That
 * takes a quarter of a second, and longer only while a counter of a sum has not moved: as long as it
 * needs to be judged (600 ms for NVML, 1.2 s where the period is not known). */
#ifndef IPW_RUN_QUIET_CHECK_H
#define IPW_RUN_QUIET_CHECK_H

#include <stdbool.h>

#include "energy/source.h"

struct ipw_start_findings {
    char not_quiet[200];                   /* who else is at work, or "" */
    char doubts[256];                      /* sensors that are not believed, or "" */
    const char *doubted[IPW_DOMAIN_COUNT]; /* why the domain's sum is not; NULL: it is believed */
};

/* `servers`: the model's addresses, NULL at the end.  Rejects frozen counters: the gauge of their
 * device stands in.  A dead counter without a gauge stays in its sum, which then is not known: what
 * is left of it must not pass for the whole.  IPW_ECANCELLED when the machine is not quiet and
 * `require` says that it has to be (--require-quiet). */
int ipw_start_check(struct ipw_start_findings *out, struct ipw_source_set *sources,
                    const char *const *servers, bool require, struct ipw_err *err);

#endif
