/* io/http.h: HTTP requests on the loop.
 *
 * Drives libcurl's multi interface with curl_multi_socket_action.  One `struct ipw_http` is a
 * connection pool for one purpose (the model, or a tool's web access); its requests reuse its
 * connections.  Redirects are off.  Only http and https are spoken: HTTP/2 over TLS if the server
 * offers it, but each request on its own connection.  TLS is verified.  Proxies from the
 * environment are not used for loopback.  Connections that were idle for over 4 s are not reused.
 * No compression is requested; a body that is compressed anyway is decoded.  If a reused connection
 * dies before the first line of the answer, the request is sent again once on a new connection
 * (`resent` tells).  After that line the answer is cut.
 *
 * Callbacks run in the loop thread, never inside ipw_http_start().  They may start and cancel
 * requests, including their own.  `on_data` receives body bytes with the instant of their arrival,
 * taken as the first statement of libcurl's callback.  If it returns non-zero, the request ends
 * with IPW_HTTP_ABORTED.  `on_done` is called exactly once unless the request is cancelled; it is
 * the request's last callback, after which the request no longer exists.
 *
 * A raw request is for a proxy, which hands on what somebody else asks and what a server answers.
 * Its method is any token and its path stays as it is.  Its headers are sent in the order given,
 * with their repetitions, and no other is added; but the fields of a connection (Connection,
 * Content-Length, Host, Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade) are
 * left out, since this connection has its own.  The answer's body comes without its chunking and
 * otherwise byte for byte: nothing is decompressed.  Interim answers (1xx) and trailers are
 * dropped. */
#ifndef IPW_IO_HTTP_H
#define IPW_IO_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "io/loop.h"

enum ipw_http_end {
    IPW_HTTP_OK,        /* a whole response was received, with any status */
    IPW_HTTP_REFUSED,   /* no connection: refused, unreachable, no route */
    IPW_HTTP_NO_ROOM,   /* this machine has no descriptor or port left for a connection */
    IPW_HTTP_DNS,       /* the name could not be resolved */
    IPW_HTTP_TLS,       /* certificate or handshake */
    IPW_HTTP_RESET,     /* the connection broke before any byte of the answer */
    IPW_HTTP_CUT,       /* the answer broke off (short of its length, bad chunking, reset inside) */
    IPW_HTTP_TIMEOUT,   /* a deadline passed: see `deadline` */
    IPW_HTTP_TOO_LARGE, /* the body or the headers are over their limit */
    IPW_HTTP_ABORTED,   /* on_data returned non-zero */
    IPW_HTTP_PROTOCOL,  /* not HTTP, or another fault that libcurl refuses */
};

enum ipw_http_deadline {
    IPW_HTTP_NO_DEADLINE,
    IPW_HTTP_CONNECT_DEADLINE,    /* connect_ns */
    IPW_HTTP_FIRST_BYTE_DEADLINE, /* first_byte_ns: no byte of the answer's body yet */
    IPW_HTTP_IDLE_DEADLINE,       /* idle_ns: no byte for so long */
    IPW_HTTP_TOTAL_DEADLINE,      /* total_ns */
};

struct ipw_http_header {
    const char *name, *value;
};

struct ipw_http_request {
    const char *method; /* "GET", "POST", ...; NULL: POST with a body, else GET */
    const char *url;
    const struct ipw_http_header *headers; /* CR, LF and NUL are refused */
    size_t n_headers;
    const char *body; /* copied */
    size_t body_len;
    /* Instead of `body`: a buffer whose bytes the request holds.  They are in it again when on_done
     * is called, and after a cancel.  A cancel inside a callback of the pool frees them. */
    struct ipw_buf *lend_body;
    /* Instead of both: the body comes in pieces from on_body.  Its length, or -1: unknown, and it
     * is sent in chunks.  Such a request has a new connection, because it cannot be resent. */
    bool body_in_pieces;
    int64_t pieces_len;
    bool raw;     /* see above */
    bool guarded; /* connect to public addresses only, and through no proxy */
    int64_t connect_ns, first_byte_ns, idle_ns, total_ns; /* 0: no limit */
    size_t body_max_bytes; /* limit of the decoded answer; 0: 256 MiB */
    bool stamp_cpu;        /* fill result->sent_cpu_ns */
};

/* The status and the headers of an answer, in their order and with their repetitions; the names in
 * the server's spelling. */
struct ipw_http_head {
    int status;
    const struct ipw_http_header *fields;
    size_t n_fields;
};
/* The value of the field, in any case; of several the last; "" without one and without a head. */
const char *ipw_http_field(const struct ipw_http_head *head, const char *name);

struct ipw_http_result {
    enum ipw_http_end end;
    enum ipw_http_deadline deadline;
    int status;                       /* HTTP status; 0 if there was none */
    const struct ipw_http_head *head; /* NULL if there was none; borrowed for the callback */
    const char *location;             /* where a 3xx leads, absolute, or "" */
    const char *error;                /* one line for a person if end is not IPW_HTTP_OK */
    int64_t start_ns;                 /* when ipw_http_start() was called */
    int64_t sent_ns;       /* connected, about to write the request; start_ns if it never was */
    int64_t sent_cpu_ns;   /* ipw_cpu_thread_ns() at sent_ns; 0: not requested */
    int64_t headers_ns;    /* the status line's arrival; 0: none */
    int64_t first_byte_ns; /* first body byte; 0: none */
    int64_t close_ns;      /* when the end was seen */
    int64_t dns_ns, connect_ns, tls_ns; /* durations from libcurl; 0 on a reused connection */
    int64_t bytes_sent, bytes_received; /* sizes of the bodies */
    bool reused, resent;
    bool met_private; /* an address was not public; a guarded request did not connect to it */
};

struct ipw_http_callbacks {
    /* Called when the head is whole, with the instant of its first line; may be NULL. */
    void (*on_headers)(void *ud, int64_t t_ns, const struct ipw_http_head *head);
    int (*on_data)(void *ud, int64_t t_ns, const char *bytes, size_t n);
    void (*on_done)(void *ud, const struct ipw_http_result *result);
    void *ud;
    /* Writes the next bytes of the request's body to `to`, at most `size`, and returns how many;
     * 0: that was all; IPW_HTTP_BODY_LATER: none are there yet (then ipw_http_body_ready());
     * IPW_HTTP_BODY_BROKEN: there will be none: the request ends with IPW_HTTP_ABORTED. */
    size_t (*on_body)(void *ud, char *to, size_t size);
};
#define IPW_HTTP_BODY_LATER  ((size_t)-1)
#define IPW_HTTP_BODY_BROKEN ((size_t)-2)

struct ipw_http;
struct ipw_http_call;

struct ipw_http_options {
    /* Further requests wait inside the pool.  0: as many as this machine has descriptors and ports
     * for; the rest waits, too. */
    size_t max_connections;
    const char *user_agent; /* NULL: "ipw-agent/VERSION" */
    const char *cacert;     /* file of PEM certificates to trust instead of the system's, or NULL */
};

/* Call once, before any thread is started. */
int ipw_http_global_init(struct ipw_err *err);
void ipw_http_global_release(void);

int ipw_http_new(struct ipw_http **out, struct ipw_loop *loop,
                 const struct ipw_http_options *options, struct ipw_err *err);
void ipw_http_free(struct ipw_http *http); /* cancels requests in flight without callbacks */

/* Fails at once (IPW_EINVAL) on a bad URL, scheme or header; on_done reports all other faults. */
int ipw_http_start(struct ipw_http_call **out, struct ipw_http *http,
                   const struct ipw_http_request *request,
                   const struct ipw_http_callbacks *callbacks, struct ipw_err *err);
/* Closes the connection; no callback follows.  Allowed until on_done is entered. */
void ipw_http_cancel(struct ipw_http_call *call);

/* No on_data until ipw_http_resume().  Some bytes wait here and the rest in the socket, so that the
 * server sees that its reader is slow.  Idle time is not counted meanwhile; on_done may still come
 * (a broken connection, the total deadline).  Both are allowed in every callback but on_done. */
void ipw_http_pause(struct ipw_http_call *call);
void ipw_http_resume(struct ipw_http_call *call);
/* on_body is asked again soon. */
void ipw_http_body_ready(struct ipw_http_call *call);

#endif
