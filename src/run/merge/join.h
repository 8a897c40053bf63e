/* run/merge/join.h: several sessions that shared devices as one session of the merged run.
 *
 * The events of all sessions are written in the order of their times, the readings as
 * run/merge/join_rows.h joins them, and both go through one ledger: so a device that the sessions
 * shared is booked once, and each query gets the part that it would have had in one run.  Queries
 * get the numbers of the uncut run.  A query is booked anew, where the readings of the joined
 * session have passed its end; its line is written with the score and texts of its shard.
 *
 * Sessions may share some devices only, or all: each query is booked on the devices that its
 * session read (ledger/ledger.h, scopes).  Sessions of another machine, which share a scraped
 * device, are moved to the clock of the first one by their wall clocks.
 *
 * A session that was killed ends with its newest reading, and so do its queries: later events count
 * as events of that instant. */
#ifndef IPW_RUN_MERGE_JOIN_H
#define IPW_RUN_MERGE_JOIN_H

#include "audit/ledger_check.h"
#include "base/buf.h"
#include "base/clock.h"
#include "json/json.h"
#include "ledger/recompute.h"
#include "report/summary.h"
#include "trace/rundir.h"

/* A saved run whose sessions are computed again: a shard of a merge, or a run that a meter is
 * booked into.  Nothing in it is written. */
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

struct ipw_join_member { /* a session of a shard */
    const struct ipw_shard_run *run;
    int session;
    int64_t ahead_ns;       /* from its monotonic clock to that of the first member */
    int64_t clock_error_ns; /* how far that may be off; 0: one clock */
};

struct ipw_join {
    const struct ipw_shard_runs *runs;     /* NULL: one session of one run, whose queries keep their
                                        * numbers and which a meter was added to */
    const struct ipw_join_member *members; /* by start */
    size_t n;
    bool divided; /* they differ in their devices, or in their clocks */
    struct ipw_rundir *dir;
    struct ipw_summary *summary; /* gets every query of traces.jsonl */
    int number;                  /* of the joined session */
    /* Appends the manifest for its run_start, as JSON. */
    void (*put_manifest)(void *ud, const struct ipw_join *j, struct ipw_buf *out);
    void *ud;
    int64_t *n_extra; /* attempts so far that got a number after those of all queries */
    /* Results. */
    struct ipw_recompute books; /* of this one session; the caller releases it */
    struct ipw_buf channels;    /* hardware.channels of its manifest; empty: those of the first */
    size_t at; /* after an error: the member at fault; SIZE_MAX: none of them alone */
};

static inline const struct ipw_shard_session *ipw_join_session(const struct ipw_join *j, size_t i)
{
    return &j->members[i].run->sessions[j->members[i].session];
}

/* Its books, after it was run; NULL before. */
static inline const struct ipw_recompute_segment *ipw_join_books(const struct ipw_join *j)
{
    return j->books.n_segments ? j->books.segments[0] : NULL;
}

int ipw_join_run(struct ipw_join *j, struct ipw_err *err);

#endif
