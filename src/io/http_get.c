/* A blocking GET on one handle of libcurl. */
#include "io/http_get.h"

#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/err.h"
#include "io/url.h"

static size_t on_body(char *bytes, size_t size, size_t n, void *ud)
{
    (void)size; /* always 1 */
    return ipw_buf_add(ud, bytes, n) < 0 ? 0 : n;
}

static CURL *new_handle(void)
{
    CURL *easy = curl_easy_init();

    if (!easy) IPW_BUG("out of memory");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
                     1L); /* the deadline does not wait for the resolver */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "ipw-agent/" IPW_VERSION);
    /* No compression is requested; a body that is compressed anyway is decoded. */
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "identity");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    return easy;
}

static int fail(struct ipw_err *err, CURLcode code, const char *url, const char *why, size_t most)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
        return ipw_fail(err, IPW_EINVAL, "%.300s: not a valid URL (%s)", url, why);
    case CURLE_OPERATION_TIMEDOUT:
        return ipw_fail(err, IPW_ETIMEOUT, "%.300s: no answer in time", url);
    case CURLE_WRITE_ERROR:
        return ipw_fail(err, IPW_ELIMIT, "%.300s: the answer is over %zu MiB", url, most / IPW_MIB);
    case CURLE_UNSUPPORTED_PROTOCOL: /* libcurl takes the answer for HTTP/0.9 */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING: return ipw_fail(err, IPW_EPARSE, "%.300s: %s", url, why);
    default: return ipw_fail(err, IPW_ENET, "%.300s: %s", url, why);
    }
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
    CURL *easy = *kept ? *kept : new_handle();
    char why[CURL_ERROR_SIZE] = "";
    long status = 0, problem = 0;
    CURLcode code;

    *kept = easy;
    ipw_buf_clear(body);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)((timeout_ns - 1) / IPW_NS_PER_MS + 1));
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
    code = curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
    /* libcurl's own text names a time that differs at each call, but not the reason. */
    if (code == CURLE_COULDNT_CONNECT) curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &problem);
    if (problem) snprintf(why, sizeof why, "%s", strerror((int)problem));
    if (code) return fail(err, code, url, why[0] ? why : curl_easy_strerror(code), body->max);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        ipw_fail(err, IPW_EHTTP, "%.300s: HTTP status %ld", url, status);
        if (err) err->detail = (int)status;
        return IPW_EHTTP;
    }
    if (here) *here = is_here(easy);
    return 0;
}

void ipw_http_get_release(void *kept) { curl_easy_cleanup(kept); }
