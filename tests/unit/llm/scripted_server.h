/* A TCP server for tests that does what its script says: plain sockets and a thread, nothing of
 * src/.  Each connection is one exchange: the request is read whole and kept, then the script's
 * line for that connection is played (the last line again for all further ones). */
#ifndef IPW_TEST_SCRIPTED_SERVER_H
#define IPW_TEST_SCRIPTED_SERVER_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum script_end {
    THEN_CLOSE,
    THEN_RESET, /* close with a TCP reset */
    THEN_HOLD,  /* keep the connection open until the other side closes it */
};

struct script_line {
    const char *answer; /* bytes as they go out; NULL: none */
    enum script_end then;
};

enum { SERVER_KEEPS = 16, SERVER_REQUEST_BYTES = 64 * 1024 };

struct server {
    const struct script_line *script;
    size_t n_script;
    int fd, port;
    pthread_t thread;
    pthread_mutex_t lock;
    size_t requests;       /* under the lock, as the rest below */
    size_t closed_by_peer; /* THEN_HOLD connections that the client closed */
    char *seen[SERVER_KEEPS];
    void (*on_sent)(void *ud); /* called in the server's thread after each answer */
    void *ud;
};

static inline size_t server_body_length(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");

    return at ? (size_t)strtoul(at + 17, NULL, 10) : 0;
}

/* Reads one request; false when the peer went away before it was whole (the stopping connect). */
static inline bool server_read(int fd, char *into)
{
    size_t have = 0;

    for (;;) {
        ssize_t n = recv(fd, into + have, SERVER_REQUEST_BYTES - 1 - have, 0);
        char *end;

        if (n <= 0) return false;
        have += (size_t)n;
        into[have] = '\0';
        end = strstr(into, "\r\n\r\n");
        if (end && have >= (size_t)(end + 4 - into) + server_body_length(into)) return true;
    }
}

static inline void server_exchange(struct server *s, int fd, char *request)
{
    const struct script_line *line;
    size_t at;
    char byte;

    pthread_mutex_lock(&s->lock);
    at = s->requests++;
    if (at < SERVER_KEEPS) s->seen[at] = strdup(request);
    pthread_mutex_unlock(&s->lock);
    line = &s->script[at < s->n_script ? at : s->n_script - 1];
    if (line->answer) {
        const char *p = line->answer;
        size_t left = strlen(p);

        while (left) {
            ssize_t n = send(fd, p, left, MSG_NOSIGNAL);
            if (n <= 0) break;
            p += n;
            left -= (size_t)n;
        }
    }
    if (s->on_sent) s->on_sent(s->ud);
    if (line->then == THEN_RESET) {
        struct linger hard = {.l_onoff = 1, .l_linger = 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    } else if (line->then == THEN_HOLD) {
        while (recv(fd, &byte, 1, 0) > 0) continue;
        pthread_mutex_lock(&s->lock);
        s->closed_by_peer++;
        pthread_mutex_unlock(&s->lock);
    }
}

static inline void *server_main(void *arg)
{
    struct server *s = arg;
    char *request = malloc(SERVER_REQUEST_BYTES);

    for (;;) {
        int fd = accept(s->fd, NULL, NULL);
        bool stop;

        if (fd < 0) break;
        stop = !server_read(fd, request);
        if (!stop) server_exchange(s, fd, request);
        close(fd);
        if (stop) break;
    }
    free(request);
    return NULL;
}

static inline int server_listen(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, n) || listen(fd, 16) ||
        getsockname(fd, (struct sockaddr *)&address, &n)) {
        perror("test server");
        abort();
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static inline void server_start(struct server *s, const struct script_line *script, size_t n)
{
    s->script = script;
    s->n_script = n;
    s->fd = server_listen(&s->port);
    pthread_mutex_init(&s->lock, NULL);
    if (pthread_create(&s->thread, NULL, server_main, s)) abort();
}

/* A connection that says nothing is the sign to stop. */
static inline void server_stop(struct server *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)s->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) abort();
    close(fd);
    pthread_join(s->thread, NULL);
    close(s->fd);
    for (size_t i = 0; i < SERVER_KEEPS; i++) free(s->seen[i]);
    pthread_mutex_destroy(&s->lock);
}

#endif
