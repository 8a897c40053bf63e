/* replay/workload_run.h: replay --mode workload: recorded requests sent to another server, measured as a run.
 *
 * It is a run (run/run.h) whose queries are those of a workload (trace/workload.h) and whose agent
 * (lua/ipw/workload.lua) sends each request when it is due.  Two schedules: `closed` keeps the gap
 * between a reply and the request after it, and how many queries go on at once; `open` keeps the
 * times at which requests were sent, whatever the server does - but for one thing: within a query a
 * request waits for the reply before it.  Such are counted as late; they are due at that reply's end.
 *
 * Rows are read and prompts made some time before they are due (a bounded stretch of them), a query
 * begins a little before, and at the instant itself a request that is ready is sent.
 *
 * Lag of a request: sent - due, where sent is when its connection was there and its first byte about
 * to be written.  Absolute: as it is.  Anchored: less the smallest of the replay, so that what a
 * constant delay hides from the one the other shows.  How much of it the program needed is told by
 * the CPU time of its thread from the start of the attempt to the same instant. */
#ifndef IPW_REPLAY_WORKLOAD_RUN_H
#define IPW_REPLAY_WORKLOAD_RUN_H

#include "replay/replay_options.h"
#include "run/run.h"
#include "script/host.h"
#include "trace/workload.h"

#define IPW_WORKLOAD_AGENT "builtin:lua/ipw/workload.lua"

struct ipw_workload_lags {
    int64_t *ns;
    size_t n, cap;
};

struct ipw_workload_ahead { /* a query that was read before it begins */
    struct ipw_host_workload seat;
    struct ipw_err err; /* why it could not be */
};
enum { IPW_WORKLOAD_AHEAD = 128 };

struct ipw_workload_run {
    struct ipw_origin origin;
    struct ipw_origin_run run; /* once its server is known */
    struct ipw_workload *workload;
    const char *of; /* as the command line names it */
    bool open, no_force, forced;
    double speed;
    int64_t max_lag_ns;     /* beyond it the replay is flagged */
    struct ipw_timer *next; /* until the next query begins */

    struct ipw_workload_ahead ahead[IPW_WORKLOAD_AHEAD]; /* a ring */
    size_t first_ahead, n_ahead, ahead_bytes;
    struct ipw_defer *read_soon;  /* the next of them */
    struct ipw_timer *read_later; /* likewise */
    bool over;

    /* One a request that was sent, as they came.  late: those that waited for the reply before. */
    struct ipw_workload_lags lag, cpu, late;
    size_t n_failed;                    /* requests without a reply */
    size_t n_length, n_length_kept;     /* replies whose recorded length is known; of that length */
    int64_t input_asked, input_counted; /* prompt tokens, where both are known */
};

/* `replay` was given --mode workload.  Frees `command`; returns the exit code. */
int ipw_workload_replay(const char *path, const struct ipw_replay_options *o, char *command,
                        struct ipw_run_end *end);

/* workload_report.c: the member "replay" of the manifest; replay.json, and a line for the user. */
void ipw_workload_write(const struct ipw_origin *origin, struct ipw_jw *w);
int ipw_workload_finish(struct ipw_origin *origin, const char *path, bool json,
                        struct ipw_err *err);

#endif
