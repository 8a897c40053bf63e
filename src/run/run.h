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
#include "energy/clockwatch.h"
#include "energy/sampler.h"
#include "energy/selftest.h"
#include "io/http.h"
#include "io/loop.h"
#include "io/proc.h"
#include "io/syncer.h"
#include "ledger/feed.h"
#include "ledger/ledger.h"
#include "ledger/rules.h"
#include "llm/client.h"
#include "report/summary.h"
#include "run/limit_actions.h"
#include "run/origin.h"
#include "run/progress.h"
#include "run/resume/script_hashes.h"
#include "run/resume/sessions.h"
#include "run/run_pricing.h"
#include "run/script_options.h"
#include "run/server_options.h"
#include "run/workspaces.h"
#include "script/agent.h"
#include "script/dataset.h"
#include "trace/redact.h"
#include "trace/rundir.h"

struct ipw_run_options {
    const char *agent, *dataset, *model, *base_url, *api_key_env, *limit, *output, *data_dir;
    const char *tools, *gpu, *share, *energy, *sync, *retry;
    struct ipw_opt_list telemetry; /* what to read; empty: auto */
    bool undo_mean;                /* of gauges that are running means */
    bool no_estimate;              /* of what no sensor reads */
    bool require_quiet, adapt;     /* adapt: no --sample-interval was given */
    struct ipw_script_options script;
    int64_t concurrency, max_turns, seed, max_tokens, max_retries;
    int64_t server_failures, server_wait_ns;
    int64_t epochs, warmup, baseline_ns;
    int64_t sample_interval_ns, grace_ns, lua_cpu_ns;
    size_t lua_memory_bytes;
    struct ipw_limit_options limits;
    struct ipw_net_options net;
    double temperature;
    bool resume, force, no_content, untrusted, allow_proc;
    bool quiet, verbose, json;
};

enum ipw_sync { IPW_SYNC_QUERY, IPW_SYNC_RUN, IPW_SYNC_OFF }; /* --sync */

struct ipw_query;

struct ipw_run {
    const struct ipw_run_options *o;
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm *llm;
    struct ipw_net *net;
    struct ipw_web *web;         /* of scripts; NULL: none is granted */
    struct ipw_service *service; /* the demo model's server */
    char *base_url, *model;
    bool demo;            /* answered by the demo model */
    const char *demo_why; /* why, when nobody asked for it; or NULL */

    struct ipw_origin *origin; /* of the queries */
    struct ipw_agent_info agent;
    struct ipw_agent_config config;
    char *tools_text; /* --tools, cut at its commas */
    const char **tools;
    struct ipw_dataset *cases;

    struct ipw_source_set sources;
    struct ipw_sampler *sampler;
    struct ipw_wakeup *sampled;
    struct ipw_ledger *ledger;
    struct ipw_feed *feed; /* what tells it of the queries */
    struct ipw_ledger_rules ledger_facts;
    struct ipw_baseline_watts baseline[IPW_DOMAIN_COUNT];
    int64_t n_rows;                        /* of samples, that the ledger has taken */
    const struct ipw_source *model_source; /* the estimate in the place of a sensor, or NULL */
    char energy_note[400];                 /* why a sensor is missing, or "" */
    char loss_note[256];                   /* which device fell off, and when, or "" */
    struct ipw_buf early_notes; /* events of before the run_start, to be written after it */
    char not_quiet[200];        /* who else was at work before the start, or "" */
    char doubts[256];           /* sensors that were not believed then: "psys does not move", "" */
    const char *doubted[IPW_DOMAIN_COUNT]; /* the reason that a sum has for it; NULL: none */
    struct ipw_selftest *selftest;         /* over the first rows; NULL without sensors */
    struct ipw_stuck *stuck;               /* of each channel: does it stand still? */
    struct ipw_clockwatch clocks;
    int64_t clocks_due_ns;

    struct ipw_rundir *dir;
    struct ipw_redactor redactor; /* of --no-content */
    int segment;                  /* which session of the run this is, from 0 */
    struct ipw_history history;
    enum ipw_retry retry;
    char *command; /* JSON object: how the run was begun, for `resume RUN` */
    char selection_sha256[65];
    struct ipw_scripts scripts;
    char **forced; /* what --force passed over */
    size_t n_forced, cap_forced;
    bool *done; /* by place in the run; NULL: none is done yet */
    struct {
        double runner_cpu_s, sampler_cpu_s, joules;
    } own;                            /* what the program itself took; known at the end */
    const char *summary_note;         /* while the end is written: the summary's note, or NULL */
    struct ipw_workspaces workspaces; /* holds the queries' own; made when needed */
    struct ipw_summary summary;
    struct ipw_sum warmup_j[IPW_DOMAIN_COUNT]; /* of the queries before those that count */
    struct ipw_device_sums warmup_devices;
    struct ipw_anchor anchor;
    int64_t start_ns, end_ns, cpu_start_ns;

    struct ipw_query *active;                    /* in flight */
    size_t n_active, next;                       /* next: the case to admit */
    struct ipw_query *unbooked, **unbooked_tail; /* over; waiting for samples past their end */
    struct ipw_timer *sample_wait;               /* until its head is looked at again */
    unsigned sample_looks;                       /* how often it was */
    struct ipw_query *over;                      /* agents to free outside their callbacks */
    struct ipw_defer *step;                      /* runner_step is on its way */

    enum ipw_sync sync;
    struct ipw_syncer *syncer;
    bool syncing;
    int64_t sync_began_ns; /* the last one */
    char **waiting;        /* ids of queries that are written and not yet safe, in order */
    size_t n_waiting, cap_waiting, n_syncing;
    size_t n_done;     /* that are safe, earlier sessions' included */
    size_t n_answered; /* queries that came to an answer, likewise */
    size_t n_failed;   /* of this session: without one, by themselves */

    struct ipw_pricing pricing;
    struct ipw_run_limits limits;

    bool interrupted;
    bool server_lost; /* no server came back: the run stops, and why */
    char lost_note[700];
    int stop_signal;
    struct ipw_timer *grace; /* after the first signal: until turns are cut */
    struct ipw_err err;      /* what ended the run early: code 0, nothing did */
    struct ipw_progress *progress;
};

/* run.c: what `run` does without any option. */
void ipw_run_options_init(struct ipw_run_options *options);
/* How a run ended, for the command to say. */
struct ipw_run_end {
    struct ipw_err err; /* code 0: nothing is to be said */
    char *go_on;        /* the command line that goes on with it, or NULL; freed by the caller */
};
/* A run from options that are whole.  Frees `command` (a JSON object: how it was begun) and returns
 * the exit code. */
int ipw_run_start(struct ipw_run_options *options, const char *agent, char *command,
                  struct ipw_origin *origin, struct ipw_run_end *end);

/* connect.c: fills llm, model, base_url; starts the demo server if need be. */
int ipw_run_connect(struct ipw_run *run, struct ipw_err *err);

/* plan.c: which case a query of the run is.  First come --warmup queries, then every case in turn,
 * --epochs times. */
struct ipw_place {
    size_t index; /* of the case */
    int epoch;
    bool warmup;
};
size_t ipw_run_planned(const struct ipw_run *run); /* queries, those of the warm-up included */
bool ipw_run_more(struct ipw_run *run); /* is there one to admit?  Then it is run->next */
struct ipw_place ipw_run_place(const struct ipw_run *run, size_t index);
/* A warm-up query is over: kept apart from those that count. */
int ipw_run_warmed(struct ipw_run *run, const struct ipw_query_trace *trace, const char *line,
                   size_t n, struct ipw_err *err);

/* baseline.c: what the machine draws with nothing in flight, before the first query and after the
 * last; each takes --baseline, and nothing without it. */
void ipw_run_baseline_before(struct ipw_run *run);
void ipw_run_baseline_after(struct ipw_run *run);
/* The sharing rule: the one that was named, else the one with which the run was begun, else phase. */
int ipw_run_share(enum ipw_share *out, const struct ipw_run *run, struct ipw_err *err);
/* Are the model's devices another machine's?  IPW_EINVAL for a --model-host that means nothing. */
int ipw_run_where(bool *lm_remote, const struct ipw_run *run, struct ipw_err *err);

/* query.c */
int ipw_query_start(struct ipw_run *run, size_t index);
void ipw_query_cancel(struct ipw_query *query, const char *reason);
void ipw_query_free(struct ipw_query *query);

/* write_queries.c */
void ipw_run_sampled(void *run); /* rows are there: take them, book what can be booked */
void ipw_run_book(struct ipw_run *run);

/* durable.c */
const char *ipw_sync_name(enum ipw_sync sync);
int ipw_sync_parse(enum ipw_sync *out, const char *name, struct ipw_err *err);
void ipw_run_wrote(struct ipw_run *run, const char *id); /* a query's line: it is not safe yet */
void ipw_run_sync(struct ipw_run *run);                  /* by the policy */
void ipw_run_sync_close(struct ipw_run *run);

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
