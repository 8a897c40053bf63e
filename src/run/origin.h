/* run/origin.h: the interface for the source of a run's queries.
 *
 * An origin is a dataset (run/dataset_origin.c) or a measured program (proxy/measured_run.h).  The
 * run knows neither and uses these functions.  The command creates an origin and frees it after the
 * run.  An origin has only those parts of a run that connected() gives it. */
#ifndef IPW_RUN_ORIGIN_H
#define IPW_RUN_ORIGIN_H

#include "json/write.h"
#include "run/plan.h"
#include "run/run_options.h"
#include "run/session.h"
#include "script/dataset.h"
#include "script/host.h"

/* The parts of a run that an origin can use, from connected() until over(). */
struct ipw_origin_run {
    struct ipw_loop *loop;
    struct ipw_llm *llm;
    const char *base_url, *key, *model; /* of the server; key: or NULL */
    const struct ipw_session *session;
    const struct ipw_plan *plan;
    bool quiet;             /* no remarks */
    void (*wake)(void *ud); /* a query may be due */
    void *ud;
};

struct ipw_seat { /* of a query in flight */
    const struct ipw_case *c;
    struct ipw_host_pace pace;        /* of a task with recorded requests */
    struct ipw_host_session *session; /* of a program that is no script, or NULL */
    int64_t scheduled_ns;             /* when it was due (--rate); 0: not by a schedule */
};

struct ipw_selection {
    size_t n;
    char sha256[65];
};

struct ipw_origin {
    struct ipw_selection whole; /* with --shard: the selection of all shards */
    bool resumes;               /* a run of it can be resumed */
    bool endless;               /* its tasks come from outside, until it is closed */
    /* What the options say about it; called before anything is opened. */
    int (*check)(struct ipw_origin *origin, const struct ipw_run_options *o, struct ipw_err *err);
    /* Reads its tasks; there is at least one, except for a shard. */
    int (*open)(struct ipw_origin *origin, struct ipw_dataset **out,
                const struct ipw_run_options *o, struct ipw_err *err);
    /* A hash of the selected tasks: 65 bytes. */
    void (*selection)(struct ipw_origin *origin, char *out, const struct ipw_dataset *cases);

    /* Each of the others can be NULL: then there is nothing to do. */
    int (*connected)(struct ipw_origin *origin, const struct ipw_origin_run *run,
                     struct ipw_err *err);
    /* Whether the next query may begin.  If not, the origin wakes the run when it may. */
    bool (*due)(struct ipw_origin *origin);
    /* Gives a query that begins at start_ns its task and its epoch; and takes them back.  NULL: the
     * origin's own tasks. */
    void (*seat)(struct ipw_origin *origin, struct ipw_seat *out, struct ipw_place *place,
                 int64_t start_ns);
    void (*unseat)(struct ipw_origin *origin, struct ipw_seat *seat);
    void (*event)(struct ipw_origin *origin, struct ipw_seat *seat, const struct ipw_event *event);
    /* Asked to end (the first signal): true: its queries end by themselves and the run with them,
     * as it was meant.  Else the run is interrupted. */
    bool (*close)(struct ipw_origin *origin, int signum);
    /* Its queries have ended, or the run did not begin.  May be called twice. */
    void (*over)(struct ipw_origin *origin);
    /* Writes the manifest's member "replay". */
    void (*write)(const struct ipw_origin *origin, struct ipw_jw *w);
    /* Called after the summary is written.  `path`: the run's folder; `json`: --json was given. */
    int (*finish)(struct ipw_origin *origin, const char *path, bool json, struct ipw_err *err);
};

/* The origin of a run over a dataset: --dataset and --limit. */
struct ipw_dataset_origin {
    struct ipw_origin origin;
    struct ipw_dataset_options cases;
    const struct ipw_dataset *rows;
    /* With --rate or --arrivals recorded: its queries are due by a schedule. */
    struct ipw_pacing pacing;
    bool records, force, no_force; /* tasks with recorded requests; replies of their lengths */
    double zero_s;                 /* of the recording: when the first of them was due */
    struct ipw_origin_run run;
    size_t next; /* the query that is due at due_ns; SIZE_MAX: none yet */
    int64_t due_ns;
    struct ipw_timer *wait; /* until then */
};
void ipw_dataset_origin_init(struct ipw_dataset_origin *out);

#endif
