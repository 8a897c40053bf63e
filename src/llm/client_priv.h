/* llm/client_priv.h: what client.c, client_start.c, verdict.c, backoff.c, endpoint.c, servers.c and
 * discover.c share.
 *
 * The verdict is pure: from the evidence of one finished attempt to its result (what happened, the
 * message for the user, whether it is worth repeating).  The endpoint owns addresses, the key and
 * what was learned about the servers; a server is one of its base URLs.  Only src/llm and its tests
 * include this header. */
#ifndef IPW_LLM_CLIENT_PRIV_H
#define IPW_LLM_CLIENT_PRIV_H

#include "llm/client.h"

static const int64_t IPW_LLM_MOST_WAIT_NS = INT64_C(120000000000);

struct ipw_llm_server {
    char *url, *chat_url, *models_url, *health_url;
    enum ipw_llm_server_kind kind;
    int64_t down_until_ns; /* left out until then; 0: in good health */
    int64_t down_for_ns;   /* the last time it was left out for; doubles */
    int64_t
        loading_since_ns;    /* it said that it loads its model, and has not answered since; or 0 */
    bool gone;               /* the last attempt met nobody */
    struct ipw_llm_ask *ask; /* whether it is back; NULL: not being asked */
};

/* outage.c: failures that met nobody, in a row, of all servers together.  After enough of them,
 * with no server left, all attempts are held until one answers. */
struct ipw_llm_outage {
    int after; /* failures; 0: attempts are never held */
    int64_t patience_ns;
    int failures;               /* since a server answered */
    int64_t first_ns;           /* the first of them */
    bool closed, lost;          /* lost: closed for good */
    int64_t closed_ns, away_ns; /* away_ns: before closed_ns, since a server answered */
    int64_t pause_ns;           /* before the servers are asked again */
    struct ipw_timer *timer;
    char why[512];
    ipw_llm_away_fn fn;
    void *ud;
};

/* What answers in place of a server.  start: the call has its body and belongs to the back end,
 * which tells the user of its attempts and frees it at the end (ipw_llm_call_free), or hands it on
 * to a server (ipw_llm_call_send).  cancel: ends it, telling of the attempt in flight. */
struct ipw_llm_back {
    void (*start)(void *ud, struct ipw_llm_call *call);
    void (*cancel)(void *ud, struct ipw_llm_call *call);
};

struct ipw_llm {
    const struct ipw_llm_back *back; /* NULL: servers answer */
    void *back_ud;
    struct ipw_llm *onward; /* of a back end: where it hands calls on to; or NULL */
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm_server *servers;
    size_t n_servers, next_server;
    char *key, *authorization; /* NULL without a key */
    char *over;                /* what every request holds besides, or NULL */
    bool use_max_completion_tokens, retry_cut;
    struct ipw_http_header *headers[2]; /* of a plain request, of a stream; the text is ours */
    size_t n_headers[2];
    int max_retries;
    int64_t connect_ns, first_byte_ns, idle_ns, total_ns, retry_base_ns;
    int64_t first_token_ns, loading_ns, comment_ns, force_tokens;
    size_t reply_max;
    uint64_t random;
    bool no_usage_option; /* the server refused stream_options once */
    struct ipw_llm_outage outage;
    /* in_flight_limit.c */
    size_t n_calls, n_in_flight, most_in_flight; /* 0: no limit */
    struct ipw_llm_call *first_held, *last_held;
    struct ipw_defer *let_in;
};

/* Replaces the key by *** wherever it stands in a message (servers quote it). */
void ipw_llm_redact(const struct ipw_llm *llm, char *text);

/* servers.c.  Which base URL the next attempt goes to: in turn, those in good health first; else
 * the one that has been left out for longest.  `avoid` is taken only when nothing else is left. */
enum { IPW_LLM_NO_SERVER = -1 };
size_t ipw_llm_server_pick(struct ipw_llm *llm, int64_t now_ns, int avoid);
/* Another server than `but` is in good health. */
bool ipw_llm_server_other(const struct ipw_llm *llm, int64_t now_ns, size_t but);
void ipw_llm_server_failed(struct ipw_llm *llm, size_t i, int64_t now_ns, const char *why);
void ipw_llm_server_served(struct ipw_llm *llm, size_t i);
int ipw_llm_server_init(struct ipw_llm_server *server, const char *base_url, struct ipw_err *err);
void ipw_llm_server_release(struct ipw_llm_server *server);

struct ipw_llm_evidence {
    const char *url; /* the endpoint's */
    bool have_key;
    enum ipw_http_end end;
    enum ipw_http_deadline deadline;
    int64_t deadline_ns; /* that deadline's length */
    int status;
    const char *http_error, *location;
    const char *body; /* of an answer other than a stream */
    size_t body_n;
    bool streamed; /* the answer was an event stream */
    bool finished; /* a finish reason, or [DONE], was seen */
    bool token_seen;
    bool usage_asked; /* stream_options was sent */
    bool retry_cut;   /* a cut answer is repeated even when tokens had come */
    bool token_late;  /* the first token's own deadline passed */
    bool no_event;    /* bytes came, and no event for too long */
    int fold_code;    /* of reading the answer; 0 fine */
    const struct ipw_err *fold_err;
    const struct ipw_chat_reply *reply;
};

struct ipw_llm_verdict {
    enum ipw_lm_outcome outcome;
    struct ipw_err err;
    int status;         /* the HTTP status, or the one an error inside a 200 named */
    bool retryable;     /* worth repeating, as far as the kind of failure goes */
    bool without_usage; /* the server refused stream_options: ask once more without it */
};

/* outage.c */
void ipw_llm_outage_init(struct ipw_llm *llm, const struct ipw_llm_options *options);
void ipw_llm_outage_release(struct ipw_llm *llm);
bool ipw_llm_outage_open(const struct ipw_llm *llm);

void ipw_llm_verdict_from(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e);

/* The server says that it is still loading its model. */
bool ipw_llm_is_loading(const struct ipw_llm_evidence *e);

/* "2", "0.5" or an HTTP date to nanoseconds from now; -1 when it says nothing usable. */
int64_t ipw_llm_retry_after(const char *text, int64_t wall_now_ns);
/* "1s", "6m0s", "20ms" to nanoseconds; -1 when it says nothing usable. */
int64_t ipw_llm_reset_after(const char *text);
struct ipw_llm_told { /* header values; NULL or "": not there */
    const char *retry_after, *retry_after_ms, *reset_requests, *reset_tokens;
};
/* The longer of what Retry-After and retry-after-ms ask for; without both, the longer of the resets
 * (when the whole allowance is back); -1 when none says. */
int64_t ipw_llm_told_wait(const struct ipw_llm_told *told, int64_t wall_now_ns);
/* The n-th wait (from 0): full jitter over base * 2^n, at most 8 s; never 0. */
int64_t ipw_llm_backoff(uint64_t *random, int64_t base_ns, int n);

/* ipw_llm_discover() on ports of choice. */
int ipw_llm_discover_ports(struct ipw_llm_search **out, struct ipw_loop *loop,
                           struct ipw_http *http, int64_t timeout_ns, const int *ports,
                           size_t n_ports, ipw_llm_found_fn fn, void *ud, struct ipw_err *err);

#endif
