/* run/merge/merge.h: the shards of a run (run/shard.h) as one run.
 *
 * Sessions of one boot that overlap and read the same devices are joined into one session with one
 * ledger (run/merge/join.h); all others stay sessions of their own, and their joules add.  So a
 * device is booked once, however many shards it served.  Everything is computed anew from events,
 * readings and the lines of queries; the shards' summaries and balances are not used, except that
 * the sum of their totals is shown beside the result.
 *
 * The run is written to OUT.merging and renamed when it is complete.  A merge that was killed can
 * be started again at any time.  The shards are only read. */
#ifndef IPW_RUN_MERGE_MERGE_H
#define IPW_RUN_MERGE_MERGE_H

#include "ledger/balance.h"
#include "run/merge/shard_runs.h"

struct ipw_merge {
    const char *folder, *out; /* NAME.shards, and the folder of the run */
    bool partial;             /* leave out shards that cannot be merged, and allow gaps */
    /* Results, also for a message. */
    struct ipw_shard_runs runs;
    size_t n_sessions, n_joined; /* sessions of the run; sessions of shards that went into them */
    int64_t n_queries, missing;  /* in traces.jsonl; of the run, but of no shard */
    double total_j[IPW_DOMAIN_COUNT]; /* of the run; NAN: unknown */
    double added_j[IPW_DOMAIN_COUNT]; /* the sum of the shards' own totals; NAN: unknown */
};

int ipw_merge_run(struct ipw_merge *m, struct ipw_err *err);
void ipw_merge_release(struct ipw_merge *m);

#endif
