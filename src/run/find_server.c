#include "run/find_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "io/url.h"

#define DISCOVER_NS (500 * IPW_NS_PER_MS)
#define LIST_NS     (10 * IPW_NS_PER_S)

/* clang-format off */
#define AT(field) offsetof(struct ipw_server_options, field)
const struct ipw_opt ipw_server_option_rows[] = {
    {"base-url", 'u', IPW_OPT_STR, AT(base_url), "URL", "server (default: $OPENAI_BASE_URL, local ports)"},
    {"api-key-env", 0, IPW_OPT_STR, AT(api_key_env), "VAR", "variable with the API key (default: OPENAI_API_KEY)", .holds = IPW_HOLDS_KEY_NAME},
    {"insecure-key", 0, IPW_OPT_FLAG, AT(insecure_key), NULL, "send the key over plain http to other hosts too"},
    {"cacert", 0, IPW_OPT_STR, AT(cacert), "FILE", "trust these PEM certificates, not the system's"},
    IPW_OPT_END,
};
/* clang-format on */

int ipw_server_key(const char **key, const char *api_key_env, struct ipw_err *err)
{
    const char *value = ipw_keyring_env(api_key_env ? api_key_env : "OPENAI_API_KEY");

    *key = value && value[0] ? value : NULL;
    ipw_secret_add(value);
    if (api_key_env && !*key)
        return ipw_fail(err, IPW_EINVAL, "--api-key-env %s: that variable is not set", api_key_env);
    return 0;
}

/* A proxy sees every prompt, so its use is reported even with --quiet. */
static int take_url(char **out, const char *url, struct ipw_err *err)
{
    struct ipw_buf normal = IPW_BUF(8 * IPW_KIB), proxy = IPW_BUF(4 * IPW_KIB);
    int rc = ipw_llm_normalise_url(&normal, url, err);

    if (!rc) *out = ipw_buf_take(&normal, NULL);
    ipw_buf_release(&normal);
    if (!rc && ipw_url_proxy(&proxy, *out))
        ipw_say("requests to %s go through the proxy %s", *out, ipw_buf_str(&proxy));
    ipw_buf_release(&proxy);
    return rc;
}

int ipw_server_choose(char **url, char **model, bool *named, struct ipw_loop *loop,
                      struct ipw_http *http, const char *base_url, struct ipw_err *err)
{
    const char *given = base_url ? base_url : ipw_keyring_env("OPENAI_BASE_URL");

    *url = *model = NULL;
    *named = given && given[0];
    if (*named) return take_url(url, given, err);
    return ipw_llm_search(url, model, loop, http, NULL, DISCOVER_NS, err);
}

static void listed(void *ud, char **names, const struct ipw_err *err)
{
    struct ipw_server *s = ud;

    s->models = names;
    if (err) s->models_err = *err;
    ipw_loop_stop(s->loop);
}

int ipw_server_find(struct ipw_server *s, const struct ipw_server_options *o, struct ipw_err *err)
{
    struct ipw_llm_options options = {.max_retries = 0, .insecure_key = o->insecure_key};
    struct ipw_llm_probe *probe;
    const char *key;
    char *model = NULL;
    int rc;

    *s = (struct ipw_server){0};
    rc = ipw_server_key(&key, o->api_key_env, err);
    if (!rc) rc = ipw_http_global_init(err);
    if (!rc) rc = ipw_loop_new(&s->loop, err);
    if (!rc)
        rc = ipw_http_new(&s->http, s->loop, &(struct ipw_http_options){.cacert = o->cacert}, err);
    if (!rc) rc = ipw_server_choose(&s->url, &model, &s->named, s->loop, s->http, o->base_url, err);
    free(model);
    if (rc || !s->url) return rc;
    if (s->named) s->key = key;
    options.base_url = s->url;
    options.api_key = s->key;
    rc = ipw_llm_new(&s->llm, s->loop, s->http, &options, err);
    if (!rc) rc = ipw_llm_models(&probe, s->llm, 0, LIST_NS, listed, s, err);
    if (!rc) ipw_loop_run(s->loop);
    return rc;
}

void ipw_server_release(struct ipw_server *s)
{
    ipw_llm_models_free(s->models);
    ipw_llm_free(s->llm);
    if (s->http) ipw_http_free(s->http);
    if (s->loop) {
        ipw_loop_run(s->loop); /* handles are closed */
        ipw_loop_free(s->loop);
    }
    free(s->url);
    *s = (struct ipw_server){0};
}
