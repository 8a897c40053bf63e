/* run/merge/merge.h: the shards of a run (run/shard.h) written as one run, as a plan has it.
 *
 * The plan is made by lua/ipw/merge.lua, which reads the shards' manifests and decides what is
 * merged.  Sessions that shared devices are joined into one session with one ledger
 * (run/merge/join.h); all others stay sessions of their own, and their joules add.  So a device is
 * booked once, however many shards it served.  Everything is computed anew from events, readings
 * and the lines of queries; the shards' summaries and balances are not used.
 *
 * The run is written to OUT.merging and renamed when it is complete and valid.  A merge that was
 * killed can be started again at any time.  The shards are only read. */
#ifndef IPW_RUN_MERGE_MERGE_H
#define IPW_RUN_MERGE_MERGE_H

#include "json/json.h"
#include "ledger/balance.h"

struct ipw_merge {
    const char *out; /* the folder of the run */
    /* An object: `count`, `selected`, `epochs`, `warmup` of the shards; `end` of the sessions;
     * `runs`: the `path` and `index` of each shard; `manifest`, without its sessions; `sessions`:
     * of each its `manifest` for the run_start, its object `session` without what is computed here,
     * whether it is `divided` (run/merge/join.h), and its `members`: `run` (a place in `runs`),
     * `session`, `ahead_ns`, `clock_error_ns`. */
    const struct ipw_json *plan;
    /* Results. */
    double total_j[IPW_DOMAIN_COUNT]; /* of the run; NAN: unknown */
    size_t bad; /* after an error: the shard with a file at fault; SIZE_MAX: none of them */
};

int ipw_merge_run(struct ipw_merge *m, struct ipw_err *err);

#endif
