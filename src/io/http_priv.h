/* io/http_priv.h: shared by http.c (the pool and its sockets), http_call.c (one request) and
 * http_util.c (addresses, header lines, errors).  Internal to these files.
 *
 * libcurl must not be entered from inside its own callbacks, and those run our users' callbacks.
 * So a call that is started while `in_curl` waits in `queue`.  A call that is cancelled then is
 * marked and put on `doomed`.  ipw_http_leave() finishes both when libcurl has returned.  All code
 * that can run a user's callback is between ipw_http_enter() and ipw_http_leave().  So such a
 * callback can free the pool: the last ipw_http_leave() frees it. */
#ifndef IPW_IO_HTTP_PRIV_H
#define IPW_IO_HTTP_PRIV_H

#include <curl/curl.h>
#include <netinet/in.h>

#include "io/http.h"
#include "io/loop_priv.h"

enum {
    HTTP_RECEIVE_BYTES = 8 * 1024,     /* libcurl's buffer for one request in flight */
    HTTP_RECEIVE_FEW_BYTES = 2 * 1024, /* the same if more than HTTP_MANY are in flight */
    HTTP_MANY = 64,
    HTTP_LANE_MOST = 512, /* requests in flight of one multi handle */
    HTTP_HEADERS_MAX = 64 * 1024,
    /* Without this size libcurl asks before it sends a body over 1 MiB. */
    HTTP_LARGE_BODY = 1000000,
};

/* An address that was checked, in parts: libcurl would take it apart for every request.  Shared by
 * the requests to it. */
struct http_address {
    size_t refs;
    bool raw; /* with its path as it is */
    char *text;
    CURLU *parts;
};

/* A list of header lines in libcurl's form, shared by requests with equal headers. */
struct header_set {
    size_t refs;
    struct curl_slist *lines;
    size_t n; /* number of the request's own headers, which come first in `lines` */
    enum { NO_BODY, SMALL_BODY, LARGE_BODY } body;
};

enum call_state {
    CALL_FREE,    /* in the pool's free list */
    CALL_QUEUED,  /* waits in `queue`; libcurl does not know it */
    CALL_RUNNING, /* libcurl has it */
    CALL_DOOMED,  /* cancelled inside a libcurl callback; on `doomed` */
    CALL_ENDING,  /* on_done runs */
};

struct ipw_http_call {
    struct ipw_http *http;
    struct ipw_http_call *prev, *next; /* in one of the pool's lists */
    enum call_state state;
    struct http_lane *lane; /* while libcurl has the call */
    CURL *easy;             /* with its constant options; lives as long as the struct */
    char curl_error[CURL_ERROR_SIZE];
    struct ipw_http_callbacks on;
    struct header_set *headers;
    char *method;                 /* custom method that is set in `easy`, or NULL */
    struct http_address *address; /* of this request or the last one; it is set in `easy` */
    struct ipw_buf body;
    struct ipw_buf *lender; /* gets the body back; NULL: it is ours */
    size_t body_max;        /* of the answer */
    struct {
        int64_t connect_ns, first_byte_ns, idle_ns, total_ns;
    } limit;
    struct ipw_timer deadline; /* never later than the next deadline, often earlier */
    struct {                   /* 0: not yet */
        int64_t start_ns, launch_ns, sent_ns, headers_ns, first_byte_ns, last_byte_ns;
        int64_t dial_ns;     /* when its present connection was requested */
        int64_t sent_cpu_ns; /* with stamp_cpu */
    } at;
    int64_t received;
    size_t header_bytes;
    int sends, status;
    bool head_complete, aborted, too_large, fresh, no_body;
    int open_errno;    /* errno of the last socket that could not be opened */
    struct sock *sock; /* plain http: the reused connection that it was sent on */
    bool broke;        /* that connection was closed after bytes of an answer */
    bool begun;        /* those bytes were not a whole first line */
    bool refused;      /* a non-public address was met */
    bool stamp_cpu;
    bool raw, pieces;      /* as requested */
    bool upload;           /* `easy` is set for a body in pieces */
    bool paused;           /* on_data must not be called */
    struct ipw_defer flow; /* libcurl goes on with what was paused */
    struct {
        struct ipw_buf text; /* for each header: name, NUL, value, NUL */
        struct ipw_http_head head;
        struct ipw_http_header *fields; /* into text, when the head is complete */
        size_t cap_fields;
    } answer;
};

struct sock {
    uv_poll_t uv; /* must be first: the close callback frees the whole struct */
    struct http_lane *lane;
    struct sock *prev, *next; /* in the lane's list */
    curl_socket_t fd;
    int armed;                  /* registered libuv events */
    int wanted;                 /* the events that libcurl waits for; 0 between two requests */
    bool ours;                  /* opened by on_open, so on_close will report its end */
    struct ipw_http_call *call; /* the last request that used it; NULL: it has ended */
    int64_t received;           /* bytes received when that request was sent; -1: unknown */
    int own_port, peer_port;    /* 0: unknown */
    char peer_ip[INET6_ADDRSTRLEN];
};

struct http_lane {
    struct ipw_http *http;
    CURLM *multi;
    size_t n_running;
    struct sock *socks;
    struct ipw_timer clock; /* libcurl's timer */
    int64_t clock_due_ns;   /* 0: libcurl wants no timer */
    struct ipw_defer kick;  /* libcurl wants to run now */
};

struct ipw_http {
    struct ipw_loop *loop;
    struct http_lane **lanes; /* at least one */
    size_t n_lanes, cap_lanes;
    size_t lane_most; /* HTTP_LANE_MOST */
    char *user_agent; /* the header line */
    char *no_proxy, *cacert;
    bool proxies; /* does the environment name a proxy? */
    bool guarded; /* reach only public addresses */
    size_t max_connections;
    /* Number of connections that this machine has room for; 0: no limit found. */
    size_t squeezed;
    size_t since_squeezed; /* requests that ended since the limit was found or raised */
    struct ipw_http_call queue, running, doomed; /* list heads */
    struct ipw_http_call *unused;                /* singly linked by next */
    size_t in_flight, n_running;
    struct header_set *last_headers;
    struct http_address *last_address;
    struct sock **socks; /* by descriptor */
    size_t cap_socks;
    int entered; /* depth of ipw_http_enter() */
    bool in_curl;
    bool dying;
};

/* http.c */
void ipw_http_enter(struct ipw_http *http);
/* Finishes, ends and starts the calls that wait for it. */
void ipw_http_leave(struct ipw_http *http);
void ipw_http_launch_waiting(struct ipw_http *http); /* as many as there is room for */
bool ipw_http_has_room(const struct ipw_http *http);
/* Gives the call to libcurl; and takes it away, which closes an unfinished connection. */
void ipw_http_lane_add(struct ipw_http_call *call);
void ipw_http_lane_remove(struct ipw_http_call *call);
/* libcurl goes on with a request that was paused. */
void ipw_http_lane_continue(struct ipw_http_call *call);
/* A request is being written on the reused connection with these addresses.  Bytes that arrive on
 * it from now on are its answer.  (libcurl names the descriptor only after a request has ended, and
 * then it may already carry the next request.) */
void ipw_http_request_begins(struct ipw_http_call *call, int own_port, const char *peer_ip,
                             int peer_port);
void ipw_http_request_ended(struct ipw_http_call *call);
/* Handles a failed call; true if it is back in the queue because this machine lacks room. */
bool ipw_http_waits_for_room(struct ipw_http_call *call, CURLcode code);
void ipw_http_list_add(struct ipw_http_call *head, struct ipw_http_call *call);
void ipw_http_list_remove(struct ipw_http_call *call);
void ipw_http_setup_sockets(struct ipw_http_call *call);

/* http_call.c */
void ipw_http_call_launch(struct ipw_http_call *call);
void ipw_http_call_curl_done(struct ipw_http_call *call, CURLcode code);
void ipw_http_call_discard(struct ipw_http_call *call); /* without a callback */
void ipw_http_call_destroy(struct ipw_http_call *call); /* frees a discarded call */

/* http_util.c */
/* Checks the URL and takes a reference. */
int ipw_http_address_get(struct http_address **out, struct ipw_http *http, const char *url,
                         bool raw, struct ipw_err *err);
bool ipw_http_is_token(const char *s); /* of the characters that a name or a method may have */
void ipw_http_address_release(struct http_address *address); /* NULL is fine */
/* Sets it in the call's handle; the call takes the reference over. */
void ipw_http_address_use(struct ipw_http_call *call, struct http_address *address);
/* Takes a reference; release it with ipw_http_headers_release(). */
int ipw_http_headers_get(struct header_set **out, struct ipw_http *http,
                         const struct ipw_http_request *request, struct ipw_err *err);
void ipw_http_headers_release(struct header_set *set);
enum ipw_http_end ipw_http_end_of(CURLcode code, bool any_answer);
/* Describes for a person how a request without a whole answer ended, with its address. */
void ipw_http_describe_end(struct ipw_buf *out, const struct ipw_http_call *call,
                           enum ipw_http_end end, enum ipw_http_deadline deadline);

#endif
