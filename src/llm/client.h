/* llm/client.h: one chat call, from request to reply, over any number of attempts.
 *
 * A client is an endpoint (base URLs, key, limits) on an HTTP pool.  ipw_llm_start() sends a
 * request as a stream with usage asked for; a server that refuses the usage option is asked once
 * more without it (and remembered).  Attempts that failed in a way worth repeating (refused, timed
 * out, reset before the first token, 408, 409, 425, 429, 5xx; x-should-retry has the last word) are
 * repeated up to `max_retries` times with exponential back-off and full jitter; what the server
 * asks for (Retry-After and retry-after-ms, without them x-ratelimit-reset-*) is waited for
 * besides, up to 120 s.  A server that says it is loading its model is asked for its health until
 * it is ready.  What brings an answer on is an event: comments keep a stream open for `comment_ns`
 * at most.  Of several base URLs each call takes the next; one that does not answer is left out for
 * a while, and its calls go elsewhere at once.  Each attempt is announced when it starts and when
 * it ends. ipw_llm_set_most() limits the requests in flight; attempts beyond that are held back in
 * order.  Callbacks run in the loop thread, never inside ipw_llm_start(). */
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

/* The program behind a base URL, as its list of models gives it away. */
enum ipw_llm_server_kind {
    IPW_LLM_ANY_SERVER, /* not known */
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
    int64_t retry_base_ns; /* 0: 500 ms; doubled each time, 8 s at most */
    uint64_t jitter_seed;
    const char *const *more_urls;          /* further base URLs, NULL-terminated, or NULL */
    const struct ipw_http_header *headers; /* sent besides, or in place of ours of that name */
    size_t n_headers;
    const char *body; /* JSON object whose members go into every request and win, or NULL */
    enum ipw_llm_tokens_field tokens_field;
    int64_t force_tokens;   /* > 0: ask for exactly that many (ignore_eos, min_tokens) */
    int64_t first_token_ns; /* from the attempt's start; 0: none */
    int64_t loading_ns;     /* how long a loading server is waited for; 0: 600 s */
    int64_t comment_ns;     /* of bytes without an event (comments of a stream); 0: 600 s */
    int server_failures;    /* in a row that met nobody, before no more is sent; 0: never */
    int64_t server_wait_ns; /* how long servers may be away then; 0: 40 s */
    size_t reply_max_bytes; /* of what a reply holds; 0: 64 MiB */
    bool retry_cut;         /* repeat even when tokens had come */
    bool secret_headers;    /* some of `headers` are to be kept as safe as the key */
    bool insecure_key;      /* send the key (and those) even where it can be read on the way */
};

struct ipw_llm;

int ipw_llm_new(struct ipw_llm **out, struct ipw_loop *loop, struct ipw_http *http,
                const struct ipw_llm_options *options, struct ipw_err *err);
void ipw_llm_free(struct ipw_llm *llm); /* every call must be over or cancelled */
size_t ipw_llm_n_urls(const struct ipw_llm *llm);
const char *ipw_llm_url_at(const struct ipw_llm *llm, size_t i);
/* Whether replies of a given length can be had: IPW_EINVAL with the reason when a server is known
 * to have no way.  ipw_llm_start() asks this for requests with force_tokens. */
int ipw_llm_can_force(const struct ipw_llm *llm, struct ipw_err *err);
/* Fills in what the client adds to every request, as ipw_llm_start() does to its copy: for the
 * record.  What it puts there lives as long as the client. */
void ipw_llm_complete(const struct ipw_llm *llm, struct ipw_chat_request *request);

/* The name that the limit of a reply is sent under. */
const char *ipw_llm_tokens_field(const struct ipw_llm *llm);

/* Normalises a base URL: adds http:// when there is no scheme, takes trailing slashes and
 * /chat/completions away, adds /v1 when there is no path at all. */
int ipw_llm_normalise_url(struct ipw_buf *out, const char *base_url, struct ipw_err *err);

struct ipw_llm_call;

struct ipw_llm_callbacks {
    /* An attempt's request is being sent; `body` is borrowed. */
    void (*on_attempt)(void *ud, int attempt, int64_t t_ns, const char *body, size_t n);
    /* It is over.  `reply` holds what came, even of a failed one (borrowed, may be NULL).
     * `next_try_ns` > 0: it will be repeated after that wait. */
    void (*on_attempt_end)(void *ud, int64_t t_ns, const struct ipw_lm_facts *facts,
                           const struct ipw_chat_reply *reply, int64_t next_try_ns);
    /* The call is over; exactly once.  code 0 and the reply (take what you need, it is released
     * after), or a negative code and the error. */
    void (*on_done)(void *ud, int code, struct ipw_chat_reply *reply, const struct ipw_err *err,
                    bool retryable);
    void *ud;
    /* The first token of the attempt in flight has come (text, reasoning or a call).  Called while
     * the network's bytes are read: it may look at a clock or a counter, not start or cancel
     * anything.  May be NULL. */
    void (*on_first_token)(void *ud, int64_t t_ns);
    /* An attempt is held back: as many requests as may be are in flight.  Nothing may be started or
     * cancelled here.  May be NULL. */
    void (*on_held)(void *ud, int64_t t_ns);
    /* More text or reasoning of the attempt in flight has come; under the same rules.  May be
     * NULL. */
    void (*on_text)(void *ud, const struct ipw_chat_reply *so_far);
};

int ipw_llm_start(struct ipw_llm_call **out, struct ipw_llm *llm,
                  const struct ipw_chat_request *request, /* copied as an encoded body */
                  const struct ipw_llm_callbacks *callbacks, struct ipw_err *err);
/* Closes the stream at once; on_attempt_end is called (outcome cancelled) when an attempt was in
 * flight, on_done is not. */
void ipw_llm_cancel(struct ipw_llm_call *call);
/* How long the attempt that is in flight was held back before it began. */
int64_t ipw_llm_held_ns(const struct ipw_llm_call *call);

void ipw_llm_set_most(struct ipw_llm *llm, size_t n); /* requests in flight; 0: no limit */
/* With `server_failures`: after so many attempts in a row that met nobody (refused, reset, no way
 * to the host), or when a call would be lost to such a one, nothing more is sent while no server is
 * left.  They are asked with growing pauses; calls wait meanwhile, and one whose reply broke with
 * its server is sent again.  Told: that they are away, back, or lost (away for server_wait_ns;
 * calls wait until they are cancelled).  Nothing may be started or cancelled in the callback. */
enum ipw_llm_away { IPW_LLM_AWAY, IPW_LLM_BACK, IPW_LLM_LOST };
typedef void (*ipw_llm_away_fn)(void *ud, enum ipw_llm_away what, double away_s, const char *why);
void ipw_llm_on_away(struct ipw_llm *llm, ipw_llm_away_fn fn, void *ud);
double ipw_llm_away_s(const struct ipw_llm *llm); /* 0: a server is there, as far as is known */
/* Since when a server says that it is loading its model; 0: none does. */
int64_t ipw_llm_loading_since_ns(const struct ipw_llm *llm);

size_t ipw_llm_in_flight(const struct ipw_llm *llm);
size_t ipw_llm_calls(const struct ipw_llm *llm); /* not over: in flight, held back, waiting */

/* GET /v1/models: names, NULL-terminated, freed with ipw_llm_models_free(). */
typedef void (*ipw_llm_models_fn)(void *ud, char **names, const struct ipw_err *err);
void ipw_llm_models_free(char **names); /* NULL is fine */
struct ipw_llm_probe;
int ipw_llm_models(struct ipw_llm_probe **out, struct ipw_llm *llm, int64_t timeout_ns,
                   ipw_llm_models_fn fn, void *ud, struct ipw_err *err);
/* The same of base URL number i; an answer or its absence counts for that server's health. */
int ipw_llm_models_at(struct ipw_llm_probe **out, struct ipw_llm *llm, size_t i, int64_t timeout_ns,
                      ipw_llm_models_fn fn, void *ud, struct ipw_err *err);
void ipw_llm_probe_cancel(struct ipw_llm_probe *probe);

/* Tries the usual local ports (11434, 8080, 8000, 30000, 1234 on 127.0.0.1) side by side, within
 * timeout_ns; the first in that order that serves /v1/models wins.  base_url is "" when none. */
typedef void (*ipw_llm_found_fn)(void *ud, const char *base_url, const char *first_model);
struct ipw_llm_search;
int ipw_llm_discover(struct ipw_llm_search **out, struct ipw_loop *loop, struct ipw_http *http,
                     int64_t timeout_ns, ipw_llm_found_fn fn, void *ud, struct ipw_err *err);
/* Before its fn was called and while the pool is there; NULL is fine. */
void ipw_llm_search_cancel(struct ipw_llm_search *search);

#endif
