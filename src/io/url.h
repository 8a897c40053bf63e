/* io/url.h: facts that the text of an address states: its host and port, whether the request leaves
 * this machine or travels unencrypted, and which proxy of the environment applies.  Resolves no
 * name.
 *
 * The proxy is chosen by libcurl's rules (http_proxy in lower case only, https_proxy, all_proxy,
 * no_proxy) and by a rule of io/http.h: loopback is never proxied.  The answer is for the user to
 * read; where libcurl could decide otherwise, it names the proxy. */
#ifndef IPW_IO_URL_H
#define IPW_IO_URL_H

#include <stdbool.h>

#include "base/buf.h"

/* The text after the "://" of a scheme at the start of the URL; NULL: there is none.  A later "://"
 * belongs to another part: libcurl takes "http:/far.example/http://localhost" for far.example. */
const char *ipw_url_authority(const char *url);
/* The place of the host in a URL, behind user and password. */
const char *ipw_url_host(const char *url);
/* Appends the address in a form for messages: without user, password, query and fragment. */
void ipw_url_plain(struct ipw_buf *out, const char *url);

/* Appends the proxy's address without its user and password; false if no proxy applies. */
bool ipw_url_proxy(struct ipw_buf *out, const char *url);

/* The setting itself, for libcurl, regardless of no_proxy and loopback; NULL: not set. */
const char *ipw_url_proxy_setting(const char *url);

/* Can others on the way read the request?  Yes if it is http and not to this machine (localhost,
 * 127.0.0.0/8 and ::1 in their usual spellings; in doubt yes). */
bool ipw_url_is_clear(const char *url);

/* Is the server on this machine?  Yes for one of those addresses (also as IPv6, ::ffff:127.0.0.1),
 * and for 0.0.0.0 and ::, which servers name if they listen on all addresses. */
bool ipw_url_is_local(const char *url);
/* Is the host ASCII?  libcurl's conversion of other letters depends on the locale, which this
 * program does not set, and finds numbers in some of them. */
bool ipw_url_host_is_ascii(const char *url);
/* The port in the address, or the scheme's default; 0: the port in the address is not valid. */
int ipw_url_port(const char *url);

#endif
