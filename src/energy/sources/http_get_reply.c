/* A reply of HTTP/1.x as bytes: status, headers, body. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "energy/sources/http_get.h"

struct head {
    int status;
    size_t body_at;
    bool chunked, has_length;
    size_t length;
};

/* The value of a header line if it is `name`: its start and length without blanks around it. */
static bool header_is(const char *line, size_t n, const char *name, const char **value, size_t *len)
{
    size_t k = strlen(name);

    if (n <= k || strncasecmp(line, name, k) != 0 || line[k] != ':') return false;
    line += k + 1;
    n -= k + 1;
    while (n && (*line == ' ' || *line == '\t')) line++, n--;
    while (n && (line[n - 1] == ' ' || line[n - 1] == '\t')) n--;
    *value = line;
    *len = n;
    return true;
}

/* Digits in `base` from the start of text; how many there were.  A number over the ceiling of a
 * body is as good as one above it. */
static size_t read_size(const char *text, size_t n, unsigned base, size_t *out)
{
    size_t x = 0, i;

    for (i = 0; i < n; i++) {
        unsigned c = (unsigned char)text[i], digit;
        if (c >= '0' && c <= '9') {
            digit = c - '0';
        } else if (base == 16 && isxdigit((int)c)) {
            digit = (unsigned)tolower((int)c) - 'a' + 10;
        } else {
            break;
        }
        x = x * base + digit;
        if (x > IPW_HTTP_GET_MAX) x = IPW_HTTP_GET_MAX + 1;
    }
    *out = x;
    return i;
}

static int read_header(struct head *h, const char *line, size_t n, struct ipw_err *err)
{
    const char *value;
    size_t len;

    if (header_is(line, n, "Transfer-Encoding", &value, &len)) {
        if (len != 7 || strncasecmp(value, "chunked", 7) != 0) {
            return ipw_fail(err, IPW_EUNSUPPORTED, "transfer encoding '%.*s' is not supported",
                            (int)(len < 40 ? len : 40), value);
        }
        h->chunked = true;
    } else if (header_is(line, n, "Content-Encoding", &value, &len)) {
        if (len && strncasecmp(value, "identity", len) != 0) {
            return ipw_fail(err, IPW_EUNSUPPORTED, "content encoding '%.*s' is not supported",
                            (int)(len < 40 ? len : 40), value);
        }
    } else if (header_is(line, n, "Content-Length", &value, &len)) {
        if (!len || read_size(value, len, 10, &h->length) != len) {
            return ipw_fail(err, IPW_EPARSE, "the Content-Length is no number");
        }
        h->has_length = true;
    }
    return 0;
}

/* 1 when the head is whole. */
static int read_head(struct head *h, const char *text, size_t n, struct ipw_err *err)
{
    size_t at = 0;

    *h = (struct head){0};
    for (int line = 0;; line++) {
        const char *nl = memchr(text + at, '\n', n - at);
        size_t len = nl ? (size_t)(nl - text) - at : n - at;
        size_t next = at + len + 1;
        int rc;

        if (line == 0) {
            /* Judged as far as it has come: another protocol may never send a line. */
            size_t k = len < 7 ? len : 7;
            if (strncmp(text, "HTTP/1.", k) != 0) {
                return ipw_fail(err, IPW_EPARSE, "the answer is not HTTP/1");
            }
        }
        if (!nl) return 0;
        if (len && text[at + len - 1] == '\r') len--;
        if (len == 0) {
            h->body_at = next;
            return 1;
        }
        if (line == 0) {
            size_t status = 0;
            if (len < 12 || text[8] != ' ' || read_size(text + 9, 3, 10, &status) != 3) {
                return ipw_fail(err, IPW_EPARSE, "the answer has no status");
            }
            h->status = (int)status;
        } else {
            rc = read_header(h, text + at, len, err);
            if (rc < 0) return rc;
        }
        at = next;
    }
}

static int too_large(struct ipw_err *err)
{
    return ipw_fail(err, IPW_ELIMIT, "the answer is over %zu MiB", IPW_HTTP_GET_MAX / IPW_MIB);
}

/* 1 when the last chunk is there; trailers are not waited for. */
static int read_chunks(const char *text, size_t n, struct ipw_buf *body, struct ipw_err *err)
{
    size_t at = 0;

    for (;;) {
        size_t size = 0, digits = read_size(text + at, n - at, 16, &size);
        const char *nl = memchr(text + at, '\n', n - at);

        if (!nl) return 0;
        if (!digits) return ipw_fail(err, IPW_EPARSE, "a chunk has no size");
        if (size == 0) return 1;
        if (size > IPW_HTTP_GET_MAX) return too_large(err);
        at = (size_t)(nl - text) + 1;
        if (n - at < size) return 0;
        if (ipw_buf_add(body, text + at, size) < 0) return too_large(err);
        at += size;
        if (at < n && text[at] == '\r') at++;
        if (at == n) return 0;
        if (text[at] != '\n') return ipw_fail(err, IPW_EPARSE, "a chunk is longer than its size");
        at++;
    }
}

int ipw_http_reply(const char *text, size_t n, bool ended, int *status, struct ipw_buf *body,
                   struct ipw_err *err)
{
    struct head h;
    size_t left;
    int rc;

    ipw_buf_clear(body);
    for (;;) {
        rc = read_head(&h, text, n, err);
        if (rc <= 0 || h.status / 100 != 1) break;
        /* "100 Continue" comes before the real one. */
        text += h.body_at;
        n -= h.body_at;
    }
    *status = rc > 0 ? h.status : 0;
    if (rc < 0) return rc;
    if (rc == 0) return ended ? ipw_fail(err, IPW_ENET, "the connection ended in the headers") : 0;
    /* What an error's body says is not needed. */
    if (h.status != 200) return 1;
    left = n - h.body_at;
    if (h.chunked) {
        rc = read_chunks(text + h.body_at, left, body, err);
    } else if (h.has_length) {
        if (h.length > IPW_HTTP_GET_MAX) return too_large(err);
        rc = left >= h.length;
        if (rc && ipw_buf_add(body, text + h.body_at, h.length) < 0) return too_large(err);
    } else {
        if (left > IPW_HTTP_GET_MAX) return too_large(err);
        rc = ended;
        if (rc && ipw_buf_add(body, text + h.body_at, left) < 0) return too_large(err);
    }
    if (rc == 0 && ended) return ipw_fail(err, IPW_ENET, "the connection ended in the body");
    return rc;
}
