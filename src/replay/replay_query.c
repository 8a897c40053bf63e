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
#include "json/write.h"
#include "replay/replay_job.h"
#include "run/workspace.h"

enum { MAX_RECORD_BYTES = 64 * 1024 * 1024 };
/* A query's next line is close behind, as far as other queries ran at the same time. */
enum { REACH_LINES = 100000 };

/* ---- its start data ---- */

static const char *workspace(void *ud)
{
    struct ipw_rq *q = ud;

    if (q->workspace) return q->workspace;
    if (TEMP_FAILURE_RETRY(mkdir(q->job->workspaces, 0700)) && errno != EEXIST) return NULL;
    q->workspace = ipw_asprintf("%s/q%04d", q->job->workspaces, (int)q->index);
    if (TEMP_FAILURE_RETRY(mkdir(q->workspace, 0700))) {
        ipw_log(IPW_LOG_WARN, "%s: %s", q->workspace, strerror(errno));
        free(q->workspace);
        q->workspace = NULL;
    }
    return q->workspace;
}

static char *copy(const struct ipw_json *data, const char *key)
{
    return ipw_strdup(ipw_json_str(ipw_json_get(data, key), NULL));
}

static void read_case(struct ipw_rq *q, const struct ipw_record_line *line)
{
    const struct ipw_json *data = line->data, *metadata = ipw_json_get(data, "metadata");
    const struct ipw_json *files = ipw_json_get(data, "files");
    struct ipw_buf text = IPW_BUF(MAX_RECORD_BYTES);

    q->c = (struct ipw_case){.id = ipw_strdup(line->event.q.id ? line->event.q.id : "?"),
                             .prompt = copy(data, "prompt"),
                             .system = copy(data, "system"),
                             .level = copy(data, "level"),
                             .number = ipw_json_int(ipw_json_get(data, "number"), q->index + 1)};
    if (!q->c.prompt) q->c.prompt = ipw_strdup("");
    q->epoch = (int)ipw_json_int(ipw_json_get(data, "epoch"), 0);
    if (!ipw_json_is_null(metadata)) {
        ipw_json_print(&text, metadata);
        q->c.metadata = ipw_buf_take(&text, NULL);
    }
    for (const struct ipw_json *f = ipw_json_first(files); f; f = ipw_json_next(f)) {
        IPW_GROW(q->c.files, q->c.cap_files, q->c.n_files + 1);
        q->c.files[q->c.n_files++] =
            (struct ipw_case_file){.name = ipw_strdup(ipw_json_str(f, ""))};
    }
    ipw_buf_release(&text);
}

static int put_files(struct ipw_rq *q, struct ipw_err *err)
{
    int rc = 0;

    for (size_t i = 0; q->job->cases && !q->real && i < ipw_dataset_count(q->job->cases); i++)
        if (strcmp(ipw_dataset_get(q->job->cases, i)->id, q->c.id) == 0) {
            q->real = ipw_dataset_get(q->job->cases, i);
            q->real_index = i;
        }
    if (!q->real && q->c.n_files)
        return ipw_fail(err, IPW_ENOTFOUND,
                        "query %s has attachments, which a record does not hold: name its dataset "
                        "with --dataset",
                        q->c.id);
    for (size_t i = 0; q->real && i < q->real->n_files && !rc; i++) {
        if (!workspace(q)) return ipw_fail(err, IPW_EIO, "no workspace for the attachments");
        rc = ipw_workspace_put(workspace(q), &q->real->files[i], err);
    }
    return rc;
}

/* ---- its steps ---- */

/* A saved reply has times of the saved run, which do not apply here. */
static void forget_times(struct ipw_lm_facts *f)
{
    f->sent_ns = f->first_byte_ns = f->first_token_ns = f->last_token_ns = 0;
    f->headers_ns = f->first_event_ns = f->first_text_ns = f->first_reasoning_ns = 0;
    f->first_call_ns = f->second_token_ns = f->dns_ns = f->connect_ns = f->tls_ns = 0;
    f->gaps = f->gap_p50_ns = f->gap_p90_ns = f->gap_p99_ns = f->gap_max_ns = 0;
    f->server_queue_ns = f->server_prefill_ns = f->server_decode_ns = 0;
}

static void count(struct ipw_rq *q, const struct ipw_event *event)
{
    if (event->kind == IPW_EV_LM_START && event->lm.attempt == 1) q->job->n_turns++;
    if (event->kind == IPW_EV_TOOL_START) q->job->n_tools++;
    if (event->kind == IPW_EV_NOTE && event->tool.name && !strcmp(event->tool.name, "malformed"))
        q->n_malformed++;
}

static void write_event(void *ud, struct ipw_event *event, const struct ipw_record_line *line)
{
    struct ipw_rq *q = ud;
    struct ipw_replay_job *job = q->job;
    bool from_record = line || job->decisions;

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
    if (from_record && event->kind == IPW_EV_LM_END) forget_times(&event->lm);
    ipw_rundir_event(job->dir, event);
}

static void emit(void *ud, struct ipw_event *event)
{
    struct ipw_rq *q = ud;

    event->query = q->index;
    ipw_playback_emit(q->replay, event);
}

static void stir(void *ud)
{
    struct ipw_rq *q = ud;

    ipw_replay_step_soon(q->job);
}

static void diverged(void *ud, const char *text)
{
    struct ipw_rq *q = ud;

    q->diverged = true;
    ipw_replay_note_add(q->job, q, text);
    if (q->job->servers)
        q->host.model.name = q->job->o->model ? q->job->o->model : q->host.model.name;
    ipw_replay_step_soon(q->job);
}

static const char *content_of(struct ipw_json **doc, const struct ipw_event *event)
{
    *doc = NULL;
    if (!event->payload || ipw_json_parse(doc, event->payload, event->payload_len, NULL, NULL))
        return "";
    return ipw_json_str(ipw_json_get(*doc, "content"), "");
}

/* Compares a tool's result with the saved one. */
static void tool_result(void *ud, const struct ipw_event *event, const struct ipw_record_line *was)
{
    struct ipw_rq *q = ud;
    struct ipw_json *doc;
    const char *now = content_of(&doc, event);
    const char *then = ipw_json_str(ipw_json_get(was->data, "content"), "");
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    if (strcmp(now, then) == 0) {
        q->job->n_same++;
    } else {
        q->job->n_differ++;
        ipw_buf_addf(&text, "tool %s, span %d, gives something else",
                     event->tool.name ? event->tool.name : "?", (int)was->event.span);
        ipw_playback_say_texts(&text, then, now);
        ipw_replay_note_add(q->job, q, ipw_buf_str(&text));
    }
    ipw_json_free(doc);
    ipw_buf_release(&text);
}

/* ---- the end ---- */

/* As in the saved run: a script can cut a character in two.  NULL gives NULL. */
static char *as_recorded(const char *text)
{
    struct ipw_buf clean;

    if (!text) return NULL;
    ipw_buf_init(&clean, 3 * strlen(text));
    ipw_utf8_clean(&clean, text, strlen(text));
    return ipw_buf_take(&clean, NULL);
}

static void agent_done(void *ud, const struct ipw_agent_result *r)
{
    struct ipw_rq *q = ud;

    q->ended = q->free_agent = true;
    q->completed = r->completed;
    q->outcome = as_recorded(r->outcome);
    q->response = as_recorded(r->response);
    q->source = ipw_strdup(r->source);
    q->error = as_recorded(r->error);
    if (q->response) ipw_secret_clean_text(q->response);
    if (q->error) ipw_secret_clean_text(q->error);
    ipw_replay_step_soon(q->job);
}

static const char *keep(struct ipw_replay_told *t, const char *text)
{
    if (!text) return NULL;
    return t->texts[t->n_texts++] = ipw_strdup(text);
}

/* The end with a score: the saved score if the answer is the same, else the dataset's. */
static void write_end(struct ipw_rq *q, const struct ipw_json *was, bool same)
{
    struct ipw_event event = {.kind = IPW_EV_QUERY_END, .query = q->index};
    struct ipw_buf data = IPW_BUF(MAX_RECORD_BYTES);
    const struct ipw_json *resolved = ipw_json_get(was, "resolved");
    struct ipw_replay_told *t = ipw_calloc(1, sizeof *t);
    struct ipw_score score = {.resolved = -1};
    /* Text of a query that was ended is not an answer. */
    bool scored = !same && q->real && (q->job->servers || !q->diverged);
    struct ipw_jw w;

    if (scored)
        ipw_dataset_score(q->job->cases, q->real_index, q->response, q->source, &score);
    else if (same)
        score.resolved =
            ipw_json_kind(resolved) == IPW_JSON_BOOL ? ipw_json_bool(resolved, false) : -1;
    t->index = q->index;
    t->segment = q->job->segment;
    t->record = (struct ipw_query_record){
        .workload_type = "agentic",
        .query_text = keep(t, q->c.prompt),
        .response_text = keep(t, q->response ? q->response : q->error),
        .answer = keep(t, same     ? ipw_json_str(ipw_json_get(was, "answer"), NULL)
                          : scored ? ipw_buf_str(&score.answer)
                                   : NULL),
        .answer_source = keep(t, same     ? ipw_json_str(ipw_json_get(was, "answer_source"), NULL)
                                 : scored ? score.source
                                          : NULL),
        .is_resolved = score.resolved,
        .unscorable_reason = same || scored ? NULL : "replayed",
        .metadata = keep(t, q->c.metadata),
        .model = q->job->model,
        .cost_usd = NAN,
        .n_malformed = q->n_malformed,
        .lua_peak_bytes = -1,
        .lua_cpu_ns = -1,
        .epoch = q->epoch,
    };
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "answer", t->record.answer);
    ipw_jw_kstr(&w, "answer_source", t->record.answer_source);
    ipw_jw_key(&w, "resolved");
    if (score.resolved >= 0)
        ipw_jw_bool(&w, score.resolved == 1);
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "response", q->response);
    ipw_jw_obj_end(&w);
    event.q = (struct ipw_query_facts){
        .id = q->c.id, .outcome = q->outcome, .completed = q->completed, .error = q->error};
    event.payload = ipw_buf_str(&data);
    event.payload_len = data.len;
    /* The saved run has no end for a query that diverged, so it ends at the current saved time. */
    event.t_ns = q->job->by_query ? ipw_now_ns() : q->job->written_ns;
    event.rows = q->job->by_query ? 0 : q->job->written_rows;
    ipw_rundir_event(q->job->dir, &event);
    q->written = true;
    t->next = q->job->told;
    q->job->told = t;
    if (scored) ipw_score_release(&score);
    ipw_buf_release(&data);
}

static bool same_text(const char *a, const struct ipw_json *node)
{
    const char *b = ipw_json_str(node, NULL);

    return !a || !b ? !a == !b : strcmp(a, b) == 0;
}

/* Compares the agent's result with the saved one. */
static bool compare_end(struct ipw_rq *q, const struct ipw_record_line *line)
{
    const struct ipw_json *response = ipw_json_get(line->data, "response");
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    bool same = true;

    if (q->ended_by_record || q->no_agent) return true;
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
    if (!same && !q->diverged) ipw_playback_diverge(q->replay, "%s", ipw_buf_str(&text));
    ipw_buf_release(&text);
    return same;
}

void ipw_rq_end(struct ipw_rq *q, const struct ipw_record_line *line)
{
    bool same = line && compare_end(q, line);

    q->over = true;
    if (line && same && !q->job->by_query) {
        ipw_replay_job_line(q->job, line);
        q->written = true;
        return;
    }
    if (!line || !same) {
        write_end(q, line ? line->data : NULL, false);
    } else {
        if (q->no_agent || q->ended_by_record) {
            free(q->outcome);
            q->outcome = ipw_strdup(line->event.q.outcome);
        }
        write_end(q, line->data, true);
    }
}

void ipw_rq_give_up(struct ipw_rq *q)
{
    free(q->outcome);
    free(q->response);
    free(q->error);
    q->outcome = ipw_strdup("diverged");
    q->response = NULL;
    q->error = ipw_strdup("the replay went another way than the record");
    q->completed = false;
    q->over = true;
    write_end(q, NULL, false);
}

/* ---- the start ---- */

static void open_host(struct ipw_rq *q)
{
    struct ipw_replay_job *job = q->job;
    const struct ipw_json *no_proc = ipw_json_get(job->config, "no_proc");
    const char *field = ipw_json_str(ipw_json_get(job->config, "max_tokens_field"), "max_tokens");
    struct ipw_playback_options options = {
        .mode = job->decisions ? IPW_PLAYBACK_DECISIONS : IPW_PLAYBACK_EXACT,
        .record = job->record,
        .query = q->index,
        .reach = job->by_query ? SIZE_MAX : REACH_LINES,
        .loop = job->loop,
        .over = job->over,
        .use_max_completion_tokens = strcmp(field, "max_completion_tokens") == 0,
        .force_tokens = ipw_json_int(ipw_json_get(job->config, "force_output_tokens"), 0),
        .servers = job->servers,
        .live_model = job->o->model,
        .write = write_event,
        .stir = stir,
        .diverged = diverged,
        .tool = tool_result,
        .ud = q,
    };

    q->replay = ipw_playback_new(&options);
    q->host = (struct ipw_host){
        .loop = job->loop,
        .model.llm = ipw_playback_llm(q->replay),
        .model.name = job->model,
        .model.temperature = job->agent_config.temperature,
        .model.seed = job->agent_config.seed,
        .model.max_tokens = job->agent_config.max_tokens,
        .on.workspace = workspace,
        .grants.quota = job->quota,
        .grants.web = job->web,
        .grants.may_fetch = job->decisions
                                ? job->web != NULL
                                : !ipw_json_bool(ipw_json_get(job->config, "no_web"), false),
        .grants.no_web = "web requests are switched off by --no-web",
        .grants.may_start = !ipw_json_bool(no_proc, false) && !job->o->script.no_proc,
        .grants.no_proc = "child processes are switched off by --no-proc",
        .start_ns = ipw_now_ns(),
        .on.emit = emit,
        .on.ud = q,
        .replay = q->replay,
    };
}

/* The saved query ended before its agent began. */
static bool never_ran(struct ipw_rq *q)
{
    const struct ipw_record_line *next = ipw_record_peek(q->job->record, q->index, 1, REACH_LINES);

    return next && next->event.kind == IPW_EV_QUERY_END &&
           !ipw_json_bool(ipw_json_get(next->data, "ran"), true);
}

struct ipw_rq *ipw_rq_start(struct ipw_replay_job *job, const struct ipw_record_line *line)
{
    struct ipw_rq *q = ipw_calloc(1, sizeof *q), **at = &job->active;
    struct ipw_event start = line->event;
    struct ipw_buf data = IPW_BUF(MAX_RECORD_BYTES);
    struct ipw_err err = {0};
    int rc = 0;

    q->job = job;
    q->index = line->event.query;
    read_case(q, line);
    open_host(q);
    while (*at) at = &(*at)->next;
    *at = q;
    job->n_queries++;
    if (job->by_query) {
        start.t_ns = ipw_now_ns();
        start.rows = 0;
        ipw_json_print(&data, line->data);
        start.payload = ipw_buf_str(&data);
        start.payload_len = data.len;
        ipw_rundir_event(job->dir, &start);
    } else {
        ipw_replay_job_line(job, line);
    }
    ipw_buf_release(&data);
    q->no_agent = never_ran(q);
    if (q->no_agent) {
        q->ended = true;
        return q;
    }
    if (job->cases || job->decisions || job->servers) rc = put_files(q, &err);
    if (!rc)
        rc = ipw_agent_start(&q->agent, &job->agent, &job->agent_config, &q->c, &q->host,
                             agent_done, q, &err);
    if (rc) {
        q->ended = true;
        q->outcome = ipw_strdup("error");
        q->error = ipw_strdup(err.text);
        if (job->decisions) ipw_playback_diverge(q->replay, "%s", err.text);
    }
    return q;
}

void ipw_rq_free(struct ipw_rq *q)
{
    ipw_agent_free(q->agent);
    ipw_playback_free(q->replay);
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
