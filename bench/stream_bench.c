/* bench/stream_bench.c: what many slow streams cost, and how late their stamps are.
 *
 *   stream_bench [STREAMS [SECONDS]]       default: 64, 256 and 1024 streams for 5 s each
 *
 * A server of our own (a child process, epoll, one thread) sends each stream 50 chunks a second,
 * spread evenly over the streams; each chunk holds the instant it was handed to the kernel.  Two
 * passes for each number of streams:
 *   client  the whole client (ipw_llm_start): CPU time of this process in percent of one core over
 *           the steady part, and resident memory for each stream beyond that without any
 *   lag     the same path with the parts joined here (io/http, io/sse, the fold, the stamps), since
 *           the client keeps no chunk's stamp: from the server's instant to the stamp at the top of
 *           libcurl's callback, median and 99th percentile
 * Both processes share the machine: on few cores the lag holds the server's own load too. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/http.h"
#include "io/sse.h"
#include "llm/client.h"
#include "llm/times.h"

enum { MOST = 4096, PER_SECOND = 50, MOST_LAGS = 4 * 1000 * 1000 };

/* ---- the server ---- */

struct peer {
    int64_t due_ns;
    long left;
};

static void send_all(int fd, const char *text, size_t n)
{
    if (send(fd, text, n, MSG_NOSIGNAL) != (ssize_t)n) return; /* the client has gone */
}

static void send_chunk(int fd, struct peer *p, int64_t now_ns)
{
    char data[256], chunk[320];
    int n = p->left > 0
                ? snprintf(data, sizeof data,
                           "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\","
                           "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%lld \"},"
                           "\"finish_reason\":null}]}\n\n",
                           (long long)now_ns)
                : snprintf(data, sizeof data,
                           "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"
                           "\"stop\"}]}\n\ndata: [DONE]\n\n");

    n = snprintf(chunk, sizeof chunk, "%x\r\n%s\r\n%s", (unsigned)n, data,
                 p->left > 0 ? "" : "0\r\n\r\n");
    send_all(fd, chunk, (size_t)n);
}

static void take_request(int fd, struct peer *p, size_t n_streams, long chunks, size_t *number)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    char in[65536];
    ssize_t n = recv(fd, in, sizeof in, 0);

    if (n <= 0) {
        if (n == 0) close(fd);
        return;
    }
    if (p->left) return; /* the rest of a request that came in two pieces */
    send_all(fd, head, sizeof head - 1);
    p->left = chunks;
    p->due_ns = ipw_now_ns() +
                IPW_NS_PER_S / PER_SECOND * (int64_t)(*number % n_streams) / (int64_t)n_streams;
    ++*number;
}

static void serve(int listener, size_t n_streams, long chunks)
{
    static struct peer peers[4 * MOST];
    int ep = epoll_create1(0), most = 0;
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener}, events[256];
    size_t number = 0;

    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
    for (;;) {
        int n = epoll_wait(ep, events, 256, 1);
        int64_t now_ns;

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd, one = 1;

            if (fd != listener) {
                take_request(fd, &peers[fd], n_streams, chunks, &number);
                continue;
            }
            fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0 || fd >= 4 * MOST) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            peers[fd] = (struct peer){0};
            if (fd > most) most = fd;
            ev = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
            epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
        }
        now_ns = ipw_now_ns();
        for (int fd = 0; fd <= most; fd++) {
            struct peer *p = &peers[fd];

            if (!p->left || p->due_ns > now_ns) continue;
            p->due_ns += IPW_NS_PER_S / PER_SECOND;
            p->left--;
            send_chunk(fd, p, ipw_now_ns());
        }
    }
}

static pid_t start_server(int *port, size_t n_streams, long chunks)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    pid_t child;

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&a, &n)) {
        perror("stream_bench: cannot listen");
        exit(1);
    }
    *port = ntohs(a.sin_port);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        serve(fd, n_streams, chunks);
    }
    close(fd);
    return child;
}

/* ---- the client ---- */

static struct ipw_loop *loop;
static size_t in_flight, n_failed;
static int64_t *lags;
static size_t n_lags;

static long resident_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long size = 0, pages = 0;

    if (!f || fscanf(f, "%ld %ld", &size, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static struct steady { /* measured while all streams run */
    int64_t cpu_ns, t_ns;
    double cpu_percent;
    long kb;
} steady;

static void begin_steady(void *ud)
{
    (void)ud;
    steady.cpu_ns = ipw_cpu_self_ns();
    steady.t_ns = ipw_now_ns();
}

static void end_steady(void *ud)
{
    (void)ud;
    steady.cpu_percent =
        100.0 * (double)(ipw_cpu_self_ns() - steady.cpu_ns) / (double)(ipw_now_ns() - steady.t_ns);
    steady.kb = resident_kb();
}

static void one_less(bool ok)
{
    n_failed += !ok;
    if (--in_flight == 0) ipw_loop_stop(loop);
}

static void on_reply(void *ud, int code, struct ipw_chat_reply *reply, const struct ipw_err *err,
                     bool retryable)
{
    (void)ud, (void)reply, (void)retryable;
    if (code && !n_failed) fprintf(stderr, "stream_bench: %s\n", err->text);
    one_less(code == 0);
}

static void run_client(struct ipw_http *http, const char *url, size_t n)
{
    struct ipw_llm_options options = {.base_url = url};
    struct ipw_chat_text message = {"{\"content\":\"Hi\",\"role\":\"user\"}", 30};
    struct ipw_chat_request request = {.model = "m",
                                       .messages = &message,
                                       .n_messages = 1,
                                       .temperature = NAN,
                                       .top_p = NAN,
                                       .seed = INT64_MIN,
                                       .max_tokens = -1};
    struct ipw_llm_callbacks on = {.on_done = on_reply};
    struct ipw_llm *llm;
    struct ipw_llm_call *call;
    struct ipw_err err;

    if (ipw_llm_new(&llm, loop, http, &options, &err)) exit(1);
    in_flight = n;
    for (size_t i = 0; i < n; i++)
        if (ipw_llm_start(&call, llm, &request, &on, &err)) exit(1);
    ipw_loop_run(loop);
    ipw_llm_free(llm);
}

struct stream {
    struct ipw_sse sse;
    struct ipw_chat_fold *fold;
    struct ipw_llm_times times;
    int64_t t_ns;
};

static int on_event(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    struct stream *s = ud;
    const char *at = strstr(event->data, "\"content\":\"");
    int seen = ipw_chat_fold_event(s->fold, event->name, event->data, event->data_len, err);

    if (seen < 0) return seen;
    ipw_llm_times_event(&s->times, s->t_ns, seen);
    if (at && n_lags < MOST_LAGS) lags[n_lags++] = s->t_ns - strtoll(at + 11, NULL, 10);
    return 0;
}

static int on_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct stream *s = ud;

    s->t_ns = t_ns;
    return ipw_sse_feed(&s->sse, bytes, n, NULL);
}

static void on_stream_done(void *ud, const struct ipw_http_result *result)
{
    struct stream *s = ud;

    if (result->end != IPW_HTTP_OK && !n_failed) fprintf(stderr, "%s\n", result->error);
    ipw_sse_release(&s->sse);
    ipw_llm_times_release(&s->times);
    ipw_chat_fold_free(s->fold);
    one_less(result->end == IPW_HTTP_OK);
}

static void run_lag(struct ipw_http *http, const char *url, size_t n)
{
    struct stream *streams = ipw_calloc(n, sizeof *streams);

    in_flight = n;
    n_lags = 0;
    for (size_t i = 0; i < n; i++) {
        struct ipw_http_request request = {.url = url, .body = "{}", .body_len = 2};
        struct ipw_http_callbacks on = {NULL, on_data, on_stream_done, &streams[i]};
        struct ipw_http_call *call;

        ipw_sse_init(&streams[i].sse, IPW_MIB, on_event, &streams[i]);
        streams[i].fold = ipw_chat_fold_new(16 * IPW_MIB);
        if (ipw_http_start(&call, http, &request, &on, NULL)) exit(1);
    }
    ipw_loop_run(loop);
    free(streams);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void bench(size_t n, int seconds)
{
    int port;
    pid_t server = start_server(&port, n, (long)PER_SECOND * seconds);
    char *url = ipw_asprintf("http://127.0.0.1:%d/v1", port);
    struct ipw_http *http;
    long kb_before;

    if (ipw_loop_new(&loop, NULL) || ipw_http_new(&http, loop, NULL, NULL)) exit(1);
    kb_before = resident_kb();
    ipw_timer_start(loop, IPW_NS_PER_S, begin_steady, NULL);
    ipw_timer_start(loop, (seconds - 1) * IPW_NS_PER_S, end_steady, NULL);
    run_client(http, url, n);
    printf("%5zu streams: client %5.2f %% of a core, %5.1f KB a stream", n, steady.cpu_percent,
           (double)(steady.kb - kb_before) / (double)n);
    fflush(stdout);
    run_lag(http, url, n);
    qsort(lags, n_lags, sizeof *lags, by_value);
    if (n_lags)
        printf("; lag median %.0f us, p99 %.0f us of %zu chunks\n", (double)lags[n_lags / 2] / 1e3,
               (double)lags[n_lags - 1 - n_lags / 100] / 1e3, n_lags);
    if (n_failed) printf("%zu streams failed\n", n_failed);
    ipw_http_free(http);
    ipw_loop_run(loop);
    ipw_loop_free(loop);
    free(url);
    kill(server, SIGTERM);
}

int main(int argc, char **argv)
{
    int seconds = argc > 2 ? atoi(argv[2]) : 5;
    size_t sizes[] = {64, 256, 1024}, n_sizes = 3;
    struct rlimit files;

    if (argc > 1) {
        sizes[0] = (size_t)atoi(argv[1]);
        n_sizes = 1;
    }
    if (sizes[0] < 1 || sizes[0] > MOST || seconds < 3) {
        fprintf(stderr, "usage: stream_bench [STREAMS (to %d) [SECONDS (from 3)]]\n", MOST);
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGCHLD, SIG_IGN);
    lags = ipw_calloc(MOST_LAGS, sizeof *lags);
    if (ipw_http_global_init(NULL)) return 1;
    for (size_t i = 0; i < n_sizes; i++) bench(sizes[i], seconds);
    free(lags);
    ipw_http_global_release();
    return n_failed > 0;
}
