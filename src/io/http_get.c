#include "io/http_get.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/url.h"

enum { BEGIN_S = 5, WAITING_MAX = 64 * 1024, HEADERS_MAX = 16 * 1024 };

static CURL *new_handle(curl_write_callback on_body)
{
    CURL *easy = curl_easy_init();

    if (!easy) IPW_BUG("out of memory");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* The deadline and the end do not wait for the resolver. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "ipw-agent/" IPW_VERSION);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    return easy;
}

/* How a transfer without a whole answer ended; `why`: libcurl's text. */
static int fail(struct ipw_err *err, CURL *easy, CURLcode code, const char *url, const char *why)
{
    long problem = 0;

    /* libcurl's own text names a time that differs at each call, but not the reason. */
    if (code == CURLE_COULDNT_CONNECT) curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &problem);
    if (problem) why = strerror((int)problem);
    if (!*why) why = curl_easy_strerror(code);
    switch (code) {
    case CURLE_URL_MALFORMAT:
        return ipw_fail(err, IPW_EINVAL, "%.300s: not a valid URL (%s)", url, why);
    case CURLE_OPERATION_TIMEDOUT:
        return ipw_fail(err, IPW_ETIMEOUT, "%.300s: no answer in time", url);
    case CURLE_UNSUPPORTED_PROTOCOL: /* libcurl takes the answer for HTTP/0.9 */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING: return ipw_fail(err, IPW_EPARSE, "%.300s: %s", url, why);
    default: return ipw_fail(err, IPW_ENET, "%.300s: %s", url, why);
    }
}

static int check_status(CURL *easy, const char *url, struct ipw_err *err)
{
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) return 0;
    ipw_fail(err, IPW_EHTTP, "%.300s: HTTP status %ld", url, status);
    if (err) err->detail = (int)status;
    return IPW_EHTTP;
}

/* ---- a page ---- */

static size_t on_page(char *bytes, size_t size, size_t n, void *ud)
{
    (void)size; /* always 1 */
    return ipw_buf_add(ud, bytes, n) < 0 ? 0 : n;
}

static bool is_here(CURL *easy)
{
    char *address = NULL, url[80];

    curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address);
    snprintf(url, sizeof url, "http://[%.60s]", address ? address : "");
    return ipw_url_is_local(url);
}

int ipw_http_get(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
                 struct ipw_err *err)
{
    CURL *easy = *kept ? *kept : new_handle(on_page);
    char why[CURL_ERROR_SIZE] = "";
    CURLcode code;
    int rc;

    *kept = easy;
    ipw_buf_clear(body);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "identity"); /* decode what comes anyway */
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)((timeout_ns - 1) / IPW_NS_PER_MS + 1));
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
    code = curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
    if (code == CURLE_WRITE_ERROR)
        return ipw_fail(err, IPW_ELIMIT, "%.300s: the answer is over %zu MiB", url,
                        body->max / IPW_MIB);
    rc = code ? fail(err, easy, code, url, why) : check_status(easy, url, err);
    if (!rc && here) *here = is_here(easy);
    return rc;
}

void ipw_http_get_release(void *kept) { curl_easy_cleanup(kept); }

/* ---- an answer that does not end ---- */

struct http_stream {
    CURLM *multi;
    CURL *easy;
    char *url;
    char waiting[WAITING_MAX];
    size_t n, headers;
    bool paused, begun;
    char why[CURL_ERROR_SIZE];
};

static size_t on_piece(char *bytes, size_t size, size_t n, void *ud)
{
    struct http_stream *s = ud;

    (void)size;                         /* always 1 */
    if (n > sizeof s->waiting - s->n) { /* a piece is at most 16 KiB: an empty store takes it */
        s->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    memcpy(s->waiting + s->n, bytes, n);
    s->n += n;
    return n;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ud)
{
    struct http_stream *s = ud;

    (void)bytes, (void)size;
    s->headers += n;
    return s->headers > HEADERS_MAX ? 0 : n;
}

void *ipw_http_stream_open(const char *url)
{
    struct http_stream *s = ipw_calloc(1, sizeof *s);

    s->url = ipw_strdup(url);
    s->multi = curl_multi_init();
    s->easy = new_handle(on_piece);
    if (!s->multi) IPW_BUG("out of memory");
    curl_easy_setopt(s->easy, CURLOPT_URL, url);
    curl_easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT, (long)BEGIN_S);
    curl_easy_setopt(s->easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)BEGIN_S);
    curl_easy_setopt(s->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(s->easy, CURLOPT_HEADERDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->why);
    curl_multi_add_handle(s->multi, s->easy);
    return s;
}

static int ended(struct http_stream *s, CURLcode code, struct ipw_err *err)
{
    int rc = code == CURLE_OK && !s->begun ? check_status(s->easy, s->url, err) : 0;

    if (rc) return rc;
    if (s->headers > HEADERS_MAX)
        return ipw_fail(err, IPW_ELIMIT, "%.300s: its headers are over %d KiB", s->url,
                        HEADERS_MAX / 1024);
    if (code == CURLE_OK) return ipw_fail(err, IPW_ENET, "%.300s: the stream ended", s->url);
    return fail(err, s->easy, code, s->url, s->why);
}

int ipw_http_stream_read(void *stream, char *to, size_t size, size_t *n, struct ipw_err *err)
{
    struct http_stream *s = stream;
    CURLMsg *message;
    int running, left, rc;

    *n = 0;
    if (s->paused && s->n == 0) {
        s->paused = false;
        curl_easy_pause(s->easy, CURLPAUSE_CONT);
    }
    if (s->n < size) curl_multi_perform(s->multi, &running);
    if (s->n && !s->begun) {
        s->begun = true;
        rc = check_status(s->easy, s->url, err);
        if (rc) return rc;
    }
    *n = s->n < size ? s->n : size;
    memcpy(to, s->waiting, *n);
    s->n -= *n;
    memmove(s->waiting, s->waiting + *n, s->n);
    if (*n) return 0;
    while ((message = curl_multi_info_read(s->multi, &left)))
        if (message->msg == CURLMSG_DONE) return ended(s, message->data.result, err);
    return 0;
}

void ipw_http_stream_close(void *stream)
{
    struct http_stream *s = stream;

    if (!s) return;
    curl_multi_remove_handle(s->multi, s->easy);
    curl_easy_cleanup(s->easy);
    curl_multi_cleanup(s->multi);
    free(s->url);
    free(s);
}
