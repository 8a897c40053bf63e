/* replay/workload_run.h: replay --mode workload: saved requests are sent to another server and
 * measured.
 *
 * It is a run (run/run.h) whose queries come from a workload (trace/workload.h) and whose agent
 * (lua/ipw/workload.lua) sends each request when it is due.  There are two schedules.  `closed`
 * keeps the gap between a reply and the request after it, and the number of queries in flight.
 * `open` keeps the times at which requests were sent, regardless of the server, except that within
 * a query a request waits for the reply before it.  Such requests are counted as late, and are due
 * at the end of that reply.
 *
 * Rows are read and prompts generated some time before they are due, in a bounded amount.  A query
 * begins a little before, and at the due time a finished request is sent.
 *
 * The lag of a request is sent - due, where sent is when its connection existed and its first byte
 * was about to be written.  The absolute lag is this value; the anchored lag is less the smallest
 * lag of the replay, so that it shows what a constant delay hides.  The CPU time of the thread,
 * from the start of the attempt to the same instant, shows how much of the lag the program
 * needed. */
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
    struct ipw_err err; /* why it could not be read */
};
enum { IPW_WORKLOAD_AHEAD = 128 };

struct ipw_workload_run {
    struct ipw_origin origin;
    struct ipw_origin_run run; /* set when its server is known */
    struct ipw_workload *workload;
    const char *of; /* as on the command line */
    bool open, no_force, forced;
    double speed;
    int64_t max_lag_ns;     /* with a larger lag the replay is flagged */
    struct ipw_timer *next; /* until the next query begins */

    struct ipw_workload_ahead ahead[IPW_WORKLOAD_AHEAD]; /* a ring */
    size_t first_ahead, n_ahead, ahead_bytes;
    struct ipw_defer *read_soon;  /* reads the next of them */
    struct ipw_timer *read_later; /* the same, later */
    bool over;

    /* One value for each request sent, in order.  late: requests that waited for the reply
     * before. */
    struct ipw_workload_lags lag, cpu, late;
    size_t n_failed;                    /* requests without a reply */
    size_t n_length, n_length_kept;     /* replies of known saved length; of that length */
    int64_t input_asked, input_counted; /* prompt tokens, if both are known */
};

/* Runs `replay` with --mode workload.  Frees `command`; returns the exit code. */
int ipw_workload_run(const char *path, const struct ipw_replay_options *o, char *command,
                     struct ipw_run_end *end);

/* workload_report.c: writes the member "replay" of the manifest; writes replay.json and prints a
 * line. */
void ipw_workload_run_write(const struct ipw_origin *origin, struct ipw_jw *w);
int ipw_workload_run_finish(struct ipw_origin *origin, const char *path, bool json,
                            struct ipw_err *err);

#endif
