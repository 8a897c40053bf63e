#include "serve/saved_answer_write.h"

#include "base/mem.h"
#include "llm/arrivals.h"
#include "llm/chat.h"

/* ---- times ---- */

static int64_t scaled(const struct ipw_serve_timed_reply *timed, int64_t ns)
{
    if (timed->speed <= 0 || ns <= 0) return 0;
    return (int64_t)((double)ns / timed->speed);
}

/* The time from the request to an instant of the saved attempt; `fallback_ns` if it is unknown. */
static int64_t since_sent(const struct ipw_serve_timed_reply *timed, int64_t t_ns,
                          int64_t fallback_ns)
{
    int64_t sent_ns = timed->reply->event.lm.times.sent_ns;

    return t_ns && sent_ns && t_ns >= sent_ns ? t_ns - sent_ns : fallback_ns;
}

int64_t ipw_serve_timed_close(const struct ipw_serve_timed_reply *timed)
{
    return scaled(timed, since_sent(timed, timed->reply->event.t_ns, 0));
}

/* ---- whole ---- */

/* Reads the saved reply; adds an id and a model if the server sent none. */
static struct ipw_serve_writer begin(struct ipw_serve_answer *out,
                                     const struct ipw_serve_timed_reply *timed,
                                     struct ipw_chat_reply *r)
{
    ipw_chat_reply_read(r, timed->reply->data);
    if (!r->id)
        r->id =
            ipw_asprintf("chatcmpl-recorded-%d-%d", (int)timed->reply->query, timed->reply->turn);
    if (!r->model) r->model = ipw_strdup(timed->ask->model);
    ipw_serve_answer_open(out);
    return (struct ipw_serve_writer){.out = out,
                                     .reply = r,
                                     .created = timed->created,
                                     .include_usage = timed->ask->include_usage};
}

void ipw_serve_timed_whole(struct ipw_serve_answer *out, const struct ipw_serve_timed_reply *timed)
{
    struct ipw_chat_reply r;
    struct ipw_serve_writer w = begin(out, timed, &r);

    ipw_serve_write_whole(&w);
    ipw_serve_part_end(out, ipw_serve_timed_close(timed));
    ipw_chat_reply_release(&r);
}

void ipw_serve_timed_error(struct ipw_serve_answer *out, const struct ipw_serve_timed_reply *timed,
                           const char *message)
{
    struct ipw_serve_answer plain;

    ipw_serve_answer_error(&plain, 500, message);
    ipw_serve_answer_open(out);
    if (timed->ask->stream) ipw_buf_adds(&out->bytes, "data: ");
    ipw_buf_add(&out->bytes, plain.bytes.data, plain.bytes.len);
    if (timed->ask->stream) ipw_buf_adds(&out->bytes, "\n\n");
    ipw_serve_part_end(out, ipw_serve_timed_close(timed));
    ipw_serve_answer_release(&plain);
}

/* ---- streamed ---- */

struct writing {
    struct ipw_serve_writer w;
    const struct ipw_serve_timed_reply *timed;
    struct ipw_chat_reply r;
    size_t text_at, reasoning_at; /* sent so far */
    size_t n_begun, call, argument_at;
    int64_t last_ns;            /* time of the last part */
    int64_t tail_ns[3], n_tail; /* of events after all content: finish, usage, [DONE] */
};

static void end_part(struct writing *s, int64_t due_ns)
{
    ipw_serve_part_end(s->w.out, scaled(s->timed, due_ns));
}

/* Sends the next n bytes of a text, or a few more: characters stay whole. */
static size_t whole_characters(const struct ipw_buf *text, size_t at, size_t n)
{
    size_t to = n < text->len - at ? at + n : text->len;

    while (to < text->len && ((unsigned char)text->data[to] & 0xC0) == 0x80) to++;
    return to - at;
}

static void send_text(struct writing *s, const char *key, const struct ipw_buf *text, size_t *at,
                      size_t n, int64_t due_ns)
{
    n = whole_characters(text, *at, n);
    if (!n) return;
    ipw_serve_write_text(&s->w, key, text->data + *at, n);
    end_part(s, s->last_ns = due_ns);
    *at += n;
}

static void send_call(struct writing *s, const char *arguments, size_t n, bool begins,
                      int64_t due_ns)
{
    ipw_serve_write_call(&s->w, s->call, arguments, n, begins);
    end_part(s, s->last_ns = due_ns);
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

/* Sends the next n bytes of the calls' arguments, one call after the other, as far as they have
 * begun. */
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

    ipw_serve_write_finish(&s->w);
    end_part(s, finish_ns);
    if (ipw_serve_write_usage(&s->w)) end_part(s, usage_ns);
    ipw_serve_write_done(&s->w);
    end_part(s, done_ns);
}

/* By the saved time of every event.  False: there are none. */
static bool send_arrivals(struct writing *s)
{
    const struct ipw_lm_facts *f = &s->timed->reply->event.lm;
    const char *at = ipw_buf_str(&s->r.arrivals);
    int64_t first_ns = since_sent(s->timed, f->times.first_event_ns, 0);
    struct ipw_arrival a = {0};
    bool any = false;

    while (ipw_arrivals_next(&at, &a)) {
        int64_t due_ns = INT64_MAX;

        if (a.after_us < (INT64_MAX - first_ns) / 1000) due_ns = first_ns + a.after_us * 1000;
        switch (a.kind) {
        case IPW_ARRIVAL_OTHER:
            if (!any && !s->w.has_role) {
                ipw_serve_write_text(&s->w, "content", "", 0);
                end_part(s, s->last_ns = due_ns);
            } else {
                if (s->n_tail == 3) s->n_tail--; /* the last event is [DONE] */
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

/* For an older run: as many events as were counted; the first and the last at their saved times. */
static void send_evenly(struct writing *s)
{
    const struct ipw_lm_facts *f = &s->timed->reply->event.lm;
    int64_t close_ns = since_sent(s->timed, s->timed->reply->event.t_ns, 0);
    int64_t last_ns = since_sent(s->timed, f->times.last_token_ns, close_ns);
    int64_t first_ns = since_sent(s->timed, f->times.first_token_ns, last_ns);
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

void ipw_serve_timed_stream(struct ipw_serve_answer *out, const struct ipw_serve_timed_reply *timed)
{
    struct writing s = {.timed = timed};

    s.w = begin(out, timed, &s.r);
    if (!send_arrivals(&s)) send_evenly(&s);
    if (timed->reply->event.lm.outcome != IPW_LM_CUT) {
        send_rest(&s);
        send_end(&s);
    }
    ipw_chat_reply_release(&s.r);
}
