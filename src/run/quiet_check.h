/* run/quiet_check.h: checks the machine before a run's first query.
 *
 * It checks whether other programs use the machine (lua/ipw/quiet.lua, from /proc and NVML's list
 * of processes; the model's server and its children are not foreign), and whether the counters can
 * be believed (energy/trust.h).  That takes a quarter of a second.  It takes longer while a
 * counter of a sum has not moved, until it can be judged: 600 ms for NVML, 1.2 s if the period is
 * unknown. */
#ifndef IPW_RUN_QUIET_CHECK_H
#define IPW_RUN_QUIET_CHECK_H

#include <stdbool.h>

#include "energy/trust.h"

struct ipw_start_findings {
    char not_quiet[200];                   /* the other programs, or "" */
    char doubts[256];                      /* sensors that are not believed, or "" */
    const char *doubted[IPW_DOMAIN_COUNT]; /* why the domain's sum is not believed; NULL: it is */
    struct ipw_trust *trust;               /* what was seen; the caller frees it; NULL: nothing */
};

/* `servers`: the model's addresses, NULL at the end.  Rejects frozen counters: the gauge of their
 * device replaces them.  A dead counter without a gauge stays in its sum, which is then unknown,
 * because the rest must not look like the whole.  IPW_ECANCELLED if the machine is not quiet and
 * `require` (--require-quiet) is set. */
int ipw_start_check(struct ipw_start_findings *out, struct ipw_source_set *sources,
                    const char *const *servers, bool require, struct ipw_err *err);

#endif
