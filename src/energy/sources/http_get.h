/* energy/sources/http_get.h: one small blocking GET, for exporters.
 *
 * Plain http only, HTTP/1.1, a connection a request; the body may be chunked, of stated length, or
 * end with the connection.  Meant for a sampler's own thread: it blocks, with one deadline over
 * connecting, sending and receiving together.  The name is looked up once, at open, on the caller's
 * thread.  No redirect is followed and no proxy is used: what is scraped is an exporter on this
 * machine or its own network.  A target owns its text and addresses. */
#ifndef IPW_ENERGY_SOURCES_HTTP_GET_H
#define IPW_ENERGY_SOURCES_HTTP_GET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define IPW_HTTP_GET_MAX (4 * IPW_MIB) /* of a body */
#define IPW_HTTP_GET_NS  INT64_C(2000000000)

struct addrinfo;

struct ipw_http_target {
    char url[512];  /* as it was given, for messages */
    char host[256]; /* without the brackets of an IPv6 address */
    char port[6];
    char path[512]; /* "/metrics?x=1" */
    bool loopback;  /* every address of the host is this machine's own loopback, or 0.0.0.0 */
    struct addrinfo *addresses;
};

/* "http://host[:port][/path]"; without a path "/metrics" is asked for.  "https" is refused with
 * advice.  Pure: no name is looked up. */
int ipw_http_target_parse(struct ipw_http_target *t, const char *url, struct ipw_err *err);
/* Parses and looks the name up.  On failure there is nothing to release. */
int ipw_http_target_open(struct ipw_http_target *t, const char *url, struct ipw_err *err);
void ipw_http_target_release(struct ipw_http_target *t);

/* Puts the body of a 200 into `body` (emptied first; its ceiling holds).  IPW_ENET, IPW_ETIMEOUT,
 * IPW_EHTTP, IPW_EPARSE or IPW_ELIMIT, the message naming the URL. */
int ipw_http_get(const struct ipw_http_target *t, struct ipw_buf *body, int64_t timeout_ns,
                 struct ipw_err *err);

/* The pure part: a whole reply as it was received (to the end of the connection, or `complete`
 * says 1 earlier) into status and body.  1: complete; 0: more is to come; negative: not HTTP.
 * `ended`: the connection is closed, nothing more comes. */
int ipw_http_reply(const char *text, size_t n, bool ended, int *status, struct ipw_buf *body,
                   struct ipw_err *err);

#endif
