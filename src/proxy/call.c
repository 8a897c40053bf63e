#include "proxy/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
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
    {"/v1/traces", "traces", false, IPW_CHAT_COMPLETIONS},
    {"/models", "models", false, IPW_CHAT_COMPLETIONS},
    {"/embeddings", "embeddings", false, IPW_CHAT_COMPLETIONS},
    {"/rerank", "rerank", false, IPW_CHAT_COMPLETIONS},
    {"/moderations", "moderations", false, IPW_CHAT_COMPLETIONS},
    {"/completions", "completions", true, IPW_CHAT_PROMPT},
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

static uint64_t hash_of(const struct ipw_json *message)
{
    char *text = ipw_json_text(message);
    uint64_t h = 1469598103934665603u;

    for (const char *c = text; *c; c++) h = (h ^ (unsigned char)*c) * 1099511628211u;
    free(text);
    return h;
}

int ipw_proxy_call_read(struct ipw_proxy_call *call, const char *body, size_t n,
                        struct ipw_err *err)
{
    static void (*const read_result[])(struct ipw_proxy_call *, const struct ipw_json *) = {
        chat_result, responses_result, messages_result, chat_result};
    const struct ipw_json *options;
    static const char *const lists[] = {"messages", "input", "messages", "prompt"};
    int rc = ipw_json_parse(&call->doc, body, n, NULL, err);

    if (rc) return rc;
    if (ipw_json_kind(call->doc) != IPW_JSON_OBJ)
        return ipw_fail(err, IPW_EPARSE, "the request is not a JSON object");
    call->model = ipw_json_str(ipw_json_get(call->doc, "model"), "");
    call->streams = ipw_json_bool(ipw_json_get(call->doc, "stream"), false);
    options = ipw_json_get(call->doc, "stream_options");
    call->asks_usage = ipw_json_bool(ipw_json_get(options, "include_usage"), false);
    call->messages = ipw_json_get(call->doc, lists[call->protocol]);
    if (!call->turn || ipw_json_kind(call->messages) != IPW_JSON_ARR) return 0;
    call->hashes = ipw_calloc(ipw_json_count(call->messages) + 1, sizeof *call->hashes);
    for (const struct ipw_json *m = ipw_json_first(call->messages); m; m = ipw_json_next(m)) {
        read_result[call->protocol](call, m);
        call->hashes[call->n_hashes++] = hash_of(m);
    }
    return 0;
}

void ipw_proxy_call_release(struct ipw_proxy_call *call)
{
    ipw_json_free(call->doc);
    free(call->results);
    free(call->hashes);
    *call = (struct ipw_proxy_call){.name = call->name};
}

/* ---- usage ---- */

bool ipw_proxy_call_wants_usage(const struct ipw_proxy_call *call)
{
    return call->turn && call->streams && !call->asks_usage &&
           (call->protocol == IPW_CHAT_COMPLETIONS || call->protocol == IPW_CHAT_PROMPT);
}

/* Where the value of the top-level member begins and ends in an object that was parsed; of several
 * the last, which counts.  False: it has none. */
static bool find_member(size_t *from, size_t *to, const char *body, size_t n, const char *name)
{
    size_t length = strlen(name), depth = 0, value = 0;
    bool key = false, found = false;

    for (size_t i = 0; i < n; i++) {
        char c = body[i];

        if (c == '"') {
            size_t text = ++i;

            while (i < n && body[i] != '"') i += body[i] == '\\' ? 2 : 1;
            key = depth == 1 && i - text == length && !memcmp(body + text, name, length);
        } else if (c == ':' && key) {
            value = i + 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == ',' || c == '}' || c == ']') {
            if (value && depth == 1) {
                *from = value;
                *to = i;
                found = true;
                value = 0;
            }
            depth -= c != ',';
        }
        if (!memchr("\" \t\r\n", c, 5)) key = false;
    }
    return found;
}

void ipw_proxy_call_ask_usage(struct ipw_buf *out, const char *body, size_t n)
{
    size_t brace = (size_t)((const char *)memchr(body, '{', n) - body) + 1, from = brace,
           to = brace;
    size_t at, end, first;
    const char *text = "\"stream_options\":{\"include_usage\":true},";

    if (find_member(&at, &end, body, n, "stream_options")) {
        while (memchr(" \t\r\n", body[at], 4)) at++;
        first = at + 1;
        while (first < n && memchr(" \t\r\n", body[first], 4)) first++;
        if (body[at] != '{') { /* null, or nothing that a server takes */
            from = at, to = end, text = "{\"include_usage\":true}";
        } else if (find_member(&from, &to, body + at, end - at, "include_usage")) {
            from += at, to += at, text = "true";
        } else {
            from = to = at + 1;
            text = body[first] == '}' ? "\"include_usage\":true" : "\"include_usage\":true,";
        }
    }
    ipw_buf_add(out, body, from);
    ipw_buf_adds(out, text);
    ipw_buf_add(out, body + to, n - to);
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
