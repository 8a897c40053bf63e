/* io/http.h: HTTP requests on the loop.
 *
 * Drives libcurl's multi interface with curl_multi_socket_action.  One `struct ipw_http` is a
 * connection pool for one purpose (the model, or a tool's web access); requests started on it reuse
 * its connections.  Redirects are off, only http and https are spoken (HTTP/2 over TLS where the
 * server offers it, each request on a connection of its own all the same), TLS is verified, proxies
 * from the environment are not used for loopback, connections idle for over 4 s are not reused.
 * No compression is asked for; a body that comes compressed all the same is decoded.
 * A request on a reused connection that dies before the first response byte is sent again once on
 * a fresh one (the server never saw it; `resent` tells); after that byte it is a cut answer.
 *
 * Callbacks run in the loop thread, never inside ipw_http_start(); they may start and cancel
 * requests, their own included.  `on_data` receives body bytes as they come with the instant they
 * were seen, which is taken as the first statement of libcurl's callback; a non-zero return ends
 * the request with IPW_HTTP_ABORTED.  `on_done` is called exactly once unless cancelled; the
 * request is gone when it returns. */
#ifndef IPW_IO_HTTP_H
#define IPW_IO_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "io/loop.h"

enum ipw_http_end {
    IPW_HTTP_OK,        /* a whole response was received, whatever its status */
    IPW_HTTP_REFUSED,   /* no connection: refused, unreachable, no route */
    IPW_HTTP_DNS,       /* the name could not be resolved */
    IPW_HTTP_TLS,       /* certificate or handshake */
    IPW_HTTP_RESET,     /* the connection broke before any byte of the answer */
    IPW_HTTP_CUT,       /* the answer broke off (short of its length, bad chunking, reset inside) */
    IPW_HTTP_TIMEOUT,   /* a deadline passed: `deadline` says which */
    IPW_HTTP_TOO_LARGE, /* the body or the headers passed their ceiling */
    IPW_HTTP_ABORTED,   /* on_data said stop */
    IPW_HTTP_PROTOCOL,  /* not HTTP, or anything else libcurl refuses */
};

enum ipw_http_deadline {
    IPW_HTTP_NO_DEADLINE,
    IPW_HTTP_CONNECT_DEADLINE,    /* connect_ns */
    IPW_HTTP_FIRST_BYTE_DEADLINE, /* first_byte_ns: no byte of the answer's body yet */
    IPW_HTTP_IDLE_DEADLINE,       /* idle_ns: no byte for that long */
    IPW_HTTP_TOTAL_DEADLINE,      /* total_ns */
};

struct ipw_http_header {
    const char *name, *value;
};

struct ipw_http_request {
    const char *method; /* "GET", "POST", ...; NULL: POST with a body, else GET */
    const char *url;
    const struct ipw_http_header *headers; /* n_headers; CR, LF and NUL are refused */
    size_t n_headers;
    const char *body; /* copied */
    size_t body_len;
    /* Or: a buffer whose bytes the request holds.  They are in it again when on_done is called, and
     * after a cancel.  A cancel inside a callback of the pool frees them. */
    struct ipw_buf *lend_body;
    int64_t connect_ns, first_byte_ns, idle_ns, total_ns; /* 0: none */
    size_t body_max_bytes; /* of the answer, after decoding; 0: 256 MiB */
    /* Names of headers whose values on_done wants to see, NULL-terminated, lower case, at most
     * IPW_HTTP_WANTED_MAX; must outlive the request.  NULL: none. */
    const char *const *wanted;
    bool stamp_cpu; /* result->sent_cpu_ns is wanted */
};
enum { IPW_HTTP_WANTED_MAX = 8 };

struct ipw_http_result {
    enum ipw_http_end end;
    enum ipw_http_deadline deadline;
    int status;               /* HTTP status; 0 when there was none */
    const char *content_type; /* "" when unknown; borrowed for the callback */
    const char *retry_after;  /* the header's text or "" */
    const char *location;     /* of a 3xx, or "" */
    const char *error;        /* one line for a person when end is not IPW_HTTP_OK */
    int64_t start_ns;         /* ipw_http_start() */
    int64_t sent_ns;          /* connected, about to write the request; start_ns if never */
    int64_t sent_cpu_ns;      /* ipw_cpu_thread_ns() then; 0: it was not asked for */
    int64_t headers_ns;       /* the status line's arrival; 0: none */
    int64_t first_byte_ns;    /* first body byte; 0: none */
    int64_t close_ns;         /* the end was seen */
    int64_t dns_ns, connect_ns, tls_ns; /* durations from libcurl; 0 on a reused connection */
    int64_t bytes_sent, bytes_received; /* bodies */
    bool reused, resent;
    bool guarded; /* the address was not a public one, and the pool reaches no other */
    const char *wanted[IPW_HTTP_WANTED_MAX]; /* the values of request->wanted, "" when absent */
};

struct ipw_http_callbacks {
    /* Status and content type are known; may be NULL. */
    void (*on_headers)(void *ud, int64_t t_ns, int status, const char *content_type);
    int (*on_data)(void *ud, int64_t t_ns, const char *bytes, size_t n);
    void (*on_done)(void *ud, const struct ipw_http_result *result);
    void *ud;
    /* Each header as it comes; with an empty name at a status line.  May be NULL. */
    void (*on_field)(void *ud, const char *name, size_t name_n, const char *value, size_t n);
};

struct ipw_http;
struct ipw_http_call;

struct ipw_http_options {
    /* More requests than that wait inside; 0: as many as this machine has descriptors and ports for
     * (what it has no room for waits, too). */
    size_t max_connections;
    const char *user_agent; /* NULL: "ipw-agent/VERSION" */
    bool guarded;           /* connect to public addresses only, and through no proxy */
    const char *cacert; /* file of PEM certificates to trust in place of the system's, or NULL */
};

/* Call once, before any thread is started. */
int ipw_http_global_init(struct ipw_err *err);
void ipw_http_global_release(void);

int ipw_http_new(struct ipw_http **out, struct ipw_loop *loop,
                 const struct ipw_http_options *options, struct ipw_err *err);
void ipw_http_free(struct ipw_http *http); /* cancels what is in flight, silently */

/* Fails at once (IPW_EINVAL) on a bad URL, scheme or header; all else comes through on_done. */
int ipw_http_start(struct ipw_http_call **out, struct ipw_http *http,
                   const struct ipw_http_request *request,
                   const struct ipw_http_callbacks *callbacks, struct ipw_err *err);
/* Closes the connection; no callback comes after.  Legal until on_done is entered. */
void ipw_http_cancel(struct ipw_http_call *call);

/* Percent-encodes for a query component. */
void ipw_http_escape(struct ipw_buf *out, const char *s, size_t n);

#endif
