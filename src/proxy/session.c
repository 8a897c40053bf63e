#include "proxy/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/write.h"

#define PAYLOAD_MAX_BYTES (128 * IPW_MIB)

struct ipw_session_tool {
    char *call_id, *name;
    int32_t span;
    int64_t from_ns, to_ns; /* to_ns INT64_MAX: it is not over */
    char *told;             /* the id of the span that the program told of it; or NULL */
};

struct ipw_session_agent {
    char *id;
    int32_t span;
};

/* ---- open and close ---- */

static void quiet_for_long(void *ud)
{
    struct ipw_proxy_session *s = ud;

    s->idle = NULL;
    ipw_proxy_session_finish(s);
}

static void watch_silence(struct ipw_proxy_session *s)
{
    ipw_timer_cancel(s->idle);
    s->idle = NULL;
    if (s->idle_ns && s->host && !s->n_passages)
        s->idle = ipw_timer_start(s->loop, s->idle_ns, quiet_for_long, s);
}

static void open_(void *ud, struct ipw_host *host, void (*over)(void *over_ud, bool limited),
                  void *over_ud)
{
    struct ipw_proxy_session *s = ud;

    s->host = host;
    s->last_ns = host->start_ns;
    s->on_over = over;
    s->over_ud = over_ud;
    ipw_passages_go_on(s);
    watch_silence(s);
}

static void emit(struct ipw_proxy_session *s, struct ipw_event *event, struct ipw_buf *data)
{
    s->last_ns = event->t_ns;
    ipw_host_emit(s->host, event, data);
}

static void end_all_tools(struct ipw_proxy_session *s, int64_t t_ns);

static void end_agents(struct ipw_proxy_session *s)
{
    for (size_t i = s->n_agents; i-- > 0;) {
        struct ipw_event event = {.kind = IPW_EV_SPAN_END, .span = s->agents[i].span};
        struct ipw_buf none = IPW_BUF(1);

        event.tool = (struct ipw_tool_facts){.name = s->agents[i].id,
                                             .kind = "agent",
                                             .ok = true,
                                             .outcome = "ok",
                                             .result_bytes = -1};
        emit(s, &event, &none);
    }
}

static void close_(void *ud)
{
    struct ipw_proxy_session *s = ud;

    if (s->over) return;
    s->over = true;
    s->on_over = NULL; /* its agent waits no more; a limit can still be reached */
    ipw_timer_cancel(s->idle);
    s->idle = NULL;
    ipw_passages_cut(s);
    if (!s->face.end_ns) { /* else they ended with it, in the past */
        if (!s->limited) end_all_tools(s, ipw_now_ns());
        end_agents(s);
    }
    s->host = NULL;
}

static bool limit(void *ud)
{
    struct ipw_proxy_session *s = ud;

    s->limited = true;
    if (!s->on_over) return false;
    s->on_over(s->over_ud, true);
    return true;
}

static const char *answer(void *ud) { return ((struct ipw_proxy_session *)ud)->answer; }

void ipw_proxy_session_finish(struct ipw_proxy_session *s)
{
    void (*over)(void *ud, bool limited) = s->on_over;

    s->on_over = NULL;
    if (!s->face.argv) s->face.end_ns = s->last_ns;
    if (over) over(s->over_ud, false);
}

struct ipw_proxy_session *ipw_proxy_session_new(struct ipw_loop *loop, const char *key,
                                                const char *rule, size_t number)
{
    struct ipw_proxy_session *s = ipw_calloc(1, sizeof *s);

    s->loop = loop;
    s->key = ipw_strdup(key);
    s->rule = rule;
    s->id = ipw_asprintf("q%04zu", number);
    s->face = (struct ipw_host_session){
        .open = open_, .close = close_, .limit = limit, .answer = answer, .ud = s};
    return s;
}

static void free_tools(struct ipw_session_tool *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].call_id);
        free(list[i].name);
        free(list[i].told);
    }
    free(list);
}

void ipw_proxy_session_free(struct ipw_proxy_session *s)
{
    if (!s) return;
    ipw_timer_cancel(s->idle);
    free_tools(s->tools, s->n_tools);
    free_tools(s->past, s->n_past);
    for (size_t i = 0; i < s->n_agents; i++) free(s->agents[i].id);
    free(s->agents);
    free(s->hashes);
    free(s->reply_id);
    free(s->answer);
    free(s->key);
    free(s->id);
    free(s->word);
    free(s->url);
    free(s);
}

bool ipw_proxy_session_admits(struct ipw_proxy_session *s)
{
    struct ipw_host *host = s->host;

    if (s->loose) return true;
    if (s->over || s->limited || !host) return false;
    return !host->on.admit || host->on.admit(host->on.ud);
}

/* ---- tools ---- */

static void begin_tool(struct ipw_proxy_session *s, const struct ipw_chat_call *called,
                       int32_t inside, int64_t t_ns)
{
    struct ipw_event event = {.kind = IPW_EV_TOOL_START, .t_ns = t_ns};
    struct ipw_buf data = IPW_BUF(PAYLOAD_MAX_BYTES);
    struct ipw_json *arguments = NULL;
    struct ipw_session_tool *tool;
    struct ipw_jw w;

    IPW_GROW(s->tools, s->cap_tools, s->n_tools + 1);
    tool = &s->tools[s->n_tools++];
    *tool = (struct ipw_session_tool){.call_id = ipw_strdup(called->id),
                                      .name = ipw_strdup(ipw_chat_history_name(called)),
                                      .span = ipw_host_next_span(s->host, false),
                                      .from_ns = t_ns,
                                      .to_ns = INT64_MAX};
    event.span = tool->span;
    event.inside = inside;
    event.tool = (struct ipw_tool_facts){.name = tool->name,
                                         .call_id = tool->call_id,
                                         .argument_bytes = (int64_t)called->arguments.len};
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "arguments");
    if (ipw_json_parse(&arguments, ipw_buf_str(&called->arguments), called->arguments.len, NULL,
                       NULL) == 0 &&
        ipw_json_kind(arguments) == IPW_JSON_OBJ) {
        char *text = ipw_json_text(arguments);

        ipw_jw_raw(&w, text, strlen(text));
        free(text);
    } else {
        ipw_jw_strn(&w, ipw_buf_str(&called->arguments), called->arguments.len);
    }
    ipw_json_free(arguments);
    ipw_jw_kstr(&w, "call_id", tool->call_id);
    ipw_jw_kbool(&w, "inferred", true);
    ipw_jw_obj_end(&w);
    emit(s, &event, &data);
}

/* The text of a tool's result: a string, or parts. */
static void add_content(struct ipw_buf *out, const struct ipw_json *content)
{
    if (ipw_json_kind(content) == IPW_JSON_STR) {
        ipw_buf_add(out, ipw_json_str(content, ""), ipw_json_str_len(content));
        return;
    }
    if (ipw_json_kind(content) != IPW_JSON_ARR) {
        if (!ipw_json_is_null(content)) ipw_json_print(out, content);
        return;
    }
    for (const struct ipw_json *part = ipw_json_first(content); part; part = ipw_json_next(part)) {
        const struct ipw_json *text = ipw_json_get(part, "text");

        ipw_buf_add(out, ipw_json_str(text, ""), ipw_json_str_len(text));
    }
}

static void add_past(struct ipw_proxy_session *s, struct ipw_session_tool tool)
{
    IPW_GROW(s->past, s->cap_past, s->n_past + 1);
    s->past[s->n_past++] = tool;
}

/* `result` NULL: it is over, and its result did not pass as one. */
static void end_tool(struct ipw_proxy_session *s, size_t at, const struct ipw_proxy_result *result,
                     int64_t t_ns)
{
    bool failed = result && result->failed;
    struct ipw_session_tool tool = s->tools[at];
    struct ipw_event event = {.kind = IPW_EV_TOOL_END, .t_ns = t_ns, .span = tool.span};
    struct ipw_buf data = IPW_BUF(PAYLOAD_MAX_BYTES), content = IPW_BUF(PAYLOAD_MAX_BYTES);
    struct ipw_jw w;

    s->tools[at] = s->tools[--s->n_tools];
    if (result) add_content(&content, result->content);
    event.tool = (struct ipw_tool_facts){.name = tool.name,
                                         .call_id = tool.call_id,
                                         .ok = !failed,
                                         .outcome = failed ? "error" : "ok",
                                         .result_bytes = result ? (int64_t)content.len : -1};
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    if (result) ipw_jw_key(&w, "content");
    if (result) ipw_jw_strn(&w, ipw_buf_str(&content), content.len);
    ipw_jw_kbool(&w, "inferred", true);
    ipw_jw_obj_end(&w);
    ipw_buf_release(&content);
    emit(s, &event, &data);
    tool.to_ns = t_ns;
    add_past(s, tool);
}

/* Whether a later result of the request has the same id.  A request carries all results of its
 * conversation, and some servers give the calls of each turn the same ids. */
static bool is_repeated(const struct ipw_proxy_call *call, size_t at)
{
    for (size_t i = at + 1; i < call->n_results; i++)
        if (strcmp(call->results[i].id, call->results[at].id) == 0) return true;
    return false;
}

static void end_all_tools(struct ipw_proxy_session *s, int64_t t_ns)
{
    while (s->n_tools) end_tool(s, s->n_tools - 1, NULL, t_ns);
}

static void end_tools(struct ipw_proxy_session *s, const struct ipw_proxy_call *call, int64_t t_ns)
{
    for (size_t i = 0; i < call->n_results; i++)
        for (size_t k = 0; k < s->n_tools && s->host; k++) {
            if (strcmp(s->tools[k].call_id, call->results[i].id) != 0) continue;
            if (!is_repeated(call, i)) end_tool(s, k, &call->results[i], t_ns);
            break;
        }
    /* Some clients tell results in texts of their own. */
    if (ipw_proxy_session_goes_on(s, call)) end_all_tools(s, t_ns);
}

/* ---- tools as the program tells them ---- */

/* By the call's id; without one, by the name of a tool that was open then. */
static struct ipw_session_tool *find_told(struct ipw_session_tool *list, size_t n,
                                          const struct ipw_told_tool *told)
{
    for (size_t i = 0; i < n; i++) {
        struct ipw_session_tool *tool = &list[i];
        bool then = told->from_ns < tool->to_ns && told->to_ns > tool->from_ns;

        if (tool->told && strcmp(tool->told, told->id) == 0) return tool; /* delivered again */
        if (told->call_id ? !tool->told && strcmp(tool->call_id, told->call_id) == 0
                          : !tool->told && then && strcmp(tool->name, told->name) == 0)
            return tool;
    }
    return NULL;
}

bool ipw_proxy_session_called(const struct ipw_proxy_session *s, const char *call_id)
{
    struct ipw_told_tool told = {.id = "", .name = "", .call_id = call_id};

    return find_told(s->tools, s->n_tools, &told) || find_told(s->past, s->n_past, &told);
}

void ipw_proxy_session_tell(struct ipw_proxy_session *s, const struct ipw_told_tool *told)
{
    struct ipw_session_tool *tool = find_told(s->tools, s->n_tools, told);
    struct ipw_event event = {.kind = IPW_EV_TOOL_SPAN, .t_ns = ipw_now_ns()};
    int64_t from_ns = told->from_ns, to_ns = told->to_ns, last_ns = s->last_ns;
    struct ipw_buf none = IPW_BUF(1);

    if (!s->host) return;
    if (!tool) tool = find_told(s->past, s->n_past, told);
    if (tool && tool->told) return;
    if (from_ns < (tool ? tool->from_ns : s->host->start_ns))
        from_ns = tool ? tool->from_ns : s->host->start_ns;
    if (tool && to_ns > tool->to_ns) to_ns = tool->to_ns;
    if (to_ns > event.t_ns) to_ns = event.t_ns;
    if (to_ns <= from_ns) return; /* another machine's clock, or another session's */
    if (tool)
        tool->told = ipw_strdup(told->id);
    else
        add_past(s, (struct ipw_session_tool){.call_id = ipw_strdup(""),
                                              .name = ipw_strdup(told->name),
                                              .span = ipw_host_next_span(s->host, false),
                                              .told = ipw_strdup(told->id)});
    event.span = tool ? tool->span : s->past[s->n_past - 1].span;
    event.tool = (struct ipw_tool_facts){.name = tool ? tool->name : told->name,
                                         .call_id = tool ? tool->call_id : told->call_id,
                                         .ok = !told->failed,
                                         .from_ns = from_ns,
                                         .to_ns = to_ns};
    emit(s, &event, &none);
    s->last_ns = to_ns > last_ns ? to_ns : last_ns; /* it came late */
}

/* ---- agents inside of the session ---- */

static int32_t span_of_agent(const struct ipw_proxy_session *s, const char *id)
{
    for (size_t i = 0; id && i < s->n_agents; i++)
        if (strcmp(s->agents[i].id, id) == 0) return s->agents[i].span;
    return 0;
}

bool ipw_proxy_session_has_agent(const struct ipw_proxy_session *s, const char *id)
{
    return span_of_agent(s, id) != 0;
}

int32_t ipw_proxy_session_agent(struct ipw_proxy_session *s, const char *id, const char *parent,
                                int64_t t_ns)
{
    struct ipw_event event = {.kind = IPW_EV_SPAN_START, .t_ns = t_ns};
    struct ipw_buf none = IPW_BUF(1);

    event.span = span_of_agent(s, id);
    if (!id || !s->host || event.span) return event.span;
    IPW_GROW(s->agents, s->cap_agents, s->n_agents + 1);
    event.span = ipw_host_next_span(s->host, false);
    event.inside = span_of_agent(s, parent);
    s->agents[s->n_agents] = (struct ipw_session_agent){ipw_strdup(id), event.span};
    event.tool = (struct ipw_tool_facts){.name = s->agents[s->n_agents++].id, .kind = "agent"};
    emit(s, &event, &none);
    return event.span;
}

/* ---- turns ---- */

/* The number of the session's last messages with which the request begins. */
static size_t kept_messages(const struct ipw_proxy_session *s, const struct ipw_proxy_call *call)
{
    size_t n = 0;

    while (n < s->n_hashes && n < call->n_hashes && s->hashes[n] == call->hashes[n]) n++;
    return n;
}

bool ipw_proxy_session_goes_on(const struct ipw_proxy_session *s, const struct ipw_proxy_call *call)
{
    const char *before = ipw_json_get_str(call->doc, "previous_response_id");

    if (before && s->reply_id && strcmp(before, s->reply_id) == 0) return true;
    return s->n_hashes && call->n_hashes + s->failed > s->n_hashes &&
           kept_messages(s, call) == s->n_hashes;
}

/* A message as it is; what is none (one text, a prompt) as the content of one. */
static void put_message(struct ipw_jw *w, const struct ipw_json *m)
{
    bool bare = ipw_json_kind(m) != IPW_JSON_OBJ;
    char *text = ipw_json_text(m);

    if (bare) ipw_jw_obj(w);
    if (bare) ipw_jw_key(w, "content");
    ipw_jw_raw(w, text, strlen(text));
    if (bare) ipw_jw_kstr(w, "role", "user");
    if (bare) ipw_jw_obj_end(w);
    free(text);
}

/* The messages that the session's last request did not have. */
static void put_messages(struct ipw_jw *w, struct ipw_proxy_session *s, struct ipw_proxy_call *call)
{
    size_t i = 0, kept = kept_messages(s, call);

    ipw_jw_key(w, "messages");
    ipw_jw_arr(w);
    if (ipw_json_kind(call->messages) == IPW_JSON_STR) put_message(w, call->messages);
    if (ipw_json_kind(call->messages) == IPW_JSON_ARR)
        for (const struct ipw_json *m = ipw_json_first(call->messages); m; m = ipw_json_next(m))
            if (i++ >= kept) put_message(w, m);
    ipw_jw_arr_end(w);
    ipw_jw_kint(w, "messages_kept", (int64_t)kept);
    free(s->hashes);
    s->hashes = call->hashes;
    s->n_hashes = call->n_hashes;
    call->hashes = NULL;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(ipw_json_key(*(const struct ipw_json *const *)a),
                  ipw_json_key(*(const struct ipw_json *const *)b));
}

/* The request without its messages, its keys sorted as in every line. */
static void put_request(struct ipw_jw *w, const struct ipw_proxy_call *call)
{
    const struct ipw_json **members;
    size_t n = 0;

    members = ipw_calloc(ipw_json_count(call->doc) + 1, sizeof *members);
    for (const struct ipw_json *m = ipw_json_first(call->doc); m; m = ipw_json_next(m))
        if (m != call->messages) members[n++] = m;
    qsort(members, n, sizeof *members, by_key);
    ipw_jw_key(w, "request");
    ipw_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        char *text = ipw_json_text(members[i]);

        ipw_jw_key_any(w, ipw_json_key(members[i]), strlen(ipw_json_key(members[i])));
        ipw_jw_raw(w, text, strlen(text));
        free(text);
    }
    ipw_jw_obj_end(w);
    free(members);
}

int32_t ipw_proxy_session_begin(struct ipw_proxy_session *s, struct ipw_proxy_call *call,
                                int attempt, int64_t t_ns)
{
    struct ipw_event event = {.kind = IPW_EV_LM_START, .t_ns = t_ns};
    struct ipw_buf data = IPW_BUF(PAYLOAD_MAX_BYTES);
    struct ipw_jw w;

    ipw_timer_cancel(s->idle);
    s->idle = NULL;
    end_tools(s, call, t_ns);
    s->failed = false;
    if (!s->host) return 0;
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    put_messages(&w, s, call);
    if (call->protocol != IPW_CHAT_COMPLETIONS)
        ipw_jw_kstr(&w, "protocol", ipw_chat_protocol_words[call->protocol]);
    put_request(&w, call);
    if (call->rule) ipw_jw_kstr(&w, "session_rule", call->rule);
    ipw_jw_obj_end(&w);
    event.span = ipw_host_next_span(s->host, false);
    event.inside = call->inside;
    event.lm.attempt = attempt;
    event.lm.model = *call->model ? call->model : NULL;
    emit(s, &event, &data);
    return event.span;
}

void ipw_proxy_session_first_token(struct ipw_proxy_session *s, int64_t t_ns)
{
    if (s->host && s->host->on.first_token) s->host->on.first_token(s->host->on.ud, t_ns);
}

void ipw_proxy_session_end(struct ipw_proxy_session *s, const struct ipw_proxy_call *call,
                           int32_t span, int64_t t_ns, const struct ipw_lm_facts *facts,
                           const struct ipw_chat_reply *reply)
{
    struct ipw_event event = {.kind = IPW_EV_LM_END, .t_ns = t_ns, .span = span, .lm = *facts};
    struct ipw_buf data = IPW_BUF(PAYLOAD_MAX_BYTES);

    ipw_chat_reply_json(&data, reply);
    event.lm.asked = call->model;
    emit(s, &event, &data);
    s->failed = facts->outcome != IPW_LM_OK;
    if (!s->failed && reply->id) {
        free(s->reply_id);
        s->reply_id = ipw_strdup(reply->id);
    }
    for (size_t i = 0; !s->failed && i < reply->n_calls && s->host; i++)
        begin_tool(s, &reply->calls[i], call->inside, t_ns);
    if (!s->failed && !reply->n_calls && reply->text.len) {
        free(s->answer);
        s->answer = ipw_strdup(ipw_buf_str(&reply->text));
    }
    watch_silence(s);
}

/* ---- calls that are no turn ---- */

int32_t ipw_proxy_session_other(struct ipw_proxy_session *s, const struct ipw_proxy_call *call,
                                int64_t t_ns)
{
    struct ipw_event event = {.kind = IPW_EV_SPAN_START, .t_ns = t_ns};
    struct ipw_buf none = IPW_BUF(1);

    if (!s->host) return 0;
    ipw_timer_cancel(s->idle);
    s->idle = NULL;
    event.span = ipw_host_next_span(s->host, false);
    event.inside = call->inside;
    event.tool = (struct ipw_tool_facts){.name = call->name, .kind = "http"};
    emit(s, &event, &none);
    return event.span;
}

void ipw_proxy_session_other_end(struct ipw_proxy_session *s, const char *name, int32_t span,
                                 int64_t t_ns, int status, int64_t bytes)
{
    struct ipw_event event = {.kind = IPW_EV_SPAN_END, .t_ns = t_ns, .span = span};
    struct ipw_buf none = IPW_BUF(1);
    bool ok = status >= 200 && status <= 299;

    event.tool = (struct ipw_tool_facts){.name = name,
                                         .kind = "http",
                                         .ok = ok,
                                         .outcome = ok ? "ok" : "error",
                                         .result_bytes = bytes};
    emit(s, &event, &none);
    watch_silence(s);
}
