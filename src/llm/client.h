/* llm/client.h: sends chat calls to model servers, with retries.
 *
 * A client is an endpoint (base URLs, key, limits) on an HTTP pool.  ipw_llm_start() begins a call;
 * a call has one or more attempts and ends with on_done or ipw_llm_cancel().  Callbacks run in the
 * loop thread, never inside ipw_llm_start().
 *
 * - Each attempt asks for a stream with usage.  If a server refuses the usage option, the client
 *   asks again without it, and never sends it again.
 * - A failed attempt is repeated up to `max_retries` times if it was refused, timed out, was reset
 *   before the first token, or ended with 408, 409, 425, 429 or 5xx.  The header x-should-retry
 *   overrides that.
 * - The wait before a retry is exponential back-off with full jitter.  The time that the server
 *   asks for, up to 120 s, is added: Retry-After and retry-after-ms, else x-ratelimit-reset-*.
 * - While a server says that it is loading its model, the client asks for its health until it is
 *   ready.
 * - Bytes without an event (comments) keep a stream open for `comment_ns` at most.
 * - With several base URLs, each call takes the next one.  A server that does not answer is left
 *   out for a while, and its calls go to another server at once.
 * - ipw_llm_set_most() limits the requests in flight; further attempts wait in order. */
#ifndef IPW_LLM_CLIENT_H
#define IPW_LLM_CLIENT_H

#include "io/http.h"
#include "llm/chat.h"
#include "trace/event.h"

enum ipw_llm_tokens_field {
    IPW_LLM_TOKENS_AUTO, /* max_completion_tokens for api.openai.com, else max_tokens */
    IPW_LLM_MAX_TOKENS,
    IPW_LLM_MAX_COMPLETION_TOKENS,
};

/* The server program behind a base URL, recognised by its list of models. */
enum ipw_llm_server_kind {
    IPW_LLM_ANY_SERVER, /* unknown */
    IPW_LLM_LLAMACPP,
    IPW_LLM_VLLM,
    IPW_LLM_SGLANG,
    IPW_LLM_OLLAMA,
    IPW_LLM_OPENAI,
};

struct ipw_llm_options {
    const char *base_url;                                 /* with or without /v1 */
    const char *api_key;                                  /* or NULL */
    int max_retries;                                      /* attempts after the first */
    int64_t connect_ns, first_byte_ns, idle_ns, total_ns; /* 0: 10 s, 600 s, 120 s, none */
    int64_t retry_base_ns; /* first back-off; 0: 500 ms; doubled each time, at most 8 s */
    uint64_t jitter_seed;
    const char *const *more_urls;          /* further base URLs, NULL-terminated, or NULL */
    const struct ipw_http_header *headers; /* added, or sent instead of our header of that name */
    size_t n_headers;
    const char *body; /* JSON object whose members override those of every request, or NULL */
    enum ipw_llm_tokens_field tokens_field;
    int64_t force_tokens;   /* > 0: ask for exactly so many (ignore_eos, min_tokens) */
    int64_t first_token_ns; /* from the attempt's start to its first token; 0: no limit */
    int64_t loading_ns;     /* wait for a loading server; 0: 600 s */
    int64_t comment_ns;     /* bytes without an event (comments of a stream); 0: 600 s */
    int server_failures;    /* after so many in a row, hold all attempts; 0: never */
    int64_t server_wait_ns; /* then wait for a server; 0: 40 s */
    size_t reply_max_bytes; /* size limit of a reply; 0: 64 MiB */
    bool retry_cut;         /* repeat a broken attempt even after its first token */
    bool secret_headers;    /* `headers` contain secrets: protect them like the key */
    bool insecure_key;      /* send the key and such headers over plain http too */
};

struct ipw_llm;

int ipw_llm_new(struct ipw_llm **out, struct ipw_loop *loop, struct ipw_http *http,
                const struct ipw_llm_options *options, struct ipw_err *err);
void ipw_llm_free(struct ipw_llm *llm); /* every call must have ended */
size_t ipw_llm_n_urls(const struct ipw_llm *llm);
const char *ipw_llm_url_at(const struct ipw_llm *llm, size_t i);
/* Returns 0 if replies of an exact length can be requested.  If a server is known not to support
 * them: IPW_EINVAL, with the reason.  ipw_llm_start() checks this for requests with
 * force_tokens. */
int ipw_llm_can_force(const struct ipw_llm *llm, struct ipw_err *err);
/* Adds to a request the members that the client puts into every request, so that the caller can
 * write the whole request into events.jsonl.  They live as long as the client. */
void ipw_llm_complete(const struct ipw_llm *llm, struct ipw_chat_request *request);

/* The field name under which max_tokens is sent. */
const char *ipw_llm_tokens_field(const struct ipw_llm *llm);

/* Normalises a base URL: adds http:// if it has no scheme, removes trailing slashes and
 * /chat/completions, adds /v1 if it has no path. */
int ipw_llm_normalise_url(struct ipw_buf *out, const char *base_url, struct ipw_err *err);

struct ipw_llm_call;

struct ipw_llm_callbacks {
    /* An attempt's request is being sent; `body` is borrowed. */
    void (*on_attempt)(void *ud, int attempt, int64_t t_ns, const char *body, size_t n);
    /* The attempt ended.  `reply`: its content, even of a failed attempt (borrowed, may be NULL).
     * `next_try_ns` > 0: another attempt follows after that wait. */
    void (*on_attempt_end)(void *ud, int64_t t_ns, const struct ipw_lm_facts *facts,
                           const struct ipw_chat_reply *reply, int64_t next_try_ns);
    /* The call ended; called once.  Either code 0 and the reply (take its contents: it is released
     * afterwards), or a negative code and the error. */
    void (*on_done)(void *ud, int code, struct ipw_chat_reply *reply, const struct ipw_err *err,
                    bool retryable);
    void *ud;
    /* The first token (text, reasoning or a call) of the attempt arrived.  Called while bytes are
     * read from the network: it can read a clock or a counter, but must not start or cancel
     * anything.  May be NULL, like the two callbacks below; the same rule holds for them. */
    void (*on_first_token)(void *ud, int64_t t_ns);
    /* An attempt waits, because the limit of requests in flight is reached. */
    void (*on_held)(void *ud, int64_t t_ns);
    /* More text or reasoning of the attempt arrived. */
    void (*on_text)(void *ud, const struct ipw_chat_reply *so_far);
};

int ipw_llm_start(struct ipw_llm_call **out, struct ipw_llm *llm,
                  const struct ipw_chat_request *request, /* copied as an encoded body */
                  const struct ipw_llm_callbacks *callbacks, struct ipw_err *err);
/* Closes the stream at once.  If an attempt is in flight, on_attempt_end is called with the outcome
 * cancelled; on_done is not called. */
void ipw_llm_cancel(struct ipw_llm_call *call);
/* How long the attempt in flight had to wait for the limit of requests in flight. */
int64_t ipw_llm_held_ns(const struct ipw_llm_call *call);

void ipw_llm_set_most(struct ipw_llm *llm, size_t n); /* requests in flight; 0: no limit */
/* An outage: no server can be reached.  Needs `server_failures`.
 *
 * It begins after so many attempts in a row that reached no server (refused, reset, no route), or
 * when a call would fail because of such an attempt.  During an outage calls wait, and the client
 * asks the servers with growing pauses.  A call whose reply broke off with its server is sent
 * again.  The callback hears AWAY at the beginning, BACK when a server answers, or LOST after
 * server_wait_ns; then calls wait until they are cancelled.  It must not start or cancel
 * anything. */
enum ipw_llm_away { IPW_LLM_AWAY, IPW_LLM_BACK, IPW_LLM_LOST };
typedef void (*ipw_llm_away_fn)(void *ud, enum ipw_llm_away what, double away_s, const char *why);
void ipw_llm_on_away(struct ipw_llm *llm, ipw_llm_away_fn fn, void *ud);
double ipw_llm_away_s(const struct ipw_llm *llm); /* seconds of the outage so far; 0: no outage */
/* Since when a server has been loading its model; 0: no server is loading. */
int64_t ipw_llm_loading_since_ns(const struct ipw_llm *llm);

size_t ipw_llm_in_flight(const struct ipw_llm *llm);
size_t ipw_llm_calls(const struct ipw_llm *llm); /* calls that have not ended */

/* GET /v1/models of base URL number i; the result also counts as a sign of that server's health.
 * `names` ends with NULL; free it with ipw_llm_models_free(). */
typedef void (*ipw_llm_models_fn)(void *ud, char **names, const struct ipw_err *err);
void ipw_llm_models_free(char **names); /* NULL is fine */
struct ipw_llm_probe;
int ipw_llm_models(struct ipw_llm_probe **out, struct ipw_llm *llm, size_t i, int64_t timeout_ns,
                   ipw_llm_models_fn fn, void *ud, struct ipw_err *err);
void ipw_llm_probe_cancel(struct ipw_llm_probe *probe);

/* Asks the usual ports of this machine (11434, 8080, 8000, 30000, 1234; or `ports`, which end with
 * 0) one after the other for /v1/models, each for timeout_ns at most.  The first with a model is
 * the one: its address and model, to free; NULL: none.  Runs the loop. */
int ipw_llm_search(char **url, char **model, struct ipw_loop *loop, struct ipw_http *http,
                   const int *ports, int64_t timeout_ns, struct ipw_err *err);

#endif
