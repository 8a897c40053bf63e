/* serve/listener.h: serves a few pages of text, such as metrics, and perhaps a stream of lines, in
 * a thread of its own.
 *
 * Owns a listening socket, its connections and the thread; libmicrohttpd does the work, by epoll.
 * `write` of a page is called in the listener's thread once for each request, and appends the page:
 * whatever it reads needs a lock, or a copy that its owner publishes.  "/" names the pages, unless
 * it is one itself.  Only loopback is listened on, unless the options allow more, and only a Host
 * that names this machine is answered (serve/visitor.h).
 *
 * The stream (`stream`) is an answer at /stream that does not end: a first line, and then the lines
 * that the owner puts into a ring, which it tells by ipw_listener_wake().
 * /stream?after=N&instance=I goes on after line N if I is the stream's.
 *
 * A client cannot hold memory: there are at most 128 connections with 32 KiB each, the idle ones
 * make room for new ones, and silence ends a connection after 10 s.  At most 16 of them read the
 * stream; a slow one loses lines and is told (serve/line_ring.h). */
#ifndef IPW_SERVE_LISTENER_H
#define IPW_SERVE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "serve/line_ring.h"

struct ipw_listen_stream {
    struct ipw_line_ring *lines;
    const char *hello; /* the first line, with its newline */
    const char *instance;
};

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
    const struct ipw_listen_stream *stream;         /* or NULL */
};
struct ipw_listener;

/* IPW_EINVAL: the address is wrong, or not allowed. */
int ipw_listener_open(struct ipw_listener **out, const struct ipw_listen_options *options,
                      struct ipw_err *err);
bool ipw_listener_exposed(const struct ipw_listener *l); /* other machines can reach it */
/* The address of the first page, with the port that it took. */
const char *ipw_listener_url(const struct ipw_listener *l);
void ipw_listener_wake(struct ipw_listener *l);  /* the ring has new lines */
void ipw_listener_close(struct ipw_listener *l); /* NULL is fine */

#endif
