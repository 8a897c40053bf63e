/* run/merge/merge.h: the shards of a run (run/shard.h) as one run.
 *
 * The run is written to OUT.merging and renamed when it is complete.  A merge that was killed can
 * be started again at any time.  The shards are only read. */
#ifndef IPW_RUN_MERGE_MERGE_H
#define IPW_RUN_MERGE_MERGE_H

#include "run/merge/planned_run.h"

/* `p`: with a plan of shards, opened.  A folder `out` is replaced only if a merge wrote it. */
int ipw_merge_run(struct ipw_planned_run *p, const char *out, struct ipw_err *err);

#endif
