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

#include "base/table.h"
#include "llm/playback.h"
#include "replay/replay_options.h"
#include "replay/replayed_run.h"
#include "script/agent.h"
#include "script/dataset.h"
#include "trace/rundir.h"
#include "trace/schema.h"

struct ipw_replay_setting { /* what every query is run with */
    struct ipw_agent_info agent;
    struct ipw_agent_config config;
    const char **tools;
    char *tools_text, *body, *model;
    const char *sub_model;         /* of the saved configuration; or NULL */
    struct ipw_dataset *cases;     /* or NULL */
    struct ipw_host_grants grants; /* what the saved run allowed, as far as this replay does */
};

struct ipw_replay_network { /* all NULL when the replay is hermetic */
    struct ipw_http *http;
    struct ipw_llm *llm; /* to go on with after a divergence */
    struct ipw_web *web; /* for tools that run */
};

/* The differences from the saved run, in the words of the report: the first twenty, and how many
 * more there were.  Owns its texts; all zero is empty. */
struct ipw_divergence { /* of one query */
    char *id, *text;
    int32_t index;
    int turn; /* 0: of none */
};

struct ipw_divergences {
    struct ipw_divergence *all;
    size_t n, cap, n_more;
};

struct ipw_replay_tally {
    size_t queries, turns, tools, diverged, unfinished;
    size_t same, different, missing; /* results of tools */
    size_t traces_differ;
};

/* What only this replay knows of a query; for other queries the saved trace line has it. */
struct ipw_replayed_query {
    int32_t index;
    int segment;
    struct ipw_query_details details; /* its texts are in `texts` */
    char *texts[8];
    size_t n_texts;
    struct ipw_replayed_query *next;
};

struct ipw_replay_job;

struct ipw_replay_query {
    struct ipw_replay_job *job;
    struct ipw_playback *playback;
    struct ipw_agent *agent;
    struct ipw_host host;
    struct ipw_case c;
    const struct ipw_case
        *real; /* the dataset's task, for its attachments and its scorer; or NULL */
    size_t real_index;
    char *workspace;
    int32_t index;
    int epoch;
    bool ended, free_agent, ended_by_saved_run, no_agent, diverged, over, written;
    bool completed;
    char *outcome, *response, *error, *source;
    int n_malformed;
    struct ipw_replay_query *next;
};

struct ipw_replay_job {
    const struct ipw_replay_options *o;
    struct ipw_replayed_run saved;
    struct ipw_replay_setting setting;
    struct ipw_replay_network network;
    struct ipw_replay_tally tally;
    struct ipw_divergences divergences;
    struct ipw_replay_results *results;
    bool by_query, decisions;
    struct ipw_anchor anchor; /* the clock of the new run */

    struct ipw_loop *loop;
    struct ipw_rundir *dir;
    char *workspaces;
    struct ipw_defer *step;

    struct ipw_replay_query *active;
    int segment;                      /* the current session of the saved run */
    int64_t written_ns, written_rows; /* how far the new files were written */
    struct ipw_err err;
    int stop_signal;
    bool run_end, done, cut; /* cut: the saved run ends inside */
    struct ipw_table gone;   /* queries whose further lines are ignored */
    struct ipw_replayed_query *replayed;
    int64_t began_ns;
};

/* replay_job.c: everything except the run's folder; *exit_code is the kind of error. */
int ipw_replay_job_open(struct ipw_replay_job *job, const struct ipw_replay_options *o,
                        const char *run, int *exit_code, struct ipw_err *err);
void ipw_replay_job_release(struct ipw_replay_job *job);
int ipw_replay_job_make_dir(struct ipw_replay_job *job, struct ipw_err *err);
/* Writes a saved event line unchanged, or an event of ours, and counts it. */
void ipw_replay_job_line(struct ipw_replay_job *job, const struct ipw_event_line *line);
void ipw_replay_job_event(struct ipw_replay_job *job, const struct ipw_event *event);
void ipw_divergences_add(struct ipw_divergences *d, const char *id, int32_t index, int turn,
                         const char *text);
/* Whether everything equals the saved run. */
bool ipw_replay_job_identical(const struct ipw_replay_job *job);

/* replay_drive.c */
int ipw_replay_job_run(struct ipw_replay_job *job, struct ipw_err *err);
void ipw_replay_step_soon(struct ipw_replay_job *job);

/* replay_query.c */
void ipw_replay_query_start(struct ipw_replay_job *job, const struct ipw_event_line *line);
void ipw_replay_query_free(struct ipw_replay_query *q);
/* At the saved end of the query: compares, then writes our own. */
void ipw_replay_query_end(struct ipw_replay_query *q, const struct ipw_event_line *line);
void ipw_replay_query_give_up(struct ipw_replay_query *q); /* it diverged: its end is written now */

/* replay_finish.c: the new trace lines are written as their queries are booked. */
int ipw_replay_results_open(struct ipw_replay_job *job, struct ipw_err *err);
/* Takes the line that was written; an error is the job's. */
void ipw_replay_results_line(struct ipw_replay_job *job, const struct ipw_json *line);
void ipw_replay_results_release(struct ipw_replay_job *job);
int ipw_replay_finish(struct ipw_replay_job *job, struct ipw_err *err);

#endif
