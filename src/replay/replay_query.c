/* One query of a replay: from its saved start to the end of its agent. */
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
#include "base/text.h"
#include "json/document.h"
#include "replay/replay_job.h"
#include "run/query_events.h"
#include "run/workspace.h"

/* A query's next line is close behind, as far as other queries ran at the same time. */
enum { REACH_LINES = 100000 };

/* ---- its start data ---- */

static const char *workspace(void *ud)
{
    struct ipw_replay_query *q = ud;

    if (TEMP_FAILURE_RETRY(mkdir(q->job->workspaces, 0700)) && errno != EEXIST) return NULL;
    return ipw_workspace_make(&q->workspace, q->job->workspaces, q->index);
}

static char *copy(const struct ipw_json *data, const char *key)
{
    return ipw_strdup(ipw_json_str(ipw_json_get(data, key), NULL));
}

static void read_case(struct ipw_replay_query *q, const struct ipw_event_line *line)
{
    const struct ipw_json *data = line->data, *metadata = ipw_json_get(data, "metadata");
    const struct ipw_json *files = ipw_json_get(data, "files");

    q->c = (struct ipw_case){.id = ipw_strdup(line->event.q.id ? line->event.q.id : "?"),
                             .prompt = copy(data, "prompt"),
                             .system = copy(data, "system"),
                             .level = copy(data, "level"),
                             .number = ipw_json_int(ipw_json_get(data, "number"), q->index + 1)};
    if (!q->c.prompt) q->c.prompt = ipw_strdup("");
    q->epoch = (int)ipw_json_int(ipw_json_get(data, "epoch"), 0);
    if (!ipw_json_is_null(metadata)) q->c.metadata = ipw_json_text(metadata);
    for (const struct ipw_json *f = ipw_json_first(files); f; f = ipw_json_next(f)) {
        IPW_GROW(q->c.files, q->c.cap_files, q->c.n_files + 1);
        q->c.files[q->c.n_files++] =
            (struct ipw_case_file){.name = ipw_strdup(ipw_json_str(f, ""))};
    }
}

/* The case in the dataset, where that is at hand. */
static void find_real(struct ipw_replay_query *q)
{
    const struct ipw_dataset *cases = q->job->setting.cases;

    size_t i = cases ? ipw_dataset_find(cases, q->c.id, q->c.epoch) : SIZE_MAX;

    if (i == SIZE_MAX) return;
    q->real = ipw_dataset_get(cases, i);
    q->real_index = i;
}

static int put_files(struct ipw_replay_query *q, struct ipw_err *err)
{
    find_real(q);
    if (q->real) return ipw_workspace_fill(workspace, q, q->real, err);
    if (!q->c.n_files) return 0;
    return ipw_fail(err, IPW_ENOTFOUND,
                    "query %s has attachments, which a saved run does not contain. Name its "
                    "dataset with --dataset.",
                    q->c.id);
}

/* ---- its steps ---- */

static void count(struct ipw_replay_query *q, const struct ipw_event *event)
{
    if (event->kind == IPW_EV_LM_START && event->lm.attempt == 1) q->job->tally.turns++;
    if (event->kind == IPW_EV_TOOL_START) q->job->tally.tools++;
    if (event->kind == IPW_EV_NOTE && event->tool.name && !strcmp(event->tool.name, "malformed"))
        q->n_malformed++;
}

static void write_event(void *ud, struct ipw_event *event, const struct ipw_event_line *line)
{
    struct ipw_replay_query *q = ud;
    struct ipw_replay_job *job = q->job;
    bool from_saved_run = line || job->decisions;

    count(q, event);
    /* As in a run: the request after one of a tool is written in full. */
    if (line && ipw_playback_is_inside(line) && event->kind == IPW_EV_LM_START) q->host.sent.n = 0;
    if (!job->by_query) {
        ipw_replay_job_line(job, line);
        return;
    }
    if (line && ipw_playback_is_own(line)) return;
    event->query = q->index;
    event->rows = 0;
    event->t_ns = ipw_now_ns();
    /* A saved reply has times of the saved run, which do not apply here. */
    if (from_saved_run && event->kind == IPW_EV_LM_END) event->lm.times = (struct ipw_lm_times){0};
    ipw_replay_job_event(job, event);
}

static void emit(void *ud, struct ipw_event *event)
{
    struct ipw_replay_query *q = ud;

    event->query = q->index;
    ipw_playback_emit(q->playback, event);
}

static void stir(void *ud)
{
    struct ipw_replay_query *q = ud;

    ipw_replay_step_soon(q->job);
}

static void note(struct ipw_replay_query *q, const char *text)
{
    ipw_divergences_add(&q->job->divergences, q->c.id, q->index, ipw_playback_turns(q->playback),
                        text);
}

static void diverged(void *ud, const char *text)
{
    struct ipw_replay_query *q = ud;

    q->diverged = true;
    note(q, text);
    if (q->job->network.llm)
        q->host.model.name =
            q->job->o->run.server.model ? q->job->o->run.server.model : q->host.model.name;
    ipw_replay_step_soon(q->job);
}

static const char *content_of(const struct ipw_event_line *line)
{
    return ipw_json_str(ipw_json_get(line->data, "content"), "");
}

/* Compares a tool's result with the saved one. */
static void tool_result(void *ud, const struct ipw_event_line *line,
                        const struct ipw_event_line *was)
{
    struct ipw_replay_query *q = ud;
    const char *now = content_of(line), *then = content_of(was);
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    if (strcmp(now, then) == 0) {
        q->job->tally.same++;
    } else {
        q->job->tally.different++;
        ipw_buf_addf(&text, "tool %s, span %d, gives something else",
                     line->event.tool.name ? line->event.tool.name : "?", (int)was->event.span);
        ipw_playback_say_texts(&text, then, now);
        note(q, ipw_buf_str(&text));
    }
    ipw_buf_release(&text);
}

/* ---- the end ---- */

/* As in the saved run: a script can cut a character in two.  NULL gives NULL. */
static char *as_saved(const char *text)
{
    struct ipw_buf clean;

    if (!text) return NULL;
    ipw_buf_init(&clean, 3 * strlen(text));
    ipw_utf8_clean(&clean, text, strlen(text));
    return ipw_buf_take(&clean, NULL);
}

static void agent_done(void *ud, const struct ipw_agent_result *r)
{
    struct ipw_replay_query *q = ud;

    q->ended = q->free_agent = true;
    q->completed = r->completed;
    q->outcome = as_saved(r->outcome);
    q->response = as_saved(r->response);
    q->source = ipw_strdup(r->source);
    q->error = as_saved(r->error);
    if (q->response) ipw_secret_clean_text(q->response);
    if (q->error) ipw_secret_clean_text(q->error);
    ipw_replay_step_soon(q->job);
}

/* ---- its details ---- */

static const char *keep(struct ipw_replayed_query *r, const char *text)
{
    if (!text) return NULL;
    return r->texts[r->n_texts++] = ipw_strdup(text);
}

/* The saved end of a query whose answer equals the saved one. */
static void keep_saved_score(struct ipw_replayed_query *r, const struct ipw_json *was)
{
    const struct ipw_json *resolved = ipw_json_get(was, "resolved");

    r->details.answer = keep(r, ipw_json_get_str(was, "answer"));
    r->details.answer_source = keep(r, ipw_json_get_str(was, "answer_source"));
    if (ipw_json_kind(resolved) == IPW_JSON_BOOL)
        r->details.is_resolved = ipw_json_bool(resolved, false);
}

static void keep_new_score(struct ipw_replayed_query *r, struct ipw_replay_query *q)
{
    struct ipw_score score = {.resolved = -1};

    ipw_dataset_score(q->job->setting.cases, q->real_index, q->response, q->source, &score);
    r->details.answer = keep(r, ipw_buf_str(&score.answer));
    r->details.answer_source = keep(r, score.source);
    r->details.is_resolved = score.resolved;
    ipw_score_release(&score);
}

/* `was`: its saved end, if it came to the same; else the dataset says what the answer is worth. */
static const struct ipw_query_details *keep_details(struct ipw_replay_query *q,
                                                    const struct ipw_json *was)
{
    struct ipw_replayed_query *r = ipw_calloc(1, sizeof *r);

    r->index = q->index;
    r->segment = q->job->segment;
    r->details = (struct ipw_query_details){
        .query_text = keep(r, q->c.prompt),
        .response_text = keep(r, q->response ? q->response : q->error),
        .is_resolved = -1,
        .metadata = keep(r, q->c.metadata),
        .reference_answer = keep(r, q->real ? q->real->answer : NULL),
        .reference = keep(r, q->real ? q->real->reference : NULL),
        .subject = keep(r, q->real ? q->real->subject : NULL),
        .model = q->job->setting.model,
        .cost_usd = NAN,
        .n_malformed = q->n_malformed,
        .lua_peak_bytes = -1,
        .lua_cpu_ns = -1,
        .epoch = q->epoch,
    };
    if (was)
        keep_saved_score(r, was);
    else if (q->real && (q->job->network.llm || !q->diverged))
        keep_new_score(r, q);
    else /* what a query that was given up says is no answer */
        r->details.unscorable_reason = "replayed";
    r->next = q->job->replayed;
    q->job->replayed = r;
    return &r->details;
}

static void write_end(struct ipw_replay_query *q, const struct ipw_json *was)
{
    const struct ipw_query_details *details = keep_details(q, was);
    struct ipw_query_end_facts facts = {
        .q = {.id = q->c.id, .outcome = q->outcome, .completed = q->completed, .error = q->error},
        .answer = details->answer,
        .answer_len = details->answer ? strlen(details->answer) : 0,
        .answer_source = details->answer_source,
        .response = q->response,
        .resolved = details->is_resolved,
        .lua_cpu_ns = -1,
        .lua_peak_bytes = -1,
        .never_ran = q->no_agent,
        .stopped = q->ended_by_saved_run,
    };
    struct ipw_buf data = IPW_QUERY_EVENT_BUF;
    struct ipw_event event;

    ipw_query_end_event(&event, &data, &facts);
    event.query = q->index;
    /* The saved run has no end for a query that diverged, so it ends at the current saved time. */
    event.t_ns = q->job->by_query ? ipw_now_ns() : q->job->written_ns;
    event.rows = q->job->by_query ? 0 : q->job->written_rows;
    ipw_replay_job_event(q->job, &event);
    q->written = true;
    ipw_buf_release(&data);
}

static bool same_text(const char *a, const struct ipw_json *node)
{
    const char *b = ipw_json_str(node, NULL);

    return !a || !b ? !a == !b : strcmp(a, b) == 0;
}

/* Compares the agent's result with the saved one. */
static bool compare_end(struct ipw_replay_query *q, const struct ipw_event_line *line)
{
    const struct ipw_json *response = ipw_json_get(line->data, "response");
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    bool same = true;

    if (q->ended_by_saved_run || q->no_agent) return true;
    if (!same_text(q->response, response)) {
        ipw_buf_adds(&text, "the answer differs");
        ipw_playback_say_texts(&text, ipw_json_str(response, "(none)"),
                               q->response ? q->response : "(none)");
        same = false;
    } else if (strcmp(q->outcome, line->event.q.outcome ? line->event.q.outcome : "")) {
        ipw_buf_adds(&text, "the outcome differs");
        ipw_playback_say_texts(&text, line->event.q.outcome ? line->event.q.outcome : "(none)",
                               q->outcome);
        same = false;
    } else if (!same_text(q->error, ipw_json_get(line->doc, "error"))) {
        ipw_buf_adds(&text, "the error differs");
        ipw_playback_say_texts(&text, ipw_json_str(ipw_json_get(line->doc, "error"), "(none)"),
                               q->error ? q->error : "(none)");
        same = false;
    }
    if (!same && !q->diverged) ipw_playback_diverge(q->playback, "%s", ipw_buf_str(&text));
    ipw_buf_release(&text);
    return same;
}

void ipw_replay_query_end(struct ipw_replay_query *q, const struct ipw_event_line *line)
{
    bool same = line && compare_end(q, line);

    q->over = true;
    if (same && !q->job->by_query) {
        ipw_replay_job_line(q->job, line);
        q->written = true;
        return;
    }
    if (same && (q->no_agent || q->ended_by_saved_run)) {
        free(q->outcome);
        q->outcome = ipw_strdup(line->event.q.outcome);
    }
    write_end(q, same ? line->data : NULL);
}

void ipw_replay_query_give_up(struct ipw_replay_query *q)
{
    free(q->outcome);
    free(q->response);
    free(q->error);
    q->outcome = ipw_strdup("diverged");
    q->response = NULL;
    q->error = ipw_strdup("the replay diverged from the saved run");
    q->completed = false;
    q->over = true;
    write_end(q, NULL);
}

/* ---- the start ---- */

static void open_host(struct ipw_replay_query *q)
{
    struct ipw_replay_job *job = q->job;
    const struct ipw_replayed_run *was = &job->saved;
    const char *field = ipw_replayed_run_text(was, "max_tokens_field");
    struct ipw_playback_options options = {
        .mode = job->decisions ? IPW_PLAYBACK_DECISIONS : IPW_PLAYBACK_EXACT,
        .events = job->saved.events,
        .query = q->index,
        .reach = job->by_query ? SIZE_MAX : REACH_LINES,
        .loop = job->loop,
        .over = job->setting.body,
        .use_max_completion_tokens = field && strcmp(field, "max_completion_tokens") == 0,
        .force_tokens = ipw_replayed_run_int(was, "force_output_tokens", 0),
        .servers = job->network.llm,
        .live_model = job->o->run.server.model,
        .write = write_event,
        .stir = stir,
        .diverged = diverged,
        .tool = tool_result,
        .ud = q,
    };

    q->playback = ipw_playback_new(&options);
    q->host = (struct ipw_host){
        .loop = job->loop,
        .model.llm = ipw_playback_llm(q->playback),
        .model.name = job->setting.model,
        .model.sub_name = job->setting.sub_model,
        .model.temperature = job->setting.config.temperature,
        .model.seed = job->setting.config.seed,
        .model.max_tokens = job->setting.config.max_tokens,
        .grants = job->setting.grants,
        .on.workspace = workspace,
        .start_ns = ipw_now_ns(),
        .on.emit = emit,
        .on.ud = q,
        .replay = q->playback,
    };
}

/* The saved query ended before its agent began. */
static bool never_ran(struct ipw_replay_query *q)
{
    const struct ipw_event_line *next =
        ipw_event_reader_peek(q->job->saved.events, q->index, 1, REACH_LINES);

    return next && next->event.kind == IPW_EV_QUERY_END &&
           !ipw_json_bool(ipw_json_get(next->data, "ran"), true);
}

static void write_start(struct ipw_replay_query *q, const struct ipw_event_line *line)
{
    struct ipw_event start = line->event;
    char *data;

    if (!q->job->by_query) {
        ipw_replay_job_line(q->job, line);
        return;
    }
    data = ipw_json_text(line->data);
    start.t_ns = ipw_now_ns();
    start.rows = 0;
    start.payload = data;
    start.payload_len = data ? strlen(data) : 0;
    ipw_replay_job_event(q->job, &start);
    free(data);
}

static int start_agent(struct ipw_replay_query *q, struct ipw_err *err)
{
    struct ipw_replay_setting *setting = &q->job->setting;
    bool real_tools = setting->cases || q->job->decisions || q->job->network.llm;
    int rc = real_tools ? put_files(q, err) : 0;

    return rc ? rc
              : ipw_agent_start(&q->agent, &setting->agent, &setting->config, &q->c, &q->host,
                                agent_done, q, err);
}

void ipw_replay_query_start(struct ipw_replay_job *job, const struct ipw_event_line *line)
{
    struct ipw_replay_query *q = ipw_calloc(1, sizeof *q), **at = &job->active;
    struct ipw_err err = {0};

    q->job = job;
    q->index = line->event.query;
    read_case(q, line);
    open_host(q);
    while (*at) at = &(*at)->next;
    *at = q;
    job->tally.queries++;
    write_start(q, line);
    q->no_agent = never_ran(q);
    if (q->no_agent) {
        q->ended = true;
    } else if (start_agent(q, &err)) {
        q->ended = true;
        q->outcome = ipw_strdup("error");
        q->error = ipw_strdup(err.text);
        if (job->decisions) ipw_playback_diverge(q->playback, "%s", err.text);
    }
}

void ipw_replay_query_free(struct ipw_replay_query *q)
{
    ipw_agent_free(q->agent);
    ipw_playback_free(q->playback);
    if (q->workspace) ipw_workspace_remove(q->workspace);
    free(q->workspace);
    for (size_t i = 0; i < q->c.n_files; i++) free(q->c.files[i].name);
    free(q->c.files);
    free(q->c.id);
    free(q->c.prompt);
    free(q->c.system);
    free(q->c.level);
    free(q->c.metadata);
    free(q->outcome);
    free(q->response);
    free(q->error);
    free(q->source);
    ipw_host_release(&q->host);
    free(q);
}
