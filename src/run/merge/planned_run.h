/* run/merge/planned_run.h: a run whose sessions are computed again from those of saved runs, as a
 * plan has them.
 *
 * The plan is made in Lua (lua/ipw/merge), from the manifests: it says what is merged, or what a
 * meter is booked into.  Sessions that shared devices are joined into one session with one ledger
 * (run/merge/join.h); all others stay sessions of their own, and their joules add.  Everything is
 * computed anew from events, readings and the lines of queries; summaries and balances are not
 * used.  Each event and line is checked as it is read.
 *
 * The plan is an object:
 *   runs: the `path` of each saved run, and the `index` of a shard
 *   count, selected, epochs, warmup: of the shards, whose queries get the numbers of the uncut run;
 *     without `count` they keep theirs
 *   manifest: of the run, without its sessions
 *   sessions: of each its `manifest` for the run_start; its object `session` without what is
 *     computed here, and how it will `end`; whether it is `divided` (run/merge/join.h); its
 *     `members`: `run` (a place in runs), `session`, `ahead_ns`, `clock_error_ns`.  A session
 *     without members never began, and stays as it is. */
#ifndef IPW_RUN_MERGE_PLANNED_RUN_H
#define IPW_RUN_MERGE_PLANNED_RUN_H

#include "run/merge/join.h"

struct ipw_planned_run {
    const struct ipw_json *plan;
    struct ipw_shard_runs runs;
    /* Called with the books of each session; may be NULL.  A result other than 0 ends it. */
    int (*check)(void *ud, const struct ipw_recompute_segment *books, struct ipw_err *err);
    void *ud;
    struct ipw_rundir *dir;
    struct ipw_buf sessions; /* of the manifest: an array's elements */
    int64_t n_extra;
    struct ipw_summary summary; /* the queries so far */
    /* Results. */
    double total_j[IPW_DOMAIN_COUNT]; /* of the run; NAN: unknown */
    size_t bad; /* after an error: the saved run with a file at fault; SIZE_MAX: none of them */
};

/* Reads the runs; `plan` is borrowed.  Release it in any case. */
int ipw_planned_run_open(struct ipw_planned_run *p, const struct ipw_json *plan,
                         struct ipw_err *err);
/* Writes all files of a run into the folder. */
int ipw_planned_run_write(struct ipw_planned_run *p, const char *folder, struct ipw_err *err);
void ipw_planned_run_release(struct ipw_planned_run *p);
/* The shards of a run (run/shard.h) as one run.  It is written to OUT.merging and renamed when it
 * is complete, so that a merge that was killed can be started again at any time.  A folder `out` is
 * replaced only if a merge wrote it. */
int ipw_merge_run(struct ipw_planned_run *p, const char *out, struct ipw_err *err);
/* With all that is in it; one that is not there is fine. */
int ipw_run_folder_remove(const char *path, struct ipw_err *err);

#endif
