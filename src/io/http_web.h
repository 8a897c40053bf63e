/* io/http_web.h: the web requests of scripts: their connections, and what they may reach.
 *
 * The connections are their own and never carry the model's key.  Only public addresses are
 * reached: the actual address is checked at every request (`guarded`), so neither a name nor a
 * redirect leads to an inner network.  Hosts that the user allowed are exempt.  A proxy of the
 * environment would hide the address, so with a proxy a request is refused unless the user allowed
 * it.  What a request does with a redirect is the business of lua/ipw/http.lua. */
#ifndef IPW_IO_HTTP_WEB_H
#define IPW_IO_HTTP_WEB_H

#include "io/http.h"

struct ipw_web;

struct ipw_web_options {
    const char *const *allow; /* "HOST", "HOST:PORT" or "*", NULL-terminated; or NULL.  Borrowed */
    bool via_proxy;
    const char *cacert; /* or NULL; borrowed */
};

/* Makes no connection and cannot fail: the pool is opened at first use. */
struct ipw_web *ipw_web_new(struct ipw_loop *loop, const struct ipw_web_options *options);
void ipw_web_free(struct ipw_web *web); /* cancels requests in flight; NULL is fine */

/* The pool for a request; IPW_EINVAL: its options are wrong. */
int ipw_web_pool(struct ipw_http **out, struct ipw_web *web, struct ipw_err *err);
/* Whether a request to the address must be guarded.  IPW_EPERM: it must not be made at all. */
int ipw_web_check(bool *guarded, const struct ipw_web *web, const char *url, struct ipw_err *err);
/* Scheme, host and port alike, as libcurl understands them. */
bool ipw_web_same_origin(const char *a, const char *b);

#endif
