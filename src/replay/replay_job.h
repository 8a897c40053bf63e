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
#include "replay/divergences.h"
#include "replay/recorded_run.h"
#include "replay/replay_options.h"
#include "script/agent.h"
#include "script/dataset.h"
#include "trace/rundir.h"
#include "trace/schema.h"

struct ipw_replay_setting { /* what every query is run with */
    struct ipw_agent_info agent;
    struct ipw_agent_config config;
    const char **tools;
    char *tools_text, *body, *model;
    struct ipw_dataset *cases; /* or NULL */
    struct ipw_quota quota;    /* of a workspace, as in the run */
};

struct ipw_replay_network { /* all NULL when the replay is hermetic */
    struct ipw_http *http;
    struct ipw_llm *llm; /* to go on with after a divergence */
    struct ipw_web *web; /* for tools that run */
};

struct ipw_replay_tally {
    size_t queries, turns, tools, diverged, unfinished;
    size_t same, different, missing; /* results of tools */
    size_t traces_differ;
};

/* What is known of a query only here; of the others the old run's trace line tells. */
struct ipw_replayed_record {
    int32_t index;
    int segment;
    struct ipw_query_record record; /* its texts are in `texts` */
    char *texts[8];
    size_t n_texts;
    struct ipw_replayed_record *next;
};

struct ipw_replay_job;

struct ipw_replay_query {
    struct ipw_replay_job *job;
    struct ipw_playback *playback;
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
    struct ipw_replay_query *next;
};

struct ipw_replay_job {
    const struct ipw_replay_options *o;
    struct ipw_recorded_run recorded;
    struct ipw_replay_setting setting;
    struct ipw_replay_network network;
    struct ipw_replay_tally tally;
    struct ipw_divergences divergences;
    bool by_query, decisions;
    struct ipw_anchor anchor; /* the clock of the new run */

    struct ipw_loop *loop;
    struct ipw_rundir *dir;
    char *workspaces;
    struct ipw_defer *step;

    struct ipw_replay_query *active;
    int segment;                      /* of the new record, at hand */
    int64_t written_ns, written_rows; /* how far the record was written again */
    struct ipw_err err;
    int stop_signal;
    bool run_end, done, cut; /* cut: the record ends inside the run */
    int32_t *gone;           /* queries whose further lines are passed over */
    size_t n_gone, cap_gone;
    struct ipw_replayed_record *replayed;
    int64_t began_ns;
};

/* replay_job.c: everything but the run's folder; *exit_code says what kind of wrong it was. */
int ipw_replay_job_open(struct ipw_replay_job *job, const struct ipw_replay_options *o,
                        const char *run, int *exit_code, struct ipw_err *err);
void ipw_replay_job_release(struct ipw_replay_job *job);
int ipw_replay_job_make_dir(struct ipw_replay_job *job, struct ipw_err *err);
/* Writes a line of the record's events again, as it stands there. */
void ipw_replay_job_line(struct ipw_replay_job *job, const struct ipw_record_line *line);
/* Everything is as it was recorded. */
bool ipw_replay_job_identical(const struct ipw_replay_job *job);

/* replay_drive.c */
int ipw_replay_job_run(struct ipw_replay_job *job, struct ipw_err *err);
void ipw_replay_step_soon(struct ipw_replay_job *job);

/* replay_query.c */
void ipw_replay_query_start(struct ipw_replay_job *job, const struct ipw_record_line *line);
void ipw_replay_query_free(struct ipw_replay_query *q);
/* The record's end of the query is at hand: compares, writes our own. */
void ipw_replay_query_end(struct ipw_replay_query *q, const struct ipw_record_line *line);
void ipw_replay_query_give_up(struct ipw_replay_query *q); /* it diverged: its end is written now */

/* replay_finish.c */
int ipw_replay_finish(struct ipw_replay_job *job, struct ipw_err *err);
int ipw_replay_print(struct ipw_replay_job *job, struct ipw_err *err);

#endif
