/* io/http_get.h: the small client of sensors, over plain http, for one thread that reads them.
 *
 * For energy/sources/prometheus.h and stream.h, which get these functions as pointers, since
 * energy may not see the loop.  Two uses of one handle: a page that is fetched again and again, and
 * an answer that does not end and is read piece by piece.  Both follow no redirect, use no proxy,
 * speak no other scheme and ask for no compression: the server is an exporter on this machine or
 * its own network. */
#ifndef IPW_IO_HTTP_GET_H
#define IPW_IO_HTTP_GET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Puts the body of a 200 answer into `body` (emptied first; its limit holds).  Blocks, with one
 * deadline for resolving, connecting and receiving together.  `*kept` is NULL before the first call
 * and keeps the connection and the name's address between calls.  `here` (may be NULL) tells
 * whether the server has a loopback address of this machine.  Returns IPW_EINVAL (the URL),
 * IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP (err->detail is the status), IPW_EPARSE or IPW_ELIMIT; the
 * message begins with the URL. */
int ipw_http_get(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
                 struct ipw_err *err);
void ipw_http_get_release(void *kept); /* NULL is fine */

/* The answer must begin within five seconds and have the status 200.  While nobody reads, at most
 * 64 KiB wait here and the rest in the socket, so that the server sees that its reader is slow.
 * None of these functions waits. */
void *ipw_http_stream_open(const char *url);
/* *n: bytes that were read; 0: none are there now.  IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP, IPW_ELIMIT
 * (headers over 16 KiB), IPW_EINVAL (the URL), IPW_EPARSE: the answer is over; the message begins
 * with the URL. */
int ipw_http_stream_read(void *stream, char *to, size_t size, size_t *n, struct ipw_err *err);
void ipw_http_stream_close(void *stream); /* NULL is fine */

#endif
