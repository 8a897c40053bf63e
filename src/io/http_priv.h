/* io/http_priv.h: what http.c (the pool and its sockets), http_call.c (one request) and
 * http_util.c (addresses, header lines, errors) share.  Not for other floors.
 *
 * libcurl may not be entered from inside its own callbacks, and those run our users' callbacks.  So
 * a call started while `in_curl` waits in `queue`, one cancelled meanwhile is marked and put on
 * `doomed`, and ipw_http_leave(), run when libcurl has returned, does the rest.  Everything that
 * can run a user's callback stands between ipw_http_enter() and ipw_http_leave(), which lets such a
 * callback free the pool: the last one to leave does it. */
#ifndef IPW_IO_HTTP_PRIV_H
#define IPW_IO_HTTP_PRIV_H

#include <curl/curl.h>
#include <netinet/in.h>

#include "io/http.h"
#include "io/loop_priv.h"

enum {
    HTTP_RECEIVE_BYTES = 8 * 1024,     /* libcurl's buffer of one request in flight */
    HTTP_RECEIVE_FEW_BYTES = 2 * 1024, /* the same with more than HTTP_MANY in flight */
    HTTP_MANY = 512,
    HTTP_HEADERS_MAX = 64 * 1024,
    HTTP_FIELD_MAX = 8 * 1024, /* of one header that is kept */
    HTTP_LARGE_BODY = 1000000, /* libcurl asks whether it may send one over 1 MiB, unless told */
};

/* A list of header lines in libcurl's form, shared by the requests that have the same. */
struct header_set {
    size_t refs;
    struct curl_slist *lines;
    size_t n; /* of the request's own headers, which come first in `lines` */
    enum { NO_BODY, SMALL_BODY, LARGE_BODY } body;
};

enum call_state {
    CALL_FREE,    /* in the pool's free list */
    CALL_QUEUED,  /* waits in `queue`, unknown to libcurl */
    CALL_RUNNING, /* libcurl has it */
    CALL_DOOMED,  /* cancelled inside a libcurl callback; on `doomed` */
    CALL_ENDING,  /* on_done runs */
};

struct ipw_http_call {
    struct ipw_http *http;
    struct ipw_http_call *prev, *next; /* in one of the pool's lists */
    enum call_state state;
    CURL *easy; /* with its constant options; lives as long as the struct */
    char curl_error[CURL_ERROR_SIZE];
    struct ipw_http_callbacks on;
    struct header_set *headers;
    char *method; /* a custom one that is set in `easy`, or NULL */
    char *url;
    struct ipw_buf body;
    struct ipw_buf *lender; /* gets the body back; NULL: it is ours */
    size_t body_max;        /* of the answer */
    struct {
        int64_t connect_ns, first_byte_ns, idle_ns, total_ns;
    } limit;
    struct ipw_timer deadline; /* never later than the next deadline, often earlier */
    struct {                   /* 0: not yet */
        int64_t start_ns, launch_ns, sent_ns, headers_ns, first_byte_ns, last_byte_ns;
        int64_t dial_ns;     /* its present connection was asked for */
        int64_t sent_cpu_ns; /* with stamp_cpu */
    } at;
    int64_t received;
    size_t header_bytes;
    int sends, status;
    bool head_complete, aborted, too_large, fresh, no_body;
    int open_errno;    /* of the last socket that could not be opened */
    struct sock *sock; /* plain http: the reused connection that it was sent on */
    bool broke;        /* which was closed after bytes of an answer */
    bool begun;        /* and they were not a whole first line */
    bool refused;      /* an address that is not public was met */
    bool stamp_cpu;
    struct { /* header fields of the answer */
        struct ipw_buf content_type, retry_after, location;
        const char *const *wanted;
        struct ipw_buf kept; /* of the wanted ones that came: index byte, value, NUL; again */
    } answer;
};

struct sock {
    uv_poll_t uv; /* first: the close callback frees the whole */
    struct ipw_http *http;
    curl_socket_t fd;
    int armed;                  /* libuv events it is registered for */
    int wanted;                 /* what libcurl waits for; 0 between two requests */
    bool ours;                  /* opened by on_open: its end is announced to on_close */
    struct ipw_http_call *call; /* the request that it was lent to last; NULL: it has ended */
    int64_t received;           /* bytes, when that one was sent; -1: not to be known */
    int own_port, peer_port;    /* 0: not known yet */
    char peer_ip[INET6_ADDRSTRLEN];
};

struct ipw_http {
    struct ipw_loop *loop;
    CURLM *multi;
    char *user_agent; /* the header line */
    char *no_proxy, *cacert;
    bool proxies; /* the environment names a proxy */
    bool guarded; /* only public addresses */
    size_t max_connections;
    size_t squeezed;       /* what this machine has room for, found out; 0: all that is asked for */
    size_t since_squeezed; /* requests that ended since, or since it grew */
    struct ipw_http_call queue, running, doomed; /* list heads */
    struct ipw_http_call *unused;                /* singly linked by next */
    size_t in_flight, n_running;
    struct header_set *last_headers;
    char *last_url;      /* the last one that was found good */
    struct sock **socks; /* by descriptor */
    size_t cap_socks;
    struct ipw_timer clock; /* libcurl's */
    int64_t clock_due_ns;   /* 0: libcurl wants none */
    struct ipw_defer kick;  /* libcurl wants to run now */
    int entered;            /* depth of ipw_http_enter() */
    bool in_curl;
    bool dying;
};

/* http.c */
void ipw_http_enter(struct ipw_http *http);
void ipw_http_leave(struct ipw_http *http); /* finishes, ends and starts what has gathered */
void ipw_http_launch_waiting(struct ipw_http *http); /* as far as there is room */
bool ipw_http_has_room(const struct ipw_http *http);
/* A request is written on the reused connection with these names: what comes on it from here on is its
 * answer.  (libcurl tells the descriptor only when a request has ended, and by then the next one may have been
 * sent on it.) */
void ipw_http_request_begins(struct ipw_http_call *call, int own_port, const char *peer_ip,
                             int peer_port);
void ipw_http_request_ended(struct ipw_http_call *call);
/* A call that failed: true when it is back in the queue, for want of room on this machine. */
bool ipw_http_waits_for_room(struct ipw_http_call *call, CURLcode code);
void ipw_http_list_add(struct ipw_http_call *head, struct ipw_http_call *call);
void ipw_http_list_remove(struct ipw_http_call *call);
void ipw_http_setup_sockets(struct ipw_http_call *call);

/* http_call.c */
void ipw_http_call_launch(struct ipw_http_call *call);
void ipw_http_call_curl_done(struct ipw_http_call *call, CURLcode code);
void ipw_http_call_discard(struct ipw_http_call *call); /* no callback */
void ipw_http_call_destroy(struct ipw_http_call *call); /* a discarded one, for good */

/* http_util.c */
int ipw_http_check_url(struct ipw_http *http, const char *url, struct ipw_err *err);
/* A line of the answer's head, for on_field. */
void ipw_http_hand_field(struct ipw_http_call *call, const char *line, size_t n);
/* Takes a reference that ipw_http_headers_release() gives back. */
int ipw_http_headers_get(struct header_set **out, struct ipw_http *http,
                         const struct ipw_http_request *request, struct ipw_err *err);
void ipw_http_headers_release(struct header_set *set);
enum ipw_http_end ipw_http_end_of(CURLcode code, bool any_answer);
/* How a request ended that brought no whole answer, with its address, for a person. */
void ipw_http_describe_end(struct ipw_buf *out, const struct ipw_http_call *call,
                           enum ipw_http_end end, enum ipw_http_deadline deadline);

#endif
