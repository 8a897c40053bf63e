#include "run/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "run/energy_so_far.h"
#include "run/query_events.h"
#include "run/workspace.h"

static const char *id_of(const struct ipw_query *q) { return q->sinks.seat.c->id; }

/* ---- callbacks of the agent's host; ud is the query ---- */

static void emit(void *ud, struct ipw_event *event)
{
    struct ipw_query *q = ud;

    ipw_sinks_take(&q->ground->sinks, &q->sinks, event);
}

/* Prefill and decode have different power, so the counters are read at their boundary. */
static void first_token(void *ud, int64_t t_ns)
{
    struct ipw_event note = {.kind = IPW_EV_NOTE, .t_ns = t_ns, .tool.name = IPW_NOTE_FIRST_TOKEN};
    const struct ipw_query *q = ud;

    ipw_sampler_mark(q->ground->sinks.sensors->sampler);
    emit(ud, &note);
}

static bool admit(void *ud)
{
    return ipw_query_limits_admit(&((struct ipw_query *)ud)->sinks.limits);
}

static void held(void *ud, int64_t t_ns)
{
    struct ipw_query *q = ud;

    (void)t_ns;
    ipw_server_query_asks(q->ground->sinks.servers, &q->sinks.server);
}

static void rest(void *ud, int64_t t_ns, bool rests)
{
    ipw_query_limits_rest(&((struct ipw_query *)ud)->sinks.limits, t_ns, rests);
}

static void energy(void *ud, struct ipw_host_energy *out)
{
    const struct ipw_query *q = ud;
    const struct ipw_sensors *sensors = q->ground->sinks.sensors;
    struct ipw_energy_so_far e;

    ipw_energy_of_query(&e, sensors->ledger, sensors->feed, q->sinks.query, q->start_ns);
    ipw_energy_for_script(out, &e, q->start_ns);
}

static void budget(void *ud, struct ipw_host_budget *out)
{
    ipw_query_limits_budget(&((struct ipw_query *)ud)->sinks.limits, out);
}

static const char *workspace(void *ud)
{
    struct ipw_query *q = ud;
    struct ipw_workspaces *all = q->ground->workspaces;
    struct ipw_err err;

    if (ipw_workspaces_make(all, &err)) {
        ipw_log(IPW_LOG_WARN, "%s", err.text);
        return NULL;
    }
    return ipw_workspace_make(&q->workspace, all->path, q->sinks.query);
}

/* ---- the end ---- */

static void emit_end(struct ipw_query *q)
{
    bool answered = q->scored && (q->score.answer.len || q->response);
    struct ipw_query_end_facts facts = {
        .q = {.id = id_of(q), .outcome = q->outcome, .completed = q->completed, .error = q->error},
        .answer = answered ? ipw_buf_str(&q->score.answer) : NULL,
        .answer_len = q->score.answer.len,
        .answer_source = q->scored ? q->score.source : NULL,
        .response = q->response,
        .resolved = q->scored ? q->score.resolved : -1,
        .lua_cpu_ns = q->lua_cpu_ns,
        .lua_peak_bytes = q->lua_peak_bytes,
        .never_ran = q->never_ran,
        .stopped = q->stop != IPW_STOP_NONE,
    };
    bool late = q->host.session && q->host.session->end_ns;
    struct ipw_buf data = IPW_QUERY_EVENT_BUF;
    struct ipw_event event;

    ipw_query_end_event(&event, &data, &facts);
    event.t_ns = late ? ipw_now_ns() : q->end_ns;
    event.q.ended_ns = late ? q->end_ns : 0;
    emit(q, &event);
    ipw_buf_release(&data);
}

/* The outcome of a query that was ended by another part; NULL: it ended by itself. */
static const char *stopped_as(const struct ipw_query *q)
{
    const struct ipw_query_limits *own = &q->sinks.limits;

    switch (q->stop) {
    case IPW_STOP_NONE: return own->reached ? ipw_limit_outcome(own->reached, false) : NULL;
    case IPW_STOP_LIMIT: return ipw_limit_outcome(own->reached, false);
    case IPW_STOP_RUN_LIMIT: return ipw_limit_outcome(own->of->reached, true);
    case IPW_STOP_SERVER_LOST: return "server_lost";
    case IPW_STOP_INTERRUPT: break;
    }
    return "interrupted";
}

static void end_query(struct ipw_query *q, const char *outcome, bool completed,
                      const char *response, const char *source, const char *error)
{
    const struct ipw_query_ground *g = q->ground;
    const char *stopped = stopped_as(q);
    int64_t told_ns = q->host.session ? q->host.session->end_ns : 0;
    /* Its own limit: the query has an error, and a score. */
    bool own = q->stop == IPW_STOP_NONE || q->stop == IPW_STOP_LIMIT;

    q->end_ns = told_ns ? told_ns : ipw_now_ns();
    ipw_query_limits_end(&q->sinks.limits);
    q->completed = completed;
    q->outcome = ipw_strdup(stopped ? stopped : outcome);
    q->response = ipw_strdup(response);
    q->error = ipw_strdup(own && q->sinks.limits.reached ? q->sinks.limits.why : error);
    if (own) {
        ipw_dataset_score(g->cases, q->place.index, q->response, source, &q->score);
        if (q->host.session && q->host.session->exit_scores)
            q->score.resolved = q->host.session->exit_code == 0;
        q->scored = true;
        ipw_secret_clean(&q->score.answer, 0);
    }
    /* Secrets are removed here, because texts are shortened before they are shown. */
    if (q->response) ipw_secret_clean_text(q->response);
    if (q->error) ipw_secret_clean_text(q->error);
    emit_end(q);
    ipw_server_query_end(g->sinks.servers, &q->sinks.server);
    g->over(g->ud, q);
}

/* One indented line for each level of the stack. */
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
    if (r->error && !q->stop) {
        ipw_log(IPW_LOG_WARN, "query %s failed: %s", id_of(q), r->error);
        if (r->traceback[0]) say_traceback(r->traceback);
    }
    end_query(q, r->outcome, r->completed, r->response, r->source, r->error);
}

void ipw_query_cancel(struct ipw_query *q, enum ipw_query_stop how)
{
    const struct ipw_host_session *session = q->host.session;

    if (q->stop || !q->agent) return;
    q->stop = how;
    if (session && (how == IPW_STOP_LIMIT || how == IPW_STOP_RUN_LIMIT) &&
        session->limit(session->ud))
        return;
    ipw_agent_cancel(q->agent, stopped_as(q));
}

static void cut(void *ud, enum ipw_query_stop how) { ipw_query_cancel(ud, how); }

/* ---- the start ---- */

static void emit_start(struct ipw_query *q)
{
    struct ipw_buf data = IPW_QUERY_EVENT_BUF;
    struct ipw_event event;

    ipw_query_start_event(&event, &data, q->sinks.seat.c, q->place.epoch, q->place.warmup);
    event.t_ns = q->start_ns;
    event.q.scheduled_ns = q->sinks.seat.scheduled_ns;
    emit(q, &event);
    ipw_buf_release(&data);
}

static void fill_host(struct ipw_query *q)
{
    const struct ipw_query_ground *g = q->ground;

    q->host = (struct ipw_host){
        .loop = g->loop,
        .name = id_of(q),
        .start_ns = q->start_ns,
        .trace = g->trace,
        .workload = q->sinks.seat.workload,
        .session = q->sinks.seat.session,
        .model = {.llm = g->llm,
                  .name = g->model,
                  .sub = g->sub,
                  .sub_name = g->sub_model,
                  .temperature = g->agent->temperature,
                  .seed = g->agent->seed,
                  .max_tokens = g->agent->max_tokens},
        .grants = g->grants,
        .on = {.workspace = workspace,
               .admit = admit,
               .held = held,
               .rest = rest,
               .energy = energy,
               .budget = budget,
               .emit = emit,
               .first_token = first_token,
               .ud = q},
    };
    q->host.trace.query = q->sinks.query;
}

struct ipw_query *ipw_query_new(const struct ipw_query_ground *g, size_t index,
                                struct ipw_place place)
{
    struct ipw_query *q = ipw_calloc(1, sizeof *q);
    struct ipw_origin *origin = g->sinks.origin;

    q->ground = g;
    q->place = place;
    q->lua_peak_bytes = q->lua_cpu_ns = -1;
    q->start_ns = ipw_now_ns();
    q->sinks.query = (int32_t)index;
    q->sinks.turns = ipw_turn_builder_new();
    if (origin->seat)
        origin->seat(origin, &q->sinks.seat, &q->place, q->start_ns);
    else
        q->sinks.seat.c = ipw_dataset_get(g->cases, place.index);
    fill_host(q);
    q->sinks.server = (struct ipw_server_query){
        .id = id_of(q), .query = q->sinks.query, .extended = &q->host.sent.extended};
    q->sinks.limits = (struct ipw_query_limits){
        .query = q->sinks.query, .start_ns = q->start_ns, .cut = cut, .ud = q};
    ipw_server_query_begin(g->sinks.servers, &q->sinks.server);
    ipw_query_limits_begin(&q->sinks.limits, g->limits);
    return q;
}

void ipw_query_start(struct ipw_query *q)
{
    const struct ipw_query_ground *g = q->ground;
    const struct ipw_case *c = q->sinks.seat.c;
    struct ipw_err err = {0};
    int rc = 0;

    emit_start(q);
    if (c->error) rc = ipw_fail(&err, IPW_EINVAL, "%s", c->error);
    if (!rc) rc = ipw_workspace_fill(workspace, q, c, &err);
    if (!rc) rc = ipw_agent_start(&q->agent, g->info, g->config, c, &q->host, agent_done, q, &err);
    if (!rc) {
        ipw_query_limits_start(&q->sinks.limits);
        return;
    }
    ipw_log(IPW_LOG_WARN, "query %s failed: %s", c->id, err.text);
    q->never_ran = true;
    end_query(q, "error", false, NULL, NULL, err.text);
}

void ipw_query_free_agent(struct ipw_query *q)
{
    ipw_agent_free(q->agent);
    q->agent = NULL;
    q->agent_over = false;
}

void ipw_query_free(struct ipw_query *q)
{
    struct ipw_origin *origin = q->ground->sinks.origin;

    ipw_agent_free(q->agent);
    ipw_turn_builder_free(q->sinks.turns);
    if (q->workspace) ipw_workspace_remove(q->workspace);
    free(q->workspace);
    free(q->outcome);
    free(q->response);
    free(q->error);
    if (q->scored) ipw_score_release(&q->score);
    ipw_host_release(&q->host);
    if (origin->unseat) origin->unseat(origin, &q->sinks.seat);
    free(q);
}
