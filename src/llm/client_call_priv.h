/* llm/client_call_priv.h: a chat call in flight, shared by client.c (incoming bytes, the end of an
 * attempt) and client_start.c (the start of an attempt, the wait for a loading server, cancelling).
 *
 * A call is in one of three states:
 * - `in_flight`: an attempt was announced and its request is in flight;
 * - waiting for the next attempt: `defer`, `timer`, in the line of held attempts, or `http` asks
 *   for a server's health;
 * - `busy`: a callback of the user runs.  If it cancels the call, the call is marked, and freed
 *   when the callback returns. */
#ifndef IPW_LLM_CLIENT_CALL_PRIV_H
#define IPW_LLM_CLIENT_CALL_PRIV_H

#include "io/sse.h"
#include "llm/arrivals.h"
#include "llm/client_priv.h"
#include "llm/times.h"

enum ipw_llm_mode {
    MODE_UNKNOWN, /* the content type does not tell: the first bytes decide */
    MODE_STREAM,
    MODE_WHOLE, /* a whole answer, or the body of an error */
};

struct ipw_llm_attempt {
    struct ipw_chat_fold *fold;
    struct ipw_sse sse;
    struct ipw_buf raw; /* bytes in MODE_WHOLE and MODE_UNKNOWN */
    enum ipw_llm_mode mode;
    size_t server;
    int status;
    bool finished, usage_asked;
    bool no_event; /* ended: too long without an event, though bytes arrived */
    int fail_code; /* why the client ended the stream; 0: it did not */
    struct ipw_err fail;
    int64_t start_ns, data_ns; /* data_ns: time of the current data callback */
    int64_t event_ns;          /* the last event; before any event, the first byte */
    int64_t headers_ns, first_byte_ns;
    int64_t received;
    int64_t held_ns; /* wait before start_ns for the limit of requests in flight */
    struct ipw_llm_times times;
    struct ipw_arrivals arrivals;
    int64_t start_cpu_ns; /* the thread's CPU time at start_ns, for a request with not_before_ns */
    bool token_told;      /* on_first_token was called */
};

struct ipw_llm_call {
    struct ipw_llm *llm;
    struct ipw_llm_callbacks on;
    struct ipw_buf body;           /* empty while the HTTP request holds it */
    size_t body_bytes;             /* of the last attempt's request */
    size_t cut_at, cut_n;          /* place of stream_options in the body */
    int number, repeats;           /* attempts so far; repeats count against max_retries */
    size_t moves;                  /* times it moved to another base URL */
    int avoid;                     /* the server that just failed, or IPW_LLM_NO_SERVER */
    int64_t start_ns, forced;      /* forced: exact number of tokens, or 0 */
    int64_t not_before_ns;         /* when to send the first attempt, or 0 */
    int64_t loading_since_ns;      /* since when it waits for a loading server, or 0 */
    struct ipw_llm_probe *ask;     /* after a broken reply: is its server still there?  or NULL */
    struct ipw_http_result *ended; /* result of that reply, without texts; NULL: not asked */
    bool server_dead;              /* the answer: no */
    int revivals;                  /* attempts repeated because their server was dead */
    struct ipw_defer *defer;
    struct ipw_timer *timer;       /* the wait before an attempt, or the grace after [DONE] */
    struct ipw_timer *first_token; /* deadline of the first token */
    struct ipw_http_call *http;
    const struct ipw_chat_request *request; /* for a back end; lives as long as the call */
    bool in_flight, cancelled;
    bool held; /* in the line of held attempts */
    int64_t held_since_ns;
    struct ipw_llm_call *next_held;
    int busy;
    struct ipw_llm_attempt now;
    /* Set when the call is made.  in_flight_limit.c and outage.c continue the call with these. */
    void (*begin)(void *call);
    void (*attempt_over)(struct ipw_llm_call *call, const struct ipw_http_result *result);
};

/* client.c */
extern const struct ipw_http_callbacks ipw_llm_http_callbacks; /* without ud */
int ipw_llm_on_sse(void *ud, const struct ipw_sse_event *event, struct ipw_err *err);
/* `result`: NULL if the client ended the attempt. */
void ipw_llm_attempt_over(struct ipw_llm_call *call, const struct ipw_http_result *result);
void ipw_llm_attempt_release(struct ipw_llm_attempt *a);
void ipw_llm_facts(struct ipw_lm_facts *f, const struct ipw_llm_call *call,
                   const struct ipw_http_result *result, const struct ipw_chat_reply *reply);

/* outage.c.
 * see: learns from a finished attempt which servers can be reached.
 * keeps: true if a call must not fail, because no server was reached; it waits for a server.
 * asks: true if the server of a broken reply is asked for a sign of life before the attempt is
 * judged; call->attempt_over() is called again with the answer. */
void ipw_llm_outage_see(struct ipw_llm_call *call, const struct ipw_llm_evidence *e,
                        const struct ipw_llm_verdict *v, int64_t t_ns);
bool ipw_llm_outage_keeps(struct ipw_llm_call *call, const struct ipw_llm_evidence *e);
bool ipw_llm_outage_asks(struct ipw_llm_call *call, const struct ipw_http_result *result);

/* in_flight_limit.c */
void ipw_llm_in_flight_resume(struct ipw_llm *llm); /* continues the calls in the line */
bool ipw_llm_in_flight_enter(struct ipw_llm_call *call,
                             int64_t now_ns);      /* false: call->begin() later */
void ipw_llm_in_flight_leave(struct ipw_llm *llm); /* once for each call that entered */
void ipw_llm_in_flight_forget(struct ipw_llm_call *call);

/* client_start.c */
void ipw_llm_call_free(struct ipw_llm_call *call);
void ipw_llm_begin(void *call); /* begins the next attempt */
/* Sends a back end's call to the servers, as its next attempt.  `model` NULL: the request's. */
int ipw_llm_call_send(struct ipw_llm_call *call, const char *model, struct ipw_err *err);
/* Removes stream_options, which the server does not know, from the body. */
void ipw_llm_without_usage(struct ipw_llm_call *call);
void ipw_llm_ask_health(void *call); /* asks a loading server; then begins the next attempt */

#endif
