/* What `score` asks for: the answers of a saved run graded, if a grader is missing, and scored. */
#include <string.h>

#include "app/calls.h"
#include "app/workbench.h"
#include "base/exit.h"
#include "json/write.h"
#include "run/grading.h"
#include "run/resume/rebuild_files.h"
#include "trace/rundir.h"

enum { GRADED_AT_A_TIME = 8 };

struct job {
    const char *run, *scorer, *url; /* NULL: as the run */
    bool saved;                     /* by the references in the traces; else by the tasks */
    struct ipw_dataset *cases;
    struct ipw_jw w;
    struct ipw_buf line;
    int64_t n, n_missing;
};

/* ---- verdicts that are missing ---- */

/* Grades in the run's folder, which is locked meanwhile. */
static int grade_locked(struct ipw_grading *g, const char *run, struct ipw_err *err)
{
    int closed, rc = ipw_rundir_open(&g->dir, run, err);

    if (rc) return rc;
    rc = ipw_grading_run(g, err);
    closed = ipw_rundir_close(g->dir, rc ? NULL : err);
    if (!rc) rc = closed;
    if (!rc && g->n_graded) rc = ipw_rebuild_summary(run, NULL, err);
    if (!rc && g->stop_signal)
        rc = ipw_fail(err, IPW_ECANCELLED, "%s: interrupted; the same command continues", run);
    return rc;
}

/* On a loop of its own: the script's is in the middle of its round.  A failure is *status. */
static int grade(const struct job *j, const struct ipw_workbench *b, bool quiet, int *status,
                 struct ipw_err *err)
{
    struct ipw_workspaces workspaces = IPW_WORKSPACES_NONE;
    struct ipw_pricing pricing = {0};
    struct ipw_grading g = {.judge = &b->o->judge,
                            .script = &b->o->script,
                            .server.url = j->url,
                            .cases = j->cases,
                            .workspaces = &workspaces,
                            .pricing = &pricing,
                            .concurrency = GRADED_AT_A_TIME,
                            .quiet = quiet};
    bool pending;
    int rc = ipw_grading_pending(&pending, &g, j->run, err);

    if (rc || !pending) return rc;
    rc = ipw_pricing_open(&pricing, NULL, false, err);
    if (!rc) rc = ipw_loop_new(&g.loop, err);
    if (!rc) rc = grade_locked(&g, j->run, err);
    ipw_pricing_close(&pricing);
    if (g.loop) {
        ipw_loop_run(g.loop);
        ipw_loop_free(g.loop);
    }
    ipw_workspaces_remove(&workspaces);
    if (rc) *status = g.stop_signal ? 128 + g.stop_signal : IPW_EXIT_FAILED;
    return rc;
}

/* ---- scores ---- */

/* By the query's own trace, or by the dataset's task of its id; false: that is missing. */
static bool score_query(const struct job *j, const struct ipw_query_loaded *q,
                        struct ipw_score *out)
{
    const struct ipw_query_details *r = &q->details;
    const struct ipw_saved_case saved = {q->trace.id,
                                         r->query_text,
                                         r->reference_answer,
                                         r->subject,
                                         r->metadata,
                                         r->reference,
                                         r->judge ? r->judge->verdict : NULL,
                                         r->score_metadata};
    const char *response = q->trace.completed ? r->response_text : NULL;
    const char *source = r->answer_source;
    size_t i = j->saved ? 0 : ipw_dataset_find(j->cases, q->trace.id);

    /* What the agent itself said of its answer; how ours was found is found out again. */
    if (source && strcmp(source, "marker") && strcmp(source, "tool")) source = NULL;
    if (i == SIZE_MAX) return false;
    if (j->saved)
        ipw_dataset_score_saved(j->cases, &saved, response, source, out);
    else
        ipw_dataset_score(j->cases, i, response, source, out);
    return true;
}

static void put_resolved(struct ipw_jw *w, const char *key, int resolved)
{
    if (resolved < 0)
        ipw_jw_knull(w, key);
    else
        ipw_jw_kbool(w, key, resolved == 1);
}

/* A line of scores.jsonl. */
static void put_line(struct job *j, const struct ipw_query_loaded *q, const struct ipw_score *s)
{
    const char *reason = s->reason;
    struct ipw_jw w;

    if (!q->trace.completed && s->resolved < 0 && !*reason)
        reason = q->trace.outcome ? q->trace.outcome : "";
    ipw_buf_clear(&j->line);
    ipw_jw_init(&w, &j->line);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "answer", s->answer.len ? ipw_buf_str(&s->answer) : NULL);
    ipw_jw_kstr(&w, "answer_source", s->source);
    ipw_jw_kstr(&w, "answer_was", q->details.answer);
    ipw_jw_kint(&w, "epoch", q->details.epoch);
    put_resolved(&w, "is_resolved", s->resolved);
    put_resolved(&w, "is_resolved_was", q->details.is_resolved);
    ipw_jw_kstr(&w, "query_id", q->trace.id);
    ipw_jw_kint(&w, "query_index", q->trace.index);
    ipw_jw_kstr(&w, "reason", *reason ? reason : NULL);
    if (j->scorer) ipw_jw_kstr(&w, "scorer", j->scorer);
    ipw_jw_obj_end(&w);
    ipw_jw_str(&j->w, ipw_buf_str(&j->line));
}

static int take(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct job *j = ud;
    struct ipw_score score;

    j->n++;
    if (!score_query(j, q, &score)) {
        j->n_missing++;
        return 0;
    }
    put_line(j, q, &score);
    ipw_score_release(&score);
    return j->line.failed ? ipw_fail(err, IPW_ELIMIT, "%s: too many scores", j->run) : 0;
}

static int put_scores(struct job *j, struct ipw_buf *out, struct ipw_err *err)
{
    int rc;

    j->line = IPW_BUF(512 * IPW_MIB);
    ipw_jw_init(&j->w, out);
    ipw_jw_obj(&j->w);
    ipw_jw_kstr(&j->w, "dataset", ipw_dataset_name(j->cases));
    ipw_jw_key(&j->w, "lines");
    ipw_jw_arr(&j->w);
    rc = ipw_rundir_each_query(j->run, take, j, NULL, err);
    ipw_jw_arr_end(&j->w);
    ipw_jw_kint(&j->w, "missing", j->n_missing);
    ipw_jw_kint(&j->w, "queries", j->n);
    ipw_jw_obj_end(&j->w);
    if (!rc && out->failed) rc = ipw_fail(err, IPW_ELIMIT, "%s: too many scores", j->run);
    ipw_buf_release(&j->line);
    return rc;
}

static const char *given(const char *text) { return *text ? text : NULL; }

/* score(run, dataset, data_dir, scorer, "saved"?, "grade"?, url, "quiet"?, encoding):
 * {dataset, lines, missing, queries} with the lines of scores.jsonl; or, if the grading failed,
 * {error, status}. */
int ipw_call_score(const struct ipw_call *c, struct ipw_err *err)
{
    const struct ipw_workbench *b = c->bench;
    struct job j = {.run = c->args[0],
                    .scorer = given(c->args[3]),
                    .saved = *c->args[4],
                    .url = given(c->args[6])};
    struct ipw_dataset_options options = {.dataset = c->args[1],
                                          .data_dir = given(c->args[2]),
                                          .encoding = given(c->args[8]),
                                          .scorer = j.scorer,
                                          .paths = ipw_script_paths(&b->o->script),
                                          .scorer_only = j.saved};
    int status = 0, rc = ipw_dataset_open(&j.cases, &options, err);

    if (!rc && *c->args[5]) rc = grade(&j, b, *c->args[7], &status, err);
    if (status) {
        ipw_jw_init(&j.w, c->out);
        ipw_jw_obj(&j.w);
        ipw_jw_kstr(&j.w, "error", err->text);
        ipw_jw_kint(&j.w, "status", status);
        ipw_jw_obj_end(&j.w);
        rc = 0;
    } else if (!rc) {
        rc = put_scores(&j, c->out, err);
    }
    ipw_dataset_free(j.cases);
    return rc;
}
