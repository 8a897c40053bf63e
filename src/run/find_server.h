/* run/find_server.h: finds the model server and its key.
 *
 * The server is the one that was named (--base-url, $OPENAI_BASE_URL), else the first that answers
 * on the usual local ports; never another.  `run` searches on its own loop and connections
 * (ipw_server_choose). Commands that only query a server use struct ipw_server, which owns both. */
#ifndef IPW_RUN_FIND_SERVER_H
#define IPW_RUN_FIND_SERVER_H

#include <stddef.h>

#include "base/option.h"
#include "io/http.h"
#include "io/loop.h"
#include "llm/client.h"

/* The key in the variable (NULL: $OPENAI_API_KEY), borrowed from the keyring and kept out of all
 * output; NULL: none.  IPW_EINVAL if a named variable is not set. */
int ipw_server_key(const char **key, const char *api_key_env, struct ipw_err *err);
/* *url: the server's address, to free; NULL: none was named and none found.  *model: the first
 * model of a found server, to free, or NULL.  Reports a proxy on the way to a named server. */
int ipw_server_choose(char **url, char **model, bool *named, struct ipw_loop *loop,
                      struct ipw_http *http, const char *base_url, struct ipw_err *err);

struct ipw_server {
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm *llm;
    char *url; /* NULL: none was named, none found */
    bool named;
    const char *key;           /* sent to a named server only; borrowed from the keyring, or NULL */
    char **models;             /* its list of models, NULL-terminated; NULL: it has none */
    struct ipw_err models_err; /* why there is no list */
};

struct ipw_server_options {
    const char *base_url, *api_key_env, *cacert; /* from `run`; NULL: not given */
    bool insecure_key;
};

/* Their rows of an option table. */
extern const struct ipw_opt ipw_server_option_rows[];

/* Also 0 if there is no server (url is NULL) or if it does not answer (models_err). */
int ipw_server_find(struct ipw_server *s, const struct ipw_server_options *options,
                    struct ipw_err *err);
void ipw_server_release(struct ipw_server *s);

#endif
