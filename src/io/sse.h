/* io/sse.h: splits a byte stream into server-sent events.
 *
 * A parser owns only two bounded buffers: no socket, no JSON, no clock.  Feed it the network's
 * bytes in pieces of any size.  It calls `on_event` once per complete event, in order, before
 * ipw_sse_feed() returns.  The callback's text is borrowed for the call.  It follows the WHATWG
 * "server-sent events" grammar: lines end in LF, CRLF or CR; comments and unknown fields are
 * ignored; several data lines are joined with LF; a BOM at the start is dropped.  Unlike that
 * grammar, ipw_sse_end() delivers a last event without its blank line, because servers close
 * without it. */
#ifndef IPW_IO_SSE_H
#define IPW_IO_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_sse_event {
    const char *name; /* "" unless an event: line named it */
    const char *data; /* NUL after data_len bytes */
    size_t data_len;
};

/* A non-zero return stops the feed, which returns it. */
typedef int (*ipw_sse_fn)(void *ud, const struct ipw_sse_event *event, struct ipw_err *err);

struct ipw_sse {
    struct ipw_buf line; /* an incomplete line, carried to the next feed */
    struct ipw_buf data; /* data lines of the current event */
    char name[64];
    bool has_data, after_cr, started;
    int64_t comments; /* lines that started with ':' */
    ipw_sse_fn on_event;
    void *ud;
};

void ipw_sse_init(struct ipw_sse *sse, size_t event_max_bytes, ipw_sse_fn on_event, void *ud);
int ipw_sse_feed(struct ipw_sse *sse, const char *bytes, size_t n, struct ipw_err *err);
int ipw_sse_end(struct ipw_sse *sse, struct ipw_err *err);
void ipw_sse_release(struct ipw_sse *sse);

#endif
