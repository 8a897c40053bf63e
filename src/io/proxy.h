/* io/proxy.h: which way a request would go: to this machine, in the clear, through a proxy of the
 * environment.  Of the address as it is written, no name is looked up.
 *
 * The proxy by libcurl's rules (http_proxy in small letters only, https_proxy, all_proxy, no_proxy), with
 * io/http.h's own on top: loopback is never proxied.  To tell the user, not to decide: where the two
 * could differ this one says that a proxy is used. */
#ifndef IPW_IO_PROXY_H
#define IPW_IO_PROXY_H

#include <stdbool.h>

#include "base/buf.h"

/* Appends the proxy's address without its user and password; false when there is none. */
bool ipw_http_proxy_for(struct ipw_buf *out, const char *url);

/* The setting itself, for libcurl: no_proxy and loopback are not looked at; NULL: there is none. */
const char *ipw_http_proxy_setting(const char *url);

/* What is sent there can be read on the way: http, and not to this machine (localhost, 127.0.0.0/8
 * and ::1 as they are usually written; in doubt the answer is yes). */
bool ipw_http_is_clear(const char *url);

/* Is the server on this machine: one of those addresses (also written as IPv6, ::ffff:127.0.0.1), or
 * 0.0.0.0 or ::, which servers name when they listen on all addresses. */
bool ipw_http_is_here(const char *url);
/* As it is written, or the scheme's; 0: none that can be. */
int ipw_http_port(const char *url);

#endif
