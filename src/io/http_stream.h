/* io/http_stream.h: an answer over plain http that does not end, read piece by piece.
 *
 * For energy/sources/stream.h, which gets these functions as pointers.  None of them waits.  The
 * answer must begin within five seconds and have the status 200.  It follows no redirect, uses no
 * proxy, asks for no compression and decodes none.  While nobody reads, at most 64 KiB wait here
 * and the rest in the socket, so that the server sees that its reader is slow. */
#ifndef IPW_IO_HTTP_STREAM_H
#define IPW_IO_HTTP_STREAM_H

#include <stddef.h>

#include "base/err.h"

void *ipw_http_stream_open(const char *url);
/* *n: bytes that were read; 0: none are there now.  IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP, IPW_ELIMIT
 * (headers over 16 KiB), IPW_EINVAL (the URL): the answer is over; the message begins with the
 * URL. */
int ipw_http_stream_read(void *stream, char *to, size_t size, size_t *n, struct ipw_err *err);
void ipw_http_stream_close(void *stream); /* NULL is fine */

#endif
