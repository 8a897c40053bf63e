#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

void ipw_buf_init(struct ipw_buf *b, size_t max_bytes) { *b = IPW_BUF(max_bytes); }

void ipw_buf_release(struct ipw_buf *b)
{
    free(b->data);
    *b = IPW_BUF(b->max);
}

void ipw_buf_clear(struct ipw_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data) b->data[0] = '\0';
}

char *ipw_buf_more_room(struct ipw_buf *b, size_t n)
{
    if (b->failed || n > b->max - b->len || b->max < b->len) {
        b->failed = true;
        return NULL;
    }
    if (!b->data || b->len + n + 1 > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        /* Small steps at first: most buffers stay small, and thousands of them wait for a model. */
        while (cap < b->len + n + 1)
            cap = cap > SIZE_MAX / 4 ? b->len + n + 1 : cap * (cap < 256 || cap >= 16384 ? 2 : 4);
        b->data = ipw_realloc(b->data, cap);
        b->cap = cap;
        b->data[b->len] = '\0';
    }
    return b->data + b->len;
}

void ipw_buf_expect(struct ipw_buf *b, size_t n)
{
    if (b->data || n > b->max) return;
    b->data = ipw_malloc(n + 1);
    b->data[0] = '\0';
    b->cap = n + 1;
}

void ipw_buf_fit(struct ipw_buf *b)
{
    /* A long text mostly grows with each turn; to copy it each time costs more than half of it. */
    size_t spare = b->cap < 16384 ? b->cap / 4 : b->cap / 2 + 1;

    if (b->cap < 512 || b->cap - b->len < spare) return;
    b->data = ipw_realloc(b->data, b->len + 1);
    b->cap = b->len + 1;
}

int ipw_buf_add(struct ipw_buf *b, const void *bytes, size_t n)
{
    char *to = ipw_buf_room(b, n);

    if (!to) return IPW_ELIMIT;
    if (n) memcpy(to, bytes, n);
    ipw_buf_added(b, n);
    return 0;
}

int ipw_buf_adds(struct ipw_buf *b, const char *text) { return ipw_buf_add(b, text, strlen(text)); }

int ipw_buf_addc(struct ipw_buf *b, char c) { return ipw_buf_add(b, &c, 1); }

int ipw_buf_addf(struct ipw_buf *b, const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start(ap, fmt);
    rc = ipw_buf_vaddf(b, fmt, ap);
    va_end(ap);
    return rc;
}

int ipw_buf_vaddf(struct ipw_buf *b, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof small) {
        va_end(again);
        return ipw_buf_add(b, small, (size_t)n);
    }
    if (n >= 0) {
        char *to = ipw_buf_room(b, (size_t)n);
        if (to) {
            vsnprintf(to, (size_t)n + 1, fmt, again);
            ipw_buf_added(b, (size_t)n);
        }
    }
    va_end(again);
    return b->failed ? IPW_ELIMIT : 0;
}

void ipw_buf_drop_front(struct ipw_buf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
    } else {
        memmove(b->data, b->data + n, b->len - n);
        b->len -= n;
    }
    if (b->data) b->data[b->len] = '\0';
}

void ipw_buf_truncate(struct ipw_buf *b, size_t len)
{
    if (len >= b->len) return;
    b->len = len;
    b->data[len] = '\0';
}

char *ipw_buf_take(struct ipw_buf *b, size_t *len)
{
    char *data = b->data ? b->data : ipw_memdup("", 0);

    if (len) *len = b->len;
    *b = IPW_BUF(b->max);
    return data;
}

const char *ipw_buf_str(const struct ipw_buf *b) { return b->data ? b->data : ""; }
