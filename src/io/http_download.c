#include "io/http_download.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/text.h"
#include "io/http_guard.h"

enum { CONNECT_S = 30, STALL_S = 60, BODY_MAX = 64 * 1024 * 1024 };

struct transfer {
    const struct ipw_download *d;
    struct ipw_download_answer *out;
    CURL *easy;
    int64_t range_start; /* of Content-Range; -1: none */
    bool begun;          /* the first byte of the body was seen */
    struct ipw_err failure;
};

/* A header's value when the line is of that header: without blanks around it. */
static bool is_header(const char *line, size_t n, const char *name, char *value, size_t size)
{
    size_t name_n = strlen(name), from = name_n + 1;

    if (n <= name_n || strncasecmp(line, name, name_n) || line[name_n] != ':') return false;
    while (from < n && (line[from] == ' ' || line[from] == '\t')) from++;
    while (n > from && strchr(" \t\r\n", line[n - 1])) n--;
    snprintf(value, size, "%.*s", (int)(n - from), line + from);
    return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *ud)
{
    struct transfer *t = ud;
    struct ipw_download_answer *out = t->out;
    char range[64], message[256];

    (void)size; /* always 1 */
    if (is_header(line, n, "x-error-message", message, sizeof message)) {
        struct ipw_buf clean = IPW_BUF(sizeof out->error_message * 4);

        ipw_text_printable(&clean, message, strlen(message), sizeof out->error_message - 1);
        snprintf(out->error_message, sizeof out->error_message, "%s", ipw_buf_str(&clean));
        ipw_buf_release(&clean);
    } else if (is_header(line, n, "content-range", range, sizeof range)) {
        if (sscanf(range, "bytes %" SCNd64 "-", &t->range_start) != 1) t->range_start = -1;
    } else {
        is_header(line, n, "x-error-code", out->error_code, sizeof out->error_code);
        is_header(line, n, "retry-after", out->retry_after, sizeof out->retry_after);
        is_header(line, n, "link", out->link, sizeof out->link);
    }
    return n;
}

/* A 206 goes on where the file ends; a 200 begins again. */
static int place_body(struct transfer *t, long status)
{
    const struct ipw_download *d = t->d;

    if (status == 206 && t->range_start != t->out->length)
        return ipw_fail(&t->failure, IPW_EPARSE,
                        "%.300s: sends bytes from %" PRId64 ", asked from %" PRId64, d->url,
                        t->range_start, t->out->length);
    if (status == 200) t->out->length = 0;
    if (ftruncate(d->fd, t->out->length) || lseek(d->fd, t->out->length, SEEK_SET) < 0)
        return ipw_fail_errno(&t->failure, errno, "the download's file");
    return 0;
}

static int write_all(struct transfer *t, const char *bytes, size_t n)
{
    while (n) {
        ssize_t k = TEMP_FAILURE_RETRY(write(t->d->fd, bytes, n));

        if (k < 0) return ipw_fail_errno(&t->failure, errno, "the download's file");
        bytes += k;
        n -= (size_t)k;
        t->out->length += k;
    }
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ud)
{
    struct transfer *t = ud;
    long status = 0;

    (void)size; /* always 1 */
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (t->d->fd < 0 || (status != 200 && status != 206))
        return ipw_buf_add(&t->out->body, bytes, n) < 0 ? 0 : n;
    if (!t->begun && place_body(t, status)) return 0;
    t->begun = true;
    if (t->out->length + (int64_t)n > t->d->file_max) {
        ipw_fail(&t->failure, IPW_ELIMIT, "%.300s: more than the %" PRId64 " bytes that it has",
                 t->d->url, t->d->file_max);
        return 0;
    }
    return write_all(t, bytes, n) ? 0 : n;
}

static int on_progress(void *ud, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t upped)
{
    struct transfer *t = ud;

    (void)total, (void)now, (void)up, (void)upped;
    return t->d->progress ? t->d->progress(t->d->ud, t->out->length) : 0;
}

static curl_socket_t on_open(void *ud, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct transfer *t = ud;

    (void)purpose;
    if (!ipw_address_is_public((const struct sockaddr *)&addr->addr)) {
        t->out->met_private = true;
        if (t->d->public_only) {
            ipw_fail(&t->failure, IPW_EPERM, "%.300s: not fetched: its address is not public",
                     t->d->url);
            return CURL_SOCKET_BAD;
        }
    }
    return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

static void set_up(struct transfer *t, struct curl_slist **headers, char *why)
{
    const struct ipw_download *d = t->d;
    char line[4096];

    curl_easy_setopt(t->easy, CURLOPT_URL, d->url);
    curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "ipw-agent/" IPW_VERSION);
    curl_easy_setopt(t->easy, CURLOPT_ACCEPT_ENCODING, NULL); /* a file's bytes as they are */
    curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(t->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(t->easy, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, why);
    if (d->cacert) curl_easy_setopt(t->easy, CURLOPT_CAINFO, d->cacert);
    if (d->bearer) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", d->bearer);
        *headers = curl_slist_append(*headers, line);
        explicit_bzero(line, sizeof line);
    }
    if (d->from > 0) {
        snprintf(line, sizeof line, "Range: bytes=%" PRId64 "-", d->from);
        *headers = curl_slist_append(*headers, line);
    }
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, *headers);
}

static int fail(struct ipw_err *err, CURLcode code, const char *url, const char *why)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return ipw_fail(err, IPW_EINVAL, "%.300s: not a URL that is fetched (%s)", url, why);
    case CURLE_OPERATION_TIMEDOUT:
        return ipw_fail(err, IPW_ETIMEOUT, "%.300s: no answer, or nothing for %d s", url, STALL_S);
    case CURLE_ABORTED_BY_CALLBACK: return ipw_fail(err, IPW_ECANCELLED, "%.300s: was ended", url);
    case CURLE_WRITE_ERROR:
        return ipw_fail(err, IPW_ELIMIT, "%.300s: the answer is over %d MiB", url,
                        BODY_MAX / 1024 / 1024);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PEER_FAILED_VERIFICATION:
        return ipw_fail(err, IPW_ENOTFOUND, "%.300s: %s", url, why);
    default: return ipw_fail(err, IPW_ENET, "%.300s: %s", url, why);
    }
}

int ipw_download(struct ipw_download_answer *out, const struct ipw_download *d, struct ipw_err *err)
{
    struct transfer t = {.d = d, .out = out, .easy = curl_easy_init(), .range_start = -1};
    char why[CURL_ERROR_SIZE] = "", *next = NULL;
    struct curl_slist *headers = NULL;
    long status = 0;
    CURLcode code;
    int rc = 0;

    if (!t.easy) IPW_BUG("out of memory");
    *out = (struct ipw_download_answer){.length = d->from, .body = IPW_BUF(BODY_MAX)};
    set_up(&t, &headers, why);
    code = curl_easy_perform(t.easy);
    curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t.easy, CURLINFO_REDIRECT_URL, &next);
    out->status = (int)status;
    if (next) snprintf(out->location, sizeof out->location, "%s", next);
    if (t.failure.code && (code || t.failure.code != IPW_EPERM)) {
        if (err) *err = t.failure;
        rc = t.failure.code;
    } else if (code) {
        rc = fail(err, code, d->url, why[0] ? why : curl_easy_strerror(code));
    } else if (d->fd >= 0 && status == 200 && !t.begun && ftruncate(d->fd, out->length = 0)) {
        rc = ipw_fail_errno(err, errno, "the download's file"); /* an empty file */
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(t.easy);
    return rc;
}
