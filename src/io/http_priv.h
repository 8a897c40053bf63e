/* io/http_priv.h: shared by http.c (the pool and its sockets) and http_call.c (one
 * request).  Internal to these files.
 *
 * libcurl must not be entered from inside its own callbacks, and those run our users' callbacks.
 * So a call that is started while `in_curl` waits in `queue`.  A call that is cancelled then is
 * marked and put on `doomed`.  ipw_http_leave() finishes both when libcurl has returned.  All code
 * that can run a user's callback is between ipw_http_enter() and ipw_http_leave().  So such a
 * callback can free the pool: the last ipw_http_leave() frees it. */
#ifndef IPW_IO_HTTP_PRIV_H
#define IPW_IO_HTTP_PRIV_H

#include <curl/curl.h>

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
    struct curl_slist *headers;
    char *method; /* custom method that is set in `easy`, or NULL */
    CURLU *parts; /* the address, taken apart: of this request or the last one */
    char *url;    /* the same as text; NULL: none is set in `easy` */
    bool guarded, set_guarded, set_raw; /* as requested, and as `easy` is set */
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
    bool no_room;     /* this machine had no descriptor for another socket */
    bool met_private; /* an address that is not public */
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
    curl_socket_t fd;
    int wanted; /* the events that libcurl waits for */
};

struct http_lane {
    struct ipw_http *http;
    CURLM *multi;
    size_t n_running;
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
    size_t max_connections;
    struct ipw_http_call queue, running, doomed; /* list heads */
    struct ipw_http_call *unused;                /* singly linked by next */
    size_t in_flight, n_running;
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
void ipw_http_list_add(struct ipw_http_call *head, struct ipw_http_call *call);
void ipw_http_list_remove(struct ipw_http_call *call);

/* http_call.c */
void ipw_http_call_launch(struct ipw_http_call *call);
void ipw_http_call_curl_done(struct ipw_http_call *call, CURLcode code);
void ipw_http_call_discard(struct ipw_http_call *call); /* without a callback */
void ipw_http_call_destroy(struct ipw_http_call *call); /* frees a discarded call */

#endif
