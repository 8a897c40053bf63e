#include "serve/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "serve/connections.h"
#include "serve/visitor.h"

enum { MAX_PAGE_BYTES = 4 * 1024 * 1024, CONNECTION_BYTES = 32 * 1024 };
enum { CONNECTIONS_MAX = 64, CLOSING_MAX = 64, IDLE_S = 10 };
#define BEAT_NS                                                                                    \
    (2 * IPW_NS_PER_S) /* a line without text, so that a client that went away is noticed */
enum { STREAMS_MAX = 16, PIECE_BYTES = 16 * 1024, PENDING_BYTES = 1024 * 1024 };

struct stream { /* a connection that reads the stream */
    struct ipw_listener *listener;
    struct MHD_Connection *connection;
    struct ipw_line_reader reader;
    struct ipw_buf pending; /* lines of which a part was sent */
    size_t sent;
    int64_t sent_ns;
    bool suspended; /* it waits for lines */
    struct stream *next;
};

struct ipw_listener {
    const struct ipw_listen_options *options;
    struct MHD_Daemon *daemon;
    struct ipw_visitor_rules visitors;
    struct ipw_connections connections;
    char own_name[256], url[160];
    pthread_mutex_t lock;   /* over the next two, and `suspended` of each stream */
    struct stream *streams; /* they belong to their answers */
    bool closing;
};

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type,
                             const char *text, size_t n)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(n, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result done;

    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    done = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result reply_text(struct MHD_Connection *c, unsigned status, const char *text)
{
    return reply(c, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result reply_not_here(struct MHD_Connection *c, const char *host)
{
    char message[512];

    ipw_visitor_say_host(message, sizeof message - 1, host);
    strcat(message, "\n");
    return reply_text(c, MHD_HTTP_FORBIDDEN, message);
}

static void completed(void *cls, struct MHD_Connection *c, void **state,
                      enum MHD_RequestTerminationCode why)
{
    struct ipw_listener *l = cls;

    (void)state, (void)why;
    ipw_connections_idle(&l->connections, c);
}

/* ---- the stream ---- */

static void fill(struct stream *s)
{
    struct ipw_buf lines = IPW_BUF(PENDING_BYTES);
    uint64_t first, lost;

    ipw_buf_clear(&s->pending);
    s->sent = 0;
    lost = ipw_line_reader_take(&s->reader, s->listener->options->stream->lines, &lines,
                                PIECE_BYTES, &first);
    if (lost)
        ipw_buf_addf(&s->pending, "{\"dropped\":%" PRIu64 ",\"seq\":%" PRIu64 "}\n", lost, first);
    ipw_buf_add(&s->pending, ipw_buf_str(&lines), lines.len);
    ipw_buf_release(&lines);
    if (!s->pending.len && ipw_now_ns() - s->sent_ns > BEAT_NS) ipw_buf_addc(&s->pending, '\n');
}

static ssize_t read_stream(void *cls, uint64_t pos, char *to, size_t max)
{
    struct stream *s = cls;
    size_t n;

    (void)pos;
    pthread_mutex_lock(&s->listener->lock);
    if (s->sent == s->pending.len) fill(s);
    n = s->pending.len - s->sent < max ? s->pending.len - s->sent : max;
    if (!n && !s->listener->closing) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&s->listener->lock);
    if (!n) return s->listener->closing ? MHD_CONTENT_READER_END_OF_STREAM : 0;
    memcpy(to, s->pending.data + s->sent, n);
    s->sent += n;
    s->sent_ns = ipw_now_ns();
    return (ssize_t)n;
}

static void free_stream(void *cls)
{
    struct stream *s = cls, **at = &s->listener->streams;

    pthread_mutex_lock(&s->listener->lock);
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    pthread_mutex_unlock(&s->listener->lock);
    ipw_buf_release(&s->pending);
    free(s);
}

static void wake_streams(struct ipw_listener *l, bool closing)
{
    pthread_mutex_lock(&l->lock);
    l->closing |= closing;
    for (struct stream *s = l->streams; s; s = s->next) {
        if (!s->suspended) continue;
        s->suspended = false;
        MHD_resume_connection(s->connection);
    }
    pthread_mutex_unlock(&l->lock);
}

void ipw_listener_wake(struct ipw_listener *l) { wake_streams(l, false); }

/* Where the reader begins: after the line that it had last, or at the end. */
static void place_reader(struct stream *s)
{
    const struct ipw_listen_stream *stream = s->listener->options->stream;
    const char *after = MHD_lookup_connection_value(s->connection, MHD_GET_ARGUMENT_KIND, "after");
    const char *instance =
        MHD_lookup_connection_value(s->connection, MHD_GET_ARGUMENT_KIND, "instance");
    int64_t seq;

    ipw_line_reader_end(&s->reader, stream->lines);
    if (after && instance && !strcmp(instance, stream->instance) &&
        !ipw_parse_int(&seq, after, 0, INT64_MAX, NULL))
        ipw_line_reader_after(&s->reader, stream->lines, (uint64_t)seq);
}

static bool is_full(struct ipw_listener *l)
{
    size_t n = 0;

    pthread_mutex_lock(&l->lock);
    for (const struct stream *s = l->streams; s; s = s->next) n++;
    pthread_mutex_unlock(&l->lock);
    return n >= STREAMS_MAX;
}

static enum MHD_Result reply_stream(struct ipw_listener *l, struct MHD_Connection *c)
{
    struct MHD_Response *r;
    enum MHD_Result done;
    struct stream *s;

    if (is_full(l)) return reply_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, "too many readers\n");
    s = ipw_calloc(1, sizeof *s);
    s->listener = l;
    s->connection = c;
    ipw_buf_init(&s->pending, 2 * PENDING_BYTES);
    ipw_buf_adds(&s->pending, l->options->stream->hello);
    place_reader(s);
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, read_stream, s,
                                          free_stream);
    if (!r) {
        ipw_buf_release(&s->pending);
        free(s);
        return MHD_NO;
    }
    pthread_mutex_lock(&l->lock);
    s->next = l->streams;
    l->streams = s;
    pthread_mutex_unlock(&l->lock);
    MHD_add_response_header(r, "Content-Type", "application/x-ndjson");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    done = MHD_queue_response(c, MHD_HTTP_OK, r);
    MHD_destroy_response(r); /* frees the stream, now or with the connection */
    return done;
}

static const struct ipw_listen_page *page_at(const struct ipw_listener *l, const char *path)
{
    for (int i = 0; i < IPW_LISTEN_PAGES && l->options->pages[i].path; i++)
        if (!strcmp(path, l->options->pages[i].path)) return &l->options->pages[i];
    return NULL;
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    struct ipw_listener *l = cls;
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    const struct ipw_listen_page *asked = page_at(l, url);
    struct ipw_buf page = IPW_BUF(MAX_PAGE_BYTES);
    enum MHD_Result done;

    (void)version, (void)upload;
    *upload_size = 0;
    *state = l; /* otherwise libmicrohttpd does not report the end of the answer */
    ipw_connections_busy(c);
    if (!ipw_visitor_host(&l->visitors, host)) return reply_not_here(c, host);
    if (strcmp(method, "GET") && strcmp(method, "HEAD"))
        return reply_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
    if (!asked && !strcmp(url, "/")) return reply_text(c, MHD_HTTP_OK, l->options->about);
    if (!asked && l->options->stream && !strcmp(url, "/stream")) return reply_stream(l, c);
    if (!asked) return reply_text(c, MHD_HTTP_NOT_FOUND, "no\n");
    asked->write(&page, asked->ud);
    done = page.failed ? reply_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "too large\n")
                       : reply(c, MHD_HTTP_OK, asked->type, ipw_buf_str(&page), page.len);
    ipw_buf_release(&page);
    return done;
}

static int parse_address(struct sockaddr_in *out, const char *where, struct ipw_err *err)
{
    const char *colon = strrchr(where, ':');
    char host[64] = "127.0.0.1";
    int64_t port = 0;
    int rc;

    if (colon && colon > where) snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
    if (!strcmp(host, "localhost")) snprintf(host, sizeof host, "127.0.0.1");
    rc = ipw_parse_int(&port, colon ? colon + 1 : where, 0, 65535, err);
    if (rc) return ipw_err_prefix(err, "--listen %s: expected ADDRESS:PORT", where);
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &out->sin_addr) != 1)
        return ipw_fail(err, IPW_EINVAL, "--listen %s: '%s' is not an IPv4 address", where, host);
    return 0;
}

static bool is_loopback(const struct sockaddr_in *at)
{
    return ntohl(at->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* The thread takes no signal: handlers belong to the main thread. */
static struct MHD_Daemon *start(struct ipw_listener *l, struct sockaddr_in *at)
{
    struct MHD_Daemon *daemon;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    errno = 0;
    daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, l,
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)at, MHD_OPTION_NOTIFY_COMPLETED, completed, l,
        MHD_OPTION_NOTIFY_CONNECTION, ipw_connections_notify, &l->connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX + CLOSING_MAX, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

int ipw_listener_open(struct ipw_listener **out, const struct ipw_listen_options *options,
                      struct ipw_err *err)
{
    const char *where = options->where;
    const union MHD_DaemonInfo *info;
    char host[INET_ADDRSTRLEN];
    struct ipw_listener *l;
    struct sockaddr_in at;
    int rc = parse_address(&at, where, err);

    *out = NULL;
    if (rc) return rc;
    if (!is_loopback(&at) && !options->expose)
        return ipw_fail(err, IPW_EINVAL, "--listen %s: %s", where, options->not_exposed);
    l = ipw_calloc(1, sizeof *l);
    l->options = options;
    pthread_mutex_init(&l->lock, NULL);
    l->connections.most = CONNECTIONS_MAX;
    l->visitors.names = options->allow_hosts;
    l->visitors.exposed = !is_loopback(&at);
    if (gethostname(l->own_name, sizeof l->own_name - 1) == 0) l->visitors.own_name = l->own_name;
    l->daemon = start(l, &at);
    if (!l->daemon) {
        int errnum = errno;

        pthread_mutex_destroy(&l->lock);
        free(l);
        return ipw_fail_errno(err, errnum ? errnum : EIO, "--listen %s", where);
    }
    info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_BIND_PORT);
    inet_ntop(AF_INET, &at.sin_addr, host, sizeof host);
    snprintf(l->url, sizeof l->url, "http://%s:%u%s", host,
             info && info->port ? info->port : ntohs(at.sin_port), options->pages[0].path);
    *out = l;
    return 0;
}

const char *ipw_listener_url(const struct ipw_listener *l) { return l->url; }

bool ipw_listener_exposed(const struct ipw_listener *l) { return l->visitors.exposed; }

void ipw_listener_close(struct ipw_listener *l)
{
    if (!l) return;
    wake_streams(l, true); /* a suspended connection cannot be stopped */
    MHD_stop_daemon(l->daemon);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
