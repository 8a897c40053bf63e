/* io/http_get.h: one small page over plain http, fetched again and again by one thread.
 *
 * For energy/sources/prometheus.h, which is handed these functions: each call blocks, with one
 * deadline over finding the name, connecting and receiving together.  No redirect is followed, no
 * proxy is used and no other scheme is spoken: the server is an exporter on this machine or its own
 * network.  The connection and the address of the name are kept between calls. */
#ifndef IPW_IO_HTTP_GET_H
#define IPW_IO_HTTP_GET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Puts the body of a 200 into `body` (emptied first; its ceiling holds).  `*kept` is NULL before the
 * first call.  `here`, unless NULL: whether the server's address is one of this machine's loopback.
 * IPW_EINVAL (the URL), IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP (err->detail is the status), IPW_EPARSE or
 * IPW_ELIMIT; the message begins with the URL. */
int ipw_http_get(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
                 struct ipw_err *err);
void ipw_http_get_release(void *kept); /* NULL is fine */

#endif
