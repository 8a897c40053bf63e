/* run/merge/shard_runs.h: the folders NAME.shards/I-of-N, read for a merge.
 *
 * Reads each manifest, and decides which folders can be merged: a shard that is running, was
 * killed and not resumed, is damaged, or was written by another version is named with its
 * reason.  Shards that can be merged must be of one run: the same agent, model, data and settings,
 * and each query once.  Nothing is written. */
#ifndef IPW_RUN_MERGE_SHARD_RUNS_H
#define IPW_RUN_MERGE_SHARD_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/ledger_check.h"
#include "base/clock.h"
#include "base/err.h"
#include "json/json.h"

struct ipw_shard_device { /* a device in the sums of a session */
    const char *domain, *name, *device;
    bool remote; /* it belongs to another machine */
};

struct ipw_shard_session {
    int64_t start_ns, end_ns; /* start 0: it was killed before it began */
    struct ipw_anchor clock;
    const char *boot_id, *host; /* NULL: unknown */
    int64_t clock_error_ns;     /* of its wall clock; -1: unknown */
    struct ipw_shard_device *devices;
    size_t n_devices, cap_devices;
    const struct ipw_json *doc;
};

struct ipw_shard_run {
    char *path, *name;    /* the folder; "2-of-4" */
    const char *readings; /* the folder of power.jsonl, if it is another one; borrowed */
    size_t n_added;       /* so many sources at its end were added to those of the sessions */
    struct ipw_json *manifest;
    const struct ipw_json *config;
    int64_t index;           /* of the shard, from 0 */
    int64_t n_tasks, n_done; /* its tasks; its queries in traces.jsonl */
    struct ipw_check *lines; /* of its queries; each is found once */
    struct ipw_shard_session *sessions;
    size_t n_sessions;
};

struct ipw_shard_left { /* a folder that is not merged */
    char *name, *why;
};

struct ipw_shard_runs {
    const char *folder; /* NAME.shards */
    struct ipw_shard_run *all;
    size_t n, cap;
    struct ipw_shard_left *left;
    size_t n_left, cap_left;
    int64_t count, selected, epochs, warmup; /* as the shards have them */
};

/* Reads one run, which need not be a shard, and opens its lines; release it. */
int ipw_shard_run_read(struct ipw_shard_run *run, const char *path, struct ipw_err *err);
void ipw_shard_run_release(struct ipw_shard_run *run);
/* Reads all shards of the folder.  Without `partial`, one that cannot be merged, and a missing
 * query, are errors; shards of different runs always are. */
int ipw_shard_runs_read(struct ipw_shard_runs *r, const char *folder, bool partial,
                        struct ipw_err *err);
/* Opens the lines of the run's queries, once more if need be: each merge goes through them. */
int ipw_shard_run_open_lines(struct ipw_shard_run *run, struct ipw_err *err);
/* Leaves out the i-th shard, for this reason. */
void ipw_shard_runs_leave(struct ipw_shard_runs *r, size_t i, const char *why);
/* How many queries of the run are in no shard. */
int64_t ipw_shard_runs_missing(const struct ipw_shard_runs *r);
/* Is there no folder of this shard, from 0?  A shard without a task writes none. */
bool ipw_shard_runs_lacks(const struct ipw_shard_runs *r, int64_t index);
void ipw_shard_runs_release(struct ipw_shard_runs *r);

#endif
