/* run/resume/rebuild.h: puts a run's files in order, each by the content of the others.
 *
 * A crash, and above all a power cut, can leave the files of a run at different moments.  Then a
 * line of traces.jsonl has events or readings that never reached the disk, or a manifest says that
 * a session ended while its run_end is missing, or there is no manifest.  Everything follows from
 * events and readings, so they decide:
 *
 * - a line of traces, attempts or warmup.jsonl of which they tell another course, or nothing, is
 *    moved to FILE.damaged, and its query then has no line;
 * - a line with other joules than theirs is written again: a neighbour's events were lost;
 * - a query without a line becomes an earlier attempt with its measured joules, and `resume` runs
 *    it again;
 * - a session that was killed, or lost its end, is closed in the manifest as killed, with the
 *    balance of its readings;
 * - a missing run_end, summary.json or manifest.json is written again
 *    (run/resume/rebuild_files.h).
 *
 * Each step is safe on disk before the next, and can be killed and repeated.  The caller holds the
 * run's lock and has removed torn tails.  The files must be readable line by line. */
#ifndef IPW_RUN_RESUME_REBUILD_H
#define IPW_RUN_RESUME_REBUILD_H

#include <stddef.h>

#include "base/err.h"

struct ipw_rebuild {
    size_t aside;    /* lines moved to FILE.damaged */
    size_t again;    /* lines that have other joules now */
    size_t attempts; /* queries that became earlier attempts */
    size_t sessions; /* sessions that were closed as killed */
    size_t files;    /* run_end, summary.json, manifest.json: written again, or moved aside */
    /* Called for each repair when it is done; can be NULL.  Attempts and sessions, which every kill
     * leaves, are not reported. */
    void (*say)(void *ud, const char *what);
    void *ud;
};

/* A replay is left as it is. */
int ipw_rebuild_run(struct ipw_rebuild *m, const char *run, struct ipw_err *err);

#endif
