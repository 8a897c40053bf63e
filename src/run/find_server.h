/* run/find_server.h: which model server is meant, and the key for it.
 *
 * The server that was named (--base-url, $OPENAI_BASE_URL), else the first that answers on the usual
 * local ports; never another.  `run` asks on its own loop and connections (ipw_server_choose);
 * commands that only look at a server use struct ipw_server, which owns both. */
#ifndef IPW_RUN_FIND_SERVER_H
#define IPW_RUN_FIND_SERVER_H

#include <stddef.h>

#include "base/option.h"
#include "io/http.h"
#include "io/loop.h"
#include "llm/client.h"

/* The key that the variable holds (NULL: $OPENAI_API_KEY), borrowed from the keyring and kept out of
 * all output; NULL: none.  IPW_EINVAL where a named variable is not set. */
int ipw_server_key(const char **key, const char *api_key_env, struct ipw_err *err);
/* *url: the server's address, to free; NULL: none was named, none found.  *model: the first that a
 * found server lists, to free, or NULL.  A proxy on the way to a named server is told. */
int ipw_server_choose(char **url, char **model, bool *named, struct ipw_loop *loop,
                      struct ipw_http *http, const char *base_url, struct ipw_err *err);

struct ipw_server {
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm *llm;
    char *url; /* NULL: none was named, none found */
    bool named;
    const char *key;           /* goes to a named server only; borrowed from the keyring, or NULL */
    char **models;             /* as it lists them, NULL-terminated; NULL: it does not */
    struct ipw_err models_err; /* why not */
};

struct ipw_server_options {
    const char *base_url, *api_key_env, *cacert; /* as `run` has them; NULL: not given */
    bool insecure_key;
};

/* Their rows of an option table. */
extern const struct ipw_opt ipw_server_option_rows[];

/* 0 also when there is no server (url is NULL) and when it does not answer (models_err). */
int ipw_server_find(struct ipw_server *s, const struct ipw_server_options *options,
                    struct ipw_err *err);
void ipw_server_release(struct ipw_server *s);

#endif
