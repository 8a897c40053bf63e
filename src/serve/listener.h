/* serve/listener.h: serves a few pages of text, such as metrics, in a thread of its own.
 *
 * Owns a listening socket, its connections and the thread; libmicrohttpd does the work, by epoll.
 * `write` of a page is called in the listener's thread once for each request, and appends the page:
 * whatever it reads needs a lock, or a copy that its owner publishes.  "/" names the pages, unless
 * it is one itself.  Only loopback is listened on, unless the options allow more, and only a Host
 * that names this machine is answered (serve/visitor.h).
 *
 * A client cannot hold memory: there are at most 128 connections with 32 KiB each, the idle ones
 * make room for new ones, and silence ends a connection after 10 s. */
#ifndef IPW_SERVE_LISTENER_H
#define IPW_SERVE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define IPW_LISTEN_METRICS "text/plain; version=0.0.4; charset=utf-8"

struct ipw_listen_page {
    const char *path, *type; /* "/metrics", its Content-Type */
    void (*write)(struct ipw_buf *page, void *ud);
    void *ud;
};
enum { IPW_LISTEN_PAGES = 4 };

struct ipw_listen_options { /* borrowed until the listener is closed */
    const char *where;      /* "127.0.0.1:9440", ":9440", "9440"; default address: loopback */
    bool expose;            /* an address other than loopback is allowed */
    /* The remark for an address other than loopback that is not allowed: what others could read,
     * and the remedy. */
    const char *not_exposed;
    const char *const *allow_hosts; /* more names that a request's Host can have; or NULL */
    const char *about;              /* the text at "/" if it is no page */
    struct ipw_listen_page pages[IPW_LISTEN_PAGES]; /* up to one without a path */
};
struct ipw_listener;

/* IPW_EINVAL: the address is wrong, or not allowed. */
int ipw_listener_open(struct ipw_listener **out, const struct ipw_listen_options *options,
                      struct ipw_err *err);
bool ipw_listener_exposed(const struct ipw_listener *l); /* other machines can reach it */
/* The address of the first page, with the port that it took. */
const char *ipw_listener_url(const struct ipw_listener *l);
void ipw_listener_close(struct ipw_listener *l); /* NULL is fine */

#endif
