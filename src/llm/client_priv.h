/* llm/client_priv.h: what the files of the client share: client.c (incoming bytes, the end of an
 * attempt), client_start.c (the start of an attempt, the wait for a loading server, cancelling),
 * in_flight_limit.c, outage.c, verdict.c, backoff.c, endpoint.c, servers.c, discover.c.
 *
 * struct ipw_llm owns the addresses, the key and the state of the servers; a server is one base
 * URL.  The verdict is pure: it turns the evidence of one finished attempt into an outcome, a
 * message for the user, and whether to retry.  A struct ipw_llm_call is in one of three states:
 * - `in_flight`: an attempt was announced and its request is in flight;
 * - waiting for the next attempt: `defer`, `timer`, in the line of held attempts, or `http` asks
 *   for a server's health;
 * - `busy`: a callback of the user runs.  If it cancels the call, the call is marked, and freed
 *   when the callback returns.
 * Only src/llm and its tests include this header. */
#ifndef IPW_LLM_CLIENT_PRIV_H
#define IPW_LLM_CLIENT_PRIV_H

#include "io/sse.h"
#include "llm/arrivals.h"
#include "llm/client.h"
#include "llm/times.h"

static const int64_t IPW_LLM_MOST_WAIT_NS = INT64_C(120000000000);

struct ipw_llm_server {
    char *url, *chat_url, *models_url, *health_url;
    enum ipw_llm_server_kind kind;
    int64_t down_until_ns;     /* left out until then; 0: healthy */
    int64_t down_for_ns;       /* how long it was last left out; doubles */
    int64_t loading_since_ns;  /* since when it has been loading its model; 0: it is not */
    bool gone;                 /* the last attempt did not reach it */
    struct ipw_llm_probe *ask; /* the question whether it is back, or NULL */
};

/* outage.c: counts the attempts in a row that reached no server.  After enough of them all attempts
 * are held until a server answers. */
struct ipw_llm_outage {
    int after; /* hold attempts after so many failures; 0: never */
    int64_t patience_ns;
    int failures;               /* since the last answer of a server */
    int64_t first_ns;           /* time of the first failure */
    bool closed, lost;          /* closed: attempts are held; lost: for ever */
    int64_t closed_ns, away_ns; /* away_ns: time without a server before closed_ns */
    int64_t pause_ns;           /* until the servers are asked again */
    struct ipw_timer *timer;
    char why[512];
    ipw_llm_away_fn fn;
    void *ud;
};

/* A back end answers calls instead of a server, for example from a saved run.
 * start: the back end takes over the call, which has its body.  It reports the attempts to the
 * user, then frees the call (ipw_llm_call_free) or sends it to a server (ipw_llm_call_send).
 * cancel: it ends the call, and reports the end of the attempt in flight. */
struct ipw_llm_back {
    void (*start)(void *ud, struct ipw_llm_call *call);
    void (*cancel)(void *ud, struct ipw_llm_call *call);
};

struct ipw_llm {
    const struct ipw_llm_back *back; /* NULL: servers answer */
    void *back_ud;
    struct ipw_llm *onward; /* for a back end: the client that sends calls to servers; or NULL */
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm_server *servers;
    size_t n_servers, next_server;
    char *key, *authorization; /* NULL without a key */
    char *over;                /* JSON object to add to every request, or NULL */
    bool use_max_completion_tokens, retry_cut;
    struct ipw_http_header *headers[2]; /* [0]: of a plain request; [1]: of a stream; owned */
    size_t n_headers[2];
    int max_retries;
    int64_t connect_ns, first_byte_ns, idle_ns, total_ns, retry_base_ns;
    int64_t first_token_ns, loading_ns, comment_ns, force_tokens;
    size_t reply_max;
    uint64_t random;
    bool no_usage_option; /* a server refused stream_options */
    struct ipw_llm_outage outage;
    /* in_flight_limit.c */
    size_t n_calls, n_in_flight, most_in_flight; /* 0: no limit */
    struct ipw_llm_call *first_held, *last_held;
    struct ipw_defer *let_in;
};

/* Replaces the key by *** in a message: servers quote the key. */
void ipw_llm_redact(const struct ipw_llm *llm, char *text);

/* servers.c.  Picks the base URL of the next attempt: the next healthy one in turn, else the one
 * that was left out longest.  `avoid` is picked only if there is no other. */
enum { IPW_LLM_NO_SERVER = -1 };
size_t ipw_llm_server_pick(struct ipw_llm *llm, int64_t now_ns, int avoid);
/* Whether a server other than `but` is healthy. */
bool ipw_llm_server_other(const struct ipw_llm *llm, int64_t now_ns, size_t but);
void ipw_llm_server_failed(struct ipw_llm *llm, size_t i, int64_t now_ns, const char *why);
void ipw_llm_server_served(struct ipw_llm *llm, size_t i);
int ipw_llm_server_init(struct ipw_llm_server *server, const char *base_url, struct ipw_err *err);
void ipw_llm_server_release(struct ipw_llm_server *server);

struct ipw_llm_evidence {
    const char *url; /* of the server */
    bool have_key;
    enum ipw_http_end end;
    enum ipw_http_deadline deadline;
    int64_t deadline_ns; /* its length */
    int status;
    const char *http_error, *location;
    const char *body; /* of an answer that is not a stream */
    size_t body_n;
    bool streamed; /* the answer was an event stream */
    bool finished; /* a finish reason or [DONE] was seen */
    bool token_seen;
    bool usage_asked; /* stream_options was sent */
    bool retry_cut;   /* repeat a broken answer even after its first token */
    bool token_late;  /* the first token missed its own deadline */
    bool no_event;    /* too long without an event, though bytes arrived */
    int fold_code;    /* of reading the answer; 0: no error */
    const struct ipw_err *fold_err;
    const struct ipw_chat_reply *reply;
};

struct ipw_llm_verdict {
    enum ipw_lm_outcome outcome;
    struct ipw_err err;
    int status;         /* the HTTP status, or the status in an error inside a 200 */
    bool retryable;     /* this kind of failure can go away */
    bool without_usage; /* the server refused stream_options: ask again without it */
};

void ipw_llm_verdict_from(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e);

/* Whether the server says that it is still loading its model. */
bool ipw_llm_is_loading(const struct ipw_llm_evidence *e);

/* Nanoseconds from now until "2", "0.5" (seconds) or an HTTP date; -1: unusable. */
int64_t ipw_llm_retry_after(const char *text, int64_t wall_now_ns);
/* "1s", "6m0s", "20ms" in nanoseconds; -1: unusable. */
int64_t ipw_llm_reset_after(const char *text);
struct ipw_llm_told { /* header values; NULL or "": absent */
    const char *retry_after, *retry_after_ms, *reset_requests, *reset_tokens;
};
/* The wait that the server asks for: the longer of Retry-After and retry-after-ms.  Without both,
 * the longer of the two resets, when the whole allowance is back.  -1: no header. */
int64_t ipw_llm_told_wait(const struct ipw_llm_told *told, int64_t wall_now_ns);
/* The n-th wait, from 0: random between 1 and base_ns * 2^n, at most 8 s. */
int64_t ipw_llm_backoff(uint64_t *random, int64_t base_ns, int n);

/* discover.c: asks whether base URL number i has a server.  NULL: it cannot be asked. */
typedef void (*ipw_llm_there_fn)(void *ud, size_t server, bool there);
struct ipw_llm_probe *ipw_llm_probe_there(struct ipw_llm *llm, size_t i, int64_t timeout_ns,
                                          ipw_llm_there_fn fn, void *ud);

/* ---- a call in flight ---- */

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

/* outage.c */
void ipw_llm_outage_init(struct ipw_llm *llm, const struct ipw_llm_options *options);
void ipw_llm_outage_release(struct ipw_llm *llm);
bool ipw_llm_outage_open(const struct ipw_llm *llm);
/* see: learns from a finished attempt which servers can be reached.
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
