#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "exchange.h"
#include "unit/unit.h"

/* --- things that go wrong -------------------------------------------------------------------- */

static void n2_n6_broken_answers(void **state)
{
    static const struct {
        const char *path;
        enum ipw_http_end end;
        int status;
    } cases[] = {
        {"/cut", IPW_HTTP_CUT, 200},        {"/cut-chunk", IPW_HTTP_CUT, 200},
        {"/bad-chunk", IPW_HTTP_CUT, 200},  {"/cut-head", IPW_HTTP_CUT, 0},
        {"/reset", IPW_HTTP_RESET, 0},      {"/eof", IPW_HTTP_RESET, 0},
        {"/garbage", IPW_HTTP_PROTOCOL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x = get(cases[i].path, NULL);
        if (x.result.end != cases[i].end || x.result.status != cases[i].status)
            fail_msg("%s: end %d status %d: %s", cases[i].path, x.result.end, x.result.status,
                     x.error);
        assert_false(x.result.resent);
        assert_non_null(strstr(x.error, cases[i].path));
    }
    assert_int_equal(server.requests, sizeof cases / sizeof *cases);
}

static void n1_refused(void **state)
{
    struct exchange x = {0};
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char url[100];

    (void)state;
    /* Bound but not listening: nobody else gets the port meanwhile. */
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    snprintf(url, sizeof url, "http://user:geheim@127.0.0.1:%d/v1?key=geheim",
             ntohs(addr.sin_port));
    start_url(&x, url, NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.result.end, IPW_HTTP_REFUSED);
    assert_int_equal(x.result.status, 0);
    assert_null(strstr(x.error, "geheim"));
    close(fd);
}

static void n1_unknown_name(void **state)
{
    struct exchange x = {0};

    (void)state;
    start_url(&x, "http://no-such-host.invalid/",
              &(struct ipw_http_request){.total_ns = 10 * IPW_NS_PER_S});
    ipw_loop_run(loop);
    if (x.result.end == IPW_HTTP_TIMEOUT) {
        print_message("SKIPPED: this machine's resolver does not answer for .invalid names\n");
        skip();
    }
    assert_int_equal(x.result.end, IPW_HTTP_DNS);
}

static void n9_not_tls(void **state)
{
    struct exchange x = {0};
    char url[100];

    (void)state;
    snprintf(url, sizeof url, "https://127.0.0.1:%d/plain", server.port);
    /* The server waits for the end of a request head that never comes. */
    start_url(&x, url, &(struct ipw_http_request){.connect_ns = 200 * MS});
    ipw_loop_run(loop);
    assert_true(x.result.end == IPW_HTTP_TIMEOUT || x.result.end == IPW_HTTP_TLS);
}

static void n3_too_large(void **state)
{
    struct exchange x;

    (void)state;
    x = get("/endless", &(struct ipw_http_request){.body_max_bytes = 100000});
    assert_int_equal(x.result.end, IPW_HTTP_TOO_LARGE);
    assert_true(x.n_body <= 100000);
    x = get("/plain", &(struct ipw_http_request){.body_max_bytes = 5});
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    x = get("/plain", &(struct ipw_http_request){.body_max_bytes = 4});
    assert_int_equal(x.result.end, IPW_HTTP_TOO_LARGE);
    x = get("/big-head", NULL);
    assert_int_equal(x.result.end, IPW_HTTP_TOO_LARGE);
    assert_non_null(strstr(x.error, "headers"));
}

/* --- deadlines ------------------------------------------------------------------------------- */

static void n3_deadlines(void **state)
{
    static const struct {
        const char *path;
        struct ipw_http_request request;
        enum ipw_http_deadline deadline;
    } cases[] = {
        {"/silent", {.first_byte_ns = 50 * MS}, IPW_HTTP_FIRST_BYTE_DEADLINE},
        {"/head-only", {.first_byte_ns = 50 * MS}, IPW_HTTP_FIRST_BYTE_DEADLINE},
        {"/silent",
         {.total_ns = 50 * MS, .first_byte_ns = 60 * IPW_NS_PER_S},
         IPW_HTTP_TOTAL_DEADLINE},
        {"/half", {.idle_ns = 50 * MS, .first_byte_ns = 60 * IPW_NS_PER_S}, IPW_HTTP_IDLE_DEADLINE},
        {"/half", {.total_ns = 50 * MS, .idle_ns = 60 * IPW_NS_PER_S}, IPW_HTTP_TOTAL_DEADLINE},
        {"/endless",
         {.total_ns = 50 * MS, .body_max_bytes = (size_t)1 << 50},
         IPW_HTTP_TOTAL_DEADLINE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x = get(cases[i].path, &cases[i].request);
        assert_int_equal(x.result.end, IPW_HTTP_TIMEOUT);
        assert_int_equal(x.result.deadline, cases[i].deadline);
        assert_int_equal(x.result.status, x.headers ? 200 : 0);
        assert_int_equal(x.result.bytes_received, x.n_body);
        if (cases[i].deadline == IPW_HTTP_IDLE_DEADLINE) assert_string_equal(x.body, "first");
        assert_true(x.result.close_ns - x.result.start_ns >= 50 * MS);
    }
    /* The idle limit does not bind before the first byte of the body. */
    {
        struct exchange x =
            get("/head-only", &(struct ipw_http_request){.idle_ns = 1 * MS, .total_ns = 60 * MS});
        assert_int_equal(x.result.deadline, IPW_HTTP_TOTAL_DEADLINE);
    }
}

static void n1_no_answer_to_a_connection(void **state)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM, 0), full[4], n = 0;
    struct exchange x = {0};
    char url[100];

    (void)state;
    /* A backlog that is full swallows the next SYN. */
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    for (; n < 4; n++) {
        full[n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(full[n], (struct sockaddr *)&addr, len);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(addr.sin_port));
    start_url(&x, url, &(struct ipw_http_request){.connect_ns = 50 * MS});
    ipw_loop_run(loop);
    assert_int_equal(x.result.end, IPW_HTTP_TIMEOUT);
    assert_int_equal(x.result.deadline, IPW_HTTP_CONNECT_DEADLINE);
    assert_true(x.result.close_ns - x.result.start_ns >= 50 * MS);
    while (n) close(full[--n]);
    close(fd);
}

/* --- cancelling and starting from within ----------------------------------------------------- */

static void test_cancel_everywhere(void **state)
{
    struct exchange x = {0}, y;
    struct ipw_buf lent = IPW_BUF(100);

    (void)state;
    start(&x, "/plain", NULL);
    ipw_http_cancel(x.call);
    ipw_loop_run(loop);
    assert_int_equal(x.headers + x.done, 0);

    ipw_buf_adds(&lent, "lent bytes");
    start(&x, "/plain", &(struct ipw_http_request){.lend_body = &lent});
    assert_null(lent.data);
    ipw_http_cancel(x.call);
    assert_string_equal(lent.data, "lent bytes");

    x = (struct exchange){.act = CANCEL_IN_HEADERS}; /* libcurl may still send it: it is freed */
    start(&x, "/half", &(struct ipw_http_request){.lend_body = &lent});
    ipw_loop_run(loop);
    assert_int_equal(x.headers, 1);
    assert_null(lent.data);

    x = (struct exchange){.act = CANCEL_IN_HEADERS};
    start(&x, "/half", NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.headers, 1);
    assert_int_equal(x.done + (int)x.chunks, 0);

    x = (struct exchange){.act = CANCEL_IN_DATA};
    start(&x, "/half", NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.chunks, 1);
    assert_int_equal(x.done, 0);

    x = (struct exchange){.act = CANCEL_IN_DATA};
    start(&x, "/plain", NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.done, 0);

    x = (struct exchange){.act = ABORT_IN_DATA};
    start(&x, "/half", NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.done, 1);
    assert_int_equal(x.result.end, IPW_HTTP_ABORTED);

    /* Another request is cancelled in this one's callback. */
    y = (struct exchange){0};
    x = (struct exchange){.other = &y, .cancel_other_in_data = true};
    start(&y, "/silent", NULL);
    start(&x, "/plain", NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    assert_int_equal(y.headers + y.done, 0);

    y = get("/plain", NULL);
    assert_int_equal(y.result.end, IPW_HTTP_OK);
}

static void test_cancel_frees_the_server(void **state)
{
    struct exchange x = {.act = CANCEL_IN_HEADERS};

    (void)state;
    start(&x, "/head-only", NULL);
    ipw_loop_run(loop);
    while (!server.peer_closed) usleep(1000); /* waits for a fact; ctest has the limit */
    assert_int_equal(server.peer_closed, 1);
}

static void test_start_within(void **state)
{
    static const enum act acts[] = {START_IN_HEADERS, START_IN_DATA, START_IN_DONE};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct exchange y = {0}, x = {.act = acts[i], .other = &y, .other_path = "/chunked"};
        start(&x, "/plain", NULL);
        ipw_loop_run(loop);
        assert_int_equal(x.result.end, IPW_HTTP_OK);
        assert_int_equal(y.done, 1);
        assert_string_equal(y.body, "abcdefg");
    }
}

static void test_free_within(void **state)
{
    static const enum act acts[] = {FREE_IN_DATA, FREE_IN_DONE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct exchange y = {0}, x = {.act = acts[i]};
        start(&y, "/silent", NULL);
        start(&x, "/plain", NULL);
        ipw_loop_run(loop);
        assert_int_equal(y.done, 0);
        assert_int_equal(x.done, acts[i] == FREE_IN_DONE);
        assert_int_equal(ipw_loop_leftovers(loop), 0);
        assert_int_equal(ipw_http_new(&http, loop, NULL, NULL), 0);
    }
    /* And with requests in flight from outside. */
    {
        struct exchange x = {0}, y = {0};
        start(&x, "/silent", NULL);
        start(&y, "/plain", NULL);
        ipw_http_free(http);
        ipw_loop_run(loop);
        assert_int_equal(x.done + y.done, 0);
        assert_int_equal(ipw_http_new(&http, loop, NULL, NULL), 0);
    }
}

static int run(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(n2_n6_broken_answers),
        CASE(n1_refused),
        CASE(n1_unknown_name),
        CASE(n9_not_tls),
        CASE(n3_too_large),
        CASE(n3_deadlines),
        CASE(n1_no_answer_to_a_connection),
        CASE(test_cancel_everywhere),
        CASE(test_cancel_frees_the_server),
        CASE(test_start_within),
        CASE(test_free_within),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

UNIT(http_call) { return run_http_tests(run); }
