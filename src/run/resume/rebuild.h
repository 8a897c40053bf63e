/* run/resume/rebuild.h: a run's files put in order, each by what the others say.
 *
 * A crash, above all a power cut, may leave the files of a run at different moments: a line of
 * traces.jsonl whose events or samples never reached the disk, a manifest that says of a session
 * that it ended while its run_end is missing, no manifest at all.  Events and samples are what
 * everything follows from, so they decide:
 *
 *  - a line of traces, attempts or warmup.jsonl that does not follow from them is moved to
 *    FILE.damaged; its query is one without a line then;
 *  - a query without a line becomes an earlier attempt, with the joules that were measured of it, and
 *    `resume` runs it again;
 *  - a session that was cut down, or lost its end, is closed in the manifest as killed, with the books
 *    that its samples give;
 *  - a missing run_end, summary.json or manifest.json is written again (run/resume/rebuild_files.h).
 *
 * Each step is safe on the disk before the next, and can be cut down and done again.  The caller
 * holds the run's lock, and has taken torn tails away.  The files must be readable line by line. */
#ifndef IPW_RUN_RESUME_REBUILD_H
#define IPW_RUN_RESUME_REBUILD_H

#include <stddef.h>

#include "base/err.h"

struct ipw_rebuild {
    size_t aside;    /* lines moved to FILE.damaged */
    size_t attempts; /* queries that became earlier attempts */
    size_t sessions; /* that were closed as killed */
    size_t files;    /* run_end, summary.json, manifest.json: written again, or set aside */
    /* Told of each, as it is done; may be NULL.  Attempts and sessions are what every kill leaves and
     * are not told. */
    void (*say)(void *ud, const char *what);
    void *ud;
};

/* A replay is left as it is. */
int ipw_rebuild_run(struct ipw_rebuild *m, const char *run, struct ipw_err *err);

#endif
