/* run/server_options.h: how a run talks to its model servers.
 *
 * The options of connections, deadlines, addresses and request bodies (a block of the run's option
 * table), and how they fill the options of a client.  Plain values. */
#ifndef IPW_RUN_SERVER_OPTIONS_H
#define IPW_RUN_SERVER_OPTIONS_H

#include "base/option.h"
#include "llm/client.h"

struct ipw_net_options {
    struct ipw_opt_list base_urls, headers;
    const char *body, *max_reply, *tokens_field, *cacert;
    int64_t connect_ns, first_token_ns, stall_ns, comment_ns, request_ns;
    int64_t max_connections, force_tokens;
    bool adaptive, retry_cut, insecure_key;
};

struct ipw_server_options {  /* which server, and how patient the run is with it */
    const char *model;       /* NULL: the server's first */
    const char *api_key_env; /* the variable that holds the key; NULL: OPENAI_API_KEY */
    struct ipw_net_options net;
    int64_t max_retries, first_byte_ns, server_failures, server_wait_ns;
};

/* Rows of an option table; `at` is the offset of a struct ipw_net_options. */
#define IPW_NET_AT(at, field) ((at) + offsetof(struct ipw_net_options, field))
#define IPW_NET_OPTIONS(at)                                                                        \
    {"base-url",                                                                                   \
     'u',                                                                                          \
     IPW_OPT_LIST,                                                                                 \
     IPW_NET_AT(at, base_urls),                                                                    \
     "URL",                                                                                        \
     "OpenAI-compatible server (default: $OPENAI_BASE_URL, then local ports); several take "       \
     "turns"},                                                                                     \
        {"header",                                                                                 \
         0,                                                                                        \
         IPW_OPT_LIST,                                                                             \
         IPW_NET_AT(at, headers),                                                                  \
         "'Name: value'",                                                                          \
         "sent with every request; 'Name: env:VAR' takes the value from the environment",          \
         .holds = IPW_HOLDS_HEADER},                                                               \
        {"body",                                                                                   \
         0,                                                                                        \
         IPW_OPT_STR,                                                                              \
         IPW_NET_AT(at, body),                                                                     \
         "JSON",                                                                                   \
         "object whose members go into every request and win",                                     \
         .holds = IPW_HOLDS_JSON},                                                                 \
        {"max-tokens-field",                                                                       \
         0,                                                                                        \
         IPW_OPT_STR,                                                                              \
         IPW_NET_AT(at, tokens_field),                                                             \
         "NAME",                                                                                   \
         "max_tokens or max_completion_tokens (default: by server)"},                              \
        {"force-output-tokens",                                                                    \
         0,                                                                                        \
         IPW_OPT_INT,                                                                              \
         IPW_NET_AT(at, force_tokens),                                                             \
         "N",                                                                                      \
         "replies of exactly N tokens (llama.cpp, vLLM, SGLang)",                                  \
         1,                                                                                        \
         INT64_MAX},                                                                               \
        {"connect-timeout",          0,      IPW_OPT_DURATION,                                     \
         IPW_NET_AT(at, connect_ns), "TIME", "wait for a connection (default: 10s)"},              \
        {"ttft-timeout",   0,                                                                      \
         IPW_OPT_DURATION, IPW_NET_AT(at, first_token_ns),                                         \
         "TIME",           "wait for the first token of a reply (default: none)"},                 \
        {"stall-timeout",          0,      IPW_OPT_DURATION,                                       \
         IPW_NET_AT(at, stall_ns), "TIME", "longest silence inside a reply (default: 120s)"},      \
        {"comment-timeout",                                                                        \
         0,                                                                                        \
         IPW_OPT_DURATION,                                                                         \
         IPW_NET_AT(at, comment_ns),                                                               \
         "TIME",                                                                                   \
         "longest stretch of a reply with keep-alive comments only (default: 600s)"},              \
        {"request-timeout",                                                                        \
         0,                                                                                        \
         IPW_OPT_DURATION,                                                                         \
         IPW_NET_AT(at, request_ns),                                                               \
         "TIME",                                                                                   \
         "one chat call with all its repeats and waits (default: none)"},                          \
        {"max-reply", 0,                                                                           \
         IPW_OPT_STR, IPW_NET_AT(at, max_reply),                                                   \
         "BYTES",     "largest reply (default: 64M)"},                                             \
        {"retry-cut",  0,                                                                          \
         IPW_OPT_FLAG, IPW_NET_AT(at, retry_cut),                                                  \
         NULL,         "repeat a request whose reply broke off after its first token"},            \
        {"cacert",    0,                                                                           \
         IPW_OPT_STR, IPW_NET_AT(at, cacert),                                                      \
         "FILE",      "certificates (PEM) to trust in place of the system's"},                     \
        {"insecure-key", 0,                                                                        \
         IPW_OPT_FLAG,   IPW_NET_AT(at, insecure_key),                                             \
         NULL,           "send the API key over plain http to another machine too"},               \
        {"max-connections",                                                                        \
         0,                                                                                        \
         IPW_OPT_INT,                                                                              \
         IPW_NET_AT(at, max_connections),                                                          \
         "N",                                                                                      \
         "connections at once; more requests wait (default: no limit)",                            \
         1,                                                                                        \
         100000},                                                                                  \
    {                                                                                              \
        "adaptive", 0, IPW_OPT_FLAG, IPW_NET_AT(at, adaptive), NULL,                               \
            "find out how many requests to keep in flight; --concurrency is the most (default: "   \
            "256)"                                                                                 \
    }

/* What a client's options borrow until the client is made. */
struct ipw_net_borrowed {
    struct ipw_http_header *headers;
    char **texts; /* of the headers */
    size_t n;
    bool secret; /* one came from the environment */
};
int ipw_net_fill(struct ipw_llm_options *out, struct ipw_net_borrowed *borrowed,
                 const struct ipw_net_options *options, struct ipw_err *err);
void ipw_net_release(struct ipw_net_borrowed *borrowed);

#endif
