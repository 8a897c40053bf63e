/* run/resume/sessions.h: what earlier sessions of a run left, for the session that continues it.
 *
 * A run is resumed in five steps.  Open: its folder is locked and its manifest read.  Check: the
 * present configuration is compared with the saved one; until here nothing changes.  Mend: the
 * files are put in order, and killed sessions are booked.  Settle: attempts that no longer count
 * are moved to attempts.jsonl; the rest goes into the summary and is marked as done.  Then a new
 * session begins.  Each step can be killed and repeated: an attempt is safe in attempts.jsonl
 * before its line leaves traces.jsonl, and an attempt in both (same query, epoch and segment) is an
 * earlier attempt.  For a new run everything here is empty. */
#ifndef IPW_RUN_RESUME_SESSIONS_H
#define IPW_RUN_RESUME_SESSIONS_H

#include "base/clock.h"
#include "json/json.h"
#include "json/write.h"
#include "ledger/balance.h"
#include "report/summary.h"
#include "run/plan.h"
#include "run/results.h"
#include "run/session.h"
#include "script/dataset.h"
#include "trace/rundir.h"

enum ipw_retry { /* unanswered queries that run again; each value includes the one before */
                 IPW_RETRY_NONE,
                 IPW_RETRY_CUT,    /* stopped with the run */
                 IPW_RETRY_FAILED, /* failed by themselves */
                 IPW_RETRY_ALL,    /* ended at a limit */
};
/* Why a query has no answer; IPW_RETRY_NONE: it has one. */
enum ipw_retry ipw_retry_of(bool completed, const char *outcome);
int ipw_retry_parse(enum ipw_retry *out, const char *name, struct ipw_err *err);

struct ipw_past { /* an earlier session */
    int number;
    char *text; /* its object in the manifest */
    struct ipw_anchor anchor;
    bool killed; /* whether or not a later session has booked it */
};

struct ipw_history {
    struct ipw_json *manifest; /* NULL: a new run */
    char *command;             /* the command that began the run, if the manifest has it */
    bool mended;
    struct ipw_past *past;
    size_t n, cap;
    /* Sums over the earlier sessions. */
    struct ipw_run_balance balances;
    double runner_cpu_s, sampler_cpu_s, own_joules, wall_s; /* of those that came to their end */
    size_t n_attempts;                                      /* lines of attempts.jsonl */
    size_t n_kept;                                          /* queries that stay done */
};

/* The manifest and the sessions of a run's folder. */
int ipw_history_read(struct ipw_history *h, const char *run, struct ipw_err *err);
void ipw_history_release(struct ipw_history *h);
/* Whether the last session ended, with all `planned` queries in traces.jsonl and no query left to
 * run by `retry` (--rerun).  A line is also missing if a repair removed it, or if a later session
 * was killed while it moved the line to attempts.jsonl. */
bool ipw_history_complete(const struct ipw_history *h, const char *run, enum ipw_retry retry,
                          size_t planned);
/* Whether a complete run is as its last session left it, or as the last mend found it.  It computes
 * nothing again: manifest.json, which both touch last, is newer than every other file, and each
 * file has its last line.  Bytes that changed without a new time are not seen. */
bool ipw_history_untouched(const struct ipw_history *h, const char *run);
/* Runs run/resume/rebuild.h once, reads the manifest again, and makes it the newest file. */
int ipw_history_mend(struct ipw_history *h, struct ipw_rundir *dir, struct ipw_err *err);

struct ipw_settle { /* the parts to put in order; all borrowed */
    struct ipw_history *history;
    struct ipw_rundir *dir;
    const struct ipw_dataset *cases;
    struct ipw_plan *plan;       /* done queries are marked in it */
    struct ipw_results *results; /* and added to these */
    struct ipw_session *session; /* it gets its number */
    enum ipw_retry retry;
    bool quiet;
};
int ipw_history_settle(const struct ipw_settle *settle, struct ipw_err *err);
/* Calls fn for each query of RUN/NAME (trace/rundir.h); a file that is not there has none. */
int ipw_history_each(const char *run, const char *name,
                     int (*fn)(void *ud, struct ipw_query_loaded *query, struct ipw_err *err),
                     void *ud, struct ipw_err *err);
/* Books the queries of warmup.jsonl. */
int ipw_history_warmup(struct ipw_history *h, const char *run, struct ipw_err *err);
/* Adds up what the sessions before took; they are all over. */
void ipw_history_fold(struct ipw_history *h);
/* Adds these sums to this session's own. */
void ipw_history_add(const struct ipw_history *h, struct ipw_balance *balance,
                     struct ipw_device_list *devices);

#endif
