#include "io/http_web.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/http_priv.h"
#include "io/url.h"

enum { MAX_CONNECTIONS = 64, MAX_HEADERS = 100, CONNECT_S = 10 };

struct ipw_web {
    struct ipw_loop *loop;
    struct ipw_web_options options;
    struct ipw_http *guarded, *open; /* made at first use */
    struct ipw_web_call *calls;
};

struct ipw_web_call {
    struct ipw_web *web;
    struct ipw_web_call *prev, *next;
    struct ipw_http_call *http;
    char *method, *url, *body;
    size_t body_len, max_bytes;
    struct ipw_http_header *headers; /* the script's headers, for the origin that it named */
    char **texts;                    /* the headers point into these */
    size_t n_headers;
    bool foreign; /* a redirect has left that origin */
    int redirects, max_redirects;
    int64_t due_ns; /* 0: no deadline */
    struct ipw_buf answer;
    char *fields[2 * MAX_HEADERS];
    size_t n_fields;
    ipw_web_fn done;
    bool (*enough)(void *ud, const char *bytes, size_t n); /* or NULL */
    bool stopped;                                          /* it was enough */
    void *ud;
};

struct ipw_web *ipw_web_new(struct ipw_loop *loop, const struct ipw_web_options *options)
{
    struct ipw_web *web = ipw_calloc(1, sizeof *web);

    web->loop = loop;
    web->options = *options;
    return web;
}

static void call_free(struct ipw_web_call *call)
{
    if (call->prev)
        call->prev->next = call->next;
    else
        call->web->calls = call->next;
    if (call->next) call->next->prev = call->prev;
    while (call->n_fields) free(call->fields[--call->n_fields]);
    for (size_t i = 0; i < 2 * call->n_headers; i++) free(call->texts[i]);
    free(call->texts);
    free(call->headers);
    free(call->method);
    free(call->url);
    free(call->body);
    ipw_buf_release(&call->answer);
    free(call);
}

void ipw_web_watch(struct ipw_web_call *call, bool (*enough)(void *ud, const char *bytes, size_t n))
{
    call->enough = enough;
}

void ipw_web_cancel(struct ipw_web_call *call)
{
    if (call->http) ipw_http_cancel(call->http);
    call_free(call);
}

void ipw_web_free(struct ipw_web *web)
{
    if (!web) return;
    while (web->calls) ipw_web_cancel(web->calls);
    if (web->guarded) ipw_http_free(web->guarded);
    if (web->open) ipw_http_free(web->open);
    free(web);
}

/* ---- addresses ---- */

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

static char *resolve(const char *base, const char *location)
{
    CURLU *parts = curl_url();
    char *text = NULL, *copy = NULL;

    if (!parts) IPW_BUG("out of memory");
    if (!curl_url_set(parts, CURLUPART_URL, base, 0) &&
        !curl_url_set(parts, CURLUPART_URL, location, 0) &&
        !curl_url_get(parts, CURLUPART_URL, &text, 0))
        copy = ipw_strdup(text);
    curl_free(text);
    curl_url_cleanup(parts);
    return copy;
}

static bool same_origin(const char *a, const char *b)
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

/* Chooses the pool that may carry a request to this address. */
static int pool_for(struct ipw_http **out, struct ipw_web *web, const char *url,
                    struct ipw_err *err)
{
    struct ipw_http_options options = {.max_connections = MAX_CONNECTIONS,
                                       .cacert = web->options.cacert};
    char *host = url_part(url, CURLUPART_HOST), *port = url_part(url, CURLUPART_PORT);
    struct ipw_buf proxy = IPW_BUF(4096);
    bool open = false;
    int rc = 0;

    if (host && port) {
        open = is_allowed(web, host, port);
        if (!open && ipw_url_proxy(&proxy, url)) {
            open = web->options.via_proxy;
            if (!open)
                rc = ipw_fail(err, IPW_EPERM,
                              "%s: the proxy (%s) would hide the address that is reached. Use "
                              "--web-via-proxy to allow it",
                              host, ipw_buf_str(&proxy));
        }
    }
    ipw_buf_release(&proxy);
    free(host);
    free(port);
    if (rc) return rc;
    options.guarded = !open;
    *out = open ? web->open : web->guarded;
    if (*out) return 0;
    rc = ipw_http_new(open ? &web->open : &web->guarded, web->loop, &options, err);
    *out = open ? web->open : web->guarded;
    return rc;
}

/* ---- the request ---- */

/* The message begins with the address, without user and query. */
static int fail_at(struct ipw_err *err, enum ipw_code code, const char *url, const char *why)
{
    struct ipw_buf plain = IPW_BUF(4096);

    ipw_url_plain(&plain, url);
    ipw_fail(err, code, "%s: %s", ipw_buf_str(&plain), why);
    ipw_buf_release(&plain);
    return code;
}

static void take_fields(struct ipw_web_call *call, const struct ipw_http_head *head)
{
    for (size_t i = 0; head && i < head->n_fields && i < MAX_HEADERS; i++) {
        char *lower = ipw_strdup(head->fields[i].name);

        for (char *p = lower; *p; p++)
            if (*p >= 'A' && *p <= 'Z') *p = (char)(*p + 'a' - 'A');
        call->fields[call->n_fields++] = lower;
        call->fields[call->n_fields++] = ipw_strdup(head->fields[i].value);
    }
}

static void finish(struct ipw_web_call *call, enum ipw_code code, const char *error,
                   const struct ipw_http_result *r)
{
    struct ipw_web_result result = {.code = code,
                                    .error = error,
                                    .status = r->status,
                                    .redirects = call->redirects,
                                    .url = call->url,
                                    .content_type = ipw_http_field(r->head, "Content-Type"),
                                    .headers = (const char *const *)call->fields,
                                    .body = &call->answer,
                                    .end_ns = r->close_ns};

    take_fields(call, r->head);
    result.n_headers = call->n_fields / 2;
    call->done(call->ud, &result);
    call_free(call);
}

static int on_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct ipw_web_call *call = ud;

    (void)t_ns;
    if (ipw_buf_add(&call->answer, bytes, n)) return 1;
    call->stopped = call->enough && call->enough(call->ud, bytes, n);
    return call->stopped;
}

static int launch(struct ipw_web_call *call, struct ipw_err *err);

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Follows the redirect; false with a message if that is not possible. */
static bool follow(struct ipw_web_call *call, const struct ipw_http_result *r, struct ipw_err *err)
{
    char *next = resolve(call->url, ipw_http_field(r->head, "Location"));

    if (!next) {
        fail_at(err, IPW_EHTTP, call->url, "redirected to an invalid URL");
        return false;
    }
    if (call->redirects >= call->max_redirects) {
        fail_at(err, IPW_EHTTP, call->url, "too many redirects");
        free(next);
        return false;
    }
    call->redirects++;
    if (!same_origin(call->url, next)) call->foreign = true;
    if (r->status == 303 || ((r->status == 301 || r->status == 302) && call->body)) {
        bool head = strcmp(call->method, "HEAD") == 0;
        free(call->method);
        call->method = ipw_strdup(head ? "HEAD" : "GET");
        free(call->body);
        call->body = NULL;
    }
    free(call->url);
    call->url = next;
    ipw_buf_clear(&call->answer);
    return launch(call, err) == 0;
}

static void on_done(void *ud, const struct ipw_http_result *r)
{
    struct ipw_web_call *call = ud;
    struct ipw_err err = {0};

    call->http = NULL;
    if (r->end == IPW_HTTP_OK && is_redirect(r->status) && ipw_http_field(r->head, "Location")[0] &&
        call->max_redirects > 0) {
        if (follow(call, r, &err)) return;
        finish(call, err.code, err.text, r);
        return;
    }
    switch (call->stopped ? IPW_HTTP_OK : r->end) {
    case IPW_HTTP_OK: finish(call, IPW_OK, NULL, r); return;
    case IPW_HTTP_TIMEOUT: finish(call, IPW_ETIMEOUT, r->error, r); return;
    case IPW_HTTP_TOO_LARGE:
    case IPW_HTTP_ABORTED: finish(call, IPW_ELIMIT, r->error, r); return;
    default: finish(call, r->guarded ? IPW_EPERM : IPW_ENET, r->error, r); return;
    }
}

static int launch(struct ipw_web_call *call, struct ipw_err *err)
{
    const struct ipw_http_callbacks callbacks = {
        .on_data = on_data, .on_done = on_done, .ud = call};
    struct ipw_http_request request = {
        .method = call->method,
        .url = call->url,
        .headers = call->foreign ? NULL : call->headers,
        .n_headers = call->foreign ? 0 : call->n_headers,
        .body = call->body,
        .body_len = call->body_len,
        .connect_ns = CONNECT_S * IPW_NS_PER_S,
        .body_max_bytes = call->max_bytes,
    };
    struct ipw_http *http;
    int rc;

    if (call->due_ns) {
        request.total_ns = call->due_ns - ipw_now_ns();
        if (request.total_ns <= 0)
            return fail_at(err, IPW_ETIMEOUT, call->url, "not finished within the total deadline");
    }
    rc = pool_for(&http, call->web, call->url, err);
    return rc ? rc : ipw_http_start(&call->http, http, &request, &callbacks, err);
}

int ipw_web_start(struct ipw_web_call **out, struct ipw_web *web,
                  const struct ipw_http_request *request, int max_redirects, ipw_web_fn done,
                  void *ud, struct ipw_err *err)
{
    struct ipw_web_call *call = ipw_calloc(1, sizeof *call);
    int rc;

    *call = (struct ipw_web_call){
        .web = web,
        .next = web->calls,
        .method = ipw_strdup(request->method ? request->method
                             : request->body ? "POST"
                                             : "GET"),
        .url = ipw_strdup(request->url),
        .body = request->body ? ipw_memdup(request->body, request->body_len) : NULL,
        .body_len = request->body_len,
        .max_bytes = request->body_max_bytes,
        .max_redirects = max_redirects,
        .due_ns = request->total_ns > 0 ? ipw_now_ns() + request->total_ns : 0,
        .done = done,
        .ud = ud,
    };
    if (web->calls) web->calls->prev = call;
    web->calls = call;
    ipw_buf_init(&call->answer, request->body_max_bytes ? request->body_max_bytes : 256 * IPW_MIB);
    call->n_headers = request->n_headers;
    call->headers = ipw_calloc(request->n_headers + 1, sizeof *call->headers);
    call->texts = ipw_calloc(2 * request->n_headers + 1, sizeof *call->texts);
    for (size_t i = 0; i < request->n_headers; i++) {
        call->texts[2 * i] = ipw_strdup(request->headers[i].name);
        call->texts[2 * i + 1] = ipw_strdup(request->headers[i].value);
        call->headers[i] = (struct ipw_http_header){call->texts[2 * i], call->texts[2 * i + 1]};
    }
    rc = launch(call, err);
    if (rc) {
        call_free(call);
        return rc;
    }
    *out = call;
    return 0;
}
