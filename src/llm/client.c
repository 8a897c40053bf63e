/* The bytes of an attempt, and its end: facts, verdict, retry. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/chat_priv.h"
#include "llm/client_priv.h"
#include "llm/facts.h"

enum { ERROR_BODY_MAX = 256 * 1024 };

/* A server can keep the connection open so long after [DONE]; then the client closes it. */
static const int64_t GRACE_NS = IPW_NS_PER_S;

void ipw_llm_attempt_release(struct ipw_llm_attempt *a)
{
    ipw_chat_fold_free(a->fold);
    a->fold = NULL;
    ipw_sse_release(&a->sse);
    ipw_buf_release(&a->raw);
    ipw_buf_release(&a->arrivals.text);
    ipw_llm_times_release(&a->times);
}

/* ---- incoming bytes ---- */

int ipw_llm_on_sse(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    struct ipw_llm_call *call = ud;
    struct ipw_llm_attempt *a = &call->now;
    int seen = ipw_chat_fold_event(a->fold, event->name, event->data, event->data_len, err);

    if (seen < 0) return seen;
    a->event_ns = a->data_ns;
    ipw_llm_times_event(&a->times, a->data_ns, seen);
    ipw_arrivals_add(&a->arrivals, a->data_ns, ipw_chat_fold_so_far(a->fold));
    if ((seen & IPW_SEEN_TOKEN) && !a->token_told) {
        a->token_told = true;
        if (call->on.on_first_token) call->on.on_first_token(call->on.ud, a->data_ns);
    }
    if (call->on.on_text && (seen & (IPW_SEEN_TEXT | IPW_SEEN_REASONING)))
        call->on.on_text(call->on.ud, ipw_chat_fold_so_far(a->fold));
    if (call->first_token && (seen & IPW_SEEN_TOKEN)) {
        ipw_timer_cancel(call->first_token);
        call->first_token = NULL;
    }
    if (seen & (IPW_SEEN_FINISH | IPW_SEEN_DONE)) a->finished = true;
    return 0;
}

static void on_grace_over(void *ud)
{
    struct ipw_llm_call *call = ud;

    call->timer = NULL;
    ipw_http_cancel(call->http);
    call->http = NULL;
    ipw_llm_attempt_over(call, NULL);
}

static int feed(struct ipw_llm_call *call, const char *bytes, size_t n)
{
    struct ipw_llm_attempt *a = &call->now;

    a->fail_code = ipw_sse_feed(&a->sse, bytes, n, &a->fail);
    return a->fail_code;
}

/* Decides the mode without a content type: an event stream begins with a field or a comment. */
static void sniff(struct ipw_llm_attempt *a)
{
    static const char *const starts[] = {"data:", "event:", ":", "id:", "retry:"};
    const char *p = ipw_buf_str(&a->raw);

    p += strspn(p, "\r\n \t");
    if (strncmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
    a->mode = MODE_WHOLE;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t have = strlen(p), want = strlen(starts[i]);

        if (have >= want && strncmp(p, starts[i], want) == 0) {
            a->mode = MODE_STREAM;
            return;
        }
        if (have < want && strncmp(p, starts[i], have) == 0) a->mode = MODE_UNKNOWN;
    }
}

static void on_headers(void *ud, int64_t t_ns, const struct ipw_http_head *head)
{
    const char *content_type = ipw_http_field(head, "Content-Type");
    int status = head->status;
    struct ipw_llm_call *call = ud;
    struct ipw_llm_attempt *a = &call->now;

    a->headers_ns = t_ns;
    a->status = status;
    a->mode = MODE_UNKNOWN;
    if (status < 200 || status > 299 || strncasecmp(content_type, "application/json", 16) == 0 ||
        strncasecmp(content_type, "text/html", 9) == 0)
        a->mode = MODE_WHOLE;
    else if (strncasecmp(content_type, "text/event-stream", 17) == 0)
        a->mode = MODE_STREAM;
}

/* Whether a promised event stream is an object: some servers send an error in JSON instead.  No
 * field of an event stream begins with a brace. */
static bool begins_an_object(const char *bytes, size_t n)
{
    while (n && (*bytes == ' ' || *bytes == '\t' || *bytes == '\r' || *bytes == '\n')) bytes++, n--;
    return n && *bytes == '{';
}

/* Whether too much time has passed without an event.  Comments, blanks and an event that never ends
 * keep the connection open, but add nothing to the answer.  (The HTTP layer limits the time without
 * any byte.) */
static bool stands_still(struct ipw_llm_call *call, const char *bytes, size_t n)
{
    struct ipw_llm_attempt *a = &call->now;

    if (!a->event_ns || a->mode == MODE_WHOLE) {
        size_t blank = 0;

        while (a->event_ns && blank < n && strchr(" \t\r\n", bytes[blank]) && bytes[blank]) blank++;
        if (blank < n || !a->event_ns) a->event_ns = a->data_ns;
    }
    if (a->data_ns - a->event_ns <= call->llm->comment_ns) return false;
    a->no_event = true;
    return true;
}

static int on_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct ipw_llm_call *call = ud;
    struct ipw_llm_attempt *a = &call->now;
    bool success = a->status >= 200 && a->status <= 299;
    int rc = 0;

    if (a->mode == MODE_STREAM && a->received == 0 && begins_an_object(bytes, n))
        a->mode = MODE_WHOLE;
    a->data_ns = t_ns;
    a->received += (int64_t)n;
    if (!a->first_byte_ns && n) a->first_byte_ns = t_ns;
    if (a->mode == MODE_STREAM) {
        rc = feed(call, bytes, n);
    } else {
        if (!success && n > ERROR_BODY_MAX - a->raw.len) n = ERROR_BODY_MAX - a->raw.len;
        if (ipw_buf_add(&a->raw, bytes, n))
            rc = a->fail_code =
                ipw_fail(&a->fail, IPW_ELIMIT, "the answer is larger than %zu bytes", a->raw.max);
        if (a->mode == MODE_UNKNOWN) sniff(a);
        if (a->mode == MODE_STREAM && rc == 0) rc = feed(call, a->raw.data, a->raw.len);
    }
    if (rc == 0 && !a->finished && stands_still(call, bytes, n)) return IPW_ETIMEOUT;
    if (rc == 0 && a->mode == MODE_STREAM && a->finished && !call->timer &&
        ipw_chat_fold_done(a->fold))
        call->timer = ipw_timer_start(call->llm->loop, GRACE_NS, on_grace_over, call);
    return rc;
}

static void on_done(void *ud, const struct ipw_http_result *result)
{
    struct ipw_llm_call *call = ud;

    call->http = NULL;
    ipw_llm_attempt_over(call, result);
}

const struct ipw_http_callbacks ipw_llm_http_callbacks = {on_headers, on_data, on_done, NULL};

/* ---- one attempt's end ---- */

/* Reads the answer.  Returns the fold's code; always fills *reply. */
static int read_answer(struct ipw_llm_attempt *a, struct ipw_chat_reply *reply, struct ipw_err *err)
{
    bool success = a->status >= 200 && a->status <= 299;
    int rc = a->fail_code, end;
    struct ipw_err end_err = {0};

    if (rc == IPW_ETIMEOUT) rc = 0; /* no token in time: read the content anyway */
    if (rc) *err = a->fail;
    if (rc == 0 && a->mode == MODE_STREAM) rc = ipw_sse_end(&a->sse, err);
    if (rc == 0 && a->mode != MODE_STREAM && success) {
        rc = ipw_chat_fold_whole(a->fold, ipw_buf_str(&a->raw), a->raw.len, err);
        if (rc > 0) rc = 0;
    }
    end = ipw_chat_fold_end(a->fold, reply, &end_err);
    ipw_arrivals_take(&reply->arrivals, &a->arrivals);
    if (rc == 0 && end) *err = end_err;
    return rc ? rc : end;
}

static int64_t deadline_length(const struct ipw_llm *llm, enum ipw_http_deadline which)
{
    switch (which) {
    case IPW_HTTP_CONNECT_DEADLINE: return llm->connect_ns;
    case IPW_HTTP_FIRST_BYTE_DEADLINE: return llm->first_byte_ns;
    case IPW_HTTP_IDLE_DEADLINE: return llm->idle_ns;
    case IPW_HTTP_TOTAL_DEADLINE: return llm->total_ns;
    case IPW_HTTP_NO_DEADLINE: break;
    }
    return 0;
}

static void fill_connection(struct ipw_lm_facts *f, const struct ipw_llm_attempt *a,
                            const struct ipw_http_result *result)
{
    if (!result) return;
    f->reused = result->reused;
    f->resent = result->resent;
    if (result->sent_cpu_ns && a->start_cpu_ns)
        f->send_cpu_ns = result->sent_cpu_ns - a->start_cpu_ns;
}

void ipw_llm_facts(struct ipw_lm_facts *f, const struct ipw_llm_call *call,
                   const struct ipw_http_result *result, const struct ipw_chat_reply *reply)
{
    const struct ipw_llm_attempt *a = &call->now;

    f->attempt = call->number;
    f->forced_tokens = call->forced;
    f->status = a->status;
    ipw_llm_facts_reply(f, reply, a->mode == MODE_STREAM);
    ipw_llm_facts_times(&f->times, &a->times, result, reply->timings);
    f->times.sent_ns = result ? result->sent_ns : a->start_ns;
    f->times.headers_ns = a->headers_ns;
    f->times.first_byte_ns = a->first_byte_ns;
    f->endpoint = call->llm->servers[a->server].url;
    fill_connection(f, a, result);
    f->bytes_sent = result ? result->bytes_sent : (int64_t)call->body_bytes;
    f->bytes_received = result ? result->bytes_received : a->received;
}

static void collect(struct ipw_llm_evidence *e, const struct ipw_llm_call *call,
                    const struct ipw_http_result *result)
{
    const struct ipw_llm_attempt *a = &call->now;

    *e = (struct ipw_llm_evidence){.url = call->llm->servers[a->server].url,
                                   .have_key = call->llm->key != NULL,
                                   .end = IPW_HTTP_OK,
                                   .status = a->status,
                                   .body = ipw_buf_str(&a->raw),
                                   .body_n = a->mode == MODE_STREAM ? 0 : a->raw.len,
                                   .streamed = a->mode == MODE_STREAM,
                                   .finished = a->finished,
                                   .token_seen = a->times.first_token_ns != 0,
                                   .usage_asked = a->usage_asked,
                                   .retry_cut = call->llm->retry_cut};
    if (!result) return;
    e->end = result->end;
    e->deadline = result->deadline;
    e->deadline_ns = deadline_length(call->llm, result->deadline);
    if (!a->status) e->status = result->status;
    if (a->fail_code == IPW_ETIMEOUT) { /* no token in time; set by client_start.c */
        e->token_late = true;
        e->deadline_ns = call->llm->first_token_ns;
    }
    if (a->no_event) {
        e->end = IPW_HTTP_TIMEOUT;
        e->deadline = IPW_HTTP_IDLE_DEADLINE;
        e->deadline_ns = call->llm->comment_ns;
        e->no_event = true;
    }
    e->http_error = result->error;
    e->location = ipw_http_field(result->head, "Location");
}

/* Whether the server could not be reached, in contrast to a bad answer. */
static bool is_dead(const struct ipw_llm_evidence *e)
{
    switch (e->end) {
    case IPW_HTTP_REFUSED:
    case IPW_HTTP_DNS:
    case IPW_HTTP_TLS: return true;
    case IPW_HTTP_RESET: return !e->status;
    case IPW_HTTP_TIMEOUT:
        return e->deadline == IPW_HTTP_CONNECT_DEADLINE ||
               (e->deadline == IPW_HTTP_FIRST_BYTE_DEADLINE && !e->token_late);
    default: return e->status == 502 || e->status == 503 || e->status == 504;
    }
}

static bool time_is_left(const struct ipw_llm_call *call, int64_t wait_ns)
{
    int64_t total_ns = call->llm->total_ns;

    return total_ns <= 0 || ipw_now_ns() + wait_ns - call->start_ns < total_ns;
}

/* The wait that the server asks for, in nanoseconds; -1: none. */
static int64_t told_wait(int status, const struct ipw_http_result *result)
{
    struct ipw_llm_told told = {0};
    struct ipw_anchor wall;

    if (!result) return -1;
    told.retry_after = ipw_http_field(result->head, "Retry-After");
    told.retry_after_ms = ipw_http_field(result->head, "Retry-After-Ms");
    if (status == 429) { /* servers send these with every answer */
        told.reset_requests = ipw_http_field(result->head, "X-RateLimit-Reset-Requests");
        told.reset_tokens = ipw_http_field(result->head, "X-RateLimit-Reset-Tokens");
    }
    ipw_anchor_take(&wall);
    return ipw_llm_told_wait(&told, wall.wall_ns);
}

/* x-should-retry decides.  Exception: a used-up quota does not come back. */
static void heed_server(struct ipw_llm_verdict *v, const struct ipw_llm_evidence *e,
                        const struct ipw_http_result *result)
{
    const char *word = ipw_http_field(result ? result->head : NULL, "X-Should-Retry");

    if (v->outcome != IPW_LM_HTTP_ERROR) return;
    if (strcasecmp(word, "false") == 0) v->retryable = false;
    if (strcasecmp(word, "true") == 0 && !memmem(e->body, e->body_n, "insufficient_quota", 18))
        v->retryable = true;
}

static bool goes_elsewhere(struct ipw_llm_call *call, const struct ipw_llm_evidence *e)
{
    struct ipw_llm *llm = call->llm;

    if (!is_dead(e) || e->token_seen || call->moves + 1 >= llm->n_servers) return false;
    if (!ipw_llm_server_other(llm, ipw_now_ns(), call->now.server) || !time_is_left(call, 1))
        return false;
    call->moves++;
    call->avoid = (int)call->now.server;
    return true;
}

static bool waits_for_loading(struct ipw_llm_call *call, const struct ipw_llm_evidence *e)
{
    int64_t now_ns = ipw_now_ns();

    if (!ipw_llm_is_loading(e)) return false;
    if (!call->loading_since_ns) call->loading_since_ns = now_ns;
    if (!call->llm->servers[call->now.server].loading_since_ns)
        call->llm->servers[call->now.server].loading_since_ns = now_ns;
    return now_ns - call->loading_since_ns < call->llm->loading_ns &&
           time_is_left(call, 2 * call->llm->retry_base_ns);
}

void ipw_llm_without_usage(struct ipw_llm_call *call)
{
    call->llm->no_usage_option = true;
    memmove(call->body.data + call->cut_at, call->body.data + call->cut_at + call->cut_n,
            call->body.len - call->cut_at - call->cut_n);
    ipw_buf_truncate(&call->body, call->body.len - call->cut_n);
    call->cut_n = 0;
}

/* The wait before the next attempt; 0: no further attempt. */
static int64_t next_wait(struct ipw_llm_call *call, struct ipw_llm_verdict *v,
                         const struct ipw_llm_evidence *e, const struct ipw_http_result *result)
{
    struct ipw_llm *llm = call->llm;
    int64_t told, wait;

    call->avoid = IPW_LLM_NO_SERVER;
    if (v->without_usage && call->cut_n > 0) {
        ipw_llm_without_usage(call);
        return 1; /* a different request, so not a retry */
    }
    if (goes_elsewhere(call, e)) {
        call->loading_since_ns = 0; /* send to the other server without asking for health */
        return 1;
    }
    if (waits_for_loading(call, e)) return 2 * llm->retry_base_ns;
    call->loading_since_ns = 0;
    heed_server(v, e, result);
    if (!v->retryable || call->repeats >= llm->max_retries) {
        if (!time_is_left(call, 1) || !ipw_llm_outage_keeps(call, e)) return 0;
        call->avoid = (int)call->now.server; /* if there is another */
        return ipw_llm_outage_open(llm) ? ipw_llm_backoff(&llm->random, llm->retry_base_ns, 1) : 1;
    }
    wait = ipw_llm_backoff(&llm->random, llm->retry_base_ns, call->repeats);
    told = told_wait(v->status, result);
    if (told > IPW_LLM_MOST_WAIT_NS) {
        size_t n = strlen(v->err.text);

        snprintf(v->err.text + n, sizeof v->err.text - n, " (it asks to wait %.0f s: given up)",
                 ipw_ns_to_s(told));
        return 0;
    }
    if (told >= 0) wait += told;
    if (!time_is_left(call, wait)) return 0;
    call->repeats++;
    return wait;
}

void ipw_llm_attempt_over(struct ipw_llm_call *call, const struct ipw_http_result *result)
{
    struct ipw_llm_attempt *a = &call->now;
    int64_t t_ns = result ? result->close_ns : ipw_now_ns(), wait;
    struct ipw_err fold_err = {0};
    struct ipw_llm_evidence evidence;
    struct ipw_llm_verdict verdict;
    struct ipw_lm_facts facts = {0};
    struct ipw_chat_reply reply;
    bool failed;

    ipw_timer_cancel(call->timer);
    ipw_timer_cancel(call->first_token);
    call->timer = call->first_token = NULL;
    if (ipw_llm_outage_asks(call, result)) return;
    call->in_flight = false;
    ipw_llm_in_flight_leave(call->llm);
    collect(&evidence, call, result);
    evidence.fold_code = read_answer(a, &reply, &fold_err);
    evidence.token_seen = a->times.first_token_ns != 0; /* the last event can arrive with the end */
    evidence.finished = a->finished;
    evidence.fold_err = &fold_err;
    evidence.reply = &reply;
    ipw_llm_verdict_from(&verdict, &evidence);
    failed = verdict.outcome != IPW_LM_OK;
    if (failed) ipw_llm_redact(call->llm, verdict.err.text);
    if (failed && (is_dead(&evidence) || call->server_dead))
        ipw_llm_server_failed(call->llm, a->server, t_ns, verdict.err.text);
    else
        ipw_llm_server_served(call->llm, a->server);
    ipw_llm_outage_see(call, &evidence, &verdict, t_ns);
    wait = failed ? next_wait(call, &verdict, &evidence, result) : 0;

    ipw_llm_facts(&facts, call, result, &reply);
    facts.status = evidence.status;
    facts.outcome = verdict.outcome;
    facts.error = failed ? verdict.err.text : NULL;
    facts.will_retry = wait > 0;
    facts.retryable = failed && verdict.retryable;
    facts.retry_wait_ns = wait;
    free(call->ended);
    call->ended = NULL;
    call->server_dead = false;
    call->busy++;
    if (call->on.on_attempt_end) call->on.on_attempt_end(call->on.ud, t_ns, &facts, &reply, wait);
    call->busy--;
    ipw_llm_attempt_release(a);
    if (!call->cancelled && wait > 0) {
        ipw_chat_reply_release(&reply);
        call->timer =
            ipw_timer_start(call->llm->loop, wait,
                            call->loading_since_ns ? ipw_llm_ask_health : ipw_llm_begin, call);
        return;
    }
    if (!call->cancelled) {
        call->busy++;
        call->on.on_done(call->on.ud, failed ? (int)verdict.err.code : 0, failed ? NULL : &reply,
                         failed ? &verdict.err : NULL, failed && verdict.retryable);
        call->busy--;
    }
    ipw_chat_reply_release(&reply);
    ipw_llm_call_free(call);
}
