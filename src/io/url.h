/* io/url.h: what an address says as it is written: its host and port, whether the way there leaves this
 * machine or is in the clear, and which proxy of the environment takes part.  No name is looked up.
 *
 * The proxy is chosen by libcurl's rules (http_proxy in small letters only, https_proxy, all_proxy,
 * no_proxy) and io/http.h's own: loopback is never proxied.  The answer is for the user's eyes; where
 * libcurl could decide otherwise, it names the proxy. */
#ifndef IPW_IO_URL_H
#define IPW_IO_URL_H

#include <stdbool.h>

#include "base/buf.h"

/* Behind the "://" of a scheme at the start of the URL; NULL: there is none.  One that comes later is
 * part of something else: libcurl takes "http:/far.example/http://localhost" for far.example. */
const char *ipw_url_authority(const char *url);
/* Appends the address as a message may show it: without user, password, query and fragment. */
void ipw_url_plain(struct ipw_buf *out, const char *url);

/* Appends the proxy's address without its user and password; false when there is none. */
bool ipw_url_proxy(struct ipw_buf *out, const char *url);

/* The setting itself, for libcurl: no_proxy and loopback are not looked at; NULL: there is none. */
const char *ipw_url_proxy_setting(const char *url);

/* Others on the way can read the request: it is http, and not to this machine (localhost, 127.0.0.0/8
 * and ::1 as they are usually written; in doubt the answer is yes). */
bool ipw_url_is_clear(const char *url);

/* Is the server on this machine: one of those addresses (also written as IPv6, ::ffff:127.0.0.1), or
 * 0.0.0.0 or ::, which servers name when they listen on all addresses. */
bool ipw_url_is_local(const char *url);
/* The written port, or the scheme's own; 0: the written one is no port. */
int ipw_url_port(const char *url);

#endif
