/* run/resume/sessions.h: what the earlier sessions of a run left, for the one that goes on.
 *
 * A run is resumed in five steps: its folder is locked and its manifest read (open); what is to be
 * run now is compared with what was (check: until then nothing is changed); the files are put in
 * order, sessions that were killed are booked (mend); attempts that count no more are moved to
 * attempts.jsonl, and what remains is folded into the summary and marked as done (settle); then a
 * new session begins.  Each step can be cut down and done again: an attempt
 * is safe in attempts.jsonl before its line leaves traces.jsonl, and one that stands in both (same
 * query, epoch and segment) is an earlier attempt.  For a new run everything here is empty. */
#ifndef IPW_RUN_RESUME_SESSIONS_H
#define IPW_RUN_RESUME_SESSIONS_H

#include "base/clock.h"
#include "json/json.h"
#include "json/write.h"
#include "ledger/run_balance.h"
#include "report/summary.h"
#include "run/plan.h"
#include "run/results.h"
#include "run/session.h"
#include "script/dataset.h"
#include "trace/rundir.h"

enum ipw_retry { /* which queries without an answer are run again; each includes the one before */
                 IPW_RETRY_NONE,
                 IPW_RETRY_CUT,    /* that were stopped with the run */
                 IPW_RETRY_FAILED, /* that failed by themselves */
                 IPW_RETRY_ALL,    /* that ended at a limit */
};
/* Why a query has no answer; IPW_RETRY_NONE: it has one. */
enum ipw_retry ipw_retry_of(bool completed, const char *outcome);
int ipw_retry_parse(enum ipw_retry *out, const char *name, struct ipw_err *err);

struct ipw_past { /* an earlier session */
    int number;
    char *text; /* its object in the manifest */
    struct ipw_anchor anchor;
    bool killed; /* and booked since, or not yet */
};

struct ipw_history {
    struct ipw_json *manifest; /* NULL: a new run */
    char *command;             /* how the run was begun, where the manifest says */
    bool mended;
    struct ipw_past *past;
    size_t n, cap;
    /* Sums over the earlier sessions. */
    struct ipw_run_balance balances;
    double runner_cpu_s, sampler_cpu_s, own_joules, wall_s; /* of those that came to their end */
    double cut_s;      /* wall time of those that were killed */
    size_t n_attempts; /* lines of attempts.jsonl */
    size_t n_kept;     /* queries that stay done */
};

/* The manifest and the sessions of a run's folder. */
int ipw_history_read(struct ipw_history *h, const char *run, struct ipw_err *err);
/* The same, with the command. */
int ipw_history_open(struct ipw_history *h, const char *run, struct ipw_err *err);
void ipw_history_release(struct ipw_history *h);
/* Did the last session come to its end, with all `planned` queries in traces.jsonl and nothing left
 * to be run by `retry` (--rerun)?  A line that a repair took out, or that was on its way to attempts.jsonl when
 * a later session was killed before the manifest knew of it, is missing all the same. */
bool ipw_history_complete(const struct ipw_history *h, const char *run, enum ipw_retry retry,
                          size_t planned);
/* run/resume/rebuild.h, once; and the manifest is read again. */
int ipw_history_mend(struct ipw_history *h, struct ipw_rundir *dir, struct ipw_err *err);

struct ipw_settle { /* what is put in order; all borrowed */
    struct ipw_history *history;
    struct ipw_rundir *dir;
    const struct ipw_dataset *cases;
    struct ipw_plan *plan;       /* done queries are marked */
    struct ipw_results *results; /* and added */
    struct ipw_session *session; /* gets its number */
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
/* The sums, onto this session's own. */
void ipw_history_add(const struct ipw_history *h, struct ipw_balance *balance,
                     struct ipw_device_balances *devices);

#endif
