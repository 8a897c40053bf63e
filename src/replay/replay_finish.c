/* The results of a replay: traces and summary of the new run, and replay.json. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/ledger_check.h"
#include "base/mem.h"
#include "base/open.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "ledger/balance.h"
#include "ledger/recompute.h"
#include "replay/replay_job.h"
#include "report/summary.h"
#include "run/query_events.h"

/* ---- files ---- */

/* The readings of the replay are the saved ones: copied into a new file. */
static int copy_power(struct ipw_replay_job *job, struct ipw_err *err)
{
    char *from = ipw_asprintf("%s/power.jsonl", job->saved.path);
    char *to = ipw_asprintf("%s/power.jsonl", ipw_rundir_path(job->dir));
    struct ipw_err why = {0};
    int in = ipw_open_read(from, &why), out = -1, rc = 0;
    char block[65536];
    ssize_t n = 0;

    if (in >= 0) {
        out = ipw_open_write(to, O_WRONLY | O_CREAT | O_EXCL, err);
        if (out < 0) rc = out;
    } else if (why.detail != ENOENT) {
        rc = in;
        if (err) *err = why;
    }
    while (out >= 0 && !rc && (n = TEMP_FAILURE_RETRY(read(in, block, sizeof block))) > 0)
        if (ipw_write_all(out, block, (size_t)n)) rc = ipw_fail_errno(err, errno, "%s", to);
    if (n < 0) rc = ipw_fail_errno(err, errno, "%s", from);
    if (in >= 0) close(in);
    if (out >= 0 && close(out) && !rc) rc = ipw_fail_errno(err, errno, "%s", to);
    free(from);
    free(to);
    return rc;
}

struct ipw_replay_results {
    struct ipw_replay_job *job;
    struct ipw_check *check; /* the saved trace lines; NULL: there are none to compare with */
    struct ipw_recompute redo;
    struct ipw_recompute_job *going;
    struct ipw_summary summary;
    struct ipw_run_balance balances;
    int64_t n_attempts;
};

static const struct ipw_query_details *replayed(const struct ipw_replay_job *job, int32_t index,
                                                int segment)
{
    const struct ipw_replayed_query *r = job->replayed;

    while (r && (r->index != index || r->segment != segment)) r = r->next;
    return r ? &r->details : NULL;
}

static void count(struct ipw_replay_results *w, const struct ipw_recompute_query *query,
                  const struct ipw_query_details *details)
{
    if (query->warmup) ipw_uncounted_add(&w->balances.warmup, query->trace);
    if (details->superseded) ipw_uncounted_add(&w->balances.earlier, query->trace);
    w->n_attempts += !query->warmup && details->superseded;
    if (!query->warmup && !details->superseded) ipw_summary_add(&w->summary, query->trace, details);
}

static int write_trace(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    struct ipw_replay_results *w = ud;
    struct ipw_replay_job *job = w->job;
    const struct ipw_recompute_segment *segment = w->redo.segments[w->redo.n_segments - 1];
    const struct ipw_anchor *clock =
        segment->rules.clock.wall_ns ? &segment->rules.clock : &job->anchor;
    const struct ipw_query_details *own = replayed(job, query->trace->index, query->segment);
    struct ipw_query_details details;
    struct ipw_query_loaded was = {0};
    struct ipw_buf line = IPW_BUF(IPW_LINE_MAX);
    enum ipw_check_verdict verdict = IPW_CHECK_MISSING;
    int rc = 0;

    /* The saved line of a query that ran again here says nothing that is needed. */
    if (w->check && !own)
        rc = ipw_check_query(w->check, segment, query, &verdict, &was, NULL, &line, err);
    if (rc) {
        ipw_buf_release(&line);
        return rc;
    }
    if (own) {
        details = *own;
        details.cost_usd = ipw_query_trace_cost(query->trace);
        details.segment = query->segment;
        rc = ipw_query_write_line(job->dir, query->trace, &details, clock, query->warmup, err);
    } else {
        details = was.details;
        job->tally.traces_differ += verdict == IPW_CHECK_DIFFERS;
        /* Without a line the saved run did not get to write it. */
        if (line.len) rc = ipw_query_put_line(job->dir, &line, &details, query->warmup, err);
    }
    if (!rc && (own || line.len)) count(w, query, &details);
    ipw_buf_release(&line);
    ipw_query_loaded_release(&was);
    return rc;
}

static void fill_balance(struct ipw_summary_run *facts, struct ipw_replay_results *w)
{
    facts->have_balance = w->redo.n_segments > 0;
    facts->wall_s = 0;
    for (size_t i = 0; i < w->redo.n_segments; i++) {
        const struct ipw_recompute_segment *s = w->redo.segments[i];

        facts->wall_s += ipw_ns_to_s(s->end_ns - s->start_ns);
        ipw_run_balance_session(&w->balances, s->balance, &s->devices);
    }
    ipw_run_balance_close(&w->balances);
    memcpy(facts->balance, w->balances.balance, sizeof facts->balance);
    facts->devices = &w->balances.devices;
}

/* The idle baseline is only in the saved run's summary.  Without a summary (the run was killed)
 * there is no baseline. */
static void take_baseline(struct ipw_summary_run *facts, const struct ipw_replay_job *job)
{
    const struct ipw_json *baseline, *domains;
    struct ipw_json *doc;

    if (job->by_query || ipw_json_read(&doc, job->saved.path, "summary.json", NULL)) return;
    baseline = ipw_json_get(doc, "baseline");
    domains = ipw_json_get(baseline, "domains");
    facts->baseline_s = ipw_json_num(ipw_json_get(baseline, "seconds"), 0);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_json *b = ipw_json_get(domains, ipw_domain_name((enum ipw_domain)d));

        facts->baseline[d] =
            (struct ipw_baseline_watts){.before_w = ipw_json_num(ipw_json_get(b, "before_w"), NAN),
                                        .after_w = ipw_json_num(ipw_json_get(b, "after_w"), NAN)};
    }
    ipw_json_free(doc);
}

static int write_summary(struct ipw_replay_results *w, struct ipw_err *err)
{
    struct ipw_replay_job *job = w->job;
    struct ipw_summary_run facts = IPW_SUMMARY_RUN_UNKNOWN;
    const struct ipw_replayed_run *was = &job->saved;
    char *config = ipw_json_text(was->config);
    char *hardware = ipw_json_text(ipw_json_get(was->manifest, "hardware"));
    struct ipw_buf out = IPW_BUF(IPW_LINE_MAX);
    struct ipw_anchor now;
    const struct ipw_json *merge = ipw_json_get(was->manifest, "merge");
    char note[200];
    int rc;

    ipw_anchor_take(&now);
    snprintf(
        note, sizeof note, "a replay (%s)%s%s", job->o->mode,
        job->by_query ? ": nothing was measured" : ": joules and times are those of the saved run",
        ipw_json_int(ipw_json_get(merge, "missing"), 0) > 0 ? "; the saved run is a partial merge"
                                                            : "");
    facts.agent = ipw_replayed_run_text(was, "agent");
    facts.model = job->setting.model;
    facts.dataset = ipw_replayed_run_text(was, "dataset");
    facts.status = job->cut || job->stop_signal ? "interrupted" : "complete";
    facts.config = config;
    facts.hardware = hardware;
    facts.note = note;
    facts.wall_ns = now.wall_ns;
    facts.attempts = w->n_attempts;
    fill_balance(&facts, w);
    take_baseline(&facts, job);
    rc = ipw_summary_write(&out, &w->summary, &facts, err);
    if (!rc) rc = ipw_rundir_write_summary(job->dir, ipw_buf_str(&out), out.len, err);
    ipw_buf_release(&out);
    free(config);
    free(hardware);
    return rc;
}

static void put_divergences(struct ipw_jw *w, const struct ipw_divergences *d)
{
    ipw_jw_key(w, "divergences");
    ipw_jw_arr(w);
    for (size_t i = 0; i < d->n; i++) {
        const struct ipw_divergence *one = &d->all[i];

        ipw_jw_obj(w);
        ipw_jw_kstr(w, "query_id", one->id);
        ipw_jw_kint(w, "query_index", one->index);
        ipw_jw_kstr(w, "text", one->text);
        ipw_jw_kcount(w, "turn", one->turn > 0 ? one->turn : -1);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_jw_kint(w, "divergences_left_out", (int64_t)d->n_more);
}

static void report_json(struct ipw_buf *out, const struct ipw_replay_job *job)
{
    const struct ipw_replay_tally *t = &job->tally;
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "diverged", (int64_t)t->diverged);
    put_divergences(&w, &job->divergences);
    ipw_jw_kbool(&w, "identical", ipw_replay_job_identical(job));
    ipw_jw_kstr(&w, "mode", job->o->mode);
    ipw_jw_kstr(&w, "of", job->saved.path);
    ipw_jw_kstr(&w, "path", ipw_rundir_path(job->dir));
    ipw_jw_kint(&w, "queries", (int64_t)t->queries);
    ipw_jw_kint(&w, "tool_calls", (int64_t)t->tools);
    ipw_jw_key(&w, "tool_results");
    if (job->decisions) {
        ipw_jw_obj(&w);
        ipw_jw_kint(&w, "different", (int64_t)t->different);
        ipw_jw_kint(&w, "missing", (int64_t)t->missing);
        ipw_jw_kint(&w, "same", (int64_t)t->same);
        ipw_jw_obj_end(&w);
    } else {
        ipw_jw_null(&w);
    }
    ipw_jw_kint(&w, "traces_differ", (int64_t)t->traces_differ);
    ipw_jw_kint(&w, "turns", (int64_t)t->turns);
    ipw_jw_kint(&w, "unfinished", (int64_t)t->unfinished);
    ipw_jw_obj_end(&w);
}

static int write_report(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(IPW_LINE_MAX);
    char *path = ipw_asprintf("%s/replay.json", ipw_rundir_path(job->dir));
    int rc;

    report_json(&out, job);
    ipw_buf_addc(&out, '\n');
    rc = ipw_file_write_atomic(path, out.data, out.len, err);
    ipw_buf_release(&out);
    free(path);
    return rc;
}

int ipw_replay_results_open(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_replay_results *w = ipw_calloc(1, sizeof *w);
    struct ipw_recompute_options how = {.query = write_trace, .ud = w};
    char *ends = job->by_query ? NULL : ipw_asprintf("%s/events.jsonl", job->saved.path);
    int rc = 0;

    job->results = w;
    w->job = job;
    ipw_summary_init(&w->summary);
    if (!job->by_query) rc = copy_power(job, err);
    if (!rc && !job->by_query) rc = ipw_check_open(&w->check, job->saved.path, NULL, err);
    if (!rc) {
        rc = ipw_recompute_open(&w->going, &w->redo, ipw_rundir_path(job->dir), ends, &how, err);
    }
    free(ends);
    return rc;
}

void ipw_replay_results_line(struct ipw_replay_job *job, const struct ipw_json *line)
{
    struct ipw_replay_results *w = job->results;

    if (!job->err.code) ipw_recompute_line(w->going, line, &job->err);
}

void ipw_replay_results_release(struct ipw_replay_job *job)
{
    struct ipw_replay_results *w = job->results;

    if (!w) return;
    ipw_recompute_close(w->going);
    ipw_recompute_release(&w->redo);
    ipw_run_balance_release(&w->balances);
    ipw_check_close(w->check);
    ipw_summary_release(&w->summary);
    free(w);
    job->results = NULL;
}

int ipw_replay_finish(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_replay_results *w = job->results;
    int rc = ipw_rundir_flush(job->dir, err);

    if (!rc) rc = ipw_recompute_end(w->going, err);
    if (!rc) rc = write_summary(w, err);
    return rc ? rc : write_report(job, err);
}
