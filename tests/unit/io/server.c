#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_THREADS = 1024 };

struct server_state {
    pthread_t acceptor, threads[MAX_THREADS];
    pthread_mutex_t lock;
    int n_threads;
};

struct connection {
    struct server *server;
    int fd;
};

static bool put(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t k = send(fd, bytes, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        bytes += k;
        n -= (size_t)k;
    }
    return true;
}

static bool puts_(int fd, const char *text) { return put(fd, text, strlen(text)); }

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/* Says nothing more until the client closes its side. */
static void stall(struct server *s, int fd)
{
    char rest[4096];
    ssize_t n;

    while ((n = recv(fd, rest, sizeof rest, 0)) > 0) continue;
    s->peer_closed++;
}

static bool read_line(int fd, char *line, size_t size)
{
    for (size_t n = 0; n + 1 < size; n++) {
        if (recv(fd, line + n, 1, 0) != 1) return false;
        line[n + 1] = '\0';
        if (line[n] == '\n') return true;
    }
    return false;
}

/* Counts the bytes of a body in chunks, without trailers. */
static bool read_chunks(int fd, size_t *body_len)
{
    char line[64];
    size_t left;

    for (*body_len = 0; read_line(fd, line, sizeof line); *body_len += left) {
        left = (size_t)strtoul(line, NULL, 16);
        for (size_t i = 0; i < left + 2; i++)
            if (recv(fd, line, 1, 0) != 1) return false;
        if (!left) return true;
    }
    return false;
}

/* Reads one request; its head goes to `head`, its body is counted and thrown away. */
static bool read_request(int fd, char *head, size_t size, size_t *body_len)
{
    size_t n = 0;
    char *end = NULL, *length;

    while (!end) {
        ssize_t k;
        if (n + 1 >= size) return false;
        k = recv(fd, head + n, 1, 0); /* a byte at a time: nothing of the body is taken */
        if (k <= 0) return false;
        n += (size_t)k;
        head[n] = '\0';
        if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0) end = head + n;
    }
    if (strcasestr(head, "\r\nTransfer-Encoding: chunked\r\n")) return read_chunks(fd, body_len);
    length = strcasestr(head, "\r\nContent-Length:");
    *body_len = length ? (size_t)strtoul(length + 17, NULL, 10) : 0;
    for (size_t left = *body_len; left;) {
        char sink[65536];
        ssize_t k = recv(fd, sink, left < sizeof sink ? left : sizeof sink, 0);
        if (k <= 0) return false;
        left -= (size_t)k;
    }
    return true;
}

static void big_answer(int fd, size_t n, const char *head)
{
    char block[65536];

    memset(block, 'x', sizeof block);
    if (!puts_(fd, head)) return;
    while (n) {
        size_t k = n < sizeof block ? n : sizeof block;
        if (!put(fd, block, k)) return;
        n -= k;
    }
}

/* 256 MiB of one byte in 420 KB of deflate: after the first byte, copies of 258 of them by fixed
 * Huffman codes (13 bits each: length 258 is 11000101, distance 1 is 00000). */
static void bomb(int fd)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
                               "\037\213\010\0\0\0\0\0\0\003";
    static unsigned char squeezed[1700 * 1024];
    size_t n_bits = 0;

    memset(squeezed, 0, sizeof squeezed);
#define BIT(b) (squeezed[n_bits / 8] |= (unsigned char)((b) << n_bits % 8), n_bits++)
    BIT(1), BIT(1), BIT(0); /* the last block, fixed codes */
    for (int i = 7; i >= 0; i--) BIT((0x30 + 'a') >> i & 1);
    for (int copy = 0; copy < 1 << 20; copy++) {
        for (int i = 7; i >= 0; i--) BIT(0xC5 >> i & 1);
        n_bits += 5;
    }
#undef BIT
    if (put(fd, head, sizeof head - 1)) put(fd, (const char *)squeezed, n_bits / 8);
}

/* False: the connection ends. */
static bool answer(struct server *s, int fd, const char *path, size_t body_len, int nth)
{
    char text[512];

    if (!strcmp(path, "/plain"))
        return puts_(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         "Content-Length: 5\r\n\r\nhello");
    if (!strcmp(path, "/count")) {
        char digits[32];
        snprintf(digits, sizeof digits, "%zu", body_len);
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(digits), digits);
        return puts_(fd, text);
    }
    if (!strcmp(path, "/empty")) return puts_(fd, "HTTP/1.1 204 No Content\r\n\r\n");
    if (!strcmp(path, "/interim"))
        return puts_(fd, "HTTP/1.1 103 Early Hints\r\nContent-Type: wrong/type\r\n\r\n"
                         "HTTP/1.1 200 OK\r\ncontent-type:\ttext/event-stream; charset=utf-8  \r\n"
                         "Content-Length: 2\r\n\r\nok");
    if (!strcmp(path, "/chunked"))
        return puts_(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n");
    if (!strcmp(path, "/close")) {
        puts_(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
        return false;
    }
    if (!strcmp(path, "/busy"))
        return puts_(fd, "HTTP/1.1 503 Busy\r\nRetry-After: 2.5\r\nContent-Length: 4\r\n\r\nbusy");
    if (!strcmp(path, "/redirect")) {
        snprintf(text, sizeof text,
                 "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/plain\r\n"
                 "Content-Length: 0\r\n\r\n",
                 s->redirect_port);
        return puts_(fd, text);
    }
    /* "/to-303-/plain": that status, and the rest as its location. */
    if (!strncmp(path, "/to-", 4) && strlen(path) > 8) {
        snprintf(text, sizeof text,
                 "HTTP/1.1 %.3s Moved\r\nLocation: %.300s\r\nContent-Length: 0\r\n\r\n", path + 4,
                 path + 8);
        return puts_(fd, text);
    }
    if (!strcmp(path, "/loop"))
        return puts_(fd, "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n");
    if (!strcmp(path, "/lines"))
        return puts_(
            fd, "HTTP/1.1 200 OK\r\nX-Many: one\r\nx-many: two\r\n"
                "Content-Type: application/octet-stream\r\nContent-Length: 3\r\n\r\n\xff\x01z");
    if (!strcmp(path, "/cut")) {
        puts_(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
        return false;
    }
    if (!strcmp(path, "/cut-chunk")) {
        puts_(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        return false;
    }
    if (!strcmp(path, "/bad-chunk")) {
        puts_(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n");
        return false;
    }
    if (!strcmp(path, "/cut-head")) {
        puts_(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n");
        return false;
    }
    if (!strcmp(path, "/reset")) {
        reset(fd);
        return false;
    }
    if (!strcmp(path, "/eof")) return false;
    if (!strcmp(path, "/reset-inside")) {
        char byte;
        puts_(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
        if (recv(fd, &byte, 1, MSG_PEEK) < 0) return false; /* the client says when it has it */
        reset(fd);
        return false;
    }
    if (!strcmp(path, "/garbage")) {
        puts_(fd, "SSH-2.0-OpenSSH_9.2p1 Debian\r\n");
        return false;
    }
    if (!strcmp(path, "/silent")) {
        stall(s, fd);
        return false;
    }
    if (!strcmp(path, "/head-only")) {
        puts_(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        stall(s, fd);
        return false;
    }
    if (!strcmp(path,
                "/events")) { /* the answer 7, behind what resembles it; the stream stays open */
        puts_(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                  "data: {\"id\":7,\"method\":\"ping\"}\n\ndata: {\"id\":\"7\"}\n\ndata: {\n\n"
                  "data: {\"id\":7,\"result\":1}\n\n");
        stall(s, fd);
        return false;
    }
    if (!strcmp(path, "/half")) {
        puts_(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nfirst");
        stall(s, fd);
        return false;
    }
    if (!strcmp(path, "/big")) {
        big_answer(fd, 8 << 20, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
        return true;
    }
    if (!strcmp(path, "/endless")) {
        big_answer(fd, (size_t)1 << 40, "HTTP/1.1 200 OK\r\n\r\n");
        return false;
    }
    if (!strcmp(path, "/big-head")) {
        puts_(fd, "HTTP/1.1 200 OK\r\n");
        for (int i = 0; i < 100000; i++) {
            if (!puts_(fd, "X-Padding: ........................................\r\n")) return false;
        }
        return false;
    }
    if (!strcmp(path, "/limits"))
        return puts_(fd, "HTTP/1.1 429 Too Many\r\nRetry-After-Ms: 1500\r\nX-Should-Retry:true\r\n"
                         "x-ratelimit-reset-tokens:  6m0s \r\nX-RateLimit-Reset-Tokens: 20ms\r\n"
                         "Content-Length: 0\r\n\r\n");
    if (!strcmp(path, "/gzip")) {
        static const char body[] =
            "\037\213\010\000\000\000\000\000\002\003\113\111\054\111\264\122\050\056\054\115\115"
            "\255\112\115\341\342\002\000\014\154\365\327\020\000\000\000";
        snprintf(text, sizeof text,
                 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                 sizeof body - 1);
        return puts_(fd, text) && put(fd, body, sizeof body - 1);
    }
    if (!strcmp(path, "/bomb")) {
        bomb(fd);
        return false;
    }
    /* The second request on a connection gets no answer: the client may send it anew. */
    if (!strcmp(path, "/once-a-connection")) {
        if (nth > 1) return false;
        return puts_(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nonce");
    }
    /* The next request on the connection is met with a reset while it is still being written. */
    if (!strcmp(path, "/reset-next")) {
        char byte;
        puts_(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nonce");
        if (recv(fd, &byte, 1, MSG_PEEK) > 0) reset(fd);
        return false;
    }
    /* Alive for one plain answer; from then on every request dies, on any connection. */
    if (!strcmp(path, "/dies")) return false;
    return puts_(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

static void *serve(void *ud)
{
    struct connection *c = ud;
    struct server *s = c->server;
    char head[sizeof s->last_request];
    size_t body_len;
    bool more = true;

    for (int nth = 1; more && read_request(c->fd, head, sizeof head, &body_len); nth++) {
        char method[16], path[256];
        if (sscanf(head, "%15s %255s", method, path) != 2) break;
        path[strcspn(path, "?")] = '\0';
        pthread_mutex_lock(&s->state->lock);
        memcpy(s->last_request, head, sizeof head);
        pthread_mutex_unlock(&s->state->lock);
        s->requests++;
        more = answer(s, c->fd, path, body_len, nth);
    }
    close(c->fd);
    s->open--;
    free(c);
    return NULL;
}

static void *accept_all(void *ud)
{
    struct server *s = ud;
    int fd;

    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        struct connection *c = malloc(sizeof *c);
        c->server = s;
        c->fd = fd;
        s->connections++;
        s->open++;
        if (s->state->n_threads == MAX_THREADS ||
            pthread_create(&s->state->threads[s->state->n_threads++], NULL, serve, c))
            abort();
    }
    return NULL;
}

void server_start(struct server *s)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;

    memset(s, 0, sizeof *s);
    s->state = calloc(1, sizeof *s->state);
    pthread_mutex_init(&s->state->lock, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&addr, len) || listen(s->fd, 512) ||
        getsockname(s->fd, (struct sockaddr *)&addr, &len))
        abort();
    s->port = ntohs(addr.sin_port);
    if (pthread_create(&s->state->acceptor, NULL, accept_all, s)) abort();
}

/* Call when the client has closed its connections: each thread ends with its own. */
void server_stop(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->state->acceptor, NULL);
    for (int i = 0; i < s->state->n_threads; i++) pthread_join(s->state->threads[i], NULL);
    close(s->fd);
    pthread_mutex_destroy(&s->state->lock);
    free(s->state);
}
