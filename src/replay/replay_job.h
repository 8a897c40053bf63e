/* replay/replay_job.h: runs a saved run again.
 *
 * The agent runs again for each query of RUN/events.jsonl; llm/playback.h answers it and compares
 * its steps.  The result is a new run with its own folder, events, readings, traces and summary.
 *
 * hermetic: the lines of the saved run are replayed in their order, queries overlap as they did,
 * and the new run gets the saved times and readings.  A replay without a divergence gives the same
 * files and the same ledger.
 *
 * tools, and hermetic with a model that continues after a divergence: one query after the other, in
 * one session, in real time, each as it began last (earlier attempts have its index).  Nothing is
 * measured; energy values are null with reason "replayed".
 *
 * A saved run is data: agent files, tools by path, datasets and servers are used only if the
 * command line names them, or if they are built in. */
#ifndef IPW_REPLAY_REPLAY_JOB_H
#define IPW_REPLAY_REPLAY_JOB_H

#include "llm/playback.h"
#include "report/summary.h"
#include "run/script_options.h"
#include "run/server_options.h"
#include "script/agent.h"
#include "script/dataset.h"
#include "trace/rundir.h"
#include "trace/schema.h"

struct ipw_replay_cli {
    const char *mode, *query, *output, *agent, *tools, *dataset, *data_dir, *on, *model,
        *api_key_env;
    struct ipw_script_options script;
    struct ipw_net_options net;
    bool json, quiet, follow, verbose;
    /* of --mode workload */
    const char *schedule, *gpu, *share, *energy;
    struct ipw_opt_list telemetry;
    int64_t concurrency, limit, max_lag_ns, baseline_ns, sample_interval_ns;
    double speed;
    bool no_force;
    const char *sort; /* of --mode show */
};

struct ipw_replay_note { /* of a query that diverged */
    char *id, *text;
    int32_t index;
    int turn;
};

/* What only this replay knows of a query; for other queries the saved trace line has it. */
struct ipw_replay_told {
    int32_t index;
    int segment;
    struct ipw_query_record record; /* its texts are in `texts` */
    char *texts[8];
    size_t n_texts;
    struct ipw_replay_told *next;
};

struct ipw_replay_job;

struct ipw_rq { /* a query that is being replayed */
    struct ipw_replay_job *job;
    struct ipw_playback *replay;
    struct ipw_agent *agent;
    struct ipw_host host;
    struct ipw_case c;
    const struct ipw_case
        *real; /* the dataset's task, for its attachments and its scorer; or NULL */
    size_t real_index;
    char *workspace;
    int32_t index;
    int epoch;
    bool ended, free_agent, ended_by_record, no_agent, diverged, over, written;
    bool completed;
    char *outcome, *response, *error, *source;
    int n_malformed;
    struct ipw_rq *next;
};

struct ipw_replay_job {
    const struct ipw_replay_cli *o;
    const char *run; /* the folder of the saved run */
    struct ipw_json *manifest;
    const struct ipw_json *config;
    struct ipw_anchor anchor;
    bool by_query, decisions;
    char *query_id; /* the only query, or NULL; also by its index, unless -1 */
    int32_t query_index;

    struct ipw_agent_info agent;
    struct ipw_agent_config agent_config;
    const char **tools;
    char *tools_text, *over, *model;
    struct ipw_dataset *cases; /* or NULL */

    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm *servers;
    struct ipw_web *web; /* for tools that run, or NULL */
    struct ipw_record *record;
    struct ipw_record_starts starts; /* by_query */
    int segment;                     /* the current session of the saved run */
    struct ipw_rundir *dir;
    char *workspaces;
    struct ipw_quota quota; /* of each workspace, as in the saved run */
    struct ipw_defer *step;

    struct ipw_rq *active;
    int64_t written_ns, written_rows; /* how far the new files were written */
    struct ipw_err err;
    int stop_signal;
    bool run_end, done, cut; /* cut: the saved run ends inside */

    size_t n_queries, n_turns, n_tools, n_diverged, n_unfinished;
    size_t n_same, n_differ, n_missing; /* results of tools */
    int32_t *gone;                      /* queries whose further lines are ignored */
    size_t n_gone, cap_gone;
    struct ipw_replay_note *notes;
    size_t n_notes, cap_notes, n_more_notes;
    struct ipw_replay_told *told;
    size_t n_traces_differ;
    int64_t began_ns;
};

/* replay_job.c: everything except the run's folder; *exit_code is the kind of error. */
int ipw_replay_job_open(struct ipw_replay_job *job, const struct ipw_replay_cli *o, const char *run,
                        int *exit_code, struct ipw_err *err);
void ipw_replay_job_release(struct ipw_replay_job *job);
int ipw_replay_job_make_dir(struct ipw_replay_job *job, struct ipw_err *err);
/* Writes a saved event line unchanged. */
void ipw_replay_job_line(struct ipw_replay_job *job, const struct ipw_record_line *line);

/* replay_drive.c */
int ipw_replay_job_run(struct ipw_replay_job *job, struct ipw_err *err);
void ipw_replay_step_soon(struct ipw_replay_job *job);

/* replay_query.c */
struct ipw_rq *ipw_rq_start(struct ipw_replay_job *job, const struct ipw_record_line *line);
void ipw_rq_free(struct ipw_rq *q);
/* At the saved end of the query: compares, then writes our own. */
void ipw_rq_end(struct ipw_rq *q, const struct ipw_record_line *line);
void ipw_rq_give_up(struct ipw_rq *q); /* it diverged: its end is written now */

/* replay_result.c */
void ipw_replay_note_add(struct ipw_replay_job *job, const struct ipw_rq *q, const char *text);
void ipw_replay_note_lost(struct ipw_replay_job *job, const struct ipw_record_line *line);
int ipw_replay_finish(struct ipw_replay_job *job, struct ipw_err *err);
int ipw_replay_print(struct ipw_replay_job *job, struct ipw_err *err);

#endif
