#include "io/http_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/buf.h"
#include "base/mem.h"

enum { BEGIN_S = 5, WAITING_MAX = 64 * 1024, HEADERS_MAX = 16 * 1024 };

struct http_stream {
    CURLM *multi;
    CURL *easy;
    char *url;
    char waiting[WAITING_MAX];
    size_t n, headers;
    bool paused, begun;
    char why[CURL_ERROR_SIZE];
};

static size_t on_body(char *bytes, size_t size, size_t n, void *ud)
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
    s->easy = curl_easy_init();
    if (!s->multi || !s->easy) IPW_BUG("out of memory");
    curl_easy_setopt(s->easy, CURLOPT_URL, url);
    curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(s->easy, CURLOPT_QUICK_EXIT, 1L); /* closing does not wait for the resolver */
    curl_easy_setopt(s->easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(s->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(s->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(s->easy, CURLOPT_USERAGENT, "ipw-agent/" IPW_VERSION);
    curl_easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT, (long)BEGIN_S);
    curl_easy_setopt(s->easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)BEGIN_S);
    curl_easy_setopt(s->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(s->easy, CURLOPT_HEADERDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->why);
    curl_multi_add_handle(s->multi, s->easy);
    return s;
}

/* How the transfer ended. */
static int fail(struct http_stream *s, CURLcode code, struct ipw_err *err)
{
    const char *why = s->why[0] ? s->why : curl_easy_strerror(code);
    long problem = 0;

    if (s->headers > HEADERS_MAX)
        return ipw_fail(err, IPW_ELIMIT, "%.300s: its headers are over %d KiB", s->url,
                        HEADERS_MAX / 1024);
    if (code == CURLE_OK) return ipw_fail(err, IPW_ENET, "%.300s: the stream ended", s->url);
    if (code == CURLE_COULDNT_CONNECT) curl_easy_getinfo(s->easy, CURLINFO_OS_ERRNO, &problem);
    if (problem) why = strerror((int)problem);
    return ipw_fail(err,
                    code == CURLE_URL_MALFORMAT        ? IPW_EINVAL
                    : code == CURLE_OPERATION_TIMEDOUT ? IPW_ETIMEOUT
                                                       : IPW_ENET,
                    "%.300s: %s", s->url, why);
}

static int check_status(struct http_stream *s, struct ipw_err *err)
{
    long status = 0;

    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    s->begun = true;
    if (status == 200) return 0;
    return ipw_fail(err, IPW_EHTTP, "%.300s: HTTP status %ld", s->url, status);
}

int ipw_http_stream_read(void *stream, char *to, size_t size, size_t *n, struct ipw_err *err)
{
    struct http_stream *s = stream;
    CURLMsg *message;
    int running, left, rc = 0;

    *n = 0;
    if (s->paused && s->n == 0) {
        s->paused = false;
        curl_easy_pause(s->easy, CURLPAUSE_CONT);
    }
    if (s->n < size) curl_multi_perform(s->multi, &running);
    if (s->n && !s->begun) rc = check_status(s, err);
    if (rc) return rc;
    *n = s->n < size ? s->n : size;
    memcpy(to, s->waiting, *n);
    s->n -= *n;
    memmove(s->waiting, s->waiting + *n, s->n);
    if (*n) return 0;
    while ((message = curl_multi_info_read(s->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        if (message->data.result == CURLE_OK && !s->begun) rc = check_status(s, err);
        return rc ? rc : fail(s, message->data.result, err);
    }
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
