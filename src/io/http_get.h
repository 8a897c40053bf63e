/* io/http_get.h: one small page over plain http, fetched repeatedly by one thread.
 *
 * For energy/sources/prometheus.h, which gets these functions as pointers.  Each call blocks, with
 * one deadline for resolving, connecting and receiving together.  It follows no redirect, uses no
 * proxy and speaks no other scheme: the server is an exporter on this machine or its own network.
 * Between calls it keeps the connection and the name's address. */
#ifndef IPW_IO_HTTP_GET_H
#define IPW_IO_HTTP_GET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Puts the body of a 200 answer into `body` (emptied first; its limit holds).  `*kept` is NULL
 * before the first call.  `here` (may be NULL) tells whether the server has a loopback address of
 * this machine.  Returns IPW_EINVAL (the URL), IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP (err->detail is
 * the status), IPW_EPARSE or IPW_ELIMIT; the message begins with the URL. */
int ipw_http_get(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
                 struct ipw_err *err);
void ipw_http_get_release(void *kept); /* NULL is fine */

#endif
