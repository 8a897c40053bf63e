#include "run/search_engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "base/secret.h"

static const struct engine {
    const char *name, *variable; /* the variable holds its key; of SearXNG its address */
    const char *url, *header, *prefix;
} engines[] = {
    {"searxng", "SEARXNG_URL", NULL, NULL, NULL},
    {"brave", "BRAVE_API_KEY", "https://api.search.brave.com/res/v1/web/search",
     "X-Subscription-Token", ""},
    {"tavily", "TAVILY_API_KEY", "https://api.tavily.com/search", "Authorization", "Bearer "},
    {"serper", "SERPER_API_KEY", "https://google.serper.dev/search", "X-API-KEY", ""},
};
enum { N_ENGINES = sizeof engines / sizeof *engines };

static int take_url(struct ipw_host_server *s, const char *option, const char *url,
                    struct ipw_err *err)
{
    bool web = !strncmp(url, "http://", 7) || !strncmp(url, "https://", 8);
    const char *host = strstr(url, "://");
    size_t n = host ? strcspn(host + 3, "/?#") : 0;

    if (!n || !web || memchr(host + 3, '@', n))
        return ipw_fail(err, IPW_EINVAL, "%s: '%.200s' is no address of a server", option, url);
    s->url = ipw_strdup(url);
    s->host = ipw_asprintf("%.*s", (int)n, host + 3);
    return 0;
}

/* The server's address is that of its start page or its base URL. */
static int take_start_page(struct ipw_host_server *s, const char *option, const char *url,
                           const char *below, struct ipw_err *err)
{
    size_t n = strlen(url);
    char *whole;
    int rc;

    while (n && url[n - 1] == '/') n--;
    whole = ipw_asprintf("%.*s%s", (int)n, url, below);
    rc = take_url(s, option, whole, err);
    free(whole);
    return rc;
}

static int take_engine(struct ipw_host_server *s, const struct engine *e, const char *url,
                       struct ipw_err *err)
{
    const char *value = ipw_keyring_env(e->variable);

    s->name = ipw_strdup(e->name);
    if (!e->header) {
        if (!url) url = value;
        if (!url || !*url)
            return ipw_fail(err, IPW_EINVAL, "--search %s: %s is not set", e->name, e->variable);
        return take_start_page(s, "--search", url, "/search", err);
    }
    if (!value || !*value)
        return ipw_fail(err, IPW_EINVAL, "--search %s: %s is not set", e->name, e->variable);
    ipw_secret_add(value);
    s->headers = ipw_calloc(3, sizeof *s->headers);
    s->headers[0] = ipw_strdup(e->header);
    s->headers[1] = ipw_asprintf("%s%s", e->prefix, value);
    return take_url(s, "--search", url ? url : e->url, err);
}

static int take_named(struct ipw_host_server *s, const char *said, struct ipw_err *err)
{
    size_t n = strcspn(said, "=");
    struct stat st;

    for (size_t i = 0; i < N_ENGINES; i++)
        if (strlen(engines[i].name) == n && strncmp(engines[i].name, said, n) == 0)
            return take_engine(s, &engines[i], said[n] ? said + n + 1 : NULL, err);
    if (!stat(said, &st) && S_ISDIR(st.st_mode)) s->folder = realpath(said, NULL);
    if (s->folder || strchr(said, '/')) {
        if (!s->folder)
            return ipw_fail(err, IPW_ENOTFOUND, "--search %.200s: there is no such folder", said);
        s->name = ipw_strdup("folder");
        return 0;
    }
    return ipw_fail(err, IPW_EINVAL,
                    "--search: unknown engine '%.100s'; use searxng, brave, tavily, serper, or the "
                    "path of a folder",
                    said);
}

int ipw_search_engine_new(struct ipw_host_server **out, const char *said, struct ipw_err *err)
{
    struct ipw_host_server *s = ipw_calloc(1, sizeof *s);
    int rc = 0;

    *out = NULL;
    if (said) rc = take_named(s, said, err);
    for (size_t i = 0; !said && !rc && !s->name && i < N_ENGINES; i++) {
        const char *value = ipw_keyring_env(engines[i].variable);

        if (value && *value) rc = take_engine(s, &engines[i], NULL, err);
    }
    if (rc || !s->name)
        ipw_search_engine_free(s);
    else
        *out = s;
    return rc;
}

int ipw_speech_server_new(struct ipw_host_server **out, const char *url, const char *model,
                          const char *key_env, struct ipw_err *err)
{
    const char *key = key_env ? ipw_keyring_env(key_env) : NULL, *below = "/audio/transcriptions";
    struct ipw_host_server *s;
    int rc;

    *out = NULL;
    if (!url && (model || key_env))
        return ipw_fail(err, IPW_EINVAL, "--speech-%s: name the server with --speech-url",
                        model ? "model" : "key-env");
    if (key_env && !key)
        return ipw_fail(err, IPW_EINVAL, "--speech-key-env %s: that variable is not set", key_env);
    if (!url) return 0;
    s = ipw_calloc(1, sizeof *s);
    s->name = ipw_strdup(model ? model : "whisper-1");
    if (key) {
        ipw_secret_add(key);
        s->headers = ipw_calloc(3, sizeof *s->headers);
        s->headers[0] = ipw_strdup("Authorization");
        s->headers[1] = ipw_asprintf("Bearer %s", key);
    }
    if (strstr(url, below)) below = "";
    rc = take_start_page(s, "--speech-url", url, below, err);
    if (rc)
        ipw_search_engine_free(s);
    else
        *out = s;
    return rc;
}

void ipw_search_engine_free(struct ipw_host_server *engine)
{
    if (!engine) return;
    for (size_t i = 0; engine->headers && engine->headers[i]; i++) free((void *)engine->headers[i]);
    free(engine->headers);
    free((void *)engine->name);
    free((void *)engine->url);
    free((void *)engine->host);
    free((void *)engine->folder);
    free(engine);
}
