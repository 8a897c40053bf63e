/* io/server.h: the one HTTP server of the program.
 *
 * Owns a listening socket, its connections and their requests.  Everything happens on the thread of
 * the loop that the server is attached to.  libmicrohttpd does the work by epoll; its descriptor is
 * one of the loop's.  What is served is a table of routes.
 *
 *   struct ipw_server_options options = {.routes = routes, .n_routes = 2, .port = 8765};
 *   rc = ipw_server_open(&server, &options, err);      (the port is taken now)
 *   if (!rc) rc = ipw_server_attach(server, loop, err); (requests are answered from now on)
 *   ...
 *   ipw_server_close(server);                          (before the loop is freed)
 *
 * A request is an *exchange*.  Its route is called when the request has come whole, and answers
 * then or later: with ipw_answer() if the answer is known whole, else with ipw_answer_begin(),
 * ipw_answer_push() as its bytes come, and ipw_answer_end().  A streamed answer may take hours and
 * be silent for as long as it likes.  The exchange belongs to the server; it is valid until the
 * route's `over` returns, which is called once for each exchange that the route was shown: when the
 * last byte was sent, when the client went away (at once, also while nothing is sent), or when the
 * server is closed.  A client that closes its sending side before it has the answer counts as gone.
 *
 * Who may ask is the business of io/visitor.h.  A request is refused, and its connection closed, if
 * it has two lengths, a length and a Transfer-Encoding, two hosts, or a blank in a header's name.
 * Connections are limited; the idle ones make room for new ones. */
#ifndef IPW_IO_SERVER_H
#define IPW_IO_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "io/loop.h"

struct ipw_server;
struct ipw_exchange;

struct ipw_route {
    /* "/metrics"; one that ends in '/' is for all paths that begin so; NULL or "": every path. */
    const char *path;
    const char *methods; /* "GET" (with HEAD), "POST", "GET, POST"; NULL: every method */
    /* The longest body that is taken; a longer one gets 413. */
    size_t body_most;
    /* The request has come whole. */
    void (*answer)(struct ipw_exchange *x, void *ud);
    /* Each of these can be NULL.
     * piece: takes the body as it comes, instead of ipw_exchange_body().
     * room: a streamed answer that was full has room again.
     * over: see above; `sent`: the whole answer was handed to the kernel. */
    void (*piece)(struct ipw_exchange *x, const char *bytes, size_t n, void *ud);
    void (*room)(struct ipw_exchange *x, void *ud);
    void (*over)(struct ipw_exchange *x, bool sent, void *ud);
    void *ud;
};

struct ipw_server_options {         /* what it points to is borrowed until the server is closed */
    const struct ipw_route *routes; /* the first that fits */
    size_t n_routes;
    const char *host; /* an IPv4 or IPv6 address, "localhost"; NULL: 127.0.0.1 */
    int port;         /* 0: any free port */
    bool expose;      /* an address other than loopback is allowed */
    /* For the message if the address is not allowed: what others could do, and the remedy. */
    const char *not_exposed;
    const char *const *allow_hosts; /* more names that a request's Host can have; or NULL */
    bool pages;                     /* pages of this machine, in a browser, may read the answers */
    bool no_date;                   /* no Date is added to answers: for those of another server */
    bool stays;                     /* keeps ipw_loop_run() running until it is closed */
    size_t connections; /* most at a time; 0: as many as the process may have files, up to 16,384 */
    int idle_s;         /* after which a silent connection is closed; 0: 75 */
    size_t head_bytes;  /* most memory for the head of a request; 0: 32 KiB */
    /* Answers a request that no route takes; NULL: in plain text. */
    void (*refuse)(struct ipw_exchange *x, int status, const char *message);
};

/* Reads "127.0.0.1:9440", ":9440", "[::1]:9440", "9440" into `host` (for options->host) and *port.
 * IPW_EINVAL: it is not an address and a port. */
int ipw_server_address(char *host, size_t size, int *port, const char *text, struct ipw_err *err);

/* IPW_EINVAL: the host is not an address, or is not allowed.  IPW_EIO: the port is taken. */
int ipw_server_open(struct ipw_server **out, const struct ipw_server_options *options,
                    struct ipw_err *err);
int ipw_server_attach(struct ipw_server *server, struct ipw_loop *loop, struct ipw_err *err);
const char *ipw_server_url(const struct ipw_server *server); /* "http://127.0.0.1:8765" */
bool ipw_server_exposed(const struct ipw_server *server);    /* other machines can reach it */
void ipw_server_close(struct ipw_server *server);            /* NULL is fine */

/* ---- the request; texts live as long as the exchange ---- */

const char *ipw_exchange_method(const struct ipw_exchange *x);
const char *ipw_exchange_path(const struct ipw_exchange *x); /* without the query, %xx undone */
/* As the client sent it: with its query, nothing undone. */
const char *ipw_exchange_target(const struct ipw_exchange *x);
/* The first of that name; NULL: there is none.  Of the query ("?after=3"), undone; NULL also
 * without a value. */
const char *ipw_exchange_header(const struct ipw_exchange *x, const char *name);
const char *ipw_exchange_query(const struct ipw_exchange *x, const char *name);
/* All headers in the client's order, those of one name as well. */
typedef void (*ipw_header_fn)(const char *name, const char *value, void *ud);
void ipw_exchange_headers(const struct ipw_exchange *x, ipw_header_fn fn, void *ud);
const char *ipw_exchange_body(const struct ipw_exchange *x, size_t *n);
/* Instants: its head was read; it had come whole. */
int64_t ipw_exchange_head_ns(const struct ipw_exchange *x);
int64_t ipw_exchange_whole_ns(const struct ipw_exchange *x);
/* Counts the server's connections from 1: equal for the requests of one connection. */
uint64_t ipw_exchange_connection(const struct ipw_exchange *x);
/* It has no Origin, or one of this machine: no page of another site sent it. */
bool ipw_exchange_is_near(const struct ipw_exchange *x);
bool ipw_exchange_is_answered(const struct ipw_exchange *x); /* its answer has begun */
/* The route's own. */
void ipw_exchange_keep(struct ipw_exchange *x, void *own);
void *ipw_exchange_own(const struct ipw_exchange *x);

/* ---- the answer ---- */

/* Adds a header, before the answer begins; a name may come several times.  Content-Length,
 * Transfer-Encoding and Connection are the server's own and are left out.  false: it cannot be
 * sent. */
bool ipw_answer_header(struct ipw_exchange *x, const char *name, const char *value);
/* The whole answer; the bytes are copied.  `type` (NULL: none) is its Content-Type. */
void ipw_answer(struct ipw_exchange *x, int status, const char *type, const char *bytes, size_t n);
/* A page that no cache keeps, such as one of figures. */
void ipw_answer_page(struct ipw_exchange *x, const char *type, const char *bytes, size_t n);
/* Begins a streamed answer.  `length`: its bytes, -1: not known. */
void ipw_answer_begin(struct ipw_exchange *x, int status, int64_t length);
/* Appends bytes, which are copied, and sends them as soon as the client takes them.  false: much
 * (256 KiB) is waiting for the client, so stop until the route's `room` is called. */
bool ipw_answer_push(struct ipw_exchange *x, const char *bytes, size_t n);
size_t ipw_answer_waiting(const struct ipw_exchange *x); /* bytes that were pushed and not sent */
void ipw_answer_end(struct ipw_exchange *x);
/* Closes the connection in the middle of the answer, or before one. */
void ipw_answer_break(struct ipw_exchange *x);

#endif
