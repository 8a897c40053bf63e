#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "json/write.h"
#include "run/query_state.h"
#include "run/sensors.h"
#include "run/workspace.h"

enum { MAX_RECORD_BYTES = 64 * 1024 * 1024 };

/* Every event of the query passes here: on to the file, the ledger and the turn builder. */
static void emit(void *ud, struct ipw_event *event)
{
    struct ipw_query *q = ud;
    double usd; /* the most it can have cost */

    event->query = (int32_t)q->index;
    event->rows = q->run->n_rows;
    if (!event->t_ns) event->t_ns = ipw_now_ns();
    ipw_sensors_mark(q->run, event);
    if (event->kind == IPW_EV_NOTE && event->tool.name && !strcmp(event->tool.name, "malformed"))
        q->n_malformed++;
    usd = ipw_pricing_event(&q->run->pricing, event);
    ipw_rundir_event(q->run->dir, event);
    ipw_feed_event(q->run->feed, event);
    if (q->builder) ipw_turn_builder_add(q->builder, event);
    ipw_progress_event(q->run->progress, event);
    ipw_net_event(q, event);
    if (q->run->origin->event) q->run->origin->event(q->run->origin, q, event);
    ipw_enforce_event(q, event, usd);
}

/* Prefill and decode draw differently: their boundary is read too. */
static void first_token(void *ud, int64_t t_ns)
{
    struct ipw_event note = {.kind = IPW_EV_NOTE, .t_ns = t_ns, .tool.name = IPW_NOTE_FIRST_TOKEN};
    const struct ipw_query *q = ud;

    ipw_sensors_mark_now(q->run);
    emit(ud, &note);
}

/* ---- the workspace ---- */

static const char *workspace(void *ud)
{
    struct ipw_query *q = ud;
    struct ipw_err err;

    if (q->workspace) return q->workspace;
    if (ipw_workspaces_make(&q->run->workspaces, &err)) {
        ipw_log(IPW_LOG_WARN, "%s", err.text);
        return NULL;
    }
    q->workspace = ipw_asprintf("%s/q%04zu", q->run->workspaces.path, q->index);
    if (TEMP_FAILURE_RETRY(mkdir(q->workspace, 0700))) {
        ipw_log(IPW_LOG_WARN, "%s: %s", q->workspace, strerror(errno));
        free(q->workspace);
        q->workspace = NULL;
    }
    return q->workspace;
}

static int put_file(struct ipw_query *q, const struct ipw_case_file *file, struct ipw_err *err)
{
    const char *folder = workspace(q);

    if (!folder) return ipw_fail(err, IPW_EIO, "no workspace for attachment '%s'", file->name);
    return ipw_workspace_put(folder, file, err);
}

/* ---- the end ---- */

static void emit_end(struct ipw_query *q)
{
    struct ipw_event event = {.kind = IPW_EV_QUERY_END, .t_ns = q->end_ns};
    struct ipw_buf data = IPW_BUF(MAX_RECORD_BYTES);
    struct ipw_jw w;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "answer");
    if (q->scored && (q->score.answer.len || q->response))
        ipw_jw_strn(&w, ipw_buf_str(&q->score.answer), q->score.answer.len);
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "answer_source", q->scored ? q->score.source : NULL);
    ipw_jw_kint(&w, "lua_cpu_ns", q->lua_cpu_ns);
    ipw_jw_kint(&w, "lua_peak_bytes", q->lua_peak_bytes);
    if (q->never_ran) ipw_jw_kbool(&w, "ran", false);
    ipw_jw_key(&w, "resolved");
    if (q->scored && q->score.resolved >= 0)
        ipw_jw_bool(&w, q->score.resolved == 1);
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "response", q->response);
    if (q->cancel_reason) ipw_jw_kbool(&w, "stopped", true);
    ipw_jw_obj_end(&w);
    event.q = (struct ipw_query_facts){
        .id = q->c->id, .outcome = q->outcome, .completed = q->completed, .error = q->error};
    event.payload = data.failed ? NULL : data.data;
    event.payload_len = data.failed ? 0 : data.len;
    emit(q, &event);
    ipw_buf_release(&data);
}

/* The name of the limit that the query ran into, unless something else ended it; or NULL. */
static const char *ended_by_limit(const struct ipw_query *q)
{
    const char *name = ipw_limit_outcome(q->limits.reached, false);

    if (!q->limits.reached) return NULL;
    return !q->cancel_reason || strcmp(q->cancel_reason, name) == 0 ? name : NULL;
}

static void end_query(struct ipw_query *q, const char *outcome, bool completed,
                      const char *response, const char *source, const char *error)
{
    struct ipw_run *run = q->run;
    const char *limit = ended_by_limit(q);

    q->end_ns = ipw_now_ns();
    q->looks_at_end = q->run->sample_looks;
    ipw_enforce_query_end(q);
    q->completed = completed;
    q->outcome = ipw_strdup(limit ? limit : q->cancel_reason ? q->cancel_reason : outcome);
    q->response = ipw_strdup(response);
    q->error = ipw_strdup(limit ? q->limits.why : error);
    if (limit || !q->cancel_reason) {
        ipw_dataset_score(run->cases, q->place.index, q->response, source, &q->score);
        q->scored = true;
        ipw_secret_clean(&q->score.answer, 0);
    }
    /* Here already, since they are shortened before they are shown. */
    if (q->response) ipw_secret_clean_text(q->response);
    if (q->error) ipw_secret_clean_text(q->error);
    emit_end(q);

    /* From the active list to the unbooked one. */
    if (q->prev)
        q->prev->next = q->next;
    else
        run->active = q->next;
    if (q->next) q->next->prev = q->prev;
    run->n_active--;
    *run->unbooked_tail = q;
    run->unbooked_tail = &q->next_unbooked;
    q->agent_over = true;
    q->next_over = run->over;
    run->over = q;
    ipw_run_step_soon(run);
}

/* A level of the stack a line, indented. */
static void say_traceback(const char *text)
{
    struct ipw_buf out = IPW_BUF(64 * IPW_KIB);

    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        ipw_buf_addf(&out, "\n    %.*s", (int)n, text);
    }
    ipw_log(IPW_LOG_INFO, "raised at%s", ipw_buf_str(&out));
    ipw_buf_release(&out);
}

static void agent_done(void *ud, const struct ipw_agent_result *r)
{
    struct ipw_query *q = ud;

    q->lua_peak_bytes = (int64_t)r->lua_peak_bytes;
    q->lua_cpu_ns = r->lua_cpu_ns;
    if (r->error && !q->cancel_reason) {
        ipw_log(IPW_LOG_WARN, "query %s failed: %s", q->c->id, r->error);
        if (r->traceback[0]) say_traceback(r->traceback);
    }
    end_query(q, r->outcome, r->completed, r->response, r->source, r->error);
}

void ipw_query_cancel(struct ipw_query *q, const char *reason)
{
    if (q->cancel_reason || !q->agent) return;
    q->cancel_reason = reason;
    ipw_agent_cancel(q->agent, reason);
}

/* ---- the start ---- */

static void emit_start(struct ipw_query *q, const struct ipw_case *c)
{
    struct ipw_event event = {.kind = IPW_EV_QUERY_START, .t_ns = q->start_ns};
    struct ipw_buf data = IPW_BUF(MAX_RECORD_BYTES);
    struct ipw_jw w;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "epoch", q->place.epoch);
    ipw_jw_key(&w, "files");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < c->n_files; i++) ipw_jw_str(&w, c->files[i].name);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "level", c->level);
    if (c->metadata) ipw_jw_kraw(&w, "metadata", c->metadata, strlen(c->metadata));
    ipw_jw_kint(&w, "number", c->number);
    ipw_jw_kstr(&w, "prompt", c->prompt);
    ipw_jw_kstr(&w, "system", c->system);
    ipw_jw_kbool(&w, "warmup", q->place.warmup);
    ipw_jw_obj_end(&w);
    event.q.id = c->id;
    event.payload = data.failed ? NULL : data.data;
    event.payload_len = data.failed ? 0 : data.len;
    emit(q, &event);
    ipw_buf_release(&data);
}

int ipw_query_start(struct ipw_run *run, size_t index)
{
    struct ipw_place place = ipw_run_place(run, index);
    struct ipw_query *q = ipw_calloc(1, sizeof *q);
    const struct ipw_case *c;
    struct ipw_err err = {0};
    int rc = 0;

    q->run = run;
    q->index = index;
    q->place = place;
    q->lua_peak_bytes = q->lua_cpu_ns = -1;
    q->builder = ipw_turn_builder_new();
    q->start_ns = ipw_now_ns();
    if (run->origin->seat)
        run->origin->seat(run->origin, q);
    else
        q->c = ipw_dataset_get(run->cases, place.index);
    c = q->c;
    q->host = (struct ipw_host){
        .loop = run->loop,
        .model.llm = run->llm,
        .name = c->id,
        .model.name = run->model,
        .model.temperature = run->o->temperature,
        .model.seed = run->o->seed,
        .model.max_tokens = run->o->max_tokens,
        .on.workspace = workspace,
        .grants.quota = ipw_script_quota(&run->o->script),
        .grants.may_start = !run->o->script.no_proc && (!run->o->untrusted || run->o->allow_proc),
        .grants.web = run->web,
        .grants.may_fetch = run->web != NULL,
        .grants.readable = (const char *const *)run->o->script.read.items,
        .grants.no_web = "web requests are switched off by --no-web",
        .grants.no_proc =
            run->o->script.no_proc
                ? "child processes are switched off by --no-proc"
                : "an --untrusted agent starts child processes with --allow-proc only",
        .start_ns = q->start_ns,
        .on.admit = ipw_enforce_admit,
        .on.held = ipw_enforce_held,
        .on.rest = ipw_enforce_rest,
        .on.energy = ipw_enforce_energy,
        .on.budget = ipw_enforce_budget,
        .on.emit = emit,
        .on.first_token = first_token,
        .workload = q->seat,
        .on.ud = q,
    };
    q->next = run->active;
    if (run->active) run->active->prev = q;
    run->active = q;
    run->n_active++;
    emit_start(q, c);

    if (c->error) rc = ipw_fail(&err, IPW_EINVAL, "%s", c->error);
    for (size_t i = 0; !rc && i < c->n_files; i++) rc = put_file(q, &c->files[i], &err);
    if (!rc)
        rc =
            ipw_agent_start(&q->agent, &run->agent, &run->config, c, &q->host, agent_done, q, &err);
    if (rc) {
        ipw_log(IPW_LOG_WARN, "query %s failed: %s", c->id, err.text);
        q->never_ran = true;
        end_query(q, "error", false, NULL, NULL, err.text);
        return 0;
    }
    ipw_enforce_query_start(q);
    return 0;
}

void ipw_query_free(struct ipw_query *q)
{
    ipw_agent_free(q->agent);
    ipw_enforce_query_end(q);
    ipw_turn_builder_free(q->builder);
    if (q->workspace) ipw_workspace_remove(q->workspace);
    free(q->workspace);
    free(q->outcome);
    free(q->response);
    free(q->error);
    if (q->scored) ipw_score_release(&q->score);
    ipw_host_release(&q->host);
    if (q->run->origin->unseat) q->run->origin->unseat(q->run->origin, q);
    free(q);
}
