/* libmicrohttpd asks for an answer's bytes; routes push them.  In between, an exchange that has
 * nothing to send is *asleep*: its connection is suspended, so libmicrohttpd does not look at it,
 * and the loop watches its socket for the client's end. */
#include "io/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/loop_priv.h"
#include "io/visitor.h"

enum { CONNECTIONS_MAX = 16384, CLOSING_MAX = 64, IDLE_S = 75, BACKLOG = 1024 };
enum { OTHER_FILES = 64 };          /* of the process, besides its connections */
#define FULL_BYTES  (256 * IPW_KIB) /* of an answer: its route is told to stop */
#define ROOM_BYTES  (64 * IPW_KIB)  /* and to go on */
#define PIECE_BYTES (16 * IPW_KIB)  /* of an answer, at a time */
#define SMALL_BYTES (64 * IPW_KIB)  /* a body that is read even if nobody wants it */
#define DROPPED_MAX (64 * IPW_MIB) /* of a body that is too long, before the connection is closed */
#define HEADERS_MAX (256 * IPW_KIB) /* of an answer */

struct ipw_exchange {
    struct ipw_server *server;
    struct ipw_exchange *next, **at; /* in the server's list */
    struct MHD_Connection *connection;
    const struct ipw_route *route; /* NULL: none takes it */
    char *method, *path, *target;
    struct ipw_buf body, headers; /* headers of the answer: "name\0value\0" each */
    struct ipw_buf bytes;         /* of the answer, to be sent from `sent` on */
    size_t sent, dropped;
    int64_t length; /* of the answer; -1: not known */
    int64_t head_ns, whole_ns;
    int status;
    uv_poll_t *watch; /* of its socket, while it sleeps; NULL: not made yet */
    void *own;
    bool shown;   /* to its route */
    bool asked;   /* the route was called, or the refusal is written */
    bool begun;   /* status and headers are known */
    bool streams; /* the answer comes in pieces */
    bool ended, broken, full;
    bool asleep;
    bool gone; /* the client, or the server */
};

struct connections {
    struct connection *oldest, *newest; /* by the end of their last request */
    size_t n, most;                     /* open, without those that are being closed */
    uint64_t opened;                    /* in all */
};

struct ipw_server {
    const struct ipw_server_options *o;
    struct MHD_Daemon *daemon;
    struct connections connections;
    struct ipw_visitor_rules visitors;
    char own_name[256], url[96];
    struct ipw_exchange *exchanges;
    struct ipw_loop *loop; /* NULL: not attached */
    uv_poll_t *epoll;
    struct ipw_timer timer;
    struct ipw_defer again;
};

static void free_handle(uv_handle_t *handle) { free(handle); }

/* ---- the open connections ---- */

/* libmicrohttpd stops accepting at its maximum of connections, and a client that sends nothing, or
 * a byte now and then, keeps its connection.  So of more than `most` the one that has been idle
 * longest is closed; never one whose request is being answered. */
struct connection {
    struct connection *older, *newer;
    int fd;
    uint64_t number;
    bool busy, closing;
};

static void take_out(struct connections *t, struct connection *c)
{
    if (c->older)
        c->older->newer = c->newer;
    else
        t->oldest = c->newer;
    if (c->newer)
        c->newer->older = c->older;
    else
        t->newest = c->older;
}

static void put_newest(struct connections *t, struct connection *c)
{
    c->older = t->newest;
    c->newer = NULL;
    if (t->newest)
        t->newest->newer = c;
    else
        t->oldest = c;
    t->newest = c;
}

/* libmicrohttpd then reads the end of the connection and closes it. */
static void close_oldest_idle(struct connections *t)
{
    struct connection *c = t->oldest;

    while (c && (c->busy || c->closing)) c = c->newer;
    if (!c) return;
    shutdown(c->fd, SHUT_RDWR);
    c->closing = true;
    t->n--;
}

static void on_connection(void *table, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct connections *t = table;
    struct connection *c = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        c = ipw_calloc(1, sizeof *c);
        c->fd = info ? info->connect_fd : -1;
        c->number = ++t->opened;
        put_newest(t, c);
        *context = c;
        if (++t->n > t->most) close_oldest_idle(t);
    } else if (c) {
        take_out(t, c);
        if (!c->closing) t->n--;
        free(c);
        *context = NULL;
    }
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void set_busy(struct MHD_Connection *connection)
{
    struct connection *c = connection_of(connection);

    if (c) c->busy = true;
}

static void set_idle(struct connections *table, struct MHD_Connection *connection)
{
    struct connection *c = connection_of(connection);

    if (!c) return;
    c->busy = false;
    take_out(table, c);
    put_newest(table, c);
}

/* ---- libmicrohttpd on the loop ---- */

/* When libmicrohttpd is to run next, besides when its descriptor can be read. */
static void plan(struct ipw_server *s)
{
    unsigned long long ms;
    int64_t due_ns;

    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES) return;
    if (ms == 0) {
        ipw_defer_arm(&s->again);
        return;
    }
    due_ns = ipw_now_ns() + (int64_t)(ms < 3600000 ? ms : 3600000) * IPW_NS_PER_MS;
    if (!s->timer.pos || due_ns < s->timer.due_ns) ipw_timer_arm(&s->timer, due_ns);
}

static void run(void *server)
{
    struct ipw_server *s = server;

    if (MHD_run(s->daemon) != MHD_YES) IPW_BUG("libmicrohttpd does not run");
    plan(s);
}

static void on_epoll(uv_poll_t *uv, int status, int events)
{
    (void)status, (void)events;
    run(uv->data);
}

/* ---- sleep ---- */

static void unwatch(struct ipw_exchange *x)
{
    if (!x->watch) return;
    uv_close((uv_handle_t *)x->watch, free_handle);
    x->watch = NULL;
}

static void wake(struct ipw_exchange *x)
{
    if (!x->asleep) return;
    x->asleep = false;
    if (x->watch) uv_poll_stop(x->watch);
    MHD_resume_connection(x->connection);
    if (x->server->loop) ipw_defer_arm(&x->server->again);
}

static void on_leave(uv_poll_t *uv, int status, int events)
{
    struct ipw_exchange *x = uv->data;

    (void)status, (void)events;
    x->gone = true;
    wake(x);
}

static int descriptor_of(struct ipw_exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

/* A streamed answer sleeps after each piece, so its watch is made once and only stopped. */
static void sleep_now(struct ipw_exchange *x)
{
    x->asleep = true;
    MHD_suspend_connection(x->connection);
    if (!x->watch) {
        uv_poll_t *w = ipw_calloc(1, sizeof *w);

        if (uv_poll_init(ipw_loop_uv(x->server->loop), w, descriptor_of(x))) {
            free(w); /* the connection lives on, unwatched */
            return;
        }
        uv_unref((uv_handle_t *)w);
        w->data = x;
        x->watch = w;
    }
    uv_poll_start(x->watch, UV_DISCONNECT, on_leave);
}

/* ---- the answer ---- */

bool ipw_answer_header(struct ipw_exchange *x, const char *name, const char *value)
{
    static const char *const own[] = {"Content-Length", "Transfer-Encoding", "Connection"};
    size_t before = x->headers.len;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcasecmp(name, own[i])) return true;
    if (!*name || name[strcspn(name, "\r\n\t :")] || value[strcspn(value, "\r\n")]) return false;
    ipw_buf_add(&x->headers, name, strlen(name) + 1);
    if (!ipw_buf_add(&x->headers, value, strlen(value) + 1)) return true;
    ipw_buf_truncate(&x->headers, before);
    return false;
}

static void begin(struct ipw_exchange *x, int status, bool streams, int64_t length)
{
    if (x->begun) IPW_BUG("%s %.100s is answered twice", x->method, x->target);
    x->begun = true;
    x->status = status;
    x->streams = streams;
    x->length = length;
}

void ipw_answer(struct ipw_exchange *x, int status, const char *type, const char *bytes, size_t n)
{
    begin(x, status, false, (int64_t)n);
    if (type) ipw_answer_header(x, "Content-Type", type);
    ipw_buf_add(&x->bytes, bytes, n);
    x->ended = true;
    wake(x);
}

void ipw_answer_page(struct ipw_exchange *x, const char *type, const char *bytes, size_t n)
{
    ipw_answer_header(x, "Cache-Control", "no-store");
    ipw_answer_header(x, "X-Content-Type-Options", "nosniff");
    ipw_answer(x, 200, type, bytes, n);
}

void ipw_answer_begin(struct ipw_exchange *x, int status, int64_t length)
{
    begin(x, status, true, length);
    wake(x);
}

size_t ipw_answer_waiting(const struct ipw_exchange *x) { return x->bytes.len - x->sent; }

bool ipw_answer_push(struct ipw_exchange *x, const char *bytes, size_t n)
{
    if (!x->begun || !x->streams || x->ended) IPW_BUG("bytes for an answer that takes none");
    if (x->gone || x->broken || !n) return !x->full;
    if (x->sent > x->bytes.len / 2) {
        ipw_buf_drop_front(&x->bytes, x->sent);
        x->sent = 0;
    }
    ipw_buf_add(&x->bytes, bytes, n);
    if (ipw_answer_waiting(x) >= FULL_BYTES) x->full = true;
    wake(x);
    return !x->full;
}

void ipw_answer_end(struct ipw_exchange *x)
{
    x->ended = true;
    wake(x);
}

void ipw_answer_break(struct ipw_exchange *x)
{
    x->broken = true;
    wake(x);
}

/* The next bytes of a streamed answer. */
static ssize_t read_answer(void *cls, uint64_t pos, char *to, size_t max)
{
    struct ipw_exchange *x = cls;
    size_t n = ipw_answer_waiting(x) < max ? ipw_answer_waiting(x) : max;

    if (!n) {
        bool short_of = x->length >= 0 && pos < (uint64_t)x->length;

        if (x->broken || x->gone || (x->ended && short_of))
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (x->ended) return MHD_CONTENT_READER_END_OF_STREAM;
        sleep_now(x);
        return 0;
    }
    memcpy(to, x->bytes.data + x->sent, n);
    x->sent += n;
    if (x->full && ipw_answer_waiting(x) <= ROOM_BYTES) {
        x->full = false;
        if (x->route->room && !x->ended) x->route->room(x, x->route->ud);
    }
    return (ssize_t)n;
}

/* A page of this machine may read the answer. */
static void permit_page(struct ipw_exchange *x)
{
    const char *origin = ipw_exchange_header(x, "Origin");
    const char *asked = ipw_exchange_header(x, "Access-Control-Request-Headers");

    if (!x->server->o->pages || !ipw_visitor_page(&x->server->visitors, origin)) return;
    ipw_answer_header(x, "Access-Control-Allow-Origin", origin);
    ipw_answer_header(x, "Vary", "Origin");
    if (x->status != 204) return;
    ipw_answer_header(x, "Access-Control-Allow-Methods", "GET, POST");
    if (asked) ipw_answer_header(x, "Access-Control-Allow-Headers", asked);
}

static void add_headers(struct ipw_exchange *x, struct MHD_Response *response)
{
    const char *at = x->headers.data, *end = at + x->headers.len;

    while (at < end) {
        const char *name = at;
        char *value = ipw_strdup(name + strlen(name) + 1);

        at = name + strlen(name) + strlen(value) + 2;
        for (char *c = value; *c; c++) /* libmicrohttpd takes no tabs, which mean a space */
            if (*c == '\t') *c = ' ';
        MHD_add_response_header(response, name, value);
        free(value);
    }
}

static enum MHD_Result respond(struct ipw_exchange *x)
{
    struct MHD_Response *response;
    enum MHD_Result ok;

    if (x->gone || (x->broken && !x->begun)) return MHD_NO; /* closes the connection */
    permit_page(x);
    if (x->streams)
        response = MHD_create_response_from_callback(x->length < 0 ? MHD_SIZE_UNKNOWN
                                                                   : (uint64_t)x->length,
                                                     PIECE_BYTES, read_answer, x, NULL);
    else
        response =
            MHD_create_response_from_buffer(x->bytes.len, x->bytes.data, MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    add_headers(x, response);
    ok = MHD_queue_response(x->connection, (unsigned)x->status, response);
    MHD_destroy_response(response);
    return ok;
}

/* ---- the request ---- */

const char *ipw_exchange_method(const struct ipw_exchange *x) { return x->method; }

const char *ipw_exchange_path(const struct ipw_exchange *x) { return x->path; }

const char *ipw_exchange_target(const struct ipw_exchange *x) { return x->target; }

const char *ipw_exchange_header(const struct ipw_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

const char *ipw_exchange_query(const struct ipw_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct each {
    ipw_header_fn fn;
    void *ud;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    const struct each *each = cls;

    (void)kind;
    each->fn(name, value ? value : "", each->ud);
    return MHD_YES;
}

void ipw_exchange_headers(const struct ipw_exchange *x, ipw_header_fn fn, void *ud)
{
    struct each each = {fn, ud};

    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, on_header, &each);
}

const char *ipw_exchange_body(const struct ipw_exchange *x, size_t *n)
{
    *n = x->body.len;
    return ipw_buf_str(&x->body);
}

int64_t ipw_exchange_head_ns(const struct ipw_exchange *x) { return x->head_ns; }

int64_t ipw_exchange_whole_ns(const struct ipw_exchange *x) { return x->whole_ns; }

uint64_t ipw_exchange_connection(const struct ipw_exchange *x)
{
    const struct connection *c = connection_of(x->connection);

    return c ? c->number : 0;
}

bool ipw_exchange_is_near(const struct ipw_exchange *x)
{
    const char *origin = ipw_exchange_header(x, "Origin");

    return !origin || ipw_visitor_page(&x->server->visitors, origin);
}

bool ipw_exchange_is_answered(const struct ipw_exchange *x) { return x->begun; }

void ipw_exchange_keep(struct ipw_exchange *x, void *own) { x->own = own; }

void *ipw_exchange_own(const struct ipw_exchange *x) { return x->own; }

/* ---- routes ---- */

static void refuse(struct ipw_exchange *x, int status, const char *message)
{
    struct ipw_buf text = IPW_BUF(IPW_KIB);

    x->asked = true;
    if (x->server->o->refuse) {
        x->server->o->refuse(x, status, message);
    } else {
        ipw_buf_addf(&text, "%s\n", message);
        ipw_answer(x, status, "text/plain; charset=utf-8", text.data, text.len);
    }
    ipw_buf_release(&text);
}

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ',')) return true;
    return false;
}

static bool takes_method(const struct ipw_route *route, const char *method)
{
    return !route->methods || has_word(route->methods, method) ||
           (!strcmp(method, "HEAD") && has_word(route->methods, "GET"));
}

static bool takes_path(const struct ipw_route *route, const char *path)
{
    size_t n = route->path ? strlen(route->path) : 0;

    if (n > 1 && route->path[n - 1] == '/') return !strncmp(path, route->path, n);
    return !n || !strcmp(path, route->path);
}

/* Headers that two servers in a row could read differently: two lengths, two hosts, and a name with
 * a blank ("Content-Length : 3"), which some servers accept. */
struct framing {
    const char *length;
    int n_lengths, n_codings, n_hosts;
    bool blank; /* in a header's name */
};

static void on_framing(const char *name, const char *value, void *ud)
{
    struct framing *f = ud;

    if (!strcasecmp(name, "Content-Length")) {
        f->length = value;
        f->n_lengths++;
    }
    if (!strcasecmp(name, "Transfer-Encoding"))
        f->n_codings += strcasecmp(value, "chunked") ? 2 : 1;
    f->n_hosts += strcasecmp(name, "Host") == 0;
    f->blank |= strpbrk(name, " \t") != NULL;
}

/* What is wrong with it; NULL: nothing. */
static const char *fault_of(const struct framing *f)
{
    if (f->blank) return "a header's name contains a blank";
    if (f->n_hosts > 1) return "the request has two Host headers";
    if (f->n_lengths + f->n_codings > 1)
        return "the request has two lengths, or a Transfer-Encoding other than chunked";
    return NULL;
}

/* A page in a browser of this machine must not use the server. */
static bool is_welcome(struct ipw_exchange *x)
{
    const struct ipw_visitor_rules *rules = &x->server->visitors;
    const char *host = ipw_exchange_header(x, "Host");
    bool reads = has_word("GET, HEAD, OPTIONS", x->method);
    char message[512];

    if (!ipw_visitor_host(rules, host)) {
        ipw_visitor_say_host(message, sizeof message, host);
        refuse(x, 403, message);
    } else if (!reads && !ipw_visitor_post(rules, ipw_exchange_header(x, "Origin"),
                                           ipw_exchange_header(x, "Content-Type"))) {
        refuse(x, 403,
               "a page of another origin sent this with the content type of a form; send "
               "Content-Type: application/json");
    }
    return !x->begun;
}

/* A browser asks before a page of another origin may send a request. */
static bool is_preflight(const struct ipw_exchange *x)
{
    return x->server->o->pages && !strcmp(x->method, "OPTIONS") &&
           ipw_exchange_header(x, "Access-Control-Request-Method") &&
           ipw_visitor_page(&x->server->visitors, ipw_exchange_header(x, "Origin"));
}

static void find_route(struct ipw_exchange *x)
{
    const struct ipw_server_options *o = x->server->o;
    const struct ipw_route *other = NULL;
    char message[128];

    for (size_t i = 0; i < o->n_routes && !x->route; i++) {
        if (!takes_path(&o->routes[i], x->path)) continue;
        if (takes_method(&o->routes[i], x->method))
            x->route = &o->routes[i];
        else
            other = &o->routes[i];
    }
    if (x->route) return;
    if (!other) {
        refuse(x, 404, "unknown path");
        return;
    }
    snprintf(message, sizeof message, "this path takes %.80s only", other->methods);
    ipw_answer_header(x, "Allow", other->methods);
    refuse(x, 405, message);
}

/* The head of the request was read.  true: the answer goes out at once, and the connection is
 * closed. */
static bool at_head(struct ipw_exchange *x)
{
    struct framing framing = {0};
    const char *fault;
    int64_t length = 0;

    ipw_exchange_headers(x, on_framing, &framing);
    fault = fault_of(&framing);
    if (fault) {
        refuse(x, 400, fault);
        return true;
    }
    if (!is_welcome(x)) {
    } else if (is_preflight(x)) {
        x->asked = true;
        ipw_answer(x, 204, NULL, "", 0);
    } else {
        find_route(x);
    }
    x->body.max = x->route ? x->route->body_most : 0;
    if (framing.length && ipw_parse_int(&length, framing.length, 0, INT64_MAX, NULL))
        length = INT64_MAX;
    if (length <= (int64_t)SMALL_BYTES || length <= (int64_t)x->body.max) return false;
    if (!x->asked) x->body.failed = true;
    return true;
}

static void say_too_long(struct ipw_exchange *x)
{
    char message[96];
    size_t most = x->route->body_most;
    bool mib = most >= IPW_MIB;

    snprintf(message, sizeof message, "the request is longer than %zu %s",
             most / (mib ? IPW_MIB : IPW_KIB), mib ? "MiB" : "KiB");
    refuse(x, 413, message);
}

static void ask(struct ipw_exchange *x)
{
    x->whole_ns = ipw_now_ns();
    if (!x->asked && x->body.failed) say_too_long(x);
    if (x->asked) return;
    x->asked = x->shown = true;
    x->route->answer(x, x->route->ud);
}

static bool take_piece(struct ipw_exchange *x, const char *bytes, size_t n)
{
    if (x->route && !x->body.failed) {
        if (!x->route->piece) {
            ipw_buf_add(&x->body, bytes, n);
        } else if (x->dropped + n > x->route->body_most) {
            x->body.failed = true;
        } else {
            x->shown = true;
            x->route->piece(x, bytes, n, x->route->ud);
        }
    }
    x->dropped += n;
    return x->dropped <= DROPPED_MAX || (x->route && x->dropped <= 2 * x->route->body_most);
}

/* ---- callbacks of libmicrohttpd ---- */

static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct ipw_server *s = cls;
    struct ipw_exchange *x = ipw_calloc(1, sizeof *x);

    x->head_ns = ipw_now_ns();
    x->server = s;
    x->connection = connection;
    x->target = ipw_strdup(target);
    x->headers = IPW_BUF(HEADERS_MAX);
    x->bytes = IPW_BUF(SIZE_MAX / 2);
    x->at = &s->exchanges;
    x->next = s->exchanges;
    if (x->next) x->next->at = &x->next;
    s->exchanges = x;
    return x;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **con_cls)
{
    struct ipw_exchange *x = *con_cls;

    (void)cls, (void)connection, (void)version;
    if (!x->method) {
        x->head_ns = ipw_now_ns();
        x->method = ipw_strdup(method);
        x->path = ipw_strdup(path);
        if (!at_head(x)) return MHD_YES;
        ask(x);
        return x->begun ? respond(x) : MHD_NO;
    }
    if (*n) {
        bool goes_on = take_piece(x, data, *n);

        *n = 0;
        return goes_on ? MHD_YES : MHD_NO;
    }
    if (!x->whole_ns) {
        set_busy(connection);
        ask(x);
    }
    if (x->begun || x->gone || x->broken) return respond(x);
    sleep_now(x); /* this function is called again when the answer begins */
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct ipw_server *s = cls;
    struct ipw_exchange *x = *con_cls;

    if (!x) return;
    set_idle(&s->connections, connection);
    unwatch(x);
    x->gone = true;
    if (x->shown && x->route->over)
        x->route->over(x, why == MHD_REQUEST_TERMINATED_COMPLETED_OK, x->route->ud);
    *x->at = x->next;
    if (x->next) x->next->at = x->at;
    ipw_buf_release(&x->body);
    ipw_buf_release(&x->headers);
    ipw_buf_release(&x->bytes);
    free(x->method);
    free(x->path);
    free(x->target);
    free(x);
    *con_cls = NULL;
}

/* ---- opening and closing ---- */

int ipw_server_address(char *host, size_t size, int *port, const char *text, struct ipw_err *err)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    int64_t number;

    if (n > 2 && *text == '[' && colon[-1] == ']')
        snprintf(host, size, "%.*s", (int)n - 2, text + 1);
    else
        snprintf(host, size, "%.*s", n ? (int)n : 9, n ? text : "127.0.0.1");
    if (ipw_parse_int(&number, colon ? colon + 1 : text, 0, 65535, err))
        return ipw_err_prefix(err, "expected ADDRESS:PORT");
    *port = (int)number;
    return 0;
}

/* false: it is not an address. */
static bool read_host(struct sockaddr_storage *out, bool *loopback, const char *host, int port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof *out);
    if (!host || strcmp(host, "localhost") == 0) host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        *loopback = ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1) return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)port);
    *loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    return true;
}

/* Not more connections than files can be open, because without a free file no client is
 * accepted. */
static size_t most_connections(const struct ipw_server_options *o)
{
    size_t most = o->connections ? o->connections : CONNECTIONS_MAX;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < most + CLOSING_MAX + OTHER_FILES)
        most = files.rlim_cur > 4 * OTHER_FILES ? files.rlim_cur - CLOSING_MAX - OTHER_FILES
                                                : files.rlim_cur / 2;
    return o->connections && o->connections < most ? o->connections : most;
}

static int start(struct ipw_server *s, struct ipw_err *err)
{
    const struct ipw_server_options *o = s->o;
    struct sockaddr_storage address;
    const union MHD_DaemonInfo *info;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    const char *host = o->host ? o->host : "127.0.0.1";
    char name[INET6_ADDRSTRLEN] = "";
    bool loopback = false, v6;

    if (!read_host(&address, &loopback, host, o->port) || (!loopback && !o->expose)) {
        const char *why = address.ss_family ? o->not_exposed : "not an IP address";

        if (!o->not_exposed) why = "only loopback addresses (127.0.0.1, ::1)";
        return ipw_fail(err, IPW_EINVAL, "host '%.60s': %s", host, why);
    }
    s->visitors.exposed = !loopback;
    s->connections.most = most_connections(o);
    v6 = address.ss_family == AF_INET6;
    if (v6) flags |= MHD_USE_IPv6;
    if (o->no_date) flags |= MHD_USE_SUPPRESS_DATE_NO_CLOCK;
    errno = 0;
    s->daemon = MHD_start_daemon(
        flags, (uint16_t)o->port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, &s->connections, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->connections.most + CLOSING_MAX, MHD_OPTION_LISTEN_BACKLOG_SIZE,
        (unsigned)BACKLOG, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(o->idle_s ? o->idle_s : IDLE_S), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        o->head_bytes ? o->head_bytes : 32 * IPW_KIB, MHD_OPTION_END);
    if (!s->daemon)
        return ipw_fail_errno(err, errno ? errno : EIO, "cannot listen on port %d of %s", o->port,
                              host);
    info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (v6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&address)->sin6_addr, name, sizeof name);
    else
        inet_ntop(AF_INET, &((struct sockaddr_in *)&address)->sin_addr, name, sizeof name);
    snprintf(s->url, sizeof s->url, v6 ? "http://[%s]:%d" : "http://%s:%d", name,
             info && info->port ? info->port : o->port);
    return 0;
}

int ipw_server_open(struct ipw_server **out, const struct ipw_server_options *options,
                    struct ipw_err *err)
{
    struct ipw_server *s = ipw_calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    s->o = options;
    s->visitors.names = options->allow_hosts;
    if (gethostname(s->own_name, sizeof s->own_name - 1) == 0) s->visitors.own_name = s->own_name;
    rc = start(s, err);
    if (rc)
        free(s);
    else
        *out = s;
    return rc;
}

int ipw_server_attach(struct ipw_server *s, struct ipw_loop *loop, struct ipw_err *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int rc;

    if (!info) return ipw_fail(err, IPW_EUNSUPPORTED, "libmicrohttpd was built without epoll");
    s->epoll = ipw_calloc(1, sizeof *s->epoll);
    rc = uv_poll_init(ipw_loop_uv(loop), s->epoll, info->epoll_fd);
    if (rc) {
        free(s->epoll);
        s->epoll = NULL;
        return ipw_fail_errno(err, -rc, "cannot watch the HTTP server");
    }
    s->epoll->data = s;
    uv_poll_start(s->epoll, UV_READABLE, on_epoll);
    uv_unref((uv_handle_t *)s->epoll);
    s->loop = loop;
    s->timer = (struct ipw_timer){.loop = loop, .fn = run, .ud = s};
    s->again = (struct ipw_defer){.loop = loop, .fn = run, .ud = s};
    loop->leftovers++;
    if (s->o->stays) ipw_loop_hold(loop);
    ipw_defer_arm(&s->again);
    return 0;
}

const char *ipw_server_url(const struct ipw_server *s) { return s->url; }

bool ipw_server_exposed(const struct ipw_server *s) { return s->visitors.exposed; }

void ipw_server_close(struct ipw_server *s)
{
    if (!s) return;
    for (struct ipw_exchange *x = s->exchanges; x; x = x->next) {
        x->gone = true;
        wake(x); /* libmicrohttpd aborts when it is stopped with suspended connections */
    }
    if (s->loop) {
        ipw_timer_disarm(&s->timer);
        ipw_defer_disarm(&s->again);
        uv_close((uv_handle_t *)s->epoll, free_handle);
        s->loop->leftovers--;
        if (s->o->stays) ipw_loop_unhold(s->loop);
    }
    s->loop = NULL;
    MHD_stop_daemon(s->daemon);
    free(s);
}
