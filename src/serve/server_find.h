/* serve/server_find.h: the model server that commands other than `run` look at.
 *
 * The one that was named (--base-url, $OPENAI_BASE_URL), else the first that answers on the usual
 * local ports; never another.  Owns its loop and connections. */
#ifndef IPW_SERVE_SERVER_FIND_H
#define IPW_SERVE_SERVER_FIND_H

#include <stddef.h>

#include "base/option.h"
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

/* Their rows of an option table. */
extern const struct ipw_opt ipw_server_option_rows[];

/* 0 also when there is no server (url is NULL) and when it does not answer (models_err). */
int ipw_server_find(struct ipw_server *s, const struct ipw_server_options *options,
                    struct ipw_err *err);
void ipw_server_release(struct ipw_server *s);

#endif
