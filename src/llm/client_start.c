/* The start of a call and of each attempt, the wait for a loading server, cancelling. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/chat_priv.h"
#include "llm/client_priv.h"

enum {
    REQUEST_MAX = 256 * 1024 * 1024,
    EVENT_MAX = 16 * 1024 * 1024, /* Ollama sends a whole tool call in one event */
};

static const int64_t HEALTH_NS = 5 * IPW_NS_PER_S;

void ipw_llm_call_free(struct ipw_llm_call *call)
{
    ipw_defer_cancel(call->defer);
    ipw_timer_cancel(call->timer);
    ipw_timer_cancel(call->first_token);
    ipw_llm_probe_cancel(call->ask);
    free(call->ended);
    ipw_buf_release(&call->body);
    ipw_llm_in_flight_forget(call);
    call->llm->n_calls--;
    free(call);
}

/* ---- a loading server ---- */

static void on_health(void *ud, const struct ipw_http_result *result)
{
    struct ipw_llm_call *call = ud;
    struct ipw_llm *llm = call->llm;
    int64_t now_ns = ipw_now_ns();
    bool time_left = now_ns - call->loading_since_ns < llm->loading_ns &&
                     (llm->total_ns <= 0 || now_ns - call->start_ns < llm->total_ns);

    call->http = NULL;
    if (result->end == IPW_HTTP_OK && result->status == 503 && time_left)
        call->timer = ipw_timer_start(llm->loop, 2 * llm->retry_base_ns, ipw_llm_ask_health, call);
    else /* ready, or unknown: the attempt will show */
        ipw_llm_begin(call);
}

void ipw_llm_ask_health(void *ud)
{
    struct ipw_llm_call *call = ud;
    struct ipw_llm *llm = call->llm;
    struct ipw_http_request request = {.method = "GET",
                                       .url = llm->servers[call->now.server].health_url,
                                       .headers = llm->headers[0],
                                       .n_headers = llm->n_headers[0],
                                       .total_ns = HEALTH_NS,
                                       .body_max_bytes = IPW_MIB};
    struct ipw_http_callbacks on = {.on_done = on_health, .ud = call};

    call->timer = NULL;
    if (ipw_http_start(&call->http, llm->http, &request, &on, NULL)) ipw_llm_begin(call);
}

/* ---- an attempt ---- */

static void on_no_token(void *ud)
{
    struct ipw_llm_call *call = ud;
    struct ipw_llm_attempt *a = &call->now;
    struct ipw_http_result late = {.end = IPW_HTTP_TIMEOUT,
                                   .deadline = IPW_HTTP_FIRST_BYTE_DEADLINE,
                                   .error = "",
                                   .start_ns = a->start_ns,
                                   .sent_ns = a->start_ns,
                                   .close_ns = ipw_now_ns(),
                                   .bytes_sent = (int64_t)call->body_bytes,
                                   .bytes_received = a->received};

    call->first_token = NULL;
    ipw_http_cancel(call->http);
    call->http = NULL;
    a->fail_code = IPW_ETIMEOUT;
    ipw_llm_attempt_over(call, &late);
}

static int send_request(struct ipw_llm_call *call, struct ipw_err *err)
{
    struct ipw_llm *llm = call->llm;
    struct ipw_http_request request = {.method = "POST",
                                       .url = llm->servers[call->now.server].chat_url,
                                       .headers = llm->headers[1],
                                       .n_headers = llm->n_headers[1],
                                       .lend_body = &call->body,
                                       .connect_ns = llm->connect_ns,
                                       .first_byte_ns = llm->first_byte_ns,
                                       .idle_ns = llm->idle_ns,
                                       .stamp_cpu = call->now.start_cpu_ns != 0};
    struct ipw_http_callbacks on = ipw_llm_http_callbacks;

    on.ud = call;
    call->body_bytes = call->body.len;
    if (llm->total_ns > 0) {
        request.total_ns = call->start_ns + llm->total_ns - call->now.start_ns;
        if (request.total_ns < 1) request.total_ns = 1;
    }
    return ipw_http_start(&call->http, llm->http, &request, &on, err);
}

void ipw_llm_begin(void *ud)
{
    struct ipw_llm_call *call = ud;
    struct ipw_llm *llm = call->llm;
    struct ipw_llm_attempt *a = &call->now;
    int64_t now_ns = ipw_now_ns();

    call->defer = NULL;
    call->timer = NULL;
    if (!ipw_llm_in_flight_enter(call, now_ns)) return;
    call->number++;
    *a =
        (struct ipw_llm_attempt){.fold = ipw_chat_fold_new(llm->reply_max),
                                 .raw = IPW_BUF(llm->reply_max),
                                 .server = ipw_llm_server_pick(llm, now_ns, call->avoid),
                                 .usage_asked = call->cut_n > 0,
                                 .start_ns = now_ns,
                                 .held_ns = call->held_since_ns ? now_ns - call->held_since_ns : 0};
    call->held_since_ns = 0;
    ipw_sse_init(&a->sse, EVENT_MAX, ipw_llm_on_sse, call);
    if (call->number == 1) call->start_ns = a->start_ns;
    if (call->number == 1 && call->not_before_ns) a->start_cpu_ns = ipw_cpu_thread_ns();
    call->in_flight = true;
    call->busy++;
    if (call->on.on_attempt)
        call->on.on_attempt(call->on.ud, call->number, a->start_ns, call->body.data,
                            call->body.len);
    call->busy--;
    if (call->cancelled) {
        ipw_llm_call_free(call);
        return;
    }
    a->fail_code = send_request(call, &a->fail);
    if (a->fail_code) { /* the address or a header is unusable; libcurl's text says why */
        struct ipw_http_result nothing = {.end = IPW_HTTP_PROTOCOL,
                                          .error = a->fail.text,
                                          .sent_ns = a->start_ns,
                                          .close_ns = ipw_now_ns()};
        ipw_llm_attempt_over(call, &nothing);
        return;
    }
    if (llm->first_token_ns > 0)
        call->first_token = ipw_timer_start(llm->loop, llm->first_token_ns, on_no_token, call);
}

int ipw_llm_start(struct ipw_llm_call **out, struct ipw_llm *llm,
                  const struct ipw_chat_request *request, const struct ipw_llm_callbacks *callbacks,
                  struct ipw_err *err)
{
    struct ipw_llm_call *call = ipw_calloc(1, sizeof *call);
    struct ipw_chat_request streamed = *request;
    int rc = 0;

    *out = NULL;
    call->llm = llm;
    llm->n_calls++;
    call->on = *callbacks;
    call->request = request;
    call->avoid = IPW_LLM_NO_SERVER;
    call->begin = ipw_llm_begin;
    call->attempt_over = ipw_llm_attempt_over;
    call->not_before_ns = request->not_before_ns;
    call->body = IPW_BUF(REQUEST_MAX);
    streamed.stream = true;
    streamed.include_usage = !llm->no_usage_option;
    ipw_llm_complete(llm, &streamed);
    if (streamed.force_tokens > 0) {
        call->forced = streamed.force_tokens;
        rc = ipw_llm_can_force(llm, err);
    }
    if (rc == 0) rc = ipw_chat_body(&call->body, &streamed, &call->cut_at, &call->cut_n, err);
    if (rc) {
        ipw_llm_call_free(call);
        return rc;
    }
    ipw_buf_fit(&call->body); /* free unused memory: the body is kept until the reply */
    *out = call;
    if (llm->back)
        llm->back->start(llm->back_ud, call);
    else if (call->not_before_ns)
        call->timer = ipw_timer_start_at(llm->loop, call->not_before_ns, ipw_llm_begin, call);
    else
        call->defer = ipw_defer_start(llm->loop, ipw_llm_begin, call);
    return 0;
}

int ipw_llm_call_send(struct ipw_llm_call *call, const char *model, struct ipw_err *err)
{
    struct ipw_llm *llm = call->llm->onward;
    struct ipw_chat_request streamed = *call->request;
    int rc;

    streamed.stream = true;
    streamed.include_usage = !llm->no_usage_option;
    if (model) streamed.model = model;
    ipw_llm_complete(llm, &streamed);
    ipw_buf_clear(&call->body);
    rc = ipw_chat_body(&call->body, &streamed, &call->cut_at, &call->cut_n, err);
    if (rc) return rc;
    call->llm = llm;
    call->start_ns = ipw_now_ns();
    call->in_flight = false;
    call->defer = ipw_defer_start(llm->loop, ipw_llm_begin, call);
    return 0;
}

void ipw_llm_cancel(struct ipw_llm_call *call)
{
    if (!call || call->cancelled) return;
    call->cancelled = true;
    if (call->llm->back) {
        call->llm->back->cancel(call->llm->back_ud, call);
        return;
    }
    if (call->http) ipw_http_cancel(call->http);
    call->http = NULL;
    ipw_llm_probe_cancel(call->ask);
    call->ask = NULL;
    if (call->in_flight) {
        struct ipw_lm_facts facts = {0};
        struct ipw_chat_reply reply;

        call->in_flight = false;
        ipw_llm_in_flight_leave(call->llm);
        ipw_chat_fold_end(call->now.fold, &reply, NULL);
        ipw_llm_facts(&facts, call, NULL, &reply);
        facts.outcome = IPW_LM_CANCELLED;
        facts.error = "cancelled";
        call->busy++;
        if (call->on.on_attempt_end)
            call->on.on_attempt_end(call->on.ud, ipw_now_ns(), &facts, &reply, 0);
        call->busy--;
        ipw_chat_reply_release(&reply);
        ipw_llm_attempt_release(&call->now);
    }
    if (call->busy == 0) ipw_llm_call_free(call);
}
