#include "serve/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { TOKEN_BYTES = 4 };

/* ---- tokens ---- */

/* Bytes of the next token: as many whole characters as fit into four bytes, at least one. */
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

static int check_messages(const struct ipw_json *messages, struct ipw_err *err)
{
    size_t i = 0;

    if (ipw_json_kind(messages) != IPW_JSON_ARR || ipw_json_count(messages) == 0)
        return ipw_fail(err, IPW_EINVAL, "messages: expected a list with at least one message");
    for (const struct ipw_json *m = ipw_json_first(messages); m; m = ipw_json_next(m), i++) {
        if (ipw_json_kind(m) != IPW_JSON_OBJ)
            return ipw_fail(err, IPW_EINVAL, "messages[%zu]: expected an object", i);
        if (ipw_json_kind(ipw_json_get(m, "role")) != IPW_JSON_STR)
            return ipw_fail(err, IPW_EINVAL, "messages[%zu].role: expected a string", i);
    }
    return 0;
}

static bool has_pictures(const struct ipw_json *messages)
{
    for (const struct ipw_json *m = ipw_json_first(messages); m; m = ipw_json_next(m)) {
        const struct ipw_json *part = ipw_json_get(m, "content");

        part = ipw_json_kind(part) == IPW_JSON_ARR ? ipw_json_first(part) : NULL;
        for (; part; part = ipw_json_next(part))
            if (strcmp(ipw_json_str(ipw_json_get(part, "type"), ""), "image_url") == 0) return true;
    }
    return false;
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
    if (!type)
        return ipw_fail(err, IPW_EINVAL, "response_format: expected an object with a \"type\"");
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
    if (ipw_json_kind(body) != IPW_JSON_OBJ)
        return ipw_fail(err, IPW_EINVAL, "expected a JSON object");
    ask->model = ipw_json_str(ipw_json_get(body, "model"), NULL);
    if (!ask->model) return ipw_fail(err, IPW_EINVAL, "model: expected a string");
    rc = check_messages(ipw_json_get(body, "messages"), err);
    if (rc) return rc;
    if (!is_kind(ipw_json_get(body, "tools"), IPW_JSON_ARR))
        return ipw_fail(err, IPW_EINVAL, "tools: expected a list");
    if (ipw_json_int(ipw_json_get(body, "n"), 1) != 1)
        return ipw_fail(err, IPW_EINVAL, "n: this server gives one choice only");

    stream = ipw_json_get(body, "stream");
    if (!is_kind(stream, IPW_JSON_BOOL))
        return ipw_fail(err, IPW_EINVAL, "stream: expected true or false");
    ask->stream = ipw_json_bool(stream, false);
    options = ipw_json_get(body, "stream_options");
    if (!is_kind(options, IPW_JSON_OBJ))
        return ipw_fail(err, IPW_EINVAL, "stream_options: expected an object");
    if (!ipw_json_is_null(options) && !ask->stream)
        return ipw_fail(err, IPW_EINVAL, "stream_options is only allowed together with stream");
    ask->include_usage = ipw_json_bool(ipw_json_get(options, "include_usage"), false);

    ask->logprobs = ipw_json_bool(ipw_json_get(body, "logprobs"), false);
    ask->pictures = has_pictures(ipw_json_get(body, "messages"));
    rc = read_format(ask, ipw_json_get(body, "response_format"), err);
    if (rc) return rc;

    limit = ipw_json_get(body, "max_completion_tokens");
    if (ipw_json_is_null(limit)) limit = ipw_json_get(body, "max_tokens");
    ask->max_tokens = ipw_json_int(limit, -1);
    if (!ipw_json_is_null(limit) && ask->max_tokens < 1)
        return ipw_fail(err, IPW_EINVAL, "max_tokens: expected a positive integer");
    ask->stop = ipw_json_get(body, "stop");
    if (ipw_json_kind(ask->stop) != IPW_JSON_STR && !is_kind(ask->stop, IPW_JSON_ARR))
        return ipw_fail(err, IPW_EINVAL, "stop: expected a string or a list of strings");

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

static int read_calls(struct ipw_chat_reply *out, const struct ipw_json *calls,
                      const struct ipw_serve_ask *ask, struct ipw_err *err)
{
    size_t n = ipw_json_count(calls);

    out->calls = ipw_calloc(n ? n : 1, sizeof *out->calls);
    for (const struct ipw_json *c = ipw_json_first(calls); c; c = ipw_json_next(c)) {
        struct ipw_chat_call *call = &out->calls[out->n_calls];
        const struct ipw_json *arguments = ipw_json_get(c, "arguments");
        const char *name = ipw_json_str(ipw_json_get(c, "name"), NULL);

        if (!name)
            return ipw_fail(err, IPW_ELUA, "the model's calls[%zu].name is not a string",
                            out->n_calls + 1);
        ipw_buf_init(&call->arguments, 16 * IPW_MIB);
        /* A text is passed on as it is, so that a model in Lua can behave like one that makes
         * mistakes. */
        if (ipw_json_kind(arguments) == IPW_JSON_STR)
            ipw_buf_add(&call->arguments, ipw_json_str(arguments, ""), ipw_json_str_len(arguments));
        else if (ipw_json_is_null(arguments))
            ipw_buf_adds(&call->arguments, "{}");
        else
            ipw_json_print(&call->arguments, arguments);
        call->name = ipw_strdup(name);
        call->id = ipw_asprintf("call_%016llx_%zu", (unsigned long long)ask->hash, out->n_calls);
        out->n_calls++;
    }
    return 0;
}

static int64_t buf_tokens(const struct ipw_buf *text)
{
    return count_tokens(ipw_buf_str(text), text->len);
}

static int64_t call_tokens(const struct ipw_chat_call *call)
{
    return count_tokens(call->name, strlen(call->name)) + buf_tokens(&call->arguments);
}

static void drop_last_call(struct ipw_chat_reply *r)
{
    struct ipw_chat_call *call = &r->calls[--r->n_calls];

    free(call->id);
    free(call->name);
    ipw_buf_release(&call->arguments);
}

/* Cuts the reply to the limit: whole calls from the end, then text. */
static void limit_tokens(struct ipw_chat_reply *r, int64_t most)
{
    int64_t text = buf_tokens(&r->text), calls = 0;

    for (size_t i = 0; i < r->n_calls; i++) calls += call_tokens(&r->calls[i]);
    if (most >= 0 && text + calls > most) {
        while (r->n_calls && text + calls > most) {
            calls -= call_tokens(&r->calls[r->n_calls - 1]);
            drop_last_call(r);
        }
        ipw_buf_truncate(&r->text, first_tokens(ipw_buf_str(&r->text), r->text.len, most));
        text = text < most ? text : most;
        free(r->finish_word);
        r->finish_word = ipw_strdup("length");
    }
    r->usage.completion = text + calls;
}

static const char *finish_word(const struct ipw_json *finish, size_t n_calls)
{
    static const char *const words[] = {"stop", "length", "tool_calls", "content_filter"};
    const char *said = ipw_json_str(finish, "");

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(said, words[i]) == 0) return words[i];
    return n_calls ? "tool_calls" : "stop";
}

int ipw_serve_reply_read(struct ipw_chat_reply *out, const char *json, size_t n,
                         const struct ipw_serve_ask *ask, struct ipw_err *err)
{
    struct ipw_json *root;
    const struct ipw_json *text;
    size_t len;
    int rc;

    *out = (struct ipw_chat_reply){.usage = {ask->prompt_tokens, -1, -1, -1, -1}};
    rc = ipw_json_parse(&root, json, n, NULL, err);
    if (rc) return ipw_err_prefix(err, "the model's reply");
    text = ipw_json_get(root, "text");
    len = ipw_json_str_len(text);
    out->text = IPW_BUF(len);
    ipw_buf_add(&out->text, ipw_json_str(text, ""),
                cut_at_stops(ipw_json_str(text, ""), len, ask->stop));
    out->id = ipw_asprintf("chatcmpl-%016llx", (unsigned long long)ask->hash);
    out->model = ask->model ? ipw_strdup(ask->model) : NULL;
    rc = read_calls(out, ipw_json_get(root, "calls"), ask, err);
    out->finish_word = ipw_strdup(finish_word(ipw_json_get(root, "finish"), out->n_calls));
    ipw_json_free(root);
    if (rc)
        ipw_chat_reply_release(out);
    else
        limit_tokens(out, ask->max_tokens);
    return rc;
}

/* ---- the answer ---- */

static struct ipw_serve_writer begin(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                                     const struct ipw_chat_reply *reply, int64_t created)
{
    ipw_serve_answer_open(out);
    return (struct ipw_serve_writer){.out = out,
                                     .reply = reply,
                                     .fingerprint = "ipw-agent-" IPW_VERSION,
                                     .created = created,
                                     .include_usage = ask->include_usage};
}

static int64_t last_of(int64_t tokens) { return tokens > 0 ? tokens - 1 : 0; }

void ipw_serve_answer_whole(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                            const struct ipw_chat_reply *reply, int64_t created)
{
    struct ipw_serve_writer w = begin(out, ask, reply, created);

    ipw_serve_write_whole(&w);
    ipw_serve_part_end_token(out, last_of(reply->usage.completion));
}

void ipw_serve_answer_stream(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                             const struct ipw_chat_reply *reply, int64_t created)
{
    struct ipw_serve_writer w = begin(out, ask, reply, created);
    const char *text = ipw_buf_str(&reply->text);
    int64_t token = 0;

    ipw_serve_write_text(&w, "content", "", 0);
    ipw_serve_part_end_token(out, -1);
    for (size_t at = 0, n; at < reply->text.len; at += n) {
        n = token_len(text + at, reply->text.len - at);
        ipw_serve_write_text(&w, "content", text + at, n);
        ipw_serve_part_end_token(out, token++);
    }
    for (size_t i = 0; i < reply->n_calls; i++) {
        const struct ipw_chat_call *call = &reply->calls[i];
        const char *arguments = ipw_buf_str(&call->arguments);

        /* The name is complete with its last token. */
        token += count_tokens(call->name, strlen(call->name));
        ipw_serve_write_call(&w, i, "", 0, true);
        ipw_serve_part_end_token(out, last_of(token));
        for (size_t at = 0, n; at < call->arguments.len; at += n) {
            n = token_len(arguments + at, call->arguments.len - at);
            ipw_serve_write_call(&w, i, arguments + at, n, false);
            ipw_serve_part_end_token(out, token++);
        }
    }
    ipw_serve_write_finish(&w);
    ipw_serve_part_end_token(out, last_of(token));
    if (ipw_serve_write_usage(&w)) ipw_serve_part_end_token(out, last_of(token));
    ipw_serve_write_done(&w);
    ipw_serve_part_end_token(out, last_of(token));
}
