/* serve/listener.h: serves one page of text, such as metrics, and perhaps a stream of lines, in a
 * thread of its own.
 *
 * Owns a listening socket, its connections and the thread; libmicrohttpd does the work, by epoll.
 * The page is at /metrics, and "/" says so.  `write` is called in the listener's thread once for
 * each request, and appends the page: whatever it reads needs a lock, or a copy that its owner
 * publishes.  Only loopback is listened on, unless the options allow more, and only a Host that
 * names this machine is answered (serve/visitor.h).
 *
 * The stream (`stream`) is an answer at /stream that does not end: a first line, and then the lines
 * that the owner puts into a ring, which it tells by ipw_listener_wake().
 * /stream?after=N&instance=I goes on after line N if I is the stream's.  /clock is a short page, as
 * soon as it is asked for.
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
    void (*clock)(struct ipw_buf *page, void *ud); /* as `write` */
};

struct ipw_listen_options { /* borrowed until the listener is closed */
    const char *where;      /* "127.0.0.1:9440", ":9440", "9440"; default address: loopback */
    bool expose;            /* an address other than loopback is allowed */
    /* The remark for an address other than loopback that is not allowed: what others could read,
     * and the remedy. */
    const char *not_exposed;
    const char *const *allow_hosts; /* more names that a request's Host can have; or NULL */
    const char *about;              /* the text at "/" */
    void (*write)(struct ipw_buf *page, void *ud);
    const struct ipw_listen_stream *stream; /* or NULL */
    void *ud;
};
struct ipw_listener;

/* IPW_EINVAL: the address is wrong, or not allowed. */
int ipw_listener_open(struct ipw_listener **out, const struct ipw_listen_options *options,
                      struct ipw_err *err);
bool ipw_listener_exposed(const struct ipw_listener *l);    /* other machines can reach it */
const char *ipw_listener_url(const struct ipw_listener *l); /* with the port that it took */
void ipw_listener_wake(struct ipw_listener *l);             /* the ring has new lines */
void ipw_listener_close(struct ipw_listener *l);            /* NULL is fine */

#endif
