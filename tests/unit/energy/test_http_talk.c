/* The blocking GET against a server of the test's own: pieces, resets, nobody there. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "energy/sources/http_get.h"

#include "unit/energy/energy_test.h"

/* Answers one connection: each piece by itself; then it closes, or resets. */
struct server {
    int listener;
    pthread_t thread;
    const char *pieces[4];
    bool reset;
    char request[2048], url[64];
};

static void *serve(void *arg)
{
    struct server *s = arg;
    int fd = accept(s->listener, NULL, NULL);
    ssize_t n = recv(fd, s->request, sizeof s->request - 1, 0);
    struct linger now = {.l_onoff = 1};

    s->request[n > 0 ? n : 0] = '\0';
    for (int i = 0; s->pieces[i]; i++) {
        struct timespec pause = {.tv_nsec =
                                     20000000}; /* so that the client finds nothing to read */

        nanosleep(&pause, NULL);
        send(fd, s->pieces[i], strlen(s->pieces[i]), MSG_NOSIGNAL);
    }
    if (s->reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
    return NULL;
}

static bool start(struct server *s, bool v6)
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
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    return true;
}

static int get(const char *url, struct ipw_buf *body, int64_t timeout_ns, struct ipw_err *err)
{
    struct ipw_http_target t;
    int rc = ipw_http_target_open(&t, url, NULL);

    if (rc == 0) rc = ipw_http_get(&t, body, timeout_ns, err);
    ipw_http_target_release(&t);
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

/* An answer in pieces is put together; it is complete with its length, or with the end of the connection. */
static void test_pieces(void **state)
{
    static const struct {
        const char *pieces[4], *body;
        int rc;
    } table[] = {
        {{"HTTP/1.1 200 OK\r\nContent-", "Length: 4\r\n\r\na", "bcd"}, "abcd", 0},
        {{"HTTP/1.1 200 OK\r\n\r\n", "ab"}, "ab", 0},
        {{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "ab"}, NULL, IPW_ENET},
        {{"HTTP/1.1 404 Not Found\r\n", "\r\n"}, NULL, IPW_EHTTP},
        {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"}, NULL, IPW_EUNSUPPORTED},
        {{"SSH-2.0", "-OpenSSH"}, NULL, IPW_EPARSE},
        {{NULL}, NULL, IPW_ENET},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_buf body = IPW_BUF(IPW_HTTP_GET_MAX);
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

/* The code is the same where nobody wants the message. */
static void test_no_err(void **state)
{
    struct ipw_buf body = IPW_BUF(IPW_HTTP_GET_MAX);
    struct server s = {.pieces = {"HTTP/1.1 500 Oh\r\n\r\n"}};

    (void)state;
    assert_int_equal(talk(&s, &body, NULL), IPW_EHTTP);
    s = (struct server){.pieces = {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}};
    assert_int_equal(talk(&s, &body, NULL), IPW_EPARSE);
    ipw_buf_release(&body);
}

static void test_reset(void **state)
{
    struct ipw_buf body = IPW_BUF(IPW_HTTP_GET_MAX);
    struct server s = {.pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"}, .reset = true};
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(talk(&s, &body, &err), IPW_ENET);
    assert_non_null(strstr(err.text, s.url));
    ipw_buf_release(&body);
}

/* Nobody listens: the port was one's who has gone. */
static void test_refused(void **state)
{
    struct ipw_buf body = IPW_BUF(IPW_HTTP_GET_MAX);
    struct server s = {0};
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(talk(&s, &body, NULL), IPW_ENET);
    assert_int_equal(get(s.url, &body, S(20), &err), IPW_ENET);
    assert_non_null(strstr(err.text, s.url));
    /* An address that a client cannot connect to at all. */
    assert_int_equal(get("http://255.255.255.255:9/", &body, S(20), &err), IPW_ENET);
    assert_non_null(strstr(err.text, "255.255.255.255"));
    ipw_buf_release(&body);
}

/* The host of an IPv6 address stays in its brackets. */
static void test_v6(void **state)
{
    struct ipw_buf body = IPW_BUF(IPW_HTTP_GET_MAX);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),  cmocka_unit_test(test_no_err), cmocka_unit_test(test_reset),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_v6),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
