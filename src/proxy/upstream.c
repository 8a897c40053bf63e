#include "proxy/upstream.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/secret.h"

int ipw_upstreams_add(struct ipw_upstreams *all, const char *text, const char *key, bool messages,
                      struct ipw_err *err)
{
    const char *scheme = strstr(text, "://"), *equals = strchr(text, '=');
    const char *url = scheme && equals && equals < scheme ? equals + 1 : text;
    size_t n;

    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return ipw_fail(err, IPW_EINVAL,
                        "--upstream '%.80s': expected http://HOST:PORT/v1, or MATCH=URL", text);
    IPW_GROW(all->list, all->cap, all->n + 1);
    n = strlen(url);
    while (n && url[n - 1] == '/') n--;
    all->list[all->n++] = (struct ipw_upstream){
        .match = url > text ? ipw_asprintf("%.*s", (int)(url - 1 - text), text) : NULL,
        .url = ipw_asprintf("%.*s", (int)n, url),
        .key = ipw_strdup(key),
        .messages = messages};
    ipw_secret_add(key);
    return 0;
}

void ipw_upstreams_release(struct ipw_upstreams *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->list[i].match);
        free(all->list[i].url);
        free(all->list[i].key);
    }
    free(all->list);
    *all = (struct ipw_upstreams){0};
}

static bool fits(const struct ipw_upstream *u, const struct ipw_proxy_call *call, const char *path)
{
    if (!u->match) return true;
    if (*u->match == '/') return strncmp(path, u->match, strlen(u->match)) == 0;
    return call->model && fnmatch(u->match, call->model, 0) == 0;
}

/* One that was named for the call comes before one for every call, and of those one that speaks the
 * call's API. */
const struct ipw_upstream *ipw_upstreams_for(const struct ipw_upstreams *all,
                                             const struct ipw_proxy_call *call, const char *path)
{
    bool messages = call->protocol == IPW_CHAT_MESSAGES;
    const struct ipw_upstream *best = NULL;

    for (size_t i = 0; i < all->n; i++) {
        const struct ipw_upstream *u = &all->list[i];

        if (!fits(u, call, path)) continue;
        if (u->match) return u;
        if (!best || (best->messages != messages && u->messages == messages)) best = u;
    }
    return best;
}

static bool ends_with_v1(const char *url)
{
    size_t n = strlen(url);

    return n >= 3 && strcmp(url + n - 3, "/v1") == 0;
}

/* Clients put /v1 into their base address, except those of messages, whose own paths begin with
 * it. */
char *ipw_upstream_url(const struct ipw_upstream *u, const struct ipw_proxy_call *call,
                       const char *path)
{
    bool cut = strncmp(path, "/v1/", 4) == 0 &&
               (ends_with_v1(u->url) || call->protocol != IPW_CHAT_MESSAGES);

    if (!ends_with_v1(u->url) && u->messages) cut = false;
    return ipw_asprintf("%s%s", u->url, cut ? path + 3 : path);
}

/* ---- headers ---- */

static void add(struct ipw_proxy_headers *out, const char *name, const char *value)
{
    IPW_GROW(out->list, out->cap, out->n + 1);
    out->list[out->n++] = (struct ipw_http_header){name, value};
}

void ipw_proxy_headers_release(struct ipw_proxy_headers *headers)
{
    free(headers->key);
    free(headers->list);
    *headers = (struct ipw_proxy_headers){0};
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcasecmp(name, *names) == 0) return true;
    return false;
}

static void add_key(struct ipw_proxy_headers *out, const struct ipw_upstream *u)
{
    if (!u->key || out->key) return; /* some clients send it in two headers */
    out->key = ipw_asprintf("%s%s", u->messages ? "" : "Bearer ", u->key);
    add(out, u->messages ? "x-api-key" : "Authorization", out->key);
}

/* An answer that is compressed could not be read, so none is asked for.  What belongs to the
 * connection is left out by io/http. */
void ipw_upstream_header(struct ipw_proxy_headers *out, const struct ipw_upstream *u,
                         const char *name, const char *value, const char *word)
{
    static const char *const own[] = {"expect", "accept-encoding", NULL};
    static const char *const keys[] = {"authorization", "x-api-key", "api-key", NULL};

    if (is_one_of(name, own)) return;
    if (is_one_of(name, keys)) {
        const char *key = strncasecmp(value, "bearer ", 7) == 0 ? value + 7 : value;

        if (strcmp(key, word) == 0) {
            add_key(out, u);
            return;
        }
        ipw_secret_add(key);
    }
    add(out, name, value);
}
