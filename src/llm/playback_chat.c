/* The back end of llm.chat that answers from a saved run. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/diff.h"
#include "llm/playback_priv.h"

/* ---- calls begin and end ---- */

static struct ipw_lm_facts cancelled(const struct ipw_llm_call *call, const char *why)
{
    return (struct ipw_lm_facts){.attempt = call->number,
                                 .outcome = IPW_LM_CANCELLED,
                                 .error = why,
                                 .input_tokens = -1,
                                 .output_tokens = -1,
                                 .cached_tokens = -1,
                                 .reasoning_tokens = -1};
}

static void chat_start(void *ud, struct ipw_llm_call *call)
{
    struct ipw_playback *r = ud;
    struct ipw_playback_wait *wait;

    if (r->live) {
        ipw_playback_chat_live(r, call, false);
        return;
    }
    wait = ipw_playback_wait_add(r, WAIT_SEND, 0);
    wait->call = call;
    r->o.stir(r->o.ud);
}

void ipw_playback_chat_live(struct ipw_playback *r, struct ipw_llm_call *call, bool in_flight)
{
    struct ipw_lm_facts facts = cancelled(call, "diverged: the model is asked");
    struct ipw_err err = {0};

    facts.will_retry = true;
    if (in_flight) call->on.on_attempt_end(call->on.ud, ipw_now_ns(), &facts, NULL, 1);

    if (ipw_llm_call_send(call, r->o.live_model, &err) == 0) return;
    /* This cannot fail: the body was already made once. */
    IPW_BUG("a saved request does not fit the server: %s", err.text);
}

static struct ipw_playback_wait *wait_of(struct ipw_playback *r, const struct ipw_llm_call *call)
{
    struct ipw_playback_wait *w = r->waits;

    while (w && w->call != call) w = w->next;
    return w;
}

/* The saved line of the attempt's end, or NULL. */
static const struct ipw_event_line *end_line(struct ipw_playback *r, int64_t span)
{
    const struct ipw_event_line *line;

    for (size_t i = 0; (line = ipw_event_reader_peek(r->o.events, r->o.query, i, r->o.reach)); i++)
        if (line->event.kind == IPW_EV_LM_END && line->event.span == span) return line;
    return NULL;
}

static void chat_cancel(void *ud, struct ipw_llm_call *call)
{
    struct ipw_playback *r = ud;
    struct ipw_playback_wait *wait = wait_of(r, call);

    if (wait && wait->kind == WAIT_REPLY) {
        const struct ipw_event_line *line = r->diverged ? NULL : end_line(r, wait->id);
        struct ipw_lm_facts facts = cancelled(call, "cancelled");
        struct ipw_chat_reply reply = {.usage = {-1, -1, -1, -1, -1, -1, -1}};

        if (line && line->event.lm.outcome == IPW_LM_CANCELLED) {
            facts = line->event.lm;
            ipw_chat_reply_read(&reply, line->data);
        }
        call->busy++;
        call->on.on_attempt_end(call->on.ud, line ? line->event.t_ns : ipw_now_ns(), &facts, &reply,
                                0);
        call->busy--;
        ipw_chat_reply_release(&reply);
    }
    if (wait) ipw_playback_wait_remove(r, wait);
    if (call->busy == 0) ipw_llm_call_free(call);
}

const struct ipw_llm_back ipw_playback_back = {chat_start, chat_cancel};

/* ---- attempts ---- */

/* Whether the call has the messages of the line.  A line leaves out the messages it shares. */
static bool says_the_same(const struct ipw_llm_call *call, const struct ipw_event_line *line)
{
    const struct ipw_json *was = ipw_json_first(ipw_json_get(line->data, "messages")), *now;
    int64_t kept = ipw_json_int(ipw_json_get(line->data, "messages_kept"), 0);
    struct ipw_json *doc;
    bool same;

    if (ipw_json_parse(&doc, call->body.data, call->body.len, NULL, NULL)) return false;
    now = ipw_json_first(ipw_json_get(doc, "messages"));
    while (now && kept-- > 0) now = ipw_json_next(now);
    for (same = true; same && was && now; was = ipw_json_next(was), now = ipw_json_next(now)) {
        struct ipw_buf where = IPW_BUF(4096);
        struct ipw_json_difference d;

        same = !ipw_json_differ(&where, &d, was, now);
        ipw_buf_release(&where);
    }
    ipw_json_free(doc);
    return same && !was && !now;
}

static bool may_repeat(const struct ipw_playback *r, const struct ipw_playback_wait *w, int attempt)
{
    if (r->o.mode == IPW_PLAYBACK_DECISIONS) return w->kind == WAIT_REPLY && w->repeat == attempt;
    return w->kind == WAIT_REPEAT && w->call->number + 1 == attempt;
}

/* The first match from `w` on, or NULL. */
static struct ipw_playback_wait *find_repeater(const struct ipw_playback *r,
                                               struct ipw_playback_wait *w, int attempt)
{
    while (w && !may_repeat(r, w, attempt)) w = w->next;
    return w;
}

/* The call that repeats its attempt with this line.  If several wait to repeat: the call with the
 * same messages, else the first. */
static struct ipw_playback_wait *repeater(struct ipw_playback *r, const struct ipw_event_line *line)
{
    int attempt = line->event.lm.attempt;
    struct ipw_playback_wait *first = find_repeater(r, r->waits, attempt);

    if (!first || !find_repeater(r, first->next, attempt)) return first;
    for (struct ipw_playback_wait *w = first; w; w = find_repeater(r, w->next, attempt))
        if (says_the_same(w->call, line)) return w;
    return first;
}

/* The call whose attempt begins with this line: for a first attempt the first call that waits to
 * send, else the call that waits to repeat. */
static struct ipw_playback_wait *sender(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_playback_wait *w = r->waits;

    if (line->event.lm.attempt > 1) return repeater(r, line);
    while (w && w->kind != WAIT_SEND) w = w->next;
    return w;
}

bool ipw_playback_send(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_playback_wait *wait = sender(r, line);
    struct ipw_llm_call *call;
    const struct ipw_json *request = ipw_json_get(line->data, "request");

    if (!wait) return false;
    call = wait->call;
    call->number = line->event.lm.attempt;
    if (call->number == 1) r->turn++;
    /* An earlier attempt showed that the server refuses this option. */
    if (call->cut_n && ipw_json_is_null(ipw_json_get(request, "stream_options")))
        ipw_llm_without_usage(call);
    wait->kind = WAIT_REPLY;
    wait->id = line->event.span;
    call->in_flight = true;
    call->busy++;
    call->on.on_attempt(call->on.ud, call->number, line->event.t_ns, call->body.data,
                        call->body.len);
    call->busy--;
    if (call->cancelled) ipw_llm_call_free(call);
    return true;
}

void ipw_playback_pass_end(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_playback_wait *w = ipw_playback_wait_find(r, WAIT_REPLY, line->event.span);

    if (w) w->repeat = line->event.lm.attempt + 1;
}

void ipw_playback_pass_start(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_playback_wait *w = repeater(r, line);

    if (!w) return;
    w->id = line->event.span;
    w->repeat = 0;
}

static enum ipw_code code_of(enum ipw_lm_outcome outcome)
{
    switch (outcome) {
    case IPW_LM_TIMEOUT: return IPW_ETIMEOUT;
    case IPW_LM_HTTP_ERROR:
    case IPW_LM_SERVER_ERROR: return IPW_EHTTP;
    case IPW_LM_CONTEXT_FULL: return IPW_ECONTEXT;
    case IPW_LM_BAD_REPLY: return IPW_EPARSE;
    case IPW_LM_TOO_LARGE: return IPW_ELIMIT;
    case IPW_LM_CANCELLED: return IPW_ECANCELLED;
    default: return IPW_ENET;
    }
}

static void call_over(struct ipw_llm_call *call, const struct ipw_lm_facts *facts,
                      struct ipw_chat_reply *reply)
{
    bool ok = facts->outcome == IPW_LM_OK;
    struct ipw_err err = {0};

    if (!ok) {
        ipw_fail(&err, code_of(facts->outcome), "%s", facts->error ? facts->error : "failed");
        if (err.code == IPW_EHTTP || err.code == IPW_ECONTEXT) err.detail = facts->status;
    }
    call->busy++;
    call->on.on_done(call->on.ud, err.code, ok ? reply : NULL, ok ? NULL : &err,
                     !ok && facts->retryable);
    call->busy--;
    ipw_llm_call_free(call);
}

bool ipw_playback_reply(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_playback_wait *wait = ipw_playback_wait_find(r, WAIT_REPLY, line->event.span);
    struct ipw_lm_facts facts = line->event.lm;
    struct ipw_chat_reply reply;
    struct ipw_llm_call *call;
    bool repeats = facts.will_retry;

    if (!wait || facts.outcome == IPW_LM_CANCELLED) return false;
    call = wait->call;
    if (r->o.mode == IPW_PLAYBACK_DECISIONS) facts.attempt = call->number; /* others were skipped */
    call->in_flight = false;
    wait->kind = WAIT_REPEAT; /* so that its end is not reported twice */
    ipw_chat_reply_read(&reply, line->data);
    call->busy++;
    call->on.on_attempt_end(call->on.ud, line->event.t_ns, &facts, line->data ? &reply : NULL,
                            facts.retry_wait_ns);
    call->busy--;
    if (call->cancelled) { /* a divergence ended the query */
        ipw_llm_call_free(call);
    } else if (!repeats) {
        ipw_playback_wait_remove(r, wait);
        call_over(call, &facts, &reply);
    }
    ipw_chat_reply_release(&reply);
    return true;
}
