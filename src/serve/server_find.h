/* serve/server_find.h: the model server that commands other than `run` look at.
 *
 * The one that was named (--base-url, $OPENAI_BASE_URL), else the first that answers on the usual
 * local ports; never another.  Owns its loop and connections. */
#ifndef IPW_SERVE_SERVER_FIND_H
#define IPW_SERVE_SERVER_FIND_H

#include <stddef.h>

#include "io/http.h"
#include "io/loop.h"
#include "llm/client.h"

struct ipw_server {
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm *llm;
    struct ipw_llm_search *search; /* for a server; NULL: over */
    char *url;                     /* NULL: none was named, none found */
    bool named;
    const char *key;           /* goes to a named server only; borrowed from the keyring, or NULL */
    char **models;             /* as it lists them, NULL-terminated; NULL: it does not */
    struct ipw_err models_err; /* why not */
};

struct ipw_server_options {
    const char *base_url, *api_key_env, *cacert; /* as `run` has them; NULL: not given */
    bool insecure_key;
};

/* Their rows of an option table; `at` is the offset of a struct ipw_server_options. */
#define IPW_SERVER_OPTIONS(at)                                                                     \
    {"base-url",  'u',                                                                             \
     IPW_OPT_STR, (at) + offsetof(struct ipw_server_options, base_url),                            \
     "URL",       "the model server (default: $OPENAI_BASE_URL, then local ports)"},               \
        {"api-key-env",                                                                            \
         0,                                                                                        \
         IPW_OPT_STR,                                                                              \
         (at) + offsetof(struct ipw_server_options, api_key_env),                                  \
         "NAME",                                                                                   \
         "environment variable that holds its key (default: OPENAI_API_KEY)",                      \
         .holds = IPW_HOLDS_KEY_NAME},                                                             \
        {"cacert",    0,                                                                           \
         IPW_OPT_STR, (at) + offsetof(struct ipw_server_options, cacert),                          \
         "FILE",      "certificates (PEM) to trust in place of the system's"},                     \
    {                                                                                              \
        "insecure-key", 0, IPW_OPT_FLAG, (at) + offsetof(struct ipw_server_options, insecure_key), \
            NULL, "send the key over plain http to another machine too"                            \
    }

/* 0 also when there is no server (url is NULL) and when it does not answer (models_err). */
int ipw_server_find(struct ipw_server *s, const struct ipw_server_options *options,
                    struct ipw_err *err);
void ipw_server_release(struct ipw_server *s);

#endif
