/* Puts in order what earlier sessions left: see run/resume/sessions.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "run/resume/rebuild.h"
#include "run/resume/sessions.h"

/* ---- sessions that were killed ---- */

static void say(void *ud, const char *what)
{
    (void)ud;
    ipw_say("%s", what);
}

static int touch_manifest(const char *run, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/manifest.json", run);
    int rc = utimensat(AT_FDCWD, path, NULL, 0) ? ipw_fail_errno(err, errno, "%s", path) : 0;

    free(path);
    return rc;
}

int ipw_history_mend(struct ipw_history *h, struct ipw_rundir *dir, struct ipw_err *err)
{
    struct ipw_rebuild mend = {.say = say};
    int rc;

    if (!h->manifest || h->mended) return 0;
    rc = ipw_rebuild_run(&mend, ipw_rundir_path(dir), err);
    if (!rc) rc = ipw_rundir_reopen(dir, err);
    if (!rc) rc = touch_manifest(ipw_rundir_path(dir), err);
    if (rc) return rc;
    ipw_history_release(h);
    h->mended = true;
    return ipw_history_read(h, ipw_rundir_path(dir), err);
}

/* ---- attempts.jsonl, as it is ---- */

struct settling {
    const struct ipw_settle *of;
    struct ipw_table attempts; /* queries of attempts.jsonl, by session and index */
    size_t n_dropped;          /* lines that leave traces.jsonl */
};

static uint64_t key_of(const struct ipw_query_loaded *q)
{
    return (uint64_t)(uint32_t)q->details.segment << 32 | (uint32_t)q->trace.index;
}

static void add_attempt(struct settling *s, const struct ipw_query_loaded *q)
{
    *ipw_table_at(&s->attempts, key_of(q), NULL) = 0;
    ipw_uncounted_add(&s->of->history->balances.earlier, &q->trace);
    s->of->history->n_attempts++;
}

static bool is_attempt(const struct settling *s, const struct ipw_query_loaded *q)
{
    return ipw_table_get(&s->attempts, key_of(q), NULL) != IPW_TABLE_NONE;
}

static int take_attempt(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    (void)err;
    add_attempt(ud, q);
    return 0;
}

/* ---- traces.jsonl ---- */

static bool is_word(const char *outcome, const char *const *words)
{
    while (*words && strcmp(*words, outcome)) words++;
    return *words != NULL;
}

enum ipw_retry ipw_retry_of(bool completed, const char *outcome)
{
    static const char *const limit[] = {"max_turns",  "token_limit",  "turn_limit", "working_limit",
                                        "cost_limit", "energy_limit", NULL};

    if (!outcome) outcome = "";
    if (completed) return IPW_RETRY_NONE;
    if (ipw_outcome_is_stop(outcome)) return IPW_RETRY_CUT;
    return is_word(outcome, limit) ? IPW_RETRY_ALL : IPW_RETRY_FAILED;
}

static int write_attempt(struct settling *s, const struct ipw_json *doc, enum ipw_retry why,
                         struct ipw_err *err)
{
    static const char *const patches[] = {[IPW_RETRY_CUT] = "{\"superseded\":\"cut\"}",
                                          [IPW_RETRY_FAILED] = "{\"superseded\":\"failed\"}",
                                          [IPW_RETRY_ALL] = "{\"superseded\":\"limit\"}"};
    struct ipw_buf line = IPW_BUF(IPW_LINE_MAX);
    int rc;

    ipw_json_patch(&line, doc, patches[why]);
    rc = ipw_rundir_attempt(s->of->dir, ipw_buf_str(&line), line.len, err);
    ipw_buf_release(&line);
    return rc;
}

static int mark_done(struct settling *s, const struct ipw_query_loaded *q, struct ipw_err *err)
{
    const struct ipw_settle *of = s->of;
    size_t task = ipw_dataset_find(of->cases, q->trace.id, q->details.epoch);
    int epoch = q->details.epoch;

    /* A query that --force left out of the selection keeps its line. */
    if (task != SIZE_MAX && ipw_dataset_get(of->cases, task)->epoch == epoch) epoch = 0;
    if (task != SIZE_MAX && epoch >= 0 && epoch < (int64_t)of->plan->n_epochs) {
        if (!ipw_plan_mark(of->plan, task, epoch))
            return ipw_fail(err, IPW_EPARSE, "query %.80s stands there twice (epoch %d)",
                            q->trace.id, q->details.epoch);
        of->history->n_kept++;
    }
    if (q->trace.completed) of->results->n_answered++;
    ipw_summary_add(&of->results->summary, &q->trace, &q->details);
    return 0;
}

static int take_trace(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct settling *s = ud;
    enum ipw_retry why = ipw_retry_of(q->trace.completed, q->trace.outcome);
    int rc;

    if (is_attempt(s, q)) { /* it was being moved at the kill */
        s->n_dropped++;
        return 0;
    }
    if (why == IPW_RETRY_NONE || why > s->of->retry) return mark_done(s, q, err);
    rc = write_attempt(s, q->doc, why, err);
    add_attempt(s, q);
    s->n_dropped++;
    return rc;
}

static int keep_trace(void *ud, const char *line, size_t n, struct ipw_buf *out,
                      struct ipw_err *err)
{
    const struct settling *s = ud;
    struct ipw_query_loaded q;
    int rc = ipw_schema_read_query(&q, line, n, err);

    if (rc) return rc;
    rc = !is_attempt(s, &q);
    ipw_query_loaded_release(&q);
    if (rc) ipw_buf_add(out, line, n);
    return rc;
}

/* ---- all steps ---- */

static void tell(const struct ipw_settle *of)
{
    const struct ipw_history *h = of->history;
    const struct ipw_rundir_torn *torn;
    size_t n = ipw_rundir_torn(of->dir, &torn);
    size_t planned = ipw_plan_counted(of->plan);

    if (ipw_rundir_stale_owner(of->dir)[0])
        ipw_log(IPW_LOG_INFO, "%s: its lock was left by a run that has ended (%s)",
                ipw_rundir_path(of->dir), ipw_rundir_stale_owner(of->dir));
    for (size_t i = 0; i < n; i++)
        ipw_log(IPW_LOG_WARN,
                "%s/%s: its last line was torn: %lld bytes from byte %lld on moved to %s.torn",
                ipw_rundir_path(of->dir), torn[i].file, (long long)torn[i].cut.bytes,
                (long long)torn[i].cut.offset, torn[i].file);
    if (!of->quiet)
        ipw_say("%s: continues: %zu of %zu queries are done, %zu earlier attempt%s",
                ipw_rundir_path(of->dir), h->n_kept, planned, h->n_attempts,
                h->n_attempts == 1 ? "" : "s");
}

int ipw_history_settle(const struct ipw_settle *of, struct ipw_err *err)
{
    struct settling s = {.of = of};
    struct ipw_history *h = of->history;
    const char *run;
    int rc;

    if (!h->manifest) return 0; /* a new run; it has no folder yet */
    run = ipw_rundir_path(of->dir);
    ipw_plan_resume(of->plan);
    rc = ipw_history_each(run, "attempts.jsonl", take_attempt, &s, err);
    if (!rc) rc = ipw_history_warmup(h, run, err);
    if (!rc) rc = ipw_history_each(run, "traces.jsonl", take_trace, &s, err);
    if (!rc) rc = ipw_rundir_sync(of->dir, err);
    if (!rc && s.n_dropped) rc = ipw_rundir_edit_traces(of->dir, keep_trace, &s, err);
    if (!rc) {
        ipw_history_fold(h);
        of->session->number = (int)h->n;
        ipw_rundir_set_segment(of->dir, of->session->number);
        /* The machine is warmed up again, unless no query is left to run. */
        if (h->n_kept == ipw_plan_counted(of->plan)) ipw_plan_skip_warmup(of->plan);
        tell(of);
    }
    ipw_table_release(&s.attempts);
    return rc;
}
