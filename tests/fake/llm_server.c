/* tests/fake/llm_server.c: `fake_llm`, a scripted OpenAI-compatible server for tests and
 * benchmarks.
 *
 *   fake_llm [--port N] [--script FILE | --bench K | --bench-react K] [options]
 *
 * Prints "listening PORT" on stdout once it accepts connections; ends on SIGTERM, SIGINT, or after
 * --requests N chat requests were answered.
 *
 *   --port N            0 (the default): any free one; always on 127.0.0.1
 *   --script FILE       answers from a cassette; the format stands in llm_script.c
 *   --bench K           a stateless mock of a model: while the request holds fewer than K tool
 *                       results, one native call calculator {"expression":"2+3*N"} (N: the results
 *                       so far); then the text "FINAL ANSWER: 42".  The default, with K = 0
 *   --bench-react K     the same as text: Thought, Action, Action Input; counts "Observation:"
 * lines of user messages; ends with "Final Answer: 42"
 *   --events E          content events of a bench stream (2); besides come the role, three deltas
 * of a call, finish, usage and [DONE].  E (+ 3) are the completion tokens told
 *   --prompt-tokens P   prompt tokens told by bench (100)
 *   --delay-ms D        bench answers D ms after the request
 *   --gather N          and not before N chat requests were there at once: for tests of what a
 *                       client holds open, which no clock decides (with --delay-ms)
 *   --log FILE          appends each request: "#N METHOD PATH", its headers, an empty line, the
 * body on a line of its own; "#N gone" when the client left before the end
 *   --stamps FILE       appends for each answered chat request when it was read and each piece sent
 *   --requests N        end after N answered chat requests
 *   --key K             401 without "Authorization: Bearer K"
 *   --max-in-flight N   429 to a chat request that comes while N others are being answered
 *   --strict-model      404 for any model but fake-model
 *   --die-with-parent   SIGTERM when the process that started it ends
 *   --stats             CPU time per reply on stderr at the end
 *
 * Also: GET /v1/models, GET /health, GET /stats ({"requests","in_flight_max","connections"}).
 *
 * One thread, level-triggered epoll.  A connection reads a request whole, gets a list of steps and
 * carries them out; what the client sends meanwhile waits. */
#include "fake_llm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX     ((size_t)64 * 1024 * 1024)
#define CONNECTIONS_MAX 65536

struct conn {
    unsigned generation; /* of the slot, so that an old timer does not hit a new connection */
    bool open, chat, continued;
    char *in;
    size_t in_n, in_cap, taken; /* bytes of `in` that the request in hand takes */
    const struct reply *reply;
    size_t step, sent;
    int slow_ms; /* < 0: whole */
    bool sleeping, writable_wanted;
    unsigned long number; /* of the request in hand */
    struct text stamps;
};

struct timer {
    int64_t when;
    int fd;
    unsigned generation;
};

static struct {
    int ep;
    struct conn *conns;   /* by descriptor */
    struct timer *timers; /* a heap, the earliest first */
    size_t n_timers, cap_timers;
    const char *key;
    FILE *log, *stamps;
    bool scripted, strict_model, stats;
    unsigned long requests, chats, answered, limit;
    size_t in_flight, in_flight_max, connections, most_in_flight, gather;
    unsigned long refused;
    volatile sig_atomic_t stop;
} g;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void stamp(struct conn *c)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (g.stamps && c->chat)
        text_addf(&c->stamps, "%s%lld", c->stamps.n ? " " : "",
                  (long long)t.tv_sec * 1000000000 + t.tv_nsec);
}

static void write_stamps(struct conn *c, bool finished)
{
    if (finished && c->stamps.n) fprintf(g.stamps, "%s\n", c->stamps.s), fflush(g.stamps);
    free(c->stamps.s);
    c->stamps = (struct text){0};
}

/* --- timers --- */

static void timer_add(int fd, int ms)
{
    if (g.n_timers == g.cap_timers) {
        g.cap_timers = g.cap_timers ? g.cap_timers * 2 : 64;
        g.timers = need(realloc(g.timers, g.cap_timers * sizeof *g.timers));
    }
    struct timer t = {now_ms() + ms, fd, g.conns[fd].generation};
    size_t i = g.n_timers++;
    for (; i > 0 && g.timers[(i - 1) / 2].when > t.when; i = (i - 1) / 2)
        g.timers[i] = g.timers[(i - 1) / 2];
    g.timers[i] = t;
}

static struct timer timer_pop(void)
{
    struct timer first = g.timers[0], last = g.timers[--g.n_timers];
    size_t i = 0, k;
    for (; (k = 2 * i + 1) < g.n_timers; i = k) {
        if (k + 1 < g.n_timers && g.timers[k + 1].when < g.timers[k].when) k++;
        if (g.timers[k].when >= last.when) break;
        g.timers[i] = g.timers[k];
    }
    if (g.n_timers) g.timers[i] = last;
    return first;
}

/* --- connections --- */

static void drop_reply(struct conn *c, bool finished)
{
    if (!c->reply) return;
    if (c->chat) {
        g.in_flight--;
        g.answered++;
        write_stamps(c, finished);
        if (!finished && g.log) fprintf(g.log, "#%lu gone\n", c->number), fflush(g.log);
    }
    if (c->reply->owned) reply_free((struct reply *)(uintptr_t)c->reply);
    c->reply = NULL;
}

static void conn_close(int fd, bool reset, bool finished)
{
    struct conn *c = &g.conns[fd];
    drop_reply(c, finished);
    if (reset) {
        struct linger l = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    }
    close(fd);
    free(c->in);
    unsigned generation = c->generation + 1;
    *c = (struct conn){.generation = generation};
    g.connections--;
}

static void want_writable(int fd, bool on)
{
    struct conn *c = &g.conns[fd];
    if (c->writable_wanted == on) return;
    c->writable_wanted = on;
    struct epoll_event ev = {.events = EPOLLIN | (on ? EPOLLOUT : 0U), .data.fd = fd};
    epoll_ctl(g.ep, EPOLL_CTL_MOD, fd, &ev);
}

enum result { GO_ON, WAITS, GONE };

/* Sends what the socket takes of the step's bytes. */
static enum result send_bytes(int fd, const struct step *s)
{
    struct conn *c = &g.conns[fd];
    while (c->sent < s->n) {
        size_t n = c->slow_ms >= 0 ? 1 : s->n - c->sent;
        ssize_t k = send(fd, s->bytes + c->sent, n, MSG_NOSIGNAL);
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            want_writable(fd, true);
            return WAITS;
        }
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) {
            conn_close(fd, false, false);
            return GONE;
        }
        c->sent += (size_t)k;
        if (c->slow_ms > 0 && c->sent < s->n) {
            c->sleeping = true;
            timer_add(fd, c->slow_ms);
            return WAITS;
        }
    }
    c->sent = 0;
    want_writable(fd, false);
    return GO_ON;
}

static enum result run_step(int fd, const struct step *s)
{
    struct conn *c = &g.conns[fd];
    switch (s->kind) {
    case STEP_BYTES:
        if (!c->sent) stamp(c);
        return send_bytes(fd, s);
    case STEP_SLEEP:
        c->sleeping = true;
        if (g.in_flight_max < g.gather) { /* looks again */
            timer_add(fd, 20);
            return WAITS;
        }
        c->step++; /* when the timer rings, with the next one */
        timer_add(fd, s->ms);
        return WAITS;
    case STEP_SLOW: c->slow_ms = s->ms; return GO_ON;
    case STEP_CUT: conn_close(fd, false, true); return GONE;
    case STEP_RESET: conn_close(fd, true, true); return GONE;
    case STEP_STALL: return WAITS;
    case STEP_ENDLESS:
        for (;;) {
            enum result r = send_bytes(fd, s);
            if (r != GO_ON) return r;
        }
    }
    return GO_ON;
}

static bool next_request(int fd);

/* Carries out steps until one has to wait; then answers what else the client has sent. */
static void run_steps(int fd)
{
    struct conn *c = &g.conns[fd];
    do {
        while (c->reply && c->step < c->reply->n) {
            if (run_step(fd, &c->reply->steps[c->step]) != GO_ON) return;
            c->step++;
        }
        if (c->reply) {
            bool closing = c->reply->close;
            drop_reply(c, true);
            if (closing) {
                conn_close(fd, false, true);
                return;
            }
            memmove(c->in, c->in + c->taken, c->in_n - c->taken);
            c->in_n -= c->taken;
            c->taken = 0;
        }
    } while (next_request(fd));
}

/* --- requests --- */

static const char *header(const char *p, const char *end, const char *name, size_t *n)
{
    size_t name_n = strlen(name);
    while (p < end) {
        const char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
        if (!eol) eol = end;
        if ((size_t)(eol - p) > name_n && p[name_n] == ':' && !strncasecmp(p, name, name_n)) {
            p += name_n + 1;
            while (p < eol && *p == ' ') p++;
            *n = (size_t)(eol - p);
            return p;
        }
        p = eol + 2;
    }
    return NULL;
}

static bool path_is(const struct request *q, const char *path)
{
    return q->path_n == strlen(path) && !memcmp(q->path, path, q->path_n);
}

static bool key_fits(const char *head, const char *end)
{
    size_t n;
    const char *v = header(head, end, "Authorization", &n);
    return v && n == 7 + strlen(g.key) && !memcmp(v, "Bearer ", 7) && !memcmp(v + 7, g.key, n - 7);
}

static bool model_fits(const struct request *q)
{
    const char *v;
    size_t n;
    return request_member(q, "model", &v, &n) && n == strlen("\"" FAKE_MODEL "\"") &&
           !memcmp(v, "\"" FAKE_MODEL "\"", n);
}

/* Before a run the program asks for one token of a model that is not listed (src/run/connect.c). */
static bool is_probe(const struct request *q)
{
    const char *v;
    size_t n;
    return request_member(q, "max_tokens", &v, &n) && n == 1 && *v == '1' &&
           memmem(q->body, q->body_n, "\"content\":\"Hi\"", 14);
}

#define JSON "application/json"

static const struct reply *route(const struct request *q, bool authorised)
{
    if (path_is(q, "/health")) return plain_reply(200, "OK", JSON, "{\"status\":\"ok\"}", false);
    if (path_is(q, "/stats")) {
        char body[128];
        snprintf(body, sizeof body,
                 "{\"requests\":%lu,\"in_flight_max\":%zu,\"connections\":%zu,\"refused\":%lu}",
                 g.chats, g.in_flight_max, g.connections, g.refused);
        return plain_reply(200, "OK", JSON, body, false);
    }
    if (!authorised)
        return plain_reply(401, "Unauthorized", "application/json; charset=utf-8",
                           "{\"error\":{\"message\":\"Invalid API Key\","
                           "\"type\":\"authentication_error\",\"code\":401}}",
                           true);
    bool chat = path_is(q, "/v1/chat/completions");
    if (chat && g.most_in_flight && g.in_flight > g.most_in_flight) {
        g.refused++;
        return plain_reply(429, "Too Many Requests", JSON,
                           "{\"error\":{\"message\":\"too many requests at once\","
                           "\"type\":\"rate_limit_error\",\"code\":\"busy\"}}",
                           false);
    }
    if (chat && g.strict_model && !model_fits(q))
        return plain_reply(
            404, "Not Found", JSON,
            "{\"error\":{\"message\":\"The model does not exist; this server has " FAKE_MODEL
            ".\",\"type\":\"NotFoundError\",\"param\":\"model\","
            "\"code\":404}}",
            false);
    if (g.scripted) {
        const struct reply *r = script_reply(q, is_probe(q));
        if (r) return r;
    }
    if (chat && g.scripted && is_probe(q)) /* the blocks are for the run's own requests */
        return plain_reply(200, "OK", JSON,
                           "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"Hi\"},"
                           "\"finish_reason\":\"length\"}]}",
                           false);
    if (chat && g.scripted)
        return plain_reply(500, "Internal Server Error", JSON,
                           "{\"error\":{\"message\":\"the cassette is over\","
                           "\"type\":\"server_error\",\"code\":500}}",
                           false);
    if (chat) return bench_reply(q);
    if (path_is(q, "/v1/models"))
        return plain_reply(200, "OK", JSON,
                           "{\"object\":\"list\",\"data\":[{\"id\":\"" FAKE_MODEL "\","
                           "\"object\":\"model\",\"created\":1700000000,\"owned_by\":\"fake\"}]}",
                           false);
    return plain_reply(404, "Not Found", JSON,
                       "{\"error\":{\"message\":\"File Not Found\",\"type\":\"not_found_error\","
                       "\"code\":404}}",
                       false);
}

static void log_request(const char *head, size_t head_n, const struct request *q)
{
    fprintf(g.log, is_probe(q) ? "probe %lu " : "#%lu ", g.requests);
    for (size_t i = 0; i + 2 < head_n; i++)
        if (head[i] != '\r') fputc(head[i], g.log);
    fprintf(g.log, "\n%.*s\n", (int)q->body_n, q->body);
    fflush(g.log);
}

/* Takes the next whole request out of the buffer and gives it its reply; false when there is none
 * yet.  The reply's steps are then run by the caller. */
static bool next_request(int fd)
{
    struct conn *c = &g.conns[fd];
    const char *end = c->in_n ? memmem(c->in, c->in_n, "\r\n\r\n", 4) : NULL;
    if (!end) return false;
    const char *eol = memmem(c->in, c->in_n, "\r\n", 2), *v;
    size_t n, length = 0, head_n = (size_t)(end + 4 - c->in);
    if ((v = header(eol + 2, end, "Content-Length", &n))) length = strtoul(v, NULL, 10);
    if (length > REQUEST_MAX) {
        conn_close(fd, false, true);
        return false;
    }
    if (c->in_n < head_n + length) {
        if (!c->continued && header(eol + 2, end, "Expect", &n)) {
            static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
            c->continued = send(fd, go_on, sizeof go_on - 1, MSG_NOSIGNAL) > 0;
        }
        return false;
    }
    const char *path = memchr(c->in, ' ', (size_t)(eol - c->in));
    path = path ? path + 1 : c->in;
    struct request q = {
        .path = path, .path_n = strcspn(path, " ?\r"), .body = c->in + head_n, .body_n = length};
    g.requests++;
    c->chat = path_is(&q, "/v1/chat/completions");
    if (c->chat) {
        stamp(c);
        g.chats++;
        if (++g.in_flight > g.in_flight_max) g.in_flight_max = g.in_flight;
    }
    q.number = g.chats;
    c->number = g.requests;
    c->taken = head_n + length;
    c->step = c->sent = 0;
    c->slow_ms = -1;
    c->continued = false;
    if (g.log) log_request(c->in, head_n, &q);
    c->reply = route(&q, !g.key || key_fits(eol + 2, end));
    return true;
}

/* The client has sent something, or has gone. */
static void on_readable(int fd)
{
    struct conn *c = &g.conns[fd];
    if (c->in_n + 4096 > c->in_cap) {
        if (c->in_cap > REQUEST_MAX + 65536) {
            conn_close(fd, false, false);
            return;
        }
        c->in_cap = c->in_cap ? c->in_cap * 2 : 16384;
        c->in = need(realloc(c->in, c->in_cap));
    }
    ssize_t n = recv(fd, c->in + c->in_n, c->in_cap - c->in_n - 1, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        conn_close(fd, false, false);
        return;
    }
    c->in_n += (size_t)n;
    c->in[c->in_n] = '\0';
    if (!c->reply && next_request(fd)) run_steps(fd);
}

static void on_timers(void)
{
    int64_t now = now_ms();
    while (g.n_timers && g.timers[0].when <= now) {
        struct timer t = timer_pop();
        struct conn *c = &g.conns[t.fd];
        if (!c->open || c->generation != t.generation) continue;
        c->sleeping = false;
        run_steps(t.fd);
    }
}

static void on_accept(int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        if (fd >= CONNECTIONS_MAX) {
            close(fd);
            continue;
        }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        g.conns[fd].open = true;
        g.conns[fd].slow_ms = -1;
        g.connections++;
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(g.ep, EPOLL_CTL_ADD, fd, &ev);
    }
}

static void serve(int listener)
{
    struct epoll_event events[256];
    while (!g.stop && !(g.limit && g.answered >= g.limit)) {
        int64_t wait = -1;
        if (g.n_timers && (wait = g.timers[0].when - now_ms()) < 0) wait = 0;
        int n = epoll_wait(g.ep, events, 256, (int)wait);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                on_accept(listener);
                continue;
            }
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(fd);
            if ((events[i].events & EPOLLOUT) && g.conns[fd].open && !g.conns[fd].sleeping)
                run_steps(fd);
        }
        on_timers();
    }
}

/* --- start and end --- */

static void on_signal(int sig)
{
    (void)sig;
    g.stop = 1;
}

static int open_listener(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t n = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&a, &n)) {
        fprintf(stderr, "fake_llm: cannot listen on port %d: %s\n", port, strerror(errno));
        exit(1);
    }
    g.ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(g.ep, EPOLL_CTL_ADD, fd, &ev);
    printf("listening %d\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

static void finish(int listener)
{
    for (int fd = 0; fd < CONNECTIONS_MAX; fd++)
        if (g.conns[fd].open) conn_close(fd, false, true);
    close(listener);
    close(g.ep);
    free(g.conns);
    free(g.timers);
    bench_free();
    script_free();
    if (g.log) fclose(g.log);
    if (g.stamps) fclose(g.stamps);
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double us = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
                (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    if (g.stats)
        fprintf(stderr, "fake_llm: %lu requests, %.1f us of CPU each (user %.1f), %zu at once\n",
                g.requests, us / (double)(g.requests ? g.requests : 1),
                ((double)u.ru_utime.tv_sec * 1e6 + (double)u.ru_utime.tv_usec) /
                    (double)(g.requests ? g.requests : 1),
                g.in_flight_max);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"port", 1, 0, 'p'},
        {"script", 1, 0, 's'},
        {"bench", 1, 0, 'b'},
        {"bench-react", 1, 0, 'r'},
        {"events", 1, 0, 'e'},
        {"prompt-tokens", 1, 0, 't'},
        {"delay-ms", 1, 0, 'd'},
        {"gather", 1, 0, 'g'},
        {"log", 1, 0, 'l'},
        {"stamps", 1, 0, 'w'},
        {"requests", 1, 0, 'n'},
        {"key", 1, 0, 'k'},
        {"max-in-flight", 1, 0, 'i'},
        {"strict-model", 0, 0, 'm'},
        {"stats", 0, 0, 'S'},
        {"die-with-parent", 0, 0, 'D'},
        {0},
    };
    struct bench_options bench = {.events = 2, .prompt_tokens = 100};
    int port = 0, o;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (o) {
        case 'p': port = atoi(optarg); break;
        case 's': script_load(optarg), g.scripted = true; break;
        case 'b': bench.turns = atoi(optarg); break;
        case 'r': bench.turns = atoi(optarg), bench.react = true; break;
        case 'e': bench.events = atoi(optarg); break;
        case 't': bench.prompt_tokens = atol(optarg); break;
        case 'd': bench.delay_ms = atoi(optarg); break;
        case 'g': g.gather = strtoul(optarg, NULL, 10); break;
        case 'l':
        case 'w':
            if (!(*(o == 'l' ? &g.log : &g.stamps) = fopen(optarg, "ae"))) {
                fprintf(stderr, "fake_llm: cannot write %s\n", optarg);
                return 2;
            }
            break;
        case 'n': g.limit = strtoul(optarg, NULL, 10); break;
        case 'k': g.key = optarg; break;
        case 'i': g.most_in_flight = strtoul(optarg, NULL, 10); break;
        case 'm': g.strict_model = true; break;
        case 'S': g.stats = true; break;
        case 'D': prctl(PR_SET_PDEATHSIG, SIGTERM); break;
        default: fputs("usage: see the head of tests/fake/llm_server.c\n", stderr); return 2;
        }
    }
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    g.conns = need(calloc(CONNECTIONS_MAX, sizeof *g.conns));
    bench_build(&bench);
    int listener = open_listener(port);
    serve(listener);
    finish(listener);
    return 0;
}
