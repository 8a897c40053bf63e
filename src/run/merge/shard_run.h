/* run/merge/shard_run.h: a saved run whose sessions are computed again: a shard of a merge, or a
 * run that a meter is booked into.
 *
 * Owns its manifest and the lines of its queries.  Nothing is written. */
#ifndef IPW_RUN_MERGE_SHARD_RUN_H
#define IPW_RUN_MERGE_SHARD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/ledger_check.h"
#include "base/clock.h"
#include "base/err.h"
#include "json/json.h"

struct ipw_shard_session {
    int64_t start_ns, end_ns; /* start 0: it was killed before it began */
    struct ipw_anchor clock;
    const char *boot_id, *host; /* NULL: unknown */
    const struct ipw_json *doc; /* in the manifest */
};

struct ipw_shard_run {
    char *path;           /* the folder */
    const char *readings; /* the folder of power.jsonl, if it is another one; borrowed */
    size_t n_added;       /* so many sources at its end were added to those of the sessions */
    struct ipw_json *manifest;
    int64_t index;           /* of the shard, from 0 */
    struct ipw_check *lines; /* of its queries; each is found once */
    struct ipw_shard_session *sessions;
    size_t n_sessions;
};

struct ipw_shard_runs {
    struct ipw_shard_run *all;
    size_t n;
    int64_t count, selected, epochs, warmup; /* as the shards have them */
};

/* Reads the manifest and opens the lines; release it, also after an error. */
int ipw_shard_run_read(struct ipw_shard_run *run, const char *path, struct ipw_err *err);
void ipw_shard_run_release(struct ipw_shard_run *run);

#endif
