/* One thread does everything.  It drives libmicrohttpd through its epoll descriptor; answers that
 * are not due yet wait in a heap, with their connections suspended.  So no lock is needed, and a
 * thousand streams need no threads. */
#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/write.h"
#include "serve/connections.h"

enum { CONNECTIONS_MAX = 16384, CLOSING_MAX = 64, IDLE_S = 75 };
enum { OTHER_FILES = 64 }; /* of the process, besides its connections */
#define REQUEST_BYTES (64 * IPW_MIB)

struct exchange { /* one request and its answer */
    struct ipw_serve *serve;
    struct MHD_Connection *connection;
    struct ipw_buf body;
    bool answered;
    const char *type, *allow;
    struct ipw_served_answer answer;
    size_t part, sent; /* of a stream: the current part; bytes sent in all */
    int64_t start_ns;
    int64_t due_ns; /* while its connection is suspended */
};

struct ipw_serve {
    struct MHD_Daemon *daemon;
    struct ipw_served_model *model;
    struct ipw_visitor_rules visitors;
    struct ipw_connections connections;
    char url[96];
    struct exchange **heap; /* suspended exchanges, the first due at [0] */
    size_t n_heap, cap_heap;
};

/* ---- waiting answers ---- */

static void heap_push(struct ipw_serve *s, struct exchange *x)
{
    size_t at = s->n_heap;

    IPW_GROW(s->heap, s->cap_heap, s->n_heap + 1);
    s->n_heap++;
    while (at > 0 && s->heap[(at - 1) / 2]->due_ns > x->due_ns) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = x;
}

static struct exchange *heap_pop(struct ipw_serve *s)
{
    struct exchange *first = s->heap[0], *moved = s->heap[--s->n_heap];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->n_heap) break;
        if (child + 1 < s->n_heap && s->heap[child + 1]->due_ns < s->heap[child]->due_ns) child++;
        if (s->heap[child]->due_ns >= moved->due_ns) break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    if (s->n_heap) s->heap[at] = moved;
    return first;
}

static void wait_until(struct exchange *x, int64_t due_ns)
{
    x->due_ns = due_ns;
    MHD_suspend_connection(x->connection);
    heap_push(x->serve, x);
}

static int64_t due_of(const struct exchange *x, size_t part)
{
    int64_t due_ns;

    return __builtin_add_overflow(x->start_ns, x->answer.parts[part].after_ns, &due_ns) ? INT64_MAX
                                                                                        : due_ns;
}

/* ---- answers ---- */

static void set_error(struct exchange *x, int status, const char *message)
{
    ipw_served_answer_error(&x->answer, status, message);
}

static bool has_model(const struct ipw_serve *s, const char *name)
{
    const char *known;

    for (size_t i = 0; (known = ipw_served_model_name(s->model, i)); i++)
        if (strcmp(known, name) == 0) return true;
    return false;
}

static void write_model(struct ipw_jw *w, const char *name)
{
    ipw_jw_obj(w);
    ipw_jw_kint(w, "created", 0);
    ipw_jw_kstr(w, "id", name);
    ipw_jw_kstr(w, "object", "model");
    ipw_jw_kstr(w, "owned_by", "ipw-agent");
    ipw_jw_obj_end(w);
}

static void answer_models(struct exchange *x)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    const char *name;
    struct ipw_jw w;

    ipw_jw_init(&w, &text);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "data");
    ipw_jw_arr(&w);
    for (size_t i = 0; (name = ipw_served_model_name(x->serve->model, i)); i++)
        write_model(&w, name);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "object", "list");
    ipw_jw_obj_end(&w);
    ipw_served_answer_text(&x->answer, 200, ipw_buf_str(&text));
    ipw_buf_release(&text);
}

static void answer_model(struct exchange *x, const char *asked)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char message[256];
    struct ipw_jw w;

    ipw_jw_init(&w, &text);
    write_model(&w, asked);
    snprintf(message, sizeof message, "the model '%.80s' does not exist; this server has '%s'",
             asked, ipw_serve_model(x->serve));
    if (has_model(x->serve, asked))
        ipw_served_answer_text(&x->answer, 200, ipw_buf_str(&text));
    else
        set_error(x, 404, message);
    ipw_buf_release(&text);
}

static void answer_chat(struct exchange *x)
{
    if (x->body.failed)
        set_error(x, 413, "the request is longer than 64 MiB");
    else
        ipw_served_model_answer(x->serve->model, &x->answer, ipw_buf_str(&x->body), x->body.len,
                                (int64_t)time(NULL));
}

/* ---- routes ---- */

static bool may(struct exchange *x, const char *method, const char *allowed)
{
    bool head = strcmp(allowed, "GET") == 0 && strcmp(method, "HEAD") == 0;
    char message[64];

    if (head || strcmp(method, allowed) == 0) return true;
    x->allow = allowed;
    snprintf(message, sizeof message, "this path takes %s only", allowed);
    set_error(x, 405, message);
    return false;
}

static const char *header(const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* A page in a browser of this machine must not use the server. */
static bool is_welcome(struct exchange *x, const char *method)
{
    const struct ipw_visitor_rules *rules = &x->serve->visitors;
    const char *host = header(x, "Host");
    char message[512];

    if (!ipw_visitor_host(rules, host)) {
        ipw_visitor_say_host(message, sizeof message, host);
        set_error(x, 403, message);
    } else if (strcmp(method, "POST") == 0 &&
               !ipw_visitor_post(rules, header(x, "Origin"), header(x, "Content-Type"))) {
        set_error(x, 403,
                  "a page of another origin sent this with the content type of a form; send "
                  "Content-Type: application/json");
    } else {
        return true;
    }
    return false;
}

/* A browser asks before a page of another origin may send a request. */
static bool is_preflight(const struct exchange *x, const char *method)
{
    return strcmp(method, "OPTIONS") == 0 && header(x, "Access-Control-Request-Method") &&
           ipw_visitor_page(&x->serve->visitors, header(x, "Origin"));
}

/* A page on this machine may read the answer. */
static void permit_page(const struct exchange *x, struct MHD_Response *response)
{
    const char *origin = header(x, "Origin");
    const char *asked = header(x, "Access-Control-Request-Headers");

    if (!ipw_visitor_page(&x->serve->visitors, origin)) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(response, "Vary", "Origin");
    if (x->answer.status != 204) return;
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST");
    if (asked) MHD_add_response_header(response, "Access-Control-Allow-Headers", asked);
}

static void route(struct exchange *x, const char *method, const char *path)
{
    static const char models[] = "/v1/models/";

    x->type = "application/json";
    if (!is_welcome(x, method)) return;
    if (is_preflight(x, method)) {
        ipw_served_answer_text(&x->answer, 204, "");
    } else if (strcmp(path, "/v1/chat/completions") == 0) {
        if (may(x, method, "POST")) answer_chat(x);
    } else if (strcmp(path, "/v1/models") == 0) {
        if (may(x, method, "GET")) answer_models(x);
    } else if (strncmp(path, models, sizeof models - 1) == 0) {
        if (may(x, method, "GET")) answer_model(x, path + sizeof models - 1);
    } else if (strcmp(path, "/health") == 0) {
        if (may(x, method, "GET")) ipw_served_answer_text(&x->answer, 200, "{\"status\":\"ok\"}");
    } else {
        set_error(x, 404, "unknown path; try /v1/models or /v1/chat/completions");
    }
    if (x->answer.streams) x->type = "text/event-stream";
}

/* ---- libmicrohttpd ---- */

/* Sends the parts that are due.  If none is left, the connection is suspended until the next is
 * due. */
static ssize_t read_stream(void *cls, uint64_t pos, char *to, size_t max)
{
    struct exchange *x = cls;
    const struct ipw_served_answer *a = &x->answer;
    int64_t now = ipw_now_ns();
    size_t end = x->sent, n;

    (void)pos;
    while (x->part < a->n_parts && due_of(x, x->part) <= now) end = a->parts[x->part++].end;
    if (end == x->sent && x->part > 0) end = a->parts[x->part - 1].end;
    if (end == x->sent) {
        if (x->part == a->n_parts)
            return a->breaks ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
        wait_until(x, due_of(x, x->part));
        return 0;
    }
    n = end - x->sent < max ? end - x->sent : max;
    memcpy(to, a->bytes.data + x->sent, n);
    x->sent += n;
    return (ssize_t)n;
}

static enum MHD_Result respond(struct exchange *x)
{
    struct MHD_Response *response;
    enum MHD_Result ok;

    if (x->answer.status == 0) return MHD_NO; /* closes the connection */
    if (x->answer.streams)
        response =
            MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * IPW_KIB, read_stream, x, NULL);
    else
        response = MHD_create_response_from_buffer(x->answer.bytes.len, x->answer.bytes.data,
                                                   MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", x->type);
    if (x->answer.streams) MHD_add_response_header(response, "Cache-Control", "no-cache");
    if (*x->answer.note) MHD_add_response_header(response, "X-Ipw-Recorded", x->answer.note);
    if (x->allow) MHD_add_response_header(response, "Allow", x->allow);
    permit_page(x, response);
    ok = MHD_queue_response(x->connection, (unsigned)x->answer.status, response);
    MHD_destroy_response(response);
    return ok;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **con_cls)
{
    struct ipw_serve *s = cls;
    struct exchange *x = *con_cls;

    (void)version;
    if (!x) {
        x = ipw_calloc(1, sizeof *x);
        x->serve = s;
        x->connection = connection;
        x->body = IPW_BUF(REQUEST_BYTES);
        *con_cls = x;
        return MHD_YES;
    }
    if (*n) {
        ipw_buf_add(&x->body, data, *n);
        *n = 0;
        return MHD_YES;
    }
    if (!x->answered) {
        x->answered = true;
        ipw_connections_busy(connection);
        x->start_ns = ipw_now_ns();
        route(x, method, path);
        /* A whole answer is sent with its last token; then this function is called again. */
        if (!x->answer.streams && due_of(x, 0) > ipw_now_ns()) {
            wait_until(x, due_of(x, 0));
            return MHD_YES;
        }
    }
    return respond(x);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct exchange *x = *con_cls;

    (void)cls, (void)why;
    if (!x) return;
    ipw_connections_idle(&x->serve->connections, connection);
    ipw_buf_release(&x->body);
    ipw_served_answer_release(&x->answer);
    free(x);
    *con_cls = NULL;
}

/* ---- opening and running ---- */

static int read_host(struct sockaddr_storage *out, const char *host, int port, struct ipw_err *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof *out);
    if (!host || strcmp(host, "localhost") == 0) host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1 &&
        (ntohl(v4->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return 0;
    }
    return ipw_fail(err, IPW_EINVAL, "host '%.60s': only loopback addresses (127.0.0.1, ::1)",
                    host);
}

/* Not more connections than files can be open, because without a free file no client is
 * accepted. */
static size_t most_connections(void)
{
    size_t most = CONNECTIONS_MAX;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < most) most = files.rlim_cur;
    return most > 4 * OTHER_FILES ? most - CLOSING_MAX - OTHER_FILES : most / 2;
}

static int listen_on(struct ipw_serve *s, const char *host, int port, struct ipw_err *err)
{
    struct sockaddr_storage address;
    const union MHD_DaemonInfo *info;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    char name[INET6_ADDRSTRLEN] = "";
    bool v6;
    int rc = read_host(&address, host, port, err);

    if (rc) return rc;
    s->connections.most = most_connections();
    v6 = address.ss_family == AF_INET6;
    if (v6) flags |= MHD_USE_IPv6;
    errno = 0;
    s->daemon = MHD_start_daemon(
        flags, (uint16_t)port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        ipw_connections_notify, &s->connections, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->connections.most + CLOSING_MAX, MHD_OPTION_LISTEN_BACKLOG_SIZE, 1024u,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
    if (!s->daemon)
        return ipw_fail_errno(err, errno ? errno : EIO, "cannot listen on port %d of %s", port,
                              host ? host : "127.0.0.1");
    info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (info) port = info->port;
    if (v6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&address)->sin6_addr, name, sizeof name);
    else
        inet_ntop(AF_INET, &((struct sockaddr_in *)&address)->sin_addr, name, sizeof name);
    snprintf(s->url, sizeof s->url, v6 ? "http://[%s]:%d/v1" : "http://%s:%d/v1", name, port);
    return 0;
}

int ipw_serve_open(struct ipw_serve **out, const struct ipw_serve_options *options,
                   struct ipw_err *err)
{
    struct ipw_served_model_options model = options->model;
    struct ipw_serve *s = ipw_calloc(1, sizeof *s);
    int rc;

    s->visitors.names = options->allow_hosts;
    if (!model.name) model.name = "demo";
    rc = ipw_served_model_open(&s->model, &model, err);
    if (!rc) rc = listen_on(s, options->host, options->port, err);
    if (rc) {
        ipw_serve_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

const char *ipw_serve_url(const struct ipw_serve *serve) { return serve->url; }

const char *ipw_serve_model(const struct ipw_serve *serve)
{
    const char *name = ipw_served_model_name(serve->model, 0);

    return name ? name : "";
}

struct ipw_served_counts ipw_serve_counts(const struct ipw_serve *serve)
{
    return ipw_served_model_counts(serve->model);
}

/* The longest time that poll can sleep: until the next answer is due, or libmicrohttpd needs to
 * run. */
static int64_t sleep_ns(struct ipw_serve *s)
{
    unsigned long long timeout_ms;
    int64_t ns = -1;

    if (MHD_get_timeout(s->daemon, &timeout_ms) == MHD_YES)
        ns = timeout_ms < 3600000 ? (int64_t)timeout_ms * IPW_NS_PER_MS : 3600 * IPW_NS_PER_S;
    if (s->n_heap) {
        int64_t left = s->heap[0]->due_ns - ipw_now_ns();
        if (left < 0) left = 0;
        if (ns < 0 || left < ns) ns = left;
    }
    return ns;
}

int ipw_serve_run(struct ipw_serve *serve, int stop_fd, struct ipw_err *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(serve->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd fds[2] = {{.events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};

    if (!info) return ipw_fail(err, IPW_EUNSUPPORTED, "libmicrohttpd was built without epoll");
    fds[0].fd = info->epoll_fd;
    for (;;) {
        int64_t ns = sleep_ns(serve), now;
        struct timespec limit = {ns / IPW_NS_PER_S, ns % IPW_NS_PER_S};

        if (ppoll(fds, 2, ns < 0 ? NULL : &limit, NULL) < 0 && errno != EINTR)
            return ipw_fail_errno(err, errno, "poll");
        if (fds[1].revents) return 0;
        now = ipw_now_ns();
        while (serve->n_heap && serve->heap[0]->due_ns <= now)
            MHD_resume_connection(heap_pop(serve)->connection);
        if (MHD_run(serve->daemon) != MHD_YES)
            return ipw_fail(err, IPW_EIO, "the HTTP server stopped");
    }
}

void ipw_serve_close(struct ipw_serve *serve)
{
    if (!serve) return;
    /* libmicrohttpd aborts when it is stopped with suspended connections. */
    while (serve->n_heap) MHD_resume_connection(heap_pop(serve)->connection);
    if (serve->daemon) MHD_stop_daemon(serve->daemon);
    ipw_served_model_close(serve->model);
    free(serve->heap);
    free(serve);
}
