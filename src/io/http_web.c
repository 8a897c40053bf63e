#include "io/http_web.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "io/url.h"

enum { MAX_CONNECTIONS = 64 };

struct ipw_web {
    struct ipw_loop *loop;
    struct ipw_web_options options;
    struct ipw_http *pool; /* made at first use */
};

struct ipw_web *ipw_web_new(struct ipw_loop *loop, const struct ipw_web_options *options)
{
    struct ipw_web *web = ipw_calloc(1, sizeof *web);

    web->loop = loop;
    web->options = *options;
    return web;
}

void ipw_web_free(struct ipw_web *web)
{
    if (!web) return;
    ipw_http_free(web->pool);
    free(web);
}

int ipw_web_pool(struct ipw_http **out, struct ipw_web *web, struct ipw_err *err)
{
    struct ipw_http_options options = {.max_connections = MAX_CONNECTIONS,
                                       .cacert = web->options.cacert};
    int rc = web->pool ? 0 : ipw_http_new(&web->pool, web->loop, &options, err);

    *out = web->pool;
    return rc;
}

/* A part of a URL; free() it.  NULL if the URL lacks it. */
static char *url_part(const char *url, CURLUPart part)
{
    CURLU *parts = curl_url();
    char *text = NULL, *copy = NULL;

    if (!parts) IPW_BUG("out of memory");
    if (!curl_url_set(parts, CURLUPART_URL, url, 0) &&
        !curl_url_get(parts, part, &text, CURLU_DEFAULT_PORT))
        copy = ipw_strdup(text);
    curl_free(text);
    curl_url_cleanup(parts);
    return copy;
}

bool ipw_web_same_origin(const char *a, const char *b)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    bool same = true;

    for (size_t i = 0; same && i < sizeof parts / sizeof *parts; i++) {
        char *x = url_part(a, parts[i]), *y = url_part(b, parts[i]);
        same = x && y && strcasecmp(x, y) == 0;
        free(x);
        free(y);
    }
    return same;
}

static bool is_allowed(const struct ipw_web *web, const char *host, const char *port)
{
    size_t h = strlen(host);

    for (const char *const *a = web->options.allow; a && *a; a++) {
        if (strcmp(*a, "*") == 0) return true;
        if (strncasecmp(*a, host, h)) continue;
        if (!(*a)[h] || ((*a)[h] == ':' && strcmp(*a + h + 1, port) == 0)) return true;
    }
    return false;
}

int ipw_web_check(bool *guarded, const struct ipw_web *web, const char *url, struct ipw_err *err)
{
    char *host = url_part(url, CURLUPART_HOST), *port = url_part(url, CURLUPART_PORT);
    struct ipw_buf proxy = IPW_BUF(4096);
    int rc = 0;

    *guarded = !(host && port && is_allowed(web, host, port));
    if (*guarded && host && ipw_url_proxy(&proxy, url)) {
        if (!web->options.via_proxy)
            rc = ipw_fail(err, IPW_EPERM,
                          "%s: the proxy (%s) would hide the address that is reached. Use "
                          "--web-via-proxy to allow it",
                          host, ipw_buf_str(&proxy));
        *guarded = false;
    }
    ipw_buf_release(&proxy);
    free(host);
    free(port);
    return rc;
}
