/* The blocking GET against a server of the test's own: pieces, resets, silence, nobody there. */
#include "io/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "unit/unit.h"

#define S(x)     ((x)*IPW_NS_PER_S)
#define BODY_MAX (4 * IPW_MIB)

/* Answers one connection: each piece by itself; then it closes, or resets. */
struct server {
    int listener;
    pthread_t thread;
    const char *pieces[4];
    bool reset, each; /* each: one piece for each request */
    char request[2048], url[64];
};

static void take_request(struct server *s, int fd)
{
    ssize_t n = recv(fd, s->request, sizeof s->request - 1, 0);

    s->request[n > 0 ? n : 0] = '\0';
}

static void *serve(void *arg)
{
    struct server *s = arg;
    int fd = accept(s->listener, NULL, NULL);
    struct linger now = {.l_onoff = 1};

    take_request(s, fd);
    for (int i = 0; s->pieces[i]; i++) {
        struct timespec pause = {.tv_nsec = 20000000}; /* so that the pieces arrive one by one */
        size_t all = strlen(s->pieces[i]);

        if (s->each && i > 0) take_request(s, fd);
        nanosleep(&pause, NULL);
        for (size_t at = 0; at < all;) {
            ssize_t k = send(fd, s->pieces[i] + at, all - at, MSG_NOSIGNAL);
            if (k <= 0) break;
            at += (size_t)k;
        }
    }
    if (s->reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
    return NULL;
}

static bool open_listener(struct server *s, bool v6)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr *at = v6 ? (struct sockaddr *)(void *)&in6 : (struct sockaddr *)(void *)&in;
    socklen_t size = v6 ? sizeof in6 : sizeof in;

    s->listener = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0) return false;
    if (bind(s->listener, at, size)) { /* a machine without IPv6 */
        close(s->listener);
        return false;
    }
    assert_int_equal(listen(s->listener, 4), 0);
    assert_int_equal(getsockname(s->listener, at, &size), 0);
    snprintf(s->url, sizeof s->url, "http://%s:%d/x", v6 ? "[::1]" : "127.0.0.1",
             ntohs(v6 ? in6.sin6_port : in.sin_port));
    return true;
}

static bool start(struct server *s, bool v6)
{
    if (!open_listener(s, v6)) return false;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    return true;
}

static int get(const char *url, struct ipw_buf *body, int64_t timeout_ns, struct ipw_err *err)
{
    void *kept = NULL;
    bool here = false;
    int rc = ipw_http_get(&kept, url, body, timeout_ns, &here, err);

    if (rc == 0) assert_true(here);
    ipw_http_get_release(kept);
    return rc;
}

static int talk(struct server *s, struct ipw_buf *body, struct ipw_err *err)
{
    int rc;

    if (!start(s, false)) fail_msg("no listener");
    rc = get(s->url, body, S(20), err);
    pthread_join(s->thread, NULL);
    close(s->listener);
    return rc;
}

#define OK(headers) "HTTP/1.1 200 OK\r\n" headers "\r\n"

/* An answer in pieces is put together; it is complete with its length, or with the end of the
 * connection. */
static void test_pieces(void **state)
{
    static const struct {
        const char *pieces[4], *body;
        int rc;
    } table[] = {
        {{"HTTP/1.1 200 OK\r\nContent-", "Length: 4\r\n\r\na", "bcd"}, "abcd", 0},
        {{OK(""), "ab"}, "ab", 0},
        {{"HTTP/1.0 200 OK\n\nab"}, "ab", 0},
        {{OK("Content-Length: 3\r\n") "abcdef"}, "abc", 0},
        {{OK("Transfer-Encoding: chunked\r\n") "2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n"}, "abc", 0},
        {{"HTTP/1.1 100 Continue\r\n\r\n" OK("Content-Length: 1\r\n") "a"}, "a", 0},
        {{OK("Content-Encoding: identity\r\nContent-Length: 1\r\n") "a"}, "a", 0},
        {{OK("Content-Length: 4\r\n"), "ab"}, NULL, IPW_ENET},
        {{OK("Transfer-Encoding: chunked\r\n") "2\r\nab\r\n"}, NULL, IPW_ENET},
        {{OK("Transfer-Encoding: chunked\r\n") "xyz\r\n"}, NULL, IPW_ENET},
        {{OK("Content-Encoding: gzip\r\n") "not gzip"}, NULL, IPW_EPARSE},
        {{"HTTP/1.1 404 Not Found\r\n", "\r\n"}, NULL, IPW_EHTTP},
        {{"HTTP/1.1 404 Not Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"}, NULL, IPW_EHTTP},
        {{"SSH-2.0", "-OpenSSH"}, NULL, IPW_EPARSE},
        {{"HTTP/1.1 abc\r\n\r\n"}, NULL, IPW_EPARSE},
        {{NULL}, NULL, IPW_ENET},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_buf body = IPW_BUF(BODY_MAX);
        struct ipw_err err = {0};
        struct server s = {0};

        memcpy(s.pieces, table[i].pieces, sizeof s.pieces);
        if (talk(&s, &body, &err) != table[i].rc) fail_msg("row %zu: %s", i, err.text);
        if (table[i].body) assert_string_equal(ipw_buf_str(&body), table[i].body);
        if (table[i].rc) assert_non_null(strstr(err.text, s.url)); /* it names whom it asked */
        if (table[i].rc == IPW_EHTTP) assert_int_equal(err.detail, 404);
        assert_memory_equal(s.request, "GET /x HTTP/1.1\r\nHost: 127.0.0.1:", 33);
        ipw_buf_release(&body);
    }
}

/* A redirect is an answer like any other, and no proxy of the environment is asked. */
static void test_no_detours(void **state)
{
    struct ipw_buf body = IPW_BUF(BODY_MAX);
    struct server s = {.pieces = {"HTTP/1.1 301 Moved\r\nLocation: /y\r\n\r\n"}};
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(talk(&s, &body, &err), IPW_EHTTP);
    assert_int_equal(err.detail, 301);
    unsetenv("http_proxy");
    assert_int_equal(get("file:///etc/passwd", &body, S(20), &err), IPW_EPARSE);
    assert_int_equal(get("http://h/a b", &body, S(20), &err), IPW_EINVAL);
    assert_int_equal(get("http://127.0.0.1:70000/", &body, S(20), &err), IPW_EINVAL);
    assert_int_equal(body.len, 0);
    ipw_buf_release(&body);
}

/* The connection is kept: the second request comes on it. */
static void test_kept(void **state)
{
    struct ipw_buf body = IPW_BUF(BODY_MAX);
    struct server s = {.pieces = {OK("Content-Length: 1\r\n") "a", OK("Content-Length: 1\r\n") "b"},
                       .each = true};
    void *kept = NULL;

    (void)state;
    if (!start(&s, false)) fail_msg("no listener");
    assert_int_equal(ipw_http_get(&kept, s.url, &body, S(20), NULL, NULL), 0);
    assert_string_equal(ipw_buf_str(&body), "a");
    assert_int_equal(ipw_http_get(&kept, s.url, &body, S(20), NULL, NULL), 0);
    assert_string_equal(ipw_buf_str(&body), "b");
    pthread_join(s.thread, NULL);
    close(s.listener);
    ipw_http_get_release(kept);
    ipw_buf_release(&body);
}

/* A server that accepts and says nothing is left at the deadline. */
static void test_silence(void **state)
{
    struct ipw_buf body = IPW_BUF(BODY_MAX);
    struct server s = {0};
    struct ipw_err err = {0};

    (void)state;
    if (!open_listener(&s, false)) fail_msg("no listener");
    assert_int_equal(get(s.url, &body, 50 * IPW_NS_PER_MS, &err), IPW_ETIMEOUT);
    assert_non_null(strstr(err.text, "no answer in time"));
    close(s.listener);
    ipw_buf_release(&body);
}

/* A body over the ceiling is refused, whether or not its length is told. */
static void test_flood(void **state)
{
    static const char *const heads[] = {OK(""), OK("Content-Length: 6291456\r\n")};
    char *flood = malloc(6 * IPW_MIB + 1);

    (void)state;
    memset(flood, 'x', 6 * IPW_MIB);
    flood[6 * IPW_MIB] = '\0';
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct ipw_buf body = IPW_BUF(BODY_MAX);
        struct server s = {.pieces = {heads[i], flood}};
        struct ipw_err err = {0};

        assert_int_equal(talk(&s, &body, &err), IPW_ELIMIT);
        assert_non_null(strstr(err.text, "over 4 MiB"));
        ipw_buf_release(&body);
    }
    free(flood);
}

/* The code is the same where nobody wants the message. */
static void test_no_err(void **state)
{
    struct ipw_buf body = IPW_BUF(BODY_MAX);
    struct server s = {.pieces = {"HTTP/1.1 500 Oh\r\n\r\n"}};

    (void)state;
    assert_int_equal(talk(&s, &body, NULL), IPW_EHTTP);
    s = (struct server){.pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"}};
    assert_int_equal(talk(&s, &body, NULL), IPW_ENET);
    ipw_buf_release(&body);
}

static void test_reset(void **state)
{
    struct ipw_buf body = IPW_BUF(BODY_MAX);
    struct server s = {.pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"}, .reset = true};
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(talk(&s, &body, &err), IPW_ENET);
    assert_non_null(strstr(err.text, s.url));
    ipw_buf_release(&body);
}

/* Nobody listens on the port any more. */
static void test_refused(void **state)
{
    struct ipw_buf body = IPW_BUF(BODY_MAX);
    struct server s = {0};
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(talk(&s, &body, NULL), IPW_ENET);
    assert_int_equal(get(s.url, &body, S(20), &err), IPW_ENET);
    assert_non_null(strstr(err.text, s.url));
    assert_non_null(strstr(err.text, "Connection refused"));
    /* An address that a client cannot connect to at all. */
    assert_int_equal(get("http://255.255.255.255:9/", &body, S(20), &err), IPW_ENET);
    assert_non_null(strstr(err.text, "255.255.255.255"));
    ipw_buf_release(&body);
}

/* The host of an IPv6 address stays in its brackets. */
static void test_v6(void **state)
{
    struct ipw_buf body = IPW_BUF(BODY_MAX);
    struct server s = {.pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"}};
    struct ipw_err err = {0};

    (void)state;
    if (!start(&s, true)) {
        print_message("no IPv6 on this machine\n");
        return;
    }
    if (get(s.url, &body, S(7200), &err)) fail_msg("%s", err.text);
    pthread_join(s.thread, NULL);
    close(s.listener);
    assert_non_null(strstr(s.request, "\r\nHost: [::1]:"));
    ipw_buf_release(&body);
}

UNIT(http_get)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_no_detours),
        cmocka_unit_test(test_kept),   cmocka_unit_test(test_silence),
        cmocka_unit_test(test_flood),  cmocka_unit_test(test_no_err),
        cmocka_unit_test(test_reset),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_v6),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
