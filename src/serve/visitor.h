/* serve/visitor.h: whose requests a server of this machine answers.
 *
 * Pure: a request's Host, Origin and Content-Type in, yes or no out.  A page in somebody's browser can
 * reach a server on loopback: under a name that its owner points to 127.0.0.1 (DNS rebinding) it may
 * even read the answers.  Such a request carries that name as its Host, so only names that nobody else
 * can point anywhere are answered: "localhost", loopback addresses, and what --allow-host adds.  A
 * server that other machines may reach (`exposed`) also answers to any address written as one, and to
 * the machine's own name.
 *
 * A page can also send a POST without reading the answer.  A browser asks the server before it does so,
 * and gets no leave from us, except with the content types of forms: those are refused when the page
 * comes from elsewhere. */
#ifndef IPW_SERVE_VISITOR_H
#define IPW_SERVE_VISITOR_H

#include <stdbool.h>
#include <stddef.h>

struct ipw_visitor_rules {
    const char *const *names; /* of --allow-host, NULL at the end; or NULL */
    bool exposed;
    const char *own_name; /* of the machine; or NULL */
};

/* `host`: "name", "name:80", "[::1]:80"; NULL (HTTP/1.0 has none; browsers always send it) is fine. */
bool ipw_visitor_host(const struct ipw_visitor_rules *rules, const char *host);
/* The headers of a POST; each may be NULL. */
bool ipw_visitor_post(const struct ipw_visitor_rules *rules, const char *origin,
                      const char *content_type);
/* Why ipw_visitor_host() said no, for the answer; at most 400 bytes. */
void ipw_visitor_say_host(char *out, size_t size, const char *host);

#endif
