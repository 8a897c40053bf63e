/* The HTTP server as its routes and its clients meet it: clients with raw sockets, some of them in
 * a thread beside the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "io/server.h"
#include "unit/descriptors.h"
#include "unit/unit.h"
#include "with_loop.h"

static struct ipw_server *server;
static struct ipw_exchange *held; /* of /hold and /full */
static struct ipw_buf seen;       /* what the routes saw */
static size_t pushed;
static int over_sent, over_cut, shown;
static bool full;

/* ---- the routes ---- */

static void on_header(const char *name, const char *value, void *ud)
{
    (void)ud;
    if (*name == 'X') ipw_buf_addf(&seen, "%s=%s;", name, value);
}

static void on_echo(struct ipw_exchange *x, void *ud)
{
    const char *query = ipw_exchange_query(x, "a"), *body;
    size_t n;

    (void)ud;
    shown++;
    body = ipw_exchange_body(x, &n);
    ipw_buf_clear(&seen);
    ipw_buf_addf(&seen, "%s %s %s a=%s ", ipw_exchange_method(x), ipw_exchange_path(x),
                 ipw_exchange_target(x), query ? query : "-");
    ipw_exchange_headers(x, on_header, NULL);
    ipw_buf_addf(&seen, " %zu:%.20s", n, body);
    assert_true(ipw_exchange_head_ns(x) <= ipw_exchange_whole_ns(x));
    assert_true(ipw_answer_header(x, "Set-Cookie", "a=1"));
    assert_true(ipw_answer_header(x, "Set-Cookie", "b=2\tc"));
    assert_true(ipw_answer_header(x, "Content-Length", "7"));
    assert_false(ipw_answer_header(x, "X-Bad", "a\r\nX-Evil: 1"));
    assert_false(ipw_answer_header(x, "X Bad", "a"));
    ipw_answer(x, 207, "text/x", seen.data, seen.len);
}

static void on_hold(struct ipw_exchange *x, void *ud)
{
    (void)ud;
    shown++;
    held = x;
}

static void on_over(struct ipw_exchange *x, bool sent, void *ud)
{
    (void)x, (void)ud;
    if (sent)
        over_sent++;
    else
        over_cut++;
    held = NULL;
}

static void on_slow_stream(void *ud)
{
    const char *const *words = ud;

    if (!held) return;
    if (!*words) {
        ipw_answer_end(held);
        return;
    }
    assert_true(ipw_answer_push(held, *words, strlen(*words)));
    ipw_timer_start(loop, 2 * IPW_NS_PER_MS, on_slow_stream, (void *)(words + 1));
}

static void on_stream(struct ipw_exchange *x, void *ud)
{
    static const char *const words[] = {"one ", "two ", "three", NULL};

    (void)ud;
    on_hold(x, NULL);
    ipw_answer_header(x, "Content-Type", "text/event-stream");
    ipw_answer_begin(x, 200, ipw_exchange_query(x, "length") ? 13 : -1);
    if (ipw_exchange_query(x, "break"))
        ipw_answer_break(x);
    else
        on_slow_stream((void *)words);
}

static void fill(struct ipw_exchange *x)
{
    char piece[4096];

    memset(piece, 'x', sizeof piece);
    full = false;
    while (pushed < 4 * IPW_MIB && !full) {
        pushed += sizeof piece;
        full = !ipw_answer_push(x, piece, sizeof piece);
    }
    if (pushed == 4 * IPW_MIB) ipw_answer_end(x);
}

static void on_full(struct ipw_exchange *x, void *ud)
{
    on_hold(x, ud);
    pushed = 0;
    ipw_answer_begin(x, 200, -1);
    fill(x);
    assert_true(full);
}

static void on_room(struct ipw_exchange *x, void *ud)
{
    (void)ud;
    assert_true(ipw_answer_waiting(x) <= 64 * IPW_KIB);
    fill(x);
}

static void on_piece(struct ipw_exchange *x, const char *bytes, size_t n, void *ud)
{
    (void)bytes, (void)ud;
    ipw_exchange_keep(x, (char *)ipw_exchange_own(x) + n);
}

static void on_pieces(struct ipw_exchange *x, void *ud)
{
    char text[64];

    (void)ud;
    snprintf(text, sizeof text, "%zu in pieces", (size_t)ipw_exchange_own(x));
    ipw_answer(x, 200, NULL, text, strlen(text));
}

static const struct ipw_route routes[] = {
    {.path = "/echo", .body_most = 100 * 1024, .answer = on_echo},
    {.path = "/below/", .body_most = 1024, .answer = on_echo},
    {.path = "/get", .methods = "GET", .answer = on_echo},
    {.path = "/post", .methods = "POST, PUT", .body_most = 1024, .answer = on_echo},
    {.path = "/hold", .answer = on_hold, .over = on_over},
    {.path = "/stream", .answer = on_stream, .over = on_over},
    {.path = "/full", .answer = on_full, .room = on_room, .over = on_over},
    {.path = "/pieces",
     .methods = "POST",
     .body_most = 300 * 1024,
     .piece = on_piece,
     .answer = on_pieces,
     .over = on_over},
};

/* ---- a client: what it does runs in a thread of its own ---- */

static int port;

static int dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) abort();
    return fd;
}

static void say(int fd, const char *text, size_t n)
{
    while (n) {
        ssize_t k = send(fd, text, n, MSG_NOSIGNAL);

        if (k <= 0) return; /* the server closed */
        text += k;
        n -= (size_t)k;
    }
}

/* The answer up to the end of the connection. */
static void hear(int fd, struct ipw_buf *out)
{
    char piece[65536];
    ssize_t n;

    ipw_buf_clear(out);
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0) ipw_buf_add(out, piece, (size_t)n);
    close(fd);
}

struct talk {
    const char *head, *body;
    size_t extra; /* bytes of 'x' after the body */
    struct ipw_buf answer;
    struct ipw_watch *done;
};

static void *talk_thread(void *ud)
{
    struct talk *t = ud;
    int fd = dial();
    struct ipw_buf more = IPW_BUF(IPW_MIB);

    say(fd, t->head, strlen(t->head));
    say(fd, t->body, strlen(t->body));
    while (more.len < t->extra) ipw_buf_addc(&more, 'x');
    say(fd, ipw_buf_str(&more), more.len);
    hear(fd, &t->answer);
    ipw_buf_release(&more);
    ipw_wakeup_send(t->done);
    return NULL;
}

static void stop(void *ud)
{
    (void)ud;
    ipw_loop_stop(loop);
}

/* Sends head and body, and returns the whole answer, which lives until the next call. */
static const char *talk(const char *head, const char *body, size_t extra)
{
    static struct talk t;
    pthread_t thread;

    ipw_buf_release(&t.answer);
    t = (struct talk){head, body, extra, IPW_BUF(64 * IPW_MIB), ipw_wakeup_start(loop, stop, NULL)};
    assert_int_equal(pthread_create(&thread, NULL, talk_thread, &t), 0);
    ipw_loop_run(loop);
    pthread_join(thread, NULL);
    ipw_watch_cancel(t.done);
    return ipw_buf_str(&t.answer);
}

static void wait_ms(int ms)
{
    ipw_timer_start(loop, ms * IPW_NS_PER_MS, stop, NULL);
    ipw_loop_run(loop);
}

/* Runs the loop until *n reaches `most`. */
static void run_until(const int *n, int most)
{
    int64_t end_ns = ipw_now_ns() + 60 * IPW_NS_PER_S;

    while (*n < most && ipw_now_ns() < end_ns) wait_ms(1);
    assert_int_equal(*n, most);
}

static void has(const char *answer, const char *part)
{
    if (!strstr(answer, part)) fail_msg("no \"%s\" in: %.2000s", part, answer);
}

#define HEAD(line) line " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"

/* ---- the tests ---- */

static void what_a_route_sees(void **state)
{
    const char *a;

    (void)state;
    a = talk(HEAD("GET /below/a%20b//c?a=%31&b") "X-A: 1\r\nX-B: 2\r\nX-A:  3\r\n\r\n", "", 0);
    has(a, "HTTP/1.1 207 ");
    has(a, "GET /below/a b//c /below/a%20b//c?a=%31&b a=1 X-A=1;X-B=2;X-A=3; 0:");
    has(a, "Set-Cookie: a=1\r\nSet-Cookie: b=2 c\r\n");
    has(a, "Content-Type: text/x\r\n");
    assert_null(strstr(a, "Evil"));
    has(talk(HEAD("PROPFIND /echo") "Content-Length: 5\r\n\r\n", "12345", 0),
        "PROPFIND /echo /echo a=-  5:12345");
    has(talk(HEAD("POST /echo") "Transfer-Encoding: chunked\r\n\r\n",
             "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 0),
        " 5:abcde");
    a = talk(HEAD("HEAD /get") "\r\n", "", 0);
    has(a, "Content-Length: ");
    has(a, "\r\n\r\n");
    assert_int_equal(strlen(strstr(a, "\r\n\r\n")), 4);
}

static void refusals(void **state)
{
    static const struct {
        const char *head, *body;
        size_t extra;
        const char *part;
    } cases[] = {
        {HEAD("GET /other") "\r\n", "", 0, "HTTP/1.1 404 "},
        {HEAD("GET http://evil.example/echo") "\r\n", "", 0, "HTTP/1.1 404 "},
        {HEAD("GET *") "\r\n", "", 0, "HTTP/1.1 404 "},
        {HEAD("POST /get") "Content-Length: 2\r\n\r\n", "{}", 0, "Allow: GET\r\n"},
        {HEAD("GET /post") "\r\n", "", 0, "this path takes POST, PUT only"},
        {HEAD("POS /post") "\r\n", "", 0, "HTTP/1.1 405 "},
        {"GET /echo HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "", 0,
         "HTTP/1.1 403 "},
        {HEAD("POST /echo") "Origin: http://evil.example\r\nContent-Length: 1\r\n\r\n", "x", 0,
         "HTTP/1.1 403 "},
        /* a length that is too long: at its end, at once, and by counting */
        {HEAD("POST /post") "Content-Length: 2000\r\n\r\n", "", 2000,
         "the request is longer than 1 KiB"},
        {HEAD("POST /echo") "Content-Length: 99999999999\r\n\r\n", "", 0, "HTTP/1.1 413 "},
        {HEAD("POST /echo") "Content-Length: 99999999999999999999999\r\n\r\n", "", 0, "HTTP/1.1 4"},
        {HEAD("PUT /post") "Transfer-Encoding: chunked\r\n\r\n", "600\r\n", 0x600, ""},
        /* two servers in a row could believe different lengths */
        {HEAD("POST /echo") "Content-Length: 3\r\nContent-Length: 5\r\n\r\n", "abcde", 0,
         "HTTP/1.1 400 "},
        {HEAD("POST /echo") "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "0\r\n\r\n",
         0, "HTTP/1.1 400 "},
        {HEAD("POST /echo") "Transfer-Encoding: gzip, chunked\r\n\r\n", "0\r\n\r\n", 0,
         "HTTP/1.1 400 "},
        {HEAD("POST /echo") "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
         "0\r\n\r\n", 0, "HTTP/1.1 400 "},
        {HEAD("POST /echo") "Content-Length : 3\r\n\r\n", "abc", 0,
         "a header's name contains a blank"},
        {HEAD("GET /echo") "Host: evil.example\r\n\r\n", "", 0, "the request has two Host headers"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shown = 0;
        if (*cases[i].part) has(talk(cases[i].head, cases[i].body, cases[i].extra), cases[i].part);
        assert_int_equal(shown, 0);
    }
}

static void bodies_in_pieces(void **state)
{
    (void)state;
    over_sent = over_cut = 0;
    has(talk(HEAD("POST /pieces") "Content-Length: 204800\r\n\r\n", "", 204800),
        "204800 in pieces");
    assert_int_equal(over_sent, 1);
    has(talk(HEAD("POST /pieces") "Content-Length: 400000\r\n\r\n", "", 0), "HTTP/1.1 413 ");
    assert_int_equal(over_sent, 1); /* the route never saw it */
}

static void streams(void **state)
{
    const char *a;

    (void)state;
    over_sent = over_cut = 0;
    a = talk(HEAD("GET /stream") "\r\n", "", 0);
    has(a, "Transfer-Encoding: chunked\r\n");
    has(a, "4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n");
    a = talk(HEAD("GET /stream?length=1") "\r\n", "", 0);
    has(a, "Content-Length: 13\r\n");
    has(a, "\r\n\r\none two three");
    a = talk(HEAD("HEAD /stream?length=1") "\r\n", "", 0);
    has(a, "Content-Length: 13\r\n");
    assert_null(strstr(a, "one"));
    assert_int_equal(over_sent, 3);
    a = talk(HEAD("GET /stream?break=1") "\r\n", "", 0);
    assert_null(strstr(a, "\r\n0\r\n"));
    assert_int_equal(over_cut, 1);
    wait_ms(10); /* for the timer of the one that had no body */
}

static void slow_readers(void **state)
{
    struct ipw_buf answer = IPW_BUF(64 * IPW_MIB);
    const char *a;
    int fd;

    (void)state;
    over_sent = over_cut = 0;
    pushed = 0;
    a = talk(HEAD("GET /full") "\r\n", "", 0);
    assert_int_equal(over_sent, 1);
    has(a, "xxxx");
    has(a, "\r\n0\r\n\r\n");
    /* One that does not read: the route stops after what the kernel and the server take. */
    shown = 0;
    fd = dial();
    say(fd, HEAD("GET /full") "\r\n", strlen(HEAD("GET /full") "\r\n"));
    run_until(&shown, 1);
    wait_ms(20);
    assert_true(full && pushed <= 4 * IPW_MIB);
    close(fd);
    run_until(&over_cut, 1);
    ipw_buf_release(&answer);
}

/* Told at once, also while nothing is being sent. */
static void clients_that_leave(void **state)
{
    static const char *const asked[] = {HEAD("GET /hold") "\r\n", HEAD("GET /stream") "\r\n"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        int fd = dial();

        over_cut = over_sent = shown = 0;
        say(fd, asked[0], strlen(asked[0]));
        run_until(&shown, 1);
        if (i == 1) { /* its answer has begun */
            ipw_answer_begin(held, 200, -1);
            ipw_answer_push(held, "x", 1);
            wait_ms(5);
        }
        assert_int_equal(over_cut, 0);
        close(fd);
        run_until(&over_cut, 1);
        assert_int_equal(over_sent, 0);
    }
}

static void many_that_wait(void **state)
{
    enum { N = 200 };
    int fds[N];

    (void)state;
    over_cut = over_sent = shown = 0;
    for (int i = 0; i < N; i++) {
        fds[i] = dial();
        say(fds[i], HEAD("GET /hold") "\r\n", strlen(HEAD("GET /hold") "\r\n"));
    }
    run_until(&shown, N);
    has(talk(HEAD("GET /get") "\r\n", "", 0), "HTTP/1.1 207 ");
    for (int i = 0; i < N / 2; i++) close(fds[i]);
    run_until(&over_cut, N / 2);
    ipw_server_close(server); /* with the rest waiting */
    server = NULL;
    assert_int_equal(over_cut, N);
    for (int i = N / 2; i < N; i++) close(fds[i]);
}

static void addresses(void **state)
{
    static const struct {
        const char *text, *host;
        int port; /* -1: no address */
    } cases[] = {
        {"127.0.0.1:9440", "127.0.0.1", 9440},
        {":9440", "127.0.0.1", 9440},
        {"9440", "127.0.0.1", 9440},
        {"[::1]:0", "::1", 0},
        {"localhost:80", "localhost", 80},
        {"localhost", "", -1},
        {"127.0.0.1:", "", -1},
        {"127.0.0.1:99999", "", -1},
        {"", "", -1},
        {"[]:1", "[]", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char host[64];
        int number = -1;
        struct ipw_err err = {0};
        int rc = ipw_server_address(host, sizeof host, &number, cases[i].text, &err);

        assert_int_equal(rc ? -1 : number, cases[i].port);
        if (rc)
            has(err.text, "expected ADDRESS:PORT");
        else
            assert_string_equal(host, cases[i].host);
    }
}

/* ---- each test has a server, and leaves nothing ---- */

static int fds_before;

static int set_up(void **state)
{
    static struct ipw_server_options options = {
        .routes = routes, .n_routes = sizeof routes / sizeof *routes, .stays = true};

    fds_before = open_descriptors();
    seen = IPW_BUF(IPW_MIB);
    if (make_loop(state) || ipw_server_open(&server, &options, NULL)) return -1;
    port = atoi(strrchr(ipw_server_url(server), ':') + 1);
    return ipw_server_attach(server, loop, NULL);
}

static int tear_down(void **state)
{
    ipw_server_close(server);
    free_loop(state);
    ipw_buf_release(&seen);
    return open_descriptors() == fds_before ? 0 : -1;
}

/* libuv keeps two descriptors from its first loop on. */
static int first_loop(void **state) { return make_loop(state) || free_loop(state); }

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

UNIT(server)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_route_sees), TEST(refusals),           TEST(bodies_in_pieces), TEST(streams),
        TEST(slow_readers),      TEST(clients_that_leave), TEST(many_that_wait),   TEST(addresses),
    };

    return cmocka_run_group_tests(tests, first_loop, NULL);
}
