/* run/origin.h: where a run's queries come from.
 *
 * A dataset (run/dataset_origin.c), or a recorded workload (replay/workload_run.h).  The run knows
 * neither: it asks through these functions.  An origin is made by the command, which frees it when the run is
 * over; it holds nothing of the run but what it is handed in connected(). */
#ifndef IPW_RUN_ORIGIN_H
#define IPW_RUN_ORIGIN_H

#include "json/write.h"
#include "run/plan.h"
#include "run/run_options.h"
#include "run/session.h"
#include "script/dataset.h"
#include "script/host.h"

/* What an origin may use of a run, from connected() until over(). */
struct ipw_origin_run {
    struct ipw_loop *loop;
    struct ipw_llm *llm;
    const struct ipw_session *session;
    const struct ipw_plan *plan;
    bool quiet;             /* no remarks */
    void (*wake)(void *ud); /* a query may be due */
    void *ud;
};

struct ipw_seat { /* of a query in flight */
    const struct ipw_case *c;
    struct ipw_host_workload *workload; /* of a workload replay, or NULL */
};

struct ipw_origin {
    bool resumes; /* a run of it can be gone on with */
    /* What the options say of it; before anything is opened. */
    int (*check)(struct ipw_origin *origin, const struct ipw_run_options *o, struct ipw_err *err);
    /* Its records; there is at least one. */
    int (*open)(struct ipw_origin *origin, struct ipw_dataset **out,
                const struct ipw_run_options *o, struct ipw_err *err);
    /* A digest of the selected records: 65 bytes. */
    void (*selection)(struct ipw_origin *origin, char *out, const struct ipw_dataset *cases);

    /* The rest may be NULL: nothing is to be done. */
    void (*connected)(struct ipw_origin *origin, const struct ipw_origin_run *run);
    /* May the next query begin?  If not, the run is woken when it may. */
    bool (*due)(struct ipw_origin *origin);
    /* Gives a query that begins at start_ns its record and its epoch, and takes that back; NULL: the
     * records' own. */
    void (*seat)(struct ipw_origin *origin, struct ipw_seat *out, struct ipw_place *place,
                 int64_t start_ns);
    void (*unseat)(struct ipw_origin *origin, struct ipw_seat *seat);
    void (*event)(struct ipw_origin *origin, struct ipw_seat *seat, const struct ipw_event *event);
    void (*over)(struct ipw_origin *origin); /* its queries are */
    /* The manifest's member "replay". */
    void (*write)(const struct ipw_origin *origin, struct ipw_jw *w);
    /* After the summary is written.  `path`: the run's folder; `json`: --json was given. */
    int (*finish)(struct ipw_origin *origin, const char *path, bool json, struct ipw_err *err);
};

/* A run's own dataset: --dataset and --limit. */
struct ipw_dataset_origin {
    struct ipw_origin origin;
    struct ipw_dataset_options cases;
};
void ipw_dataset_origin_init(struct ipw_dataset_origin *out);

#endif
