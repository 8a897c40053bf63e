/* A blocking GET over a socket, with one deadline. */
#include "energy/sources/http_get.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define HEADERS_MAX ((size_t)64 * IPW_KIB)
/* Chunk sizes and headers come on top of the body. */
#define REPLY_MAX (IPW_HTTP_GET_MAX + IPW_HTTP_GET_MAX / 4 + HEADERS_MAX)

/* Reads host and port of "host:port" or "[v6]:port"; `n` bytes. */
static int parse_authority(struct ipw_http_target *t, const char *text, size_t n)
{
    const char *end = text + n, *host = text, *host_end, *port;

    if (n && text[0] == '[') {
        host = text + 1;
        host_end = memchr(host, ']', n - 1);
        if (!host_end) return -1;
        port = host_end + 1;
    } else {
        host_end = memchr(text, ':', n);
        if (!host_end) host_end = end;
        port = host_end;
    }
    if (host == host_end || (size_t)(host_end - host) >= sizeof t->host) return -1;
    snprintf(t->host, sizeof t->host, "%.*s", (int)(host_end - host), host);
    snprintf(t->port, sizeof t->port, "80");
    if (port == end) return 0;
    if (*port++ != ':' || port == end || (size_t)(end - port) >= sizeof t->port) return -1;
    for (const char *p = port; p < end; p++) {
        if (!isdigit((unsigned char)*p)) return -1;
    }
    snprintf(t->port, sizeof t->port, "%.*s", (int)(end - port), port);
    return strtol(t->port, NULL, 10) >= 1 && strtol(t->port, NULL, 10) <= 65535 ? 0 : -1;
}

int ipw_http_target_parse(struct ipw_http_target *t, const char *url, struct ipw_err *err)
{
    const char *authority, *path;
    size_t n;

    *t = (struct ipw_http_target){0};
    if (strncasecmp(url, "https://", 8) == 0) {
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.300s: https is not read here: give the exporter's plain http address, "
                        "or put a local proxy before it",
                        url);
    }
    if (strncasecmp(url, "http://", 7) != 0 || strlen(url) >= sizeof t->url) {
        return ipw_fail(err, IPW_EINVAL, "%.300s: expected http://HOST:PORT/PATH", url);
    }
    for (const char *p = url; *p; p++) {
        if ((unsigned char)*p <= ' ' || *p == 127) {
            return ipw_fail(err, IPW_EINVAL, "%.300s: a URL has no blanks", url);
        }
    }
    authority = url + 7;
    n = strcspn(authority, "/?#");
    path = authority + n;
    if (memchr(authority, '@', n)) {
        return ipw_fail(err, IPW_EUNSUPPORTED, "%.300s: a user in the URL is not supported", url);
    }
    if (parse_authority(t, authority, n) < 0) {
        return ipw_fail(err, IPW_EINVAL, "%.300s: expected http://HOST:PORT/PATH", url);
    }
    snprintf(t->url, sizeof t->url, "%s", url);
    n = strcspn(path, "#");
    if (n == 0 || (n == 1 && *path == '/')) {
        snprintf(t->path, sizeof t->path, "/metrics");
    } else {
        snprintf(t->path, sizeof t->path, "%s%.*s", *path == '?' ? "/metrics" : "", (int)n, path);
    }
    return 0;
}

/* Also 0.0.0.0, where an exporter says that it listens: asked there, it is this machine's. */
static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127 || in->sin_addr.s_addr == INADDR_ANY;
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *in =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(in) || IN6_IS_ADDR_UNSPECIFIED(in) ||
               (IN6_IS_ADDR_V4MAPPED(in) && in->s6_addr[12] == 127);
    }
    return false;
}

int ipw_http_target_open(struct ipw_http_target *t, const char *url, struct ipw_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int rc = ipw_http_target_parse(t, url, err);

    if (rc < 0) return rc;
    rc = getaddrinfo(t->host, t->port, &hints, &t->addresses);
    if (rc) {
        t->addresses = NULL;
        return ipw_fail(err, IPW_ENET, "%s: host %s: %s", t->url, t->host, gai_strerror(rc));
    }
    t->loopback = true;
    for (const struct addrinfo *a = t->addresses; a; a = a->ai_next) {
        t->loopback = t->loopback && is_loopback(a->ai_addr);
    }
    return 0;
}

void ipw_http_target_release(struct ipw_http_target *t)
{
    if (t->addresses) freeaddrinfo(t->addresses);
    t->addresses = NULL;
}

/* Waits until `fd` is ready or the deadline passes. */
static int wait_for(int fd, short events, int64_t deadline_ns, const struct ipw_http_target *t,
                    struct ipw_err *err)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = deadline_ns - ipw_now_ns();
        int ready;

        if (left <= 0) break;
        if (left > INT64_C(3600) * IPW_NS_PER_S) left = INT64_C(3600) * IPW_NS_PER_S;
        ready = poll(&p, 1, (int)((left + IPW_NS_PER_MS - 1) / IPW_NS_PER_MS));
        if (ready > 0) return 0;
        if (ready < 0 && errno != EINTR) return ipw_fail_errno(err, errno, "%s", t->url);
    }
    return ipw_fail(err, IPW_ETIMEOUT, "%s: no answer in time", t->url);
}

static int net_errno(struct ipw_err *err, int errnum, const struct ipw_http_target *t)
{
    return ipw_fail(err, IPW_ENET, "%s: %s", t->url, strerror(errnum));
}

static int connect_one(const struct addrinfo *a, int64_t deadline_ns,
                       const struct ipw_http_target *t, struct ipw_err *err)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1, problem = 0, rc;
    socklen_t size = sizeof problem;

    if (fd < 0) return net_errno(err, errno, t);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    if (errno != EINPROGRESS) {
        rc = net_errno(err, errno, t);
    } else {
        rc = wait_for(fd, POLLOUT, deadline_ns, t, err);
        if (rc == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0) problem = errno;
        if (rc == 0 && problem) rc = net_errno(err, problem, t);
    }
    if (rc == 0) return fd;
    close(fd);
    return rc;
}

/* A descriptor, or the last address's error. */
static int connect_any(const struct ipw_http_target *t, int64_t deadline_ns, struct ipw_err *err)
{
    int fd = ipw_fail(err, IPW_ENET, "%s: no address", t->url);

    for (const struct addrinfo *a = t->addresses; a && fd < 0 && fd != IPW_ETIMEOUT;
         a = a->ai_next) {
        fd = connect_one(a, deadline_ns, t, err);
    }
    return fd;
}

static int send_all(int fd, const char *text, size_t n, int64_t deadline_ns,
                    const struct ipw_http_target *t, struct ipw_err *err)
{
    while (n > 0) {
        ssize_t k = send(fd, text, n, MSG_NOSIGNAL);

        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && errno != EAGAIN) return net_errno(err, errno, t);
        if (k < 0) {
            int rc = wait_for(fd, POLLOUT, deadline_ns, t, err);
            if (rc < 0) return rc;
            continue;
        }
        text += k;
        n -= (size_t)k;
    }
    return 0;
}

/* 1: complete, 0: more is to come. */
static int judge(const struct ipw_http_target *t, const struct ipw_buf *reply, bool ended,
                 struct ipw_buf *body, struct ipw_err *err)
{
    int status = 0;
    int rc = ipw_http_reply(ipw_buf_str(reply), reply->len, ended, &status, body, err);

    if (rc < 0) {
        ipw_err_prefix(err, "%s", t->url); /* without an err it knows no code */
        return rc;
    }
    if (rc && status != 200) {
        ipw_fail(err, IPW_EHTTP, "%s: HTTP status %d", t->url, status);
        if (err) err->detail = status;
        return IPW_EHTTP;
    }
    return rc;
}

static int receive(int fd, struct ipw_buf *body, int64_t deadline_ns,
                   const struct ipw_http_target *t, struct ipw_err *err)
{
    struct ipw_buf reply = IPW_BUF(REPLY_MAX);
    size_t judged = 0;
    int rc = 0;

    while (rc == 0) {
        char *room = ipw_buf_room(&reply, 16 * IPW_KIB);
        ssize_t k;

        if (!room) {
            rc = ipw_fail(err, IPW_ELIMIT, "%s: the answer is over %zu MiB", t->url,
                          IPW_HTTP_GET_MAX / IPW_MIB);
            break;
        }
        k = recv(fd, room, 16 * IPW_KIB, 0);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && errno == EAGAIN) {
            /* Judged only when the socket is empty: about once an answer, not once a packet. */
            if (reply.len > judged) {
                rc = judge(t, &reply, false, body, err);
                judged = reply.len;
            }
            if (rc == 0) rc = wait_for(fd, POLLIN, deadline_ns, t, err);
            continue;
        }
        if (k < 0) {
            rc = net_errno(err, errno, t);
        } else if (k == 0) {
            rc = judge(t, &reply, true, body, err);
        } else {
            ipw_buf_added(&reply, (size_t)k);
        }
    }
    ipw_buf_release(&reply);
    return rc > 0 ? 0 : rc;
}

int ipw_http_get(const struct ipw_http_target *t, struct ipw_buf *body, int64_t timeout_ns,
                 struct ipw_err *err)
{
    int64_t deadline_ns = ipw_now_ns() + timeout_ns;
    struct ipw_buf request = IPW_BUF(4 * IPW_KIB);
    bool v6 = strchr(t->host, ':') != NULL;
    int fd, rc;

    ipw_buf_clear(body);
    ipw_buf_addf(&request,
                 "GET %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: ipw-agent/" IPW_VERSION
                 "\r\nAccept: text/plain;version=0.0.4\r\nConnection: close\r\n\r\n",
                 t->path, v6 ? "[" : "", t->host, v6 ? "]" : "", t->port);
    fd = rc = connect_any(t, deadline_ns, err);
    if (fd >= 0) {
        rc = send_all(fd, ipw_buf_str(&request), request.len, deadline_ns, t, err);
        if (rc == 0) rc = receive(fd, body, deadline_ns, t, err);
        close(fd);
    }
    ipw_buf_release(&request);
    return rc;
}
