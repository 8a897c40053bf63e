/* run/finish.h: the end of a run: writes the summary and the manifest with the session's end, and
 * prints the table.
 *
 * Reads the parts of a run; owns nothing. */
#ifndef IPW_RUN_FINISH_H
#define IPW_RUN_FINISH_H

#include "run/ending.h"
#include "run/limit_actions.h"
#include "run/manifest.h"
#include "run/results.h"

struct ipw_finish { /* all borrowed */
    const struct ipw_manifest *manifest;
    struct ipw_results *results;
    const struct ipw_run_limits *limits;
    const struct ipw_ending *ending;
    const struct ipw_plan *plan;
    struct ipw_rundir *dir;
    int64_t helpers_cpu_ns; /* CPU time of processes that watch the run */
};
int ipw_finish(const struct ipw_finish *f, struct ipw_err *err);

#endif
