/* io/visitor.h: decides which requests a server of this machine answers.
 *
 * Pure: it takes a request's Host, Origin and Content-Type.  A page in a browser can reach a server
 * on loopback.  Under a name that its owner points to 127.0.0.1 (DNS rebinding) it can even read
 * the answers.  Such a request has that name as its Host.  So only names are answered that the
 * page's owner cannot point anywhere: "localhost", loopback addresses, and the names of
 * --allow-host.  A server for other machines (`exposed`) also answers to any numeric address and to
 * the machine's own name.
 *
 * A page can also send a POST without reading the answer.  The browser first asks the server, which
 * permits it to pages of this machine only.  It does not ask for the content types of forms, so
 * these are refused if the page comes from another origin. */
#ifndef IPW_SERVE_VISITOR_H
#define IPW_SERVE_VISITOR_H

#include <stdbool.h>
#include <stddef.h>

struct ipw_visitor_rules {
    const char *const *names; /* of --allow-host, NULL at the end; or NULL */
    bool exposed;
    const char *own_name; /* of the machine; or NULL */
};

/* `host`: "name", "name:80", "[::1]:80"; NULL (HTTP/1.0 has none; browsers always send it) is
 * accepted. */
bool ipw_visitor_host(const struct ipw_visitor_rules *rules, const char *host);
/* The headers of a POST; each can be NULL. */
bool ipw_visitor_post(const struct ipw_visitor_rules *rules, const char *origin,
                      const char *content_type);
/* Whether a page of that origin may read the answers: one of this machine, or of --allow-host. */
bool ipw_visitor_page(const struct ipw_visitor_rules *rules, const char *origin);
/* Why ipw_visitor_host() refused the request, for the answer; at most 400 bytes. */
void ipw_visitor_say_host(char *out, size_t size, const char *host);

#endif
