/* run/finish.h: the end of a run: writes the summary and the manifest with the session's end, and
 * prints the summary with --json.  The command prints the screen of it.
 *
 * Reads the parts of a run; owns nothing. */
#ifndef IPW_RUN_FINISH_H
#define IPW_RUN_FINISH_H

#include "run/ending.h"
#include "run/limit_actions.h"
#include "run/manifest.h"
#include "run/results.h"

/* What a session came to at its end.  Taken when the sensors were read past that instant.
 * helpers_cpu_ns: CPU time of processes that watch the run. */
struct ipw_run_ended {
    struct ipw_balance balances[IPW_DOMAIN_COUNT]; /* total and idle */
    struct ipw_device_list devices;
    double runner_cpu_s, sampler_cpu_s, own_joules;
};
void ipw_run_ended_take(struct ipw_run_ended *out, const struct ipw_manifest *m,
                        int64_t helpers_cpu_ns);
void ipw_run_ended_release(struct ipw_run_ended *ended);

struct ipw_finish { /* all borrowed */
    const struct ipw_run_ended *ended;
    const struct ipw_manifest *manifest;
    struct ipw_results *results;
    const struct ipw_run_limits *limits;
    const struct ipw_ending *ending;
    const struct ipw_plan *plan;
    struct ipw_rundir *dir;
    char **screen_note; /* allocated if a screen is to be printed: the remarks on it */
    bool silent;        /* prints nothing: something follows */
};
int ipw_finish(const struct ipw_finish *f, struct ipw_err *err);

#endif
