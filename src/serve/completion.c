#include "serve/completion.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/write.h"

enum { TOKEN_BYTES = 4 };

/* ---- tokens ---- */

/* Bytes of the next token: as many whole characters as fit four bytes, at least one. */
static size_t token_len(const char *s, size_t n)
{
    size_t len = 0;

    while (len < n) {
        size_t c = ipw_utf8_len(s + len, n - len);
        if (c == 0) c = 1;
        if (len && len + c > TOKEN_BYTES) break;
        len += c;
        if (len >= TOKEN_BYTES) break;
    }
    return len;
}

static int64_t count_tokens(const char *s, size_t n)
{
    int64_t count = 0;

    for (size_t at = 0; at < n; count++) at += token_len(s + at, n - at);
    return count;
}

/* The length of the first `most` tokens. */
static size_t first_tokens(const char *s, size_t n, int64_t most)
{
    size_t at = 0;

    for (int64_t i = 0; i < most && at < n; i++) at += token_len(s + at, n - at);
    return at;
}

/* ---- the request ---- */

static int refuse(struct ipw_err *err, int status, const char *fmt, ...) IPW_PRINTF(3, 4);
static int refuse(struct ipw_err *err, int status, const char *fmt, ...)
{
    va_list ap;
    char text[256];

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ipw_fail(err, IPW_EINVAL, "%s", text);
    if (err) err->detail = status;
    return IPW_EINVAL;
}

static int check_messages(const struct ipw_json *messages, struct ipw_err *err)
{
    size_t i = 0;

    if (ipw_json_kind(messages) != IPW_JSON_ARR || ipw_json_count(messages) == 0)
        return refuse(err, 400, "messages: expected a list with at least one message");
    for (const struct ipw_json *m = ipw_json_first(messages); m; m = ipw_json_next(m), i++) {
        if (ipw_json_kind(m) != IPW_JSON_OBJ)
            return refuse(err, 400, "messages[%zu]: expected an object", i);
        if (ipw_json_kind(ipw_json_get(m, "role")) != IPW_JSON_STR)
            return refuse(err, 400, "messages[%zu].role: expected a string", i);
    }
    return 0;
}

static bool is_kind(const struct ipw_json *node, enum ipw_json_kind kind)
{
    return ipw_json_is_null(node) || ipw_json_kind(node) == kind;
}

static int read_format(struct ipw_serve_ask *ask, const struct ipw_json *format,
                       struct ipw_err *err)
{
    const char *type = ipw_json_str(ipw_json_get(format, "type"), NULL);

    if (ipw_json_is_null(format)) return 0;
    if (!type) return refuse(err, 400, "response_format: expected an object with a \"type\"");
    if (strcmp(type, "text") != 0) ask->format = type;
    return 0;
}

static int64_t prompt_tokens(const struct ipw_json *body)
{
    struct ipw_buf text = IPW_BUF(256 * IPW_MIB);
    int64_t tokens;

    ipw_json_print(&text, ipw_json_get(body, "messages"));
    if (!ipw_json_is_null(ipw_json_get(body, "tools")))
        ipw_json_print(&text, ipw_json_get(body, "tools"));
    tokens = ((int64_t)text.len + TOKEN_BYTES - 1) / TOKEN_BYTES;
    ipw_buf_release(&text);
    return tokens;
}

int ipw_serve_ask_read(struct ipw_serve_ask *ask, const struct ipw_json *body, const char *text,
                       size_t n, struct ipw_err *err)
{
    const struct ipw_json *stream, *options, *limit;
    int rc;

    memset(ask, 0, sizeof *ask);
    if (ipw_json_kind(body) != IPW_JSON_OBJ) return refuse(err, 400, "expected a JSON object");
    ask->model = ipw_json_str(ipw_json_get(body, "model"), NULL);
    if (!ask->model) return refuse(err, 400, "model: expected a string");
    rc = check_messages(ipw_json_get(body, "messages"), err);
    if (rc) return rc;
    if (!is_kind(ipw_json_get(body, "tools"), IPW_JSON_ARR))
        return refuse(err, 400, "tools: expected a list");
    if (ipw_json_int(ipw_json_get(body, "n"), 1) != 1)
        return refuse(err, 400, "n: this server gives one choice only");

    stream = ipw_json_get(body, "stream");
    if (!is_kind(stream, IPW_JSON_BOOL)) return refuse(err, 400, "stream: expected true or false");
    ask->stream = ipw_json_bool(stream, false);
    options = ipw_json_get(body, "stream_options");
    if (!is_kind(options, IPW_JSON_OBJ))
        return refuse(err, 400, "stream_options: expected an object");
    if (!ipw_json_is_null(options) && !ask->stream)
        return refuse(err, 400, "stream_options is only allowed together with stream");
    ask->include_usage = ipw_json_bool(ipw_json_get(options, "include_usage"), false);

    rc = read_format(ask, ipw_json_get(body, "response_format"), err);
    if (rc) return rc;

    limit = ipw_json_get(body, "max_completion_tokens");
    if (ipw_json_is_null(limit)) limit = ipw_json_get(body, "max_tokens");
    ask->max_tokens = ipw_json_int(limit, -1);
    if (!ipw_json_is_null(limit) && ask->max_tokens < 1)
        return refuse(err, 400, "max_tokens: expected a positive integer");
    ask->stop = ipw_json_get(body, "stop");
    if (ipw_json_kind(ask->stop) != IPW_JSON_STR && !is_kind(ask->stop, IPW_JSON_ARR))
        return refuse(err, 400, "stop: expected a string or a list of strings");

    ask->prompt_tokens = prompt_tokens(body);
    ask->hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        ask->hash = (ask->hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return 0;
}

/* ---- the reply ---- */

static size_t cut_at(const char *text, size_t n, const struct ipw_json *stop)
{
    size_t m = ipw_json_str_len(stop);
    const char *hit = m ? memmem(text, n, ipw_json_str(stop, ""), m) : NULL;

    return hit ? (size_t)(hit - text) : n;
}

static size_t cut_at_stops(const char *text, size_t n, const struct ipw_json *stop)
{
    if (ipw_json_kind(stop) == IPW_JSON_STR) return cut_at(text, n, stop);
    for (const struct ipw_json *s = ipw_json_first(stop); s; s = ipw_json_next(s))
        n = cut_at(text, n, s);
    return n;
}

static int read_calls(struct ipw_serve_reply *out, const struct ipw_json *calls,
                      struct ipw_err *err)
{
    size_t n = ipw_json_count(calls);

    out->calls = ipw_calloc(n ? n : 1, sizeof *out->calls);
    for (const struct ipw_json *c = ipw_json_first(calls); c; c = ipw_json_next(c)) {
        struct ipw_serve_call *call = &out->calls[out->n_calls];
        const struct ipw_json *arguments = ipw_json_get(c, "arguments");
        const char *name = ipw_json_str(ipw_json_get(c, "name"), NULL);
        struct ipw_buf text = IPW_BUF(16 * IPW_MIB);

        if (!name)
            return ipw_fail(err, IPW_ELUA, "the model's calls[%zu].name is not a string",
                            out->n_calls + 1);
        /* A text goes out as it is, so that a model in Lua can play one that errs. */
        if (ipw_json_kind(arguments) == IPW_JSON_STR)
            ipw_buf_add(&text, ipw_json_str(arguments, ""), ipw_json_str_len(arguments));
        else if (ipw_json_is_null(arguments))
            ipw_buf_adds(&text, "{}");
        else
            ipw_json_print(&text, arguments);
        call->name = ipw_strdup(name);
        call->arguments = ipw_buf_take(&text, NULL);
        out->n_calls++;
    }
    return 0;
}

static int64_t call_tokens(const struct ipw_serve_call *call)
{
    return count_tokens(call->name, strlen(call->name)) +
           count_tokens(call->arguments, strlen(call->arguments));
}

static void free_call(struct ipw_serve_call *call)
{
    free(call->name);
    free(call->arguments);
}

/* Takes away what lies beyond the limit: whole calls from the end, then text. */
static void limit_tokens(struct ipw_serve_reply *r, int64_t most)
{
    int64_t text = count_tokens(r->text, r->text_len), calls = 0;

    for (size_t i = 0; i < r->n_calls; i++) calls += call_tokens(&r->calls[i]);
    if (most >= 0 && text + calls > most) {
        while (r->n_calls && text + calls > most) {
            calls -= call_tokens(&r->calls[--r->n_calls]);
            free_call(&r->calls[r->n_calls]);
        }
        r->text_len = first_tokens(r->text, r->text_len, most);
        text = text < most ? text : most;
        r->finish = "length";
    }
    r->tokens = text + calls;
}

static const char *finish_word(const struct ipw_json *finish, size_t n_calls)
{
    static const char *const words[] = {"stop", "length", "tool_calls", "content_filter"};
    const char *said = ipw_json_str(finish, "");

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(said, words[i]) == 0) return words[i];
    return n_calls ? "tool_calls" : "stop";
}

int ipw_serve_reply_read(struct ipw_serve_reply *out, const char *json, size_t n,
                         const struct ipw_serve_ask *ask, struct ipw_err *err)
{
    struct ipw_json *root;
    const struct ipw_json *text;
    int rc;

    memset(out, 0, sizeof *out);
    rc = ipw_json_parse(&root, json, n, NULL, err);
    if (rc) return ipw_err_prefix(err, "the model's reply");
    text = ipw_json_get(root, "text");
    out->text_len = ipw_json_str_len(text);
    out->text = ipw_memdup(ipw_json_str(text, ""), out->text_len);
    out->text_len = cut_at_stops(out->text, out->text_len, ask->stop);
    rc = read_calls(out, ipw_json_get(root, "calls"), err);
    out->finish = finish_word(ipw_json_get(root, "finish"), out->n_calls);
    ipw_json_free(root);
    if (rc) {
        ipw_serve_reply_release(out);
        return rc;
    }
    limit_tokens(out, ask->max_tokens);
    return 0;
}

void ipw_serve_reply_release(struct ipw_serve_reply *reply)
{
    for (size_t i = 0; i < reply->n_calls; i++) free_call(&reply->calls[i]);
    free(reply->calls);
    free(reply->text);
    memset(reply, 0, sizeof *reply);
}

/* ---- the answer ---- */

static void end_part(struct ipw_serve_answer *a, int64_t token)
{
    IPW_GROW(a->parts, a->cap_parts, a->n_parts + 1);
    a->parts[a->n_parts++] = (struct ipw_serve_part){a->bytes.len, token, 0};
}

void ipw_serve_part_end(struct ipw_serve_answer *a, int64_t after_ns)
{
    end_part(a, -1);
    a->parts[a->n_parts - 1].after_ns = after_ns;
}

static void write_usage(struct ipw_jw *w, const struct ipw_serve_ask *ask,
                        const struct ipw_serve_reply *reply)
{
    ipw_jw_key(w, "usage");
    ipw_jw_obj(w);
    ipw_jw_kint(w, "completion_tokens", reply->tokens);
    ipw_jw_kint(w, "prompt_tokens", ask->prompt_tokens);
    ipw_jw_kint(w, "total_tokens", ask->prompt_tokens + reply->tokens);
    ipw_jw_obj_end(w);
}

/* What comes between "choices" and "usage", in the order of the keys. */
static void write_names(struct ipw_jw *w, const struct ipw_serve_ask *ask, int64_t created,
                        const char *object)
{
    char id[40];

    snprintf(id, sizeof id, "chatcmpl-%016llx", (unsigned long long)ask->hash);
    ipw_jw_kint(w, "created", created);
    ipw_jw_kstr(w, "id", id);
    ipw_jw_kstr(w, "model", ask->model);
    ipw_jw_kstr(w, "object", object);
    ipw_jw_kstr(w, "system_fingerprint", "ipw-agent-" IPW_VERSION);
}

static void call_id(char *out, size_t size, const struct ipw_serve_ask *ask, size_t i)
{
    snprintf(out, size, "call_%016llx_%zu", (unsigned long long)ask->hash, i);
}

void ipw_serve_answer_whole(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                            const struct ipw_serve_reply *reply, int64_t created)
{
    struct ipw_jw w;
    char id[48];

    memset(out, 0, sizeof *out);
    out->bytes = IPW_BUF(256 * IPW_MIB);
    ipw_jw_init(&w, &out->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "choices");
    ipw_jw_arr(&w);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "finish_reason", reply->finish);
    ipw_jw_kint(&w, "index", 0);
    ipw_jw_key(&w, "message");
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "content");
    if (reply->text_len || !reply->n_calls)
        ipw_jw_strn(&w, reply->text, reply->text_len);
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "role", "assistant");
    if (reply->n_calls) {
        ipw_jw_key(&w, "tool_calls");
        ipw_jw_arr(&w);
        for (size_t i = 0; i < reply->n_calls; i++) {
            ipw_jw_obj(&w);
            ipw_jw_key(&w, "function");
            ipw_jw_obj(&w);
            ipw_jw_kstr(&w, "arguments", reply->calls[i].arguments);
            ipw_jw_kstr(&w, "name", reply->calls[i].name);
            ipw_jw_obj_end(&w);
            call_id(id, sizeof id, ask, i);
            ipw_jw_kstr(&w, "id", id);
            ipw_jw_kstr(&w, "type", "function");
            ipw_jw_obj_end(&w);
        }
        ipw_jw_arr_end(&w);
    }
    ipw_jw_obj_end(&w);
    ipw_jw_obj_end(&w);
    ipw_jw_arr_end(&w);
    write_names(&w, ask, created, "chat.completion");
    write_usage(&w, ask, reply);
    ipw_jw_obj_end(&w);
    end_part(out, reply->tokens > 0 ? reply->tokens - 1 : 0);
}

/* One chunk around a delta that is already JSON text. */
static void write_chunk(struct ipw_serve_answer *a, const struct ipw_serve_ask *ask,
                        const char *delta, const char *finish, int64_t created, int64_t token)
{
    struct ipw_jw w;

    ipw_buf_adds(&a->bytes, "data: ");
    ipw_jw_init(&w, &a->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "choices");
    ipw_jw_arr(&w);
    ipw_jw_obj(&w);
    ipw_jw_kraw(&w, "delta", delta, strlen(delta));
    ipw_jw_kstr(&w, "finish_reason", finish);
    ipw_jw_kint(&w, "index", 0);
    ipw_jw_obj_end(&w);
    ipw_jw_arr_end(&w);
    write_names(&w, ask, created, "chat.completion.chunk");
    if (ask->include_usage) ipw_jw_knull(&w, "usage");
    ipw_jw_obj_end(&w);
    ipw_buf_adds(&a->bytes, "\n\n");
    end_part(a, token);
}

static void write_usage_chunk(struct ipw_serve_answer *a, const struct ipw_serve_ask *ask,
                              const struct ipw_serve_reply *reply, int64_t created, int64_t token)
{
    struct ipw_jw w;

    ipw_buf_adds(&a->bytes, "data: ");
    ipw_jw_init(&w, &a->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "choices");
    ipw_jw_arr(&w);
    ipw_jw_arr_end(&w);
    write_names(&w, ask, created, "chat.completion.chunk");
    write_usage(&w, ask, reply);
    ipw_jw_obj_end(&w);
    ipw_buf_adds(&a->bytes, "\n\n");
    end_part(a, token);
}

/* The delta of one fragment of a call; the first one carries id and name. */
static void call_delta(struct ipw_buf *out, const struct ipw_serve_ask *ask, size_t i,
                       const char *name, const char *arguments, size_t n)
{
    struct ipw_jw w;
    char id[48];

    ipw_buf_clear(out);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "tool_calls");
    ipw_jw_arr(&w);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "function");
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "arguments");
    ipw_jw_strn(&w, arguments, n);
    if (name) ipw_jw_kstr(&w, "name", name);
    ipw_jw_obj_end(&w);
    if (name) {
        call_id(id, sizeof id, ask, i);
        ipw_jw_kstr(&w, "id", id);
    }
    ipw_jw_kint(&w, "index", (int64_t)i);
    if (name) ipw_jw_kstr(&w, "type", "function");
    ipw_jw_obj_end(&w);
    ipw_jw_arr_end(&w);
    ipw_jw_obj_end(&w);
}

void ipw_serve_answer_stream(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                             const struct ipw_serve_reply *reply, int64_t created)
{
    struct ipw_buf delta = IPW_BUF(16 * IPW_MIB);
    int64_t token = 0, last;

    memset(out, 0, sizeof *out);
    out->bytes = IPW_BUF(256 * IPW_MIB);
    write_chunk(out, ask, "{\"content\":\"\",\"role\":\"assistant\"}", NULL, created, -1);
    for (size_t at = 0; at < reply->text_len; token++) {
        size_t n = token_len(reply->text + at, reply->text_len - at);
        ipw_buf_clear(&delta);
        ipw_buf_adds(&delta, "{\"content\":");
        ipw_json_escape(&delta, reply->text + at, n);
        ipw_buf_adds(&delta, "}");
        write_chunk(out, ask, ipw_buf_str(&delta), NULL, created, token);
        at += n;
    }
    for (size_t i = 0; i < reply->n_calls; i++) {
        const struct ipw_serve_call *call = &reply->calls[i];
        size_t len = strlen(call->arguments);
        /* The name is known when its last token is. */
        token += count_tokens(call->name, strlen(call->name));
        call_delta(&delta, ask, i, call->name, "", 0);
        write_chunk(out, ask, ipw_buf_str(&delta), NULL, created, token > 0 ? token - 1 : 0);
        for (size_t at = 0; at < len; token++) {
            size_t n = token_len(call->arguments + at, len - at);
            call_delta(&delta, ask, i, NULL, call->arguments + at, n);
            write_chunk(out, ask, ipw_buf_str(&delta), NULL, created, token);
            at += n;
        }
    }
    last = token > 0 ? token - 1 : 0;
    write_chunk(out, ask, "{}", reply->finish, created, last);
    if (ask->include_usage) write_usage_chunk(out, ask, reply, created, last);
    ipw_buf_adds(&out->bytes, "data: [DONE]\n\n");
    end_part(out, last);
    ipw_buf_release(&delta);
}

void ipw_serve_answer_error(struct ipw_serve_answer *out, int status, const char *message)
{
    struct ipw_jw w;

    memset(out, 0, sizeof *out);
    out->bytes = IPW_BUF(IPW_MIB);
    ipw_jw_init(&w, &out->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "error");
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "code");
    if (status == 404)
        ipw_jw_str(&w, "not_found");
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "message", message);
    ipw_jw_knull(&w, "param");
    ipw_jw_kstr(&w, "type", status >= 500 ? "server_error" : "invalid_request_error");
    ipw_jw_obj_end(&w);
    ipw_jw_obj_end(&w);
    end_part(out, -1);
}

void ipw_serve_answer_release(struct ipw_serve_answer *answer)
{
    ipw_buf_release(&answer->bytes);
    free(answer->parts);
    memset(answer, 0, sizeof *answer);
}
