/* replay/replay_job.h: a run once more, from its record.
 *
 * The agent runs again for each query of RUN/events.jsonl; llm/playback.h answers it and compares what
 * it does.  What comes out is a new run: its own folder, with events, samples, traces and summary.
 *
 * hermetic: the lines of the record are gone through in their order, the queries overlap as they did
 * then, and the new record gets the old one's times and samples: a replay that follows its record
 * gives the same files and the same ledger.  tools, and hermetic with a model to go on with: one
 * query after the other, in one session, in real time, each as it was begun last (earlier attempts
 * have its index); nothing is measured, figures are null with reason "replayed".
 *
 * A record is data: the agent's file, tools by path, datasets and servers are only those that the
 * command line names, or that are part of this program. */
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

struct ipw_replay_note { /* of one query that did not go as recorded */
    char *id, *text;
    int32_t index;
    int turn;
};

/* What is known of a query only here; of the others the old run's trace line tells. */
struct ipw_replay_told {
    int32_t index;
    int segment;
    struct ipw_query_record record; /* its texts are in `texts` */
    char *texts[8];
    size_t n_texts;
    struct ipw_replay_told *next;
};

struct ipw_replay_job;

struct ipw_rq { /* a query that is replayed */
    struct ipw_replay_job *job;
    struct ipw_playback *replay;
    struct ipw_agent *agent;
    struct ipw_host host;
    struct ipw_case c;
    const struct ipw_case *real; /* of the dataset, for its attachments and its scorer; or NULL */
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
    const char *run; /* the folder of the record */
    struct ipw_json *manifest;
    const struct ipw_json *config;
    struct ipw_anchor anchor;
    bool by_query, decisions;
    char *query_id; /* the only one, or NULL; by its index too, unless -1 */
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
    int segment;                     /* of the new record, at hand */
    struct ipw_rundir *dir;
    char *workspaces;
    struct ipw_quota quota; /* of each of them, as in the run */
    struct ipw_defer *step;

    struct ipw_rq *active;
    int64_t written_ns, written_rows; /* how far the record was written again */
    struct ipw_err err;
    int stop_signal;
    bool run_end, done, cut; /* cut: the record ends inside the run */

    size_t n_queries, n_turns, n_tools, n_diverged, n_unfinished;
    size_t n_same, n_differ, n_missing; /* results of tools */
    int32_t *gone;                      /* queries whose further lines are passed over */
    size_t n_gone, cap_gone;
    struct ipw_replay_note *notes;
    size_t n_notes, cap_notes, n_more_notes;
    struct ipw_replay_told *told;
    size_t n_traces_differ;
    int64_t began_ns;
};

/* replay_job.c: everything but the run's folder; *exit_code says what kind of wrong it was. */
int ipw_replay_job_open(struct ipw_replay_job *job, const struct ipw_replay_cli *o, const char *run,
                        int *exit_code, struct ipw_err *err);
void ipw_replay_job_release(struct ipw_replay_job *job);
int ipw_replay_job_make_dir(struct ipw_replay_job *job, struct ipw_err *err);
/* Writes a line of the record's events again, as it stands there. */
void ipw_replay_job_line(struct ipw_replay_job *job, const struct ipw_record_line *line);

/* replay_drive.c */
int ipw_replay_job_run(struct ipw_replay_job *job, struct ipw_err *err);
void ipw_replay_step_soon(struct ipw_replay_job *job);

/* replay_query.c */
struct ipw_rq *ipw_rq_start(struct ipw_replay_job *job, const struct ipw_record_line *line);
void ipw_rq_free(struct ipw_rq *q);
/* The record's end of the query is at hand: compares, writes our own. */
void ipw_rq_end(struct ipw_rq *q, const struct ipw_record_line *line);
void ipw_rq_give_up(struct ipw_rq *q); /* it diverged: its end is written now */

/* replay_result.c */
void ipw_replay_note_add(struct ipw_replay_job *job, const struct ipw_rq *q, const char *text);
void ipw_replay_note_lost(struct ipw_replay_job *job, const struct ipw_record_line *line);
int ipw_replay_finish(struct ipw_replay_job *job, struct ipw_err *err);
int ipw_replay_print(struct ipw_replay_job *job, struct ipw_err *err);

#endif
