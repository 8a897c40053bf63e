#include "proxy/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"

/* By the end of the path, since servers put their API below different folders. */
static const struct {
    const char *end, *name;
    bool turn;
    enum ipw_chat_protocol protocol;
} paths[] = {
    {"/chat/completions", "chat", true, IPW_CHAT_COMPLETIONS},
    {"/responses", "responses", true, IPW_CHAT_RESPONSES},
    {"/messages", "messages", true, IPW_CHAT_MESSAGES},
    {"/messages/count_tokens", "count_tokens", false, IPW_CHAT_MESSAGES},
    {"/responses/compact", "compact", false, IPW_CHAT_RESPONSES},
    {"/models", "models", false, IPW_CHAT_COMPLETIONS},
    {"/embeddings", "embeddings", false, IPW_CHAT_COMPLETIONS},
    {"/rerank", "rerank", false, IPW_CHAT_COMPLETIONS},
    {"/moderations", "moderations", false, IPW_CHAT_COMPLETIONS},
    {"/completions", "completions", false, IPW_CHAT_COMPLETIONS},
};

void ipw_proxy_call_of_path(struct ipw_proxy_call *out, const char *method, const char *path)
{
    size_t n = strcspn(path, "?#");

    *out = (struct ipw_proxy_call){.name = "other"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        size_t m = strlen(paths[i].end);

        if (n < m || strncmp(path + n - m, paths[i].end, m) != 0) continue;
        out->name = paths[i].name;
        out->protocol = paths[i].protocol;
        out->turn = paths[i].turn && strcmp(method, "POST") == 0;
        if (paths[i].turn && !out->turn) out->name = "other";
        return;
    }
}

/* ---- the body of a turn ---- */

static void add_result(struct ipw_proxy_call *call, const struct ipw_json *id,
                       const struct ipw_json *content, bool failed)
{
    if (!ipw_json_str(id, NULL)) return;
    IPW_GROW(call->results, call->cap_results, call->n_results + 1);
    call->results[call->n_results++] =
        (struct ipw_proxy_result){ipw_json_str(id, ""), content, failed};
}

/* {"role": "tool", "tool_call_id": ID, "content": ...} */
static void chat_result(struct ipw_proxy_call *call, const struct ipw_json *message)
{
    if (strcmp(ipw_json_str(ipw_json_get(message, "role"), ""), "tool") == 0)
        add_result(call, ipw_json_get(message, "tool_call_id"), ipw_json_get(message, "content"),
                   false);
}

/* {"type": "function_call_output", "call_id": ID, "output": ...} */
static void responses_result(struct ipw_proxy_call *call, const struct ipw_json *item)
{
    const char *type = ipw_json_str(ipw_json_get(item, "type"), "");
    size_t n = strlen(type);

    if (n > 7 && strcmp(type + n - 7, "_output") == 0)
        add_result(call, ipw_json_get(item, "call_id"), ipw_json_get(item, "output"), false);
}

/* {"role": "user", "content": [{"type": "tool_result", "tool_use_id": ID, ...}]} */
static void messages_result(struct ipw_proxy_call *call, const struct ipw_json *message)
{
    const struct ipw_json *block = ipw_json_first(ipw_json_get(message, "content"));

    for (; block; block = ipw_json_next(block)) {
        if (strcmp(ipw_json_str(ipw_json_get(block, "type"), ""), "tool_result") != 0) continue;
        add_result(call, ipw_json_get(block, "tool_use_id"), ipw_json_get(block, "content"),
                   ipw_json_bool(ipw_json_get(block, "is_error"), false));
    }
}

int ipw_proxy_call_read(struct ipw_proxy_call *call, const char *body, size_t n,
                        struct ipw_err *err)
{
    static void (*const read_result[])(struct ipw_proxy_call *, const struct ipw_json *) = {
        chat_result, responses_result, messages_result};
    const struct ipw_json *options;
    int rc = ipw_json_parse(&call->doc, body, n, NULL, err);

    if (rc) return rc;
    if (ipw_json_kind(call->doc) != IPW_JSON_OBJ)
        return ipw_fail(err, IPW_EPARSE, "the request is not a JSON object");
    call->model = ipw_json_str(ipw_json_get(call->doc, "model"), "");
    call->streams = ipw_json_bool(ipw_json_get(call->doc, "stream"), false);
    options = ipw_json_get(call->doc, "stream_options");
    call->asks_usage = ipw_json_kind(options) == IPW_JSON_OBJ;
    call->messages =
        ipw_json_get(call->doc, call->protocol == IPW_CHAT_RESPONSES ? "input" : "messages");
    if (ipw_json_kind(call->messages) != IPW_JSON_ARR) return 0;
    for (const struct ipw_json *m = ipw_json_first(call->messages); m; m = ipw_json_next(m))
        read_result[call->protocol](call, m);
    return 0;
}

void ipw_proxy_call_release(struct ipw_proxy_call *call)
{
    ipw_json_free(call->doc);
    free(call->results);
    *call = (struct ipw_proxy_call){.name = call->name};
}

/* ---- usage ---- */

bool ipw_proxy_call_wants_usage(const struct ipw_proxy_call *call)
{
    return call->turn && call->protocol == IPW_CHAT_COMPLETIONS && call->streams &&
           !call->asks_usage;
}

void ipw_proxy_call_ask_usage(struct ipw_buf *out, const char *body, size_t n)
{
    const char *brace = memchr(body, '{', n);
    size_t before = (size_t)(brace - body) + 1;

    ipw_buf_add(out, body, before);
    ipw_buf_adds(out, "\"stream_options\":{\"include_usage\":true},");
    ipw_buf_add(out, body + before, n - before);
}

/* ---- refusals ---- */

void ipw_proxy_call_refusal(struct ipw_buf *out, const struct ipw_proxy_call *call,
                            const char *code, const char *message)
{
    bool messages = call->protocol == IPW_CHAT_MESSAGES;
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "error");
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "code", code);
    ipw_jw_kstr(&w, "message", message);
    if (!messages) ipw_jw_knull(&w, "param");
    ipw_jw_kstr(&w, "type", "invalid_request_error");
    ipw_jw_obj_end(&w);
    if (messages) ipw_jw_kstr(&w, "type", "error");
    ipw_jw_obj_end(&w);
}
