/* llm/client_call_priv.h: a chat call in flight, shared by client.c (what comes in, and the end of
 * an attempt) and client_start.c (its beginning, the wait for a loading server, cancelling).
 *
 * A call is in one of three states: an attempt is announced and its request in flight
 * (`in_flight`); it waits for the next attempt (`defer`, `timer`, the line of held attempts, or
 * `http` asking for a server's health); or one of the user's callbacks runs (`busy`), which may
 * cancel it: then it is marked, and freed when the callback is back. */
#ifndef IPW_LLM_CLIENT_CALL_PRIV_H
#define IPW_LLM_CLIENT_CALL_PRIV_H

#include "io/sse.h"
#include "llm/arrivals.h"
#include "llm/client_priv.h"
#include "llm/times.h"

enum ipw_llm_mode {
    MODE_UNKNOWN, /* no content type that says: the first bytes decide */
    MODE_STREAM,
    MODE_WHOLE, /* a whole answer, or the body of an error */
};

struct ipw_llm_attempt {
    struct ipw_chat_fold *fold;
    struct ipw_sse sse;
    struct ipw_buf raw; /* MODE_WHOLE, and MODE_UNKNOWN while undecided */
    enum ipw_llm_mode mode;
    size_t server;
    int status;
    bool finished, usage_asked;
    bool no_event; /* given up: bytes came, and no event for too long */
    int fail_code; /* why the stream was given up from here */
    struct ipw_err fail;
    int64_t start_ns, data_ns; /* data_ns: the data callback that is being served */
    int64_t event_ns;          /* the last event, or the first byte before there was one */
    int64_t headers_ns, first_byte_ns;
    int64_t received;
    int64_t held_ns; /* before start_ns */
    struct ipw_llm_times times;
    struct ipw_arrivals arrivals;
    int64_t start_cpu_ns; /* of the thread, at the start of a request that had its instant */
    bool token_told;      /* on_first_token was called */
};

struct ipw_llm_call {
    struct ipw_llm *llm;
    struct ipw_llm_callbacks on;
    struct ipw_buf body;           /* empty while the HTTP request holds it */
    size_t body_bytes;             /* of the last attempt's request */
    size_t cut_at, cut_n;          /* where stream_options stands in the body */
    int number, repeats;           /* attempts so far; repeats count against max_retries */
    size_t moves;                  /* to another base URL */
    int avoid;                     /* the server that just failed, or IPW_LLM_NO_SERVER */
    int64_t start_ns, forced;      /* forced: tokens, or 0 */
    int64_t not_before_ns;         /* the first attempt's instant, or 0 */
    int64_t loading_since_ns;      /* the server said that it loads its model; 0: not */
    struct ipw_llm_ask *ask;       /* whether the server of a reply that broke is there */
    struct ipw_http_result *ended; /* of that reply, without texts; NULL: it was not asked */
    bool server_dead;              /* it was not */
    int revivals;                  /* attempts that were made anew because of that */
    struct ipw_defer *defer;
    struct ipw_timer *timer;       /* the wait before an attempt, or the grace after [DONE] */
    struct ipw_timer *first_token; /* its deadline */
    struct ipw_http_call *http;
    const struct ipw_chat_request *request; /* of a back end's call: lives as long as the call */
    bool in_flight, cancelled;
    bool held; /* in the line of held attempts */
    int64_t held_since_ns;
    struct ipw_llm_call *next_held;
    int busy;
    struct ipw_llm_attempt now;
    /* Set when the call is made, for the parts that let it go on (the line of held attempts, the
     * question whether its server is there). */
    void (*begin)(void *call);
    void (*attempt_over)(struct ipw_llm_call *call, const struct ipw_http_result *result);
};

/* The headers that the end of an attempt is judged by, in the order of the enum. */
enum { WANT_RETRY_AFTER_MS, WANT_SHOULD_RETRY, WANT_RESET_REQUESTS, WANT_RESET_TOKENS };
extern const char *const ipw_llm_wanted[];

/* client.c */
extern const struct ipw_http_callbacks ipw_llm_http_callbacks; /* without ud */
int ipw_llm_on_sse(void *ud, const struct ipw_sse_event *event, struct ipw_err *err);
/* `result` is NULL when the attempt was ended from here. */
void ipw_llm_attempt_over(struct ipw_llm_call *call, const struct ipw_http_result *result);
void ipw_llm_attempt_release(struct ipw_llm_attempt *a);
void ipw_llm_facts(struct ipw_lm_facts *f, const struct ipw_llm_call *call,
                   const struct ipw_http_result *result, const struct ipw_chat_reply *reply);

/* outage.c.  see: what an attempt that is over shows of the servers.  keeps: a failure that would
 * be the last is the server's, and the call waits for one.  asks: before an attempt that broke is
 * judged, its server is asked for a sign of life; call->attempt_over() is called again. */
void ipw_llm_outage_see(struct ipw_llm_call *call, const struct ipw_llm_evidence *e,
                        const struct ipw_llm_verdict *v, int64_t t_ns);
bool ipw_llm_outage_keeps(struct ipw_llm_call *call, const struct ipw_llm_evidence *e);
bool ipw_llm_outage_asks(struct ipw_llm_call *call, const struct ipw_http_result *result);
void ipw_llm_ask_cancel(struct ipw_llm_ask *ask); /* NULL is fine */

/* in_flight_limit.c */
void ipw_llm_in_flight_resume(struct ipw_llm *llm); /* those in the line may go on */
bool ipw_llm_in_flight_enter(struct ipw_llm_call *call,
                             int64_t now_ns);      /* false: call->begin() later */
void ipw_llm_in_flight_leave(struct ipw_llm *llm); /* once for each that entered */
void ipw_llm_in_flight_forget(struct ipw_llm_call *call);

/* client_start.c */
void ipw_llm_call_free(struct ipw_llm_call *call);
void ipw_llm_begin(void *call); /* the next attempt */
/* Hands a back end's call on to the servers, for its next attempt; `model` NULL: the request's. */
int ipw_llm_call_send(struct ipw_llm_call *call, const char *model, struct ipw_err *err);
/* Takes stream_options out of the body: the server does not know it. */
void ipw_llm_without_usage(struct ipw_llm_call *call);
void ipw_llm_ask_health(void *call); /* of a loading server; then the next attempt */

#endif
