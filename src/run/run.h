/* run/run.h: one run of an agent over a dataset.
 *
 * `struct ipw_run` is the owner of everything a run needs, and the state that the run's own files
 * share: connect.c finds or starts the model server, query.c runs one query, write_queries.c turns finished
 * queries into trace lines, durable.c makes them safe and says so, schedule.c admits queries and stops,
 * signals.c says when, manifest.c and finish.c write the manifest, the summary and the table,
 * settle_sessions.c and same_run.c (run/resume/) take up a run that was begun before, resume_hint.c says how to,
 * run.c puts them together.  All of it happens in the loop's thread; the sampler
 * has threads of its own behind energy/sampler.h. */
#ifndef IPW_RUN_RUN_H
#define IPW_RUN_RUN_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/option.h"
#include "io/http.h"
#include "io/loop.h"
#include "io/proc.h"
#include "llm/client.h"
#include "report/summary.h"
#include "run/baseline.h"
#include "run/connect.h"
#include "run/durable.h"
#include "run/ending.h"
#include "run/limit_actions.h"
#include "run/origin.h"
#include "run/plan.h"
#include "run/progress.h"
#include "run/resume/script_hashes.h"
#include "run/resume/sessions.h"
#include "run/run_options.h"
#include "run/run_pricing.h"
#include "run/sensors.h"
#include "run/session.h"
#include "run/workspaces.h"
#include "script/agent.h"
#include "script/dataset.h"
#include "trace/redact.h"
#include "trace/rundir.h"

struct ipw_query;

struct ipw_run {
    const struct ipw_run_options *o;
    struct ipw_loop *loop;
    struct ipw_connection connection;
    struct ipw_net *net;
    struct ipw_web *web; /* of scripts; NULL: none is granted */

    struct ipw_origin *origin; /* of the queries */
    struct ipw_agent_info agent;
    struct ipw_agent_config config;
    char *tools_text; /* --tools, cut at its commas */
    const char **tools;
    struct ipw_cases *cases;

    struct ipw_sensors sensors;
    struct ipw_baseline baseline;

    struct ipw_rundir *dir;
    struct ipw_redactor redactor; /* of --no-content */
    struct ipw_session session;
    struct ipw_history history;
    enum ipw_retry retry;
    char *command; /* JSON object: how the run was begun, for `resume RUN` */
    char selection_sha256[65];
    struct ipw_scripts scripts;
    char **forced; /* what --force passed over */
    size_t n_forced, cap_forced;
    struct ipw_plan plan;
    struct {
        double runner_cpu_s, sampler_cpu_s, joules;
    } own;                            /* what the program itself took; known at the end */
    const char *summary_note;         /* while the end is written: the summary's note, or NULL */
    struct ipw_workspaces workspaces; /* holds the queries' own; made when needed */
    struct ipw_summary summary;
    struct ipw_sum warmup_j[IPW_DOMAIN_COUNT]; /* of the queries before those that count */
    struct ipw_device_sums warmup_devices;

    struct ipw_query *active; /* in flight */
    size_t n_active;
    struct ipw_query *unbooked, **unbooked_tail; /* over; waiting for samples past their end */
    struct ipw_timer *sample_wait;               /* until its head is looked at again */
    unsigned sample_looks;                       /* how often it was */
    struct ipw_query *over;                      /* agents to free outside their callbacks */
    struct ipw_defer *step;                      /* runner_step is on its way */

    struct ipw_durable durable;
    size_t n_answered; /* queries that came to an answer, likewise */
    size_t n_failed;   /* of this session: without one, by themselves */

    struct ipw_pricing pricing;
    struct ipw_run_limits limits;

    struct ipw_ending ending;
    struct ipw_timer *grace; /* after the first signal: until turns are cut */
    struct ipw_progress *progress;
};

/* How a run ended, for the command to say. */
struct ipw_run_end {
    struct ipw_err err; /* code 0: nothing is to be said */
    char *go_on;        /* the command line that goes on with it, or NULL; freed by the caller */
};
/* A run from options that are whole.  Frees `command` (a JSON object: how it was begun) and returns
 * the exit code. */
int ipw_run_start(const struct ipw_run_options *options, const char *agent, char *command,
                  struct ipw_origin *origin, struct ipw_run_end *end);

/* query.c */
int ipw_query_start(struct ipw_run *run, size_t index);
void ipw_query_cancel(struct ipw_query *query, const char *reason);
void ipw_query_free(struct ipw_query *query);

/* write_queries.c */
void ipw_run_sampled(void *run); /* rows are there: take them, book what can be booked */
void ipw_run_book(struct ipw_run *run);
/* Of the turns whose cost is known (upstream's rule); NAN when none is. */
double ipw_run_known_cost(const struct ipw_query_trace *trace);

/* schedule.c */
int ipw_run_queries(struct ipw_run *run); /* returns when every query is safe, or the run stopped */
void ipw_run_step_soon(struct ipw_run *run);
void ipw_run_fail(struct ipw_run *run,
                  const struct ipw_err *err); /* stops the run; the first counts */

/* signals.c: INT, TERM and HUP, unless they were ignored at the start (nohup).  The first calls
 * `stop` in the loop; the second ends the program there and then, whatever the loop is doing. */
void ipw_signals_start(struct ipw_loop *loop, void (*stop)(void *ud, int signum), void *ud);
void ipw_signals_end(void); /* they end the program again, as at its start */
/* From now on each signal is answered, with or without a loop; the line that is written where one
 * ends the program at once.  NULL: as at the start again. */
void ipw_signals_words(const char *words, const char *other_words);
void ipw_signals_other_words(void); /* they are the line now */

/* manifest.c: the configuration as it was resolved (a run that goes on asks for it before the server
 * is known: llm, model and the sensors may be missing); the manifest with this session in it, whose
 * end and books are NULL until it is over. */
void ipw_run_write_config(struct ipw_jw *w, const struct ipw_run *run);
int ipw_run_write_manifest(struct ipw_run *run, const char *end, const struct ipw_balance *books,
                           const struct ipw_device_books *devices, struct ipw_err *err);
/* The manifest of this moment, with this session alone: its run_start carries it. */
void ipw_run_put_manifest(struct ipw_buf *out, const struct ipw_run *run);
/* What the files tell of a session's end, as members of its object; 0 and NULL: it never began. */
void ipw_segment_write_end(struct ipw_buf *out, const char *end, int64_t start_ns, int64_t end_ns,
                           const struct ipw_anchor *anchor, const struct ipw_balance *books,
                           const struct ipw_device_books *devices);

/* finish.c */
int ipw_run_finish(struct ipw_run *run, struct ipw_err *err); /* summary.json and the table */

#endif
