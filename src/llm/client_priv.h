/* llm/client_priv.h: what client.c, client_start.c, verdict.c, backoff.c, endpoint.c, servers.c and
 * discover.c share.
 *
 * struct ipw_llm owns the addresses, the key and the state of the servers; a server is one base
 * URL. The verdict is pure: it turns the evidence of one finished attempt into an outcome, a
 * message for the user, and whether to retry.  Only src/llm and its tests include this header. */
#ifndef IPW_LLM_CLIENT_PRIV_H
#define IPW_LLM_CLIENT_PRIV_H

#include "llm/client.h"

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

/* outage.c */
void ipw_llm_outage_init(struct ipw_llm *llm, const struct ipw_llm_options *options);
void ipw_llm_outage_release(struct ipw_llm *llm);
bool ipw_llm_outage_open(const struct ipw_llm *llm);

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

#endif
