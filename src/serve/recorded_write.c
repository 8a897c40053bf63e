#include "serve/recorded_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/write.h"
#include "llm/arrivals.h"
#include "llm/chat.h"

#define ANSWER_BYTES (256 * IPW_MIB)

/* ---- times ---- */

static int64_t scaled(const struct ipw_serve_told *told, int64_t ns)
{
    if (told->speed <= 0 || ns <= 0) return 0;
    return (int64_t)((double)ns / told->speed);
}

/* From the request to an instant of the record; `fallback_ns` where that is not known. */
static int64_t since_sent(const struct ipw_serve_told *told, int64_t t_ns, int64_t fallback_ns)
{
    int64_t sent_ns = told->reply->event.lm.sent_ns;

    return t_ns && sent_ns && t_ns >= sent_ns ? t_ns - sent_ns : fallback_ns;
}

int64_t ipw_serve_told_close(const struct ipw_serve_told *told)
{
    return scaled(told, since_sent(told, told->reply->event.t_ns, 0));
}

/* ---- what both kinds of answer hold ---- */

static void write_count(struct ipw_jw *w, const char *key, int64_t n)
{
    if (n < 0)
        ipw_jw_knull(w, key);
    else
        ipw_jw_kint(w, key, n);
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
    write_count(w, "completion_tokens", u->completion);
    if (u->reasoning >= 0) {
        ipw_jw_key(w, "completion_tokens_details");
        ipw_jw_obj(w);
        ipw_jw_kint(w, "reasoning_tokens", u->reasoning);
        ipw_jw_obj_end(w);
    }
    if (r->cost_told) ipw_jw_knum(w, "cost", r->cost_usd);
    write_count(w, "prompt_tokens", u->prompt);
    if (u->cached >= 0) {
        ipw_jw_key(w, "prompt_tokens_details");
        ipw_jw_obj(w);
        ipw_jw_kint(w, "cached_tokens", u->cached);
        ipw_jw_obj_end(w);
    }
    write_count(w, "total_tokens", total);
    ipw_jw_obj_end(w);
}

/* Between "choices" and "usage", in the order of the keys. */
static void write_names(struct ipw_jw *w, const struct ipw_serve_told *told,
                        const struct ipw_chat_reply *r, const char *object, bool timings)
{
    char id[64];

    snprintf(id, sizeof id, "chatcmpl-recorded-%d-%d", (int)told->reply->query, told->reply->turn);
    ipw_jw_kint(w, "created", told->created);
    ipw_jw_kstr(w, "id", r->id ? r->id : id);
    ipw_jw_kstr(w, "model", r->model ? r->model : told->ask->model);
    ipw_jw_kstr(w, "object", object);
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

static void begin(struct ipw_serve_answer *out, struct ipw_jw *w)
{
    memset(out, 0, sizeof *out);
    out->bytes = IPW_BUF(ANSWER_BYTES);
    ipw_jw_init(w, &out->bytes);
}

/* ---- whole ---- */

void ipw_serve_told_whole(struct ipw_serve_answer *out, const struct ipw_serve_told *told)
{
    struct ipw_chat_reply r;
    struct ipw_jw w;

    ipw_chat_reply_read(&r, told->reply->data);
    begin(out, &w);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "choices");
    ipw_jw_arr(&w);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "finish_reason", r.finish_word);
    ipw_jw_kint(&w, "index", 0);
    write_logprobs(&w, &r);
    ipw_jw_key(&w, "message");
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "content");
    if (r.text.len || !r.n_calls)
        ipw_jw_strn(&w, ipw_buf_str(&r.text), r.text.len);
    else
        ipw_jw_null(&w);
    if (r.reasoning.len) {
        ipw_jw_key(&w, "reasoning_content");
        ipw_jw_strn(&w, r.reasoning.data, r.reasoning.len);
    }
    ipw_jw_kstr(&w, "role", "assistant");
    if (r.n_calls) {
        ipw_jw_key(&w, "tool_calls");
        ipw_jw_arr(&w);
        for (size_t i = 0; i < r.n_calls; i++)
            write_call(&w, &r.calls[i], -1, ipw_buf_str(&r.calls[i].arguments),
                       r.calls[i].arguments.len, true);
        ipw_jw_arr_end(&w);
    }
    ipw_jw_obj_end(&w);
    ipw_jw_obj_end(&w);
    ipw_jw_arr_end(&w);
    write_names(&w, told, &r, "chat.completion", true);
    if (usage_known(&r.usage)) write_usage(&w, &r);
    ipw_jw_obj_end(&w);
    ipw_serve_part_end(out, ipw_serve_told_close(told));
    ipw_chat_reply_release(&r);
}

void ipw_serve_told_error(struct ipw_serve_answer *out, const struct ipw_serve_told *told,
                          const char *message)
{
    struct ipw_serve_answer plain;

    ipw_serve_answer_error(&plain, 500, message);
    memset(out, 0, sizeof *out);
    out->bytes = IPW_BUF(ANSWER_BYTES);
    if (told->ask->stream) ipw_buf_adds(&out->bytes, "data: ");
    ipw_buf_add(&out->bytes, plain.bytes.data, plain.bytes.len);
    if (told->ask->stream) ipw_buf_adds(&out->bytes, "\n\n");
    ipw_serve_part_end(out, ipw_serve_told_close(told));
    ipw_serve_answer_release(&plain);
}

/* ---- streamed ---- */

struct writing {
    struct ipw_serve_answer *out;
    const struct ipw_serve_told *told;
    struct ipw_chat_reply r;
    bool has_role;
    size_t text_at, reasoning_at; /* sent so far */
    size_t n_begun, call, argument_at;
    int64_t last_ns;            /* when the last part is due */
    int64_t tail_ns[3], n_tail; /* of events after all content: finish, usage, [DONE] */
};

static void open_chunk(struct writing *s, struct ipw_jw *w)
{
    ipw_buf_adds(&s->out->bytes, "data: ");
    ipw_jw_init(w, &s->out->bytes);
    ipw_jw_obj(w);
    ipw_jw_key(w, "choices");
    ipw_jw_arr(w);
}

static void close_chunk(struct writing *s, struct ipw_jw *w, bool last, int64_t due_ns)
{
    ipw_jw_arr_end(w);
    write_names(w, s->told, &s->r, "chat.completion.chunk", last);
    if (s->told->ask->include_usage) ipw_jw_knull(w, "usage");
    ipw_jw_obj_end(w);
    ipw_buf_adds(&s->out->bytes, "\n\n");
    s->last_ns = due_ns;
    ipw_serve_part_end(s->out, scaled(s->told, due_ns));
}

static void open_delta(struct writing *s, struct ipw_jw *w)
{
    open_chunk(s, w);
    ipw_jw_obj(w);
    ipw_jw_key(w, "delta");
    ipw_jw_obj(w);
}

static void close_delta(struct writing *s, struct ipw_jw *w, const char *finish, bool last,
                        int64_t due_ns)
{
    ipw_jw_obj_end(w);
    ipw_jw_kstr(w, "finish_reason", finish);
    ipw_jw_kint(w, "index", 0);
    if (last) write_logprobs(w, &s->r);
    ipw_jw_obj_end(w);
    close_chunk(s, w, last, due_ns);
}

static void put_role(struct writing *s, struct ipw_jw *w)
{
    if (!s->has_role) ipw_jw_kstr(w, "role", "assistant");
    s->has_role = true;
}

static void send_role(struct writing *s, int64_t due_ns)
{
    struct ipw_jw w;

    open_delta(s, &w);
    ipw_jw_kstr(&w, "content", "");
    put_role(s, &w);
    close_delta(s, &w, NULL, false, due_ns);
}

/* The next n bytes of a text, or a few more: characters stay whole. */
static size_t whole_characters(const struct ipw_buf *text, size_t at, size_t n)
{
    size_t to = n < text->len - at ? at + n : text->len;

    while (to < text->len && ((unsigned char)text->data[to] & 0xC0) == 0x80) to++;
    return to - at;
}

static void send_text(struct writing *s, const char *key, const struct ipw_buf *text, size_t *at,
                      size_t n, int64_t due_ns)
{
    struct ipw_jw w;

    n = whole_characters(text, *at, n);
    if (!n) return;
    open_delta(s, &w);
    ipw_jw_key(&w, key);
    ipw_jw_strn(&w, text->data + *at, n);
    put_role(s, &w); /* "content" and "reasoning_content" stand before it */
    close_delta(s, &w, NULL, false, due_ns);
    *at += n;
}

static void send_call(struct writing *s, const char *arguments, size_t n, bool begins,
                      int64_t due_ns)
{
    struct ipw_jw w;

    open_delta(s, &w);
    put_role(s, &w);
    ipw_jw_key(&w, "tool_calls");
    ipw_jw_arr(&w);
    write_call(&w, &s->r.calls[s->call], (int64_t)s->call, arguments, n, begins);
    ipw_jw_arr_end(&w);
    close_delta(s, &w, NULL, false, due_ns);
}

static void begin_calls(struct writing *s, size_t n, int64_t due_ns)
{
    size_t at = s->call;

    for (; n && s->n_begun < s->r.n_calls; n--) {
        s->call = s->n_begun++;
        send_call(s, "", 0, true, due_ns);
    }
    s->call = at;
}

/* The next n bytes of the calls' arguments, one call after the other, as far as they have begun. */
static void send_arguments(struct writing *s, size_t n, int64_t due_ns)
{
    while (n && s->call < s->n_begun) {
        const struct ipw_buf *text = &s->r.calls[s->call].arguments;
        size_t piece = whole_characters(text, s->argument_at, n);

        if (piece) send_call(s, text->data + s->argument_at, piece, false, due_ns);
        s->argument_at += piece;
        n = piece < n ? n - piece : 0;
        if (s->argument_at < text->len) continue;
        if (s->call + 1 >= s->r.n_calls) return;
        s->call++;
        s->argument_at = 0;
    }
}

static void send_rest(struct writing *s)
{
    int64_t due_ns = s->last_ns;

    send_text(s, "reasoning_content", &s->r.reasoning, &s->reasoning_at, SIZE_MAX, due_ns);
    send_text(s, "content", &s->r.text, &s->text_at, SIZE_MAX, due_ns);
    begin_calls(s, SIZE_MAX, due_ns);
    send_arguments(s, SIZE_MAX, due_ns);
}

static void send_end(struct writing *s)
{
    int64_t finish_ns = s->n_tail > 0 ? s->tail_ns[0] : s->last_ns;
    int64_t usage_ns = s->n_tail > 1 ? s->tail_ns[1] : finish_ns;
    int64_t done_ns = s->n_tail > 0 ? s->tail_ns[s->n_tail - 1] : s->last_ns;
    struct ipw_jw w;

    open_delta(s, &w);
    put_role(s, &w);
    close_delta(s, &w, s->r.finish_word, true, finish_ns);
    if (s->told->ask->include_usage && usage_known(&s->r.usage)) {
        open_chunk(s, &w);
        ipw_jw_arr_end(&w);
        write_names(&w, s->told, &s->r, "chat.completion.chunk", false);
        write_usage(&w, &s->r);
        ipw_jw_obj_end(&w);
        ipw_buf_adds(&s->out->bytes, "\n\n");
        ipw_serve_part_end(s->out, scaled(s->told, usage_ns));
    }
    ipw_buf_adds(&s->out->bytes, "data: [DONE]\n\n");
    ipw_serve_part_end(s->out, scaled(s->told, done_ns));
}

/* By the record's own times of every event.  False: there are none. */
static bool send_arrivals(struct writing *s)
{
    const struct ipw_lm_facts *f = &s->told->reply->event.lm;
    const char *at = ipw_buf_str(&s->r.arrivals);
    int64_t first_ns = since_sent(s->told, f->first_event_ns, 0);
    struct ipw_arrival a = {0};
    bool any = false;

    while (ipw_arrivals_next(&at, &a)) {
        int64_t due_ns = INT64_MAX;

        if (a.after_us < (INT64_MAX - first_ns) / 1000) due_ns = first_ns + a.after_us * 1000;
        switch (a.kind) {
        case IPW_ARRIVAL_OTHER:
            if (!any && !s->has_role) {
                send_role(s, due_ns);
            } else {
                if (s->n_tail == 3) s->n_tail--; /* the last is [DONE] */
                s->tail_ns[s->n_tail++] = due_ns;
            }
            break;
        case IPW_ARRIVAL_REASONING:
            send_text(s, "reasoning_content", &s->r.reasoning, &s->reasoning_at, a.bytes, due_ns);
            break;
        case IPW_ARRIVAL_TEXT:
            send_text(s, "content", &s->r.text, &s->text_at, a.bytes, due_ns);
            break;
        case IPW_ARRIVAL_CALL: begin_calls(s, a.bytes, due_ns); break;
        case IPW_ARRIVAL_ARGUMENTS: send_arguments(s, a.bytes, due_ns); break;
        }
        if (a.kind == IPW_ARRIVAL_OTHER) continue;
        any = true;
        s->n_tail = 0;
    }
    return s->r.arrivals.len > 0;
}

/* An older record: as many events as it counts, the first and the last when they came. */
static void send_evenly(struct writing *s)
{
    const struct ipw_lm_facts *f = &s->told->reply->event.lm;
    int64_t close_ns = since_sent(s->told, s->told->reply->event.t_ns, 0);
    int64_t last_ns = since_sent(s->told, f->last_token_ns, close_ns);
    int64_t first_ns = since_sent(s->told, f->first_token_ns, last_ns);
    size_t total = s->r.reasoning.len + s->r.text.len, n = f->chunks > 1 ? (size_t)f->chunks : 1;
    const struct {
        const char *key;
        const struct ipw_buf *text;
        size_t *at;
    } parts[] = {{"reasoning_content", &s->r.reasoning, &s->reasoning_at},
                 {"content", &s->r.text, &s->text_at}};

    for (size_t i = 0; i < s->r.n_calls; i++) total += s->r.calls[i].arguments.len;
    if (n > total) n = total ? total : 1;
    for (size_t i = 0, sent = 0; i < n && total; i++) {
        size_t bytes = total * (i + 1) / n - sent;
        int64_t due_ns =
            n > 1 ? first_ns + (int64_t)((double)(last_ns - first_ns) * (double)i / (double)(n - 1))
                  : last_ns;

        sent += bytes;
        for (size_t k = 0; k < 2 && bytes; k++) {
            size_t before = *parts[k].at, given;

            if (before == parts[k].text->len) continue;
            send_text(s, parts[k].key, parts[k].text, parts[k].at, bytes, due_ns);
            given = *parts[k].at - before;
            bytes = given < bytes ? bytes - given : 0;
        }
        if (!bytes || !s->r.n_calls) continue;
        begin_calls(s, SIZE_MAX, due_ns);
        send_arguments(s, bytes, due_ns);
    }
    if (s->last_ns < last_ns) s->last_ns = last_ns;
    s->tail_ns[0] = close_ns;
    s->n_tail = 1;
}

void ipw_serve_told_stream(struct ipw_serve_answer *out, const struct ipw_serve_told *told)
{
    struct writing s = {.out = out, .told = told};

    memset(out, 0, sizeof *out);
    out->bytes = IPW_BUF(ANSWER_BYTES);
    ipw_chat_reply_read(&s.r, told->reply->data);
    if (!send_arrivals(&s)) send_evenly(&s);
    if (told->reply->event.lm.outcome != IPW_LM_CUT) {
        send_rest(&s);
        send_end(&s);
    }
    ipw_chat_reply_release(&s.r);
}
