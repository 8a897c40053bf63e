/* proxy/call.h: what a client asks for, read from its path and its body.
 *
 * Pure.  A call is a turn (chat completions, Responses, Anthropic messages, completions of a
 * prompt), or something else that passes and is booked under its own name (models, count_tokens,
 * embeddings, ...).  The body of a turn is read for what the run records: its model, its messages,
 * the results of tools that it carries, and whether it asks for usage.  The bytes that go on are
 * the client's own; ipw_proxy_call_ask_usage() makes the one change there is. */
#ifndef IPW_PROXY_CALL_H
#define IPW_PROXY_CALL_H

#include "base/buf.h"
#include "json/json.h"
#include "llm/chat_other.h"

struct ipw_proxy_result { /* of a tool, in a request */
    const char *id;
    const struct ipw_json *content;
    bool failed;
};

struct ipw_proxy_call {
    const char *name; /* "chat", "responses", "messages", "models", "count_tokens", ... */
    bool turn;
    enum ipw_chat_protocol protocol;
    const char *rule; /* that found the session of the call's new connection; or NULL */
    int32_t inside;   /* the span of the agent that calls; 0: the main one */
    /* After ipw_proxy_call_read(); they live as long as the call. */
    struct ipw_json *doc;
    const char *model; /* "" if it names none */
    bool streams, asks_usage;
    const struct ipw_json *messages; /* the list (of prompts: texts or tokens); one text; or NULL */
    uint64_t *hashes;                /* of the messages of a list */
    size_t n_hashes;
    struct ipw_proxy_result *results;
    size_t n_results, cap_results;
};

/* `path` begins behind the query's own part: "/v1/chat/completions?beta=true", "/v1/models". */
void ipw_proxy_call_of_path(struct ipw_proxy_call *out, const char *method, const char *path);
/* Fails if it is not a JSON object; the request can be passed on anyway. */
int ipw_proxy_call_read(struct ipw_proxy_call *call, const char *body, size_t n,
                        struct ipw_err *err);
void ipw_proxy_call_release(struct ipw_proxy_call *call);

/* Whether usage has to be asked for: a stream of chat completions that does not. */
bool ipw_proxy_call_wants_usage(const struct ipw_proxy_call *call);
/* Appends the body with that question: in the client's stream_options, or right after its first
 * brace.  All other bytes stay.  The body was read, and is a stream's. */
enum { IPW_ASK_USAGE_BYTES = 64 }; /* it grows by less */
void ipw_proxy_call_ask_usage(struct ipw_buf *out, const char *body, size_t n);

/* An error in the shape of the call's API, which a client does not try again. */
void ipw_proxy_call_refusal(struct ipw_buf *out, const struct ipw_proxy_call *call,
                            const char *code, const char *message);

#endif
