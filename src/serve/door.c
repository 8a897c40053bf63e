/* libmicrohttpd on the loop.  An answer's bytes wait in the visit until libmicrohttpd takes them;
 * without any, its connection is suspended. */
#include "serve/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/connections.h"
#include "serve/visitor.h"

enum { CONNECTIONS_MAX = 4096, CLOSING_MAX = 64, IDLE_S = 3600 };
#define REQUEST_BYTES (64 * IPW_MIB)

struct ipw_visit {
    struct ipw_door *door;
    struct MHD_Connection *connection;
    char *target, *method;
    struct ipw_buf body;
    struct ipw_buf out; /* not yet taken */
    struct MHD_Response *response;
    int status;
    bool asked;     /* on_request was called */
    bool suspended; /* waits for the owner */
    bool ended, broken, over;
    void (*on_gone)(void *ud);
    void *ud;
};

struct ipw_door {
    struct ipw_door_options o;
    struct MHD_Daemon *daemon;
    struct ipw_connections connections;
    struct ipw_visitor_rules visitors;
    struct ipw_watch *watch;
    struct ipw_timer *timer;
    struct ipw_defer *soon;
    uint64_t n_connections;
    char url[96];
};

static void run(void *ud);
static void on_timer(void *ud);

static void run_soon(struct ipw_door *d)
{
    if (!d->soon) d->soon = ipw_defer_start(d->o.loop, run, d);
}

static void on_soon(struct ipw_door *d)
{
    unsigned long long ms;

    MHD_run(d->daemon);
    ipw_timer_cancel(d->timer);
    d->timer = NULL;
    if (MHD_get_timeout(d->daemon, &ms) != MHD_YES) return;
    if (ms == 0)
        run_soon(d);
    else
        d->timer = ipw_timer_start(d->o.loop, (int64_t)(ms < 60000 ? ms : 60000) * IPW_NS_PER_MS,
                                   on_timer, d);
}

static void run(void *ud)
{
    struct ipw_door *d = ud;

    d->soon = NULL;
    on_soon(d);
}

static void on_timer(void *ud)
{
    struct ipw_door *d = ud;

    d->timer = NULL;
    on_soon(d);
}

static void on_fd(void *ud) { on_soon(ud); }

static void wake(struct ipw_visit *v)
{
    if (v->suspended) {
        v->suspended = false;
        MHD_resume_connection(v->connection);
    }
    run_soon(v->door);
}

/* ---- the answer ---- */

static ssize_t read_out(void *cls, uint64_t pos, char *to, size_t max)
{
    struct ipw_visit *v = cls;
    size_t n = v->out.len < max ? v->out.len : max;

    (void)pos;
    if (n) {
        memcpy(to, v->out.data, n);
        ipw_buf_drop_front(&v->out, n);
        return (ssize_t)n;
    }
    if (v->broken) return MHD_CONTENT_READER_END_WITH_ERROR;
    if (v->ended) return MHD_CONTENT_READER_END_OF_STREAM;
    v->suspended = true;
    MHD_suspend_connection(v->connection);
    return 0;
}

void ipw_visit_on_gone(struct ipw_visit *v, void (*on_gone)(void *ud), void *ud)
{
    v->on_gone = on_gone;
    v->ud = ud;
}

void ipw_visit_answer(struct ipw_visit *v, int status, const struct ipw_http_header *headers,
                      size_t n, int64_t length)
{
    v->status = status;
    v->response = MHD_create_response_from_callback(
        length >= 0 ? (uint64_t)length : MHD_SIZE_UNKNOWN, 16 * IPW_KIB, read_out, v, NULL);
    for (size_t i = 0; i < n; i++)
        MHD_add_response_header(v->response, headers[i].name, headers[i].value);
    wake(v);
}

void ipw_visit_push(struct ipw_visit *v, const char *bytes, size_t n)
{
    ipw_buf_add(&v->out, bytes, n);
    if (v->response) wake(v);
}

void ipw_visit_end(struct ipw_visit *v)
{
    v->ended = true;
    wake(v);
}

void ipw_visit_break(struct ipw_visit *v)
{
    v->broken = true;
    wake(v);
}

/* ---- requests ---- */

struct list {
    struct ipw_http_header *headers;
    size_t n, cap;
};

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct list *list = cls;

    (void)kind;
    IPW_GROW(list->headers, list->cap, list->n + 1);
    list->headers[list->n++] = (struct ipw_http_header){name, value ? value : ""};
    return MHD_YES;
}

static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct ipw_visit *v = ipw_calloc(1, sizeof *v);

    v->door = cls;
    v->connection = connection;
    v->target = ipw_strdup(target);
    v->body = IPW_BUF(REQUEST_BYTES);
    v->out = IPW_BUF((size_t)1 << 30);
    return v;
}

static void ask(struct ipw_visit *v)
{
    struct ipw_door *d = v->door;
    struct list list = {0};
    struct ipw_door_request request = {.method = v->method, .target = v->target};

    MHD_get_connection_values(v->connection, MHD_HEADER_KIND, add_header, &list);
    request.headers = list.headers;
    request.n_headers = list.n;
    request.body = ipw_buf_str(&v->body);
    request.n = v->body.len;
    v->asked = true;
    d->o.on_request(d->o.ud, v, &request);
    free(list.headers);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **con_cls)
{
    struct ipw_visit *v = *con_cls;
    enum MHD_Result ok;

    (void)cls, (void)url, (void)version;
    if (!v->method) {
        v->method = ipw_strdup(method);
        return MHD_YES;
    }
    if (*size) {
        ipw_buf_add(&v->body, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (!v->asked) {
        ipw_connections_busy(connection);
        ask(v);
    }
    if (!v->response) {
        v->suspended = true;
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    ok = MHD_queue_response(connection, (unsigned)v->status, v->response);
    MHD_destroy_response(v->response);
    return ok;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct ipw_door *d = cls;
    struct ipw_visit *v = *con_cls;

    (void)why;
    if (!v) return;
    *con_cls = NULL;
    ipw_connections_idle(&d->connections, connection);
    if (v->on_gone) v->on_gone(v->ud);
    ipw_buf_release(&v->body);
    ipw_buf_release(&v->out);
    free(v->target);
    free(v->method);
    free(v);
}

/* ---- opening ---- */

int ipw_door_open(struct ipw_door **out, const struct ipw_door_options *o, struct ipw_err *err)
{
    struct ipw_door *d = ipw_calloc(1, sizeof *d);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    const union MHD_DaemonInfo *info;
    int port = o->port;

    d->o = *o;
    d->connections.most = CONNECTIONS_MAX;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    d->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, (uint16_t)port, NULL, NULL,
                         on_request, d, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_NOTIFY_COMPLETED,
                         on_completed, d, MHD_OPTION_NOTIFY_CONNECTION, ipw_connections_notify,
                         &d->connections, MHD_OPTION_URI_LOG_CALLBACK, on_target, d,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX + CLOSING_MAX,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
    if (!d->daemon) {
        free(d);
        return ipw_fail_errno(err, errno ? errno : EIO, "cannot listen on port %d of 127.0.0.1",
                              port);
    }
    info = MHD_get_daemon_info(d->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (info) port = info->port;
    snprintf(d->url, sizeof d->url, "http://127.0.0.1:%d", port);
    info = MHD_get_daemon_info(d->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    d->watch = ipw_watch_start(o->loop, info->epoll_fd, on_fd, d);
    *out = d;
    return 0;
}

const char *ipw_door_url(const struct ipw_door *door) { return door->url; }

void ipw_door_close(struct ipw_door *d)
{
    if (!d) return;
    ipw_watch_cancel(d->watch);
    ipw_timer_cancel(d->timer);
    ipw_defer_cancel(d->soon);
    MHD_stop_daemon(d->daemon);
    free(d);
}
