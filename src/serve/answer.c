#include "serve/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"

#define ANSWER_BYTES (256 * IPW_MIB)

/* ---- parts ---- */

void ipw_serve_answer_open(struct ipw_serve_answer *answer)
{
    *answer = (struct ipw_serve_answer){.bytes = IPW_BUF(ANSWER_BYTES)};
}

static void end_part(struct ipw_serve_answer *a, int64_t token, int64_t after_ns)
{
    IPW_GROW(a->parts, a->cap_parts, a->n_parts + 1);
    a->parts[a->n_parts++] = (struct ipw_serve_part){a->bytes.len, token, after_ns};
}

void ipw_serve_part_end(struct ipw_serve_answer *a, int64_t after_ns) { end_part(a, -1, after_ns); }

void ipw_serve_part_end_token(struct ipw_serve_answer *a, int64_t token) { end_part(a, token, 0); }

void ipw_serve_answer_release(struct ipw_serve_answer *answer)
{
    ipw_buf_release(&answer->bytes);
    free(answer->parts);
    memset(answer, 0, sizeof *answer);
}

void ipw_serve_answer_error(struct ipw_serve_answer *out, int status, const char *message)
{
    struct ipw_jw w;

    ipw_serve_answer_open(out);
    ipw_jw_init(&w, &out->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "error");
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "code", status == 404 ? "not_found" : NULL);
    ipw_jw_kstr(&w, "message", message);
    ipw_jw_knull(&w, "param");
    ipw_jw_kstr(&w, "type", status >= 500 ? "server_error" : "invalid_request_error");
    ipw_jw_obj_end(&w);
    ipw_jw_obj_end(&w);
    ipw_serve_part_end(out, 0);
}

/* ---- members of both kinds of answer ---- */

static void write_detail(struct ipw_jw *w, const char *key, const char *what, int64_t n)
{
    if (n < 0) return;
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_kint(w, what, n);
    ipw_jw_obj_end(w);
}

static bool usage_known(const struct ipw_chat_usage *u)
{
    return u->prompt >= 0 || u->completion >= 0 || u->total >= 0;
}

static void write_usage(struct ipw_jw *w, const struct ipw_chat_reply *r)
{
    const struct ipw_chat_usage *u = &r->usage;
    int64_t total = u->total;

    if (total < 0 && u->prompt >= 0 && u->completion >= 0) total = u->prompt + u->completion;
    ipw_jw_key(w, "usage");
    ipw_jw_obj(w);
    ipw_jw_kcount(w, "completion_tokens", u->completion);
    write_detail(w, "completion_tokens_details", "reasoning_tokens", u->reasoning);
    if (r->cost_told) ipw_jw_knum(w, "cost", r->cost_usd);
    ipw_jw_kcount(w, "prompt_tokens", u->prompt);
    write_detail(w, "prompt_tokens_details", "cached_tokens", u->cached);
    ipw_jw_kcount(w, "total_tokens", total);
    ipw_jw_obj_end(w);
}

/* Between "choices" and "usage", in the order of the keys. */
static void write_names(struct ipw_jw *w, const struct ipw_serve_writer *s, const char *object,
                        bool timings)
{
    const struct ipw_chat_reply *r = s->reply;

    ipw_jw_kint(w, "created", s->created);
    ipw_jw_kstr(w, "id", r->id);
    ipw_jw_kstr(w, "model", r->model);
    ipw_jw_kstr(w, "object", object);
    if (s->fingerprint) ipw_jw_kstr(w, "system_fingerprint", s->fingerprint);
    if (timings && r->timings) ipw_jw_kraw(w, "timings", r->timings, strlen(r->timings));
}

static void write_logprobs(struct ipw_jw *w, const struct ipw_chat_reply *r)
{
    struct ipw_buf list = IPW_BUF(ANSWER_BYTES);

    if (!r->logprobs.len) return;
    ipw_buf_addf(&list, "[%s]", r->logprobs.data);
    ipw_jw_key(w, "logprobs");
    ipw_jw_obj(w);
    ipw_jw_kraw(w, "content", ipw_buf_str(&list), list.len);
    ipw_jw_obj_end(w);
    ipw_buf_release(&list);
}

static void write_call(struct ipw_jw *w, const struct ipw_chat_call *call, int64_t index,
                       const char *arguments, size_t n, bool begins)
{
    ipw_jw_obj(w);
    ipw_jw_key(w, "function");
    ipw_jw_obj(w);
    ipw_jw_key(w, "arguments");
    ipw_jw_strn(w, arguments, n);
    if (begins) ipw_jw_kstr(w, "name", call->name);
    ipw_jw_obj_end(w);
    if (begins) ipw_jw_kstr(w, "id", call->id);
    if (index >= 0) ipw_jw_kint(w, "index", index);
    if (begins) ipw_jw_kstr(w, "type", "function");
    ipw_jw_obj_end(w);
}

/* ---- whole ---- */

static void write_message(struct ipw_jw *w, const struct ipw_chat_reply *r)
{
    ipw_jw_obj(w);
    ipw_jw_key(w, "content");
    if (r->text.len || !r->n_calls)
        ipw_jw_strn(w, ipw_buf_str(&r->text), r->text.len);
    else
        ipw_jw_null(w);
    if (r->reasoning.len) {
        ipw_jw_key(w, "reasoning_content");
        ipw_jw_strn(w, r->reasoning.data, r->reasoning.len);
    }
    ipw_jw_kstr(w, "role", "assistant");
    if (r->n_calls) {
        ipw_jw_key(w, "tool_calls");
        ipw_jw_arr(w);
        for (size_t i = 0; i < r->n_calls; i++)
            write_call(w, &r->calls[i], -1, ipw_buf_str(&r->calls[i].arguments),
                       r->calls[i].arguments.len, true);
        ipw_jw_arr_end(w);
    }
    ipw_jw_obj_end(w);
}

void ipw_serve_write_whole(struct ipw_serve_writer *s)
{
    struct ipw_jw w;

    ipw_jw_init(&w, &s->out->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "choices");
    ipw_jw_arr(&w);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "finish_reason", s->reply->finish_word);
    ipw_jw_kint(&w, "index", 0);
    write_logprobs(&w, s->reply);
    ipw_jw_key(&w, "message");
    write_message(&w, s->reply);
    ipw_jw_obj_end(&w);
    ipw_jw_arr_end(&w);
    write_names(&w, s, "chat.completion", true);
    if (usage_known(&s->reply->usage)) write_usage(&w, s->reply);
    ipw_jw_obj_end(&w);
}

/* ---- streamed ---- */

static void open_chunk(struct ipw_serve_writer *s, struct ipw_jw *w)
{
    ipw_buf_adds(&s->out->bytes, "data: ");
    ipw_jw_init(w, &s->out->bytes);
    ipw_jw_obj(w);
    ipw_jw_key(w, "choices");
    ipw_jw_arr(w);
}

static void close_chunk(struct ipw_serve_writer *s, struct ipw_jw *w)
{
    ipw_jw_obj_end(w);
    ipw_buf_adds(&s->out->bytes, "\n\n");
}

static void open_delta(struct ipw_serve_writer *s, struct ipw_jw *w)
{
    open_chunk(s, w);
    ipw_jw_obj(w);
    ipw_jw_key(w, "delta");
    ipw_jw_obj(w);
}

static void close_delta(struct ipw_serve_writer *s, struct ipw_jw *w, bool last)
{
    ipw_jw_obj_end(w);
    ipw_jw_kstr(w, "finish_reason", last ? s->reply->finish_word : NULL);
    ipw_jw_kint(w, "index", 0);
    if (last) write_logprobs(w, s->reply);
    ipw_jw_obj_end(w);
    ipw_jw_arr_end(w);
    write_names(w, s, "chat.completion.chunk", last);
    if (s->include_usage) ipw_jw_knull(w, "usage");
    close_chunk(s, w);
}

/* Before "tool_calls", and after "content" and "reasoning_content". */
static void put_role(struct ipw_serve_writer *s, struct ipw_jw *w)
{
    if (!s->has_role) ipw_jw_kstr(w, "role", "assistant");
    s->has_role = true;
}

void ipw_serve_write_text(struct ipw_serve_writer *s, const char *key, const char *text, size_t n)
{
    struct ipw_jw w;

    open_delta(s, &w);
    ipw_jw_key(&w, key);
    ipw_jw_strn(&w, text, n);
    put_role(s, &w);
    close_delta(s, &w, false);
}

void ipw_serve_write_call(struct ipw_serve_writer *s, size_t i, const char *arguments, size_t n,
                          bool begins)
{
    struct ipw_jw w;

    open_delta(s, &w);
    put_role(s, &w);
    ipw_jw_key(&w, "tool_calls");
    ipw_jw_arr(&w);
    write_call(&w, &s->reply->calls[i], (int64_t)i, arguments, n, begins);
    ipw_jw_arr_end(&w);
    close_delta(s, &w, false);
}

void ipw_serve_write_finish(struct ipw_serve_writer *s)
{
    struct ipw_jw w;

    open_delta(s, &w);
    put_role(s, &w);
    close_delta(s, &w, true);
}

bool ipw_serve_write_usage(struct ipw_serve_writer *s)
{
    struct ipw_jw w;

    if (!s->include_usage || !usage_known(&s->reply->usage)) return false;
    open_chunk(s, &w);
    ipw_jw_arr_end(&w);
    write_names(&w, s, "chat.completion.chunk", false);
    write_usage(&w, s->reply);
    close_chunk(s, &w);
    return true;
}

void ipw_serve_write_done(struct ipw_serve_writer *s)
{
    ipw_buf_adds(&s->out->bytes, "data: [DONE]\n\n");
}
