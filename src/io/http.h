/* io/http.h: HTTP requests on the loop.
 *
 * Drives libcurl's multi interface with curl_multi_socket_action.  One `struct ipw_http` is a
 * connection pool for one purpose (the model, or a tool's web access); its requests reuse its
 * connections.  Redirects are off.  Only http and https are spoken: HTTP/2 over TLS if the server
 * offers it, but each request on its own connection.  TLS is verified.  Proxies from the
 * environment are not used for loopback.  Connections that were idle for over 4 s are not reused.
 * No compression is requested; a body that is compressed anyway is decoded.  If a reused connection
 * dies before the first byte of the answer, the server never saw the request.  It is sent again
 * once on a new connection (`resent` tells).  After that byte the answer is cut.
 *
 * Callbacks run in the loop thread, never inside ipw_http_start().  They may start and cancel
 * requests, including their own.  `on_data` receives body bytes with the instant of their arrival,
 * taken as the first statement of libcurl's callback.  If it returns non-zero, the request ends
 * with IPW_HTTP_ABORTED.  `on_done` is called exactly once unless the request is cancelled; it is
 * the request's last callback, after which the request no longer exists. */
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
    const char *body; /* copied, unless take_body */
    size_t body_len;
    struct ipw_buf *take_body; /* instead of `body`: a buffer whose bytes the request takes over */
    int64_t connect_ns, first_byte_ns, idle_ns, total_ns; /* 0: no limit */
    size_t body_max_bytes; /* limit of the decoded answer; 0: 256 MiB */
    /* Names of headers whose values on_done needs, NULL-terminated, in lower case, at most
     * IPW_HTTP_WANTED_MAX; must outlive the request.  NULL: none. */
    const char *const *wanted;
    bool stamp_cpu; /* fill result->sent_cpu_ns */
};
enum { IPW_HTTP_WANTED_MAX = 8 };

struct ipw_http_result {
    enum ipw_http_end end;
    enum ipw_http_deadline deadline;
    int status;               /* HTTP status; 0 if there was none */
    const char *content_type; /* "" if unknown; borrowed for the callback */
    const char *retry_after;  /* the header's text, or "" */
    const char *location;     /* of a 3xx, or "" */
    const char *error;        /* one line for a person if end is not IPW_HTTP_OK */
    int64_t start_ns;         /* when ipw_http_start() was called */
    int64_t sent_ns;          /* connected, about to write the request; start_ns if it never was */
    int64_t sent_cpu_ns;      /* ipw_cpu_thread_ns() at sent_ns; 0: not requested */
    int64_t headers_ns;       /* the status line's arrival; 0: none */
    int64_t first_byte_ns;    /* first body byte; 0: none */
    int64_t close_ns;         /* when the end was seen */
    int64_t dns_ns, connect_ns, tls_ns; /* durations from libcurl; 0 on a reused connection */
    int64_t bytes_sent, bytes_received; /* sizes of the bodies */
    bool reused, resent;
    bool guarded; /* the address was not public, and the pool reaches only public ones */
    const char *wanted[IPW_HTTP_WANTED_MAX]; /* the values of request->wanted, "" if absent */
};

struct ipw_http_callbacks {
    /* Called when status and content type are known; may be NULL. */
    void (*on_headers)(void *ud, int64_t t_ns, int status, const char *content_type);
    int (*on_data)(void *ud, int64_t t_ns, const char *bytes, size_t n);
    void (*on_done)(void *ud, const struct ipw_http_result *result);
    void *ud;
    /* Called for each header as it comes, and with an empty name for a status line; may be NULL. */
    void (*on_field)(void *ud, const char *name, size_t name_n, const char *value, size_t n);
};

struct ipw_http;
struct ipw_http_call;

struct ipw_http_options {
    /* Further requests wait inside the pool.  0: as many as this machine has descriptors and ports
     * for; the rest waits, too. */
    size_t max_connections;
    const char *user_agent; /* NULL: "ipw-agent/VERSION" */
    bool guarded;           /* connect to public addresses only, and through no proxy */
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

/* Percent-encodes for a query component. */
void ipw_http_escape(struct ipw_buf *out, const char *s, size_t n);

#endif
