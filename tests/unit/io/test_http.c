#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/clock.h"
#include "exchange.h"
#include "io/http_priv.h"
#include "unit/descriptors.h"
#include "unit/unit.h"

/* --- whole answers --------------------------------------------------------------------------- */

static void test_answers(void **state)
{
    static const struct {
        const char *path, *body, *type;
        int status;
    } cases[] = {
        {"/plain", "hello", "application/json", 200},
        {"/empty", "", "", 204},
        {"/interim", "ok", "text/event-stream; charset=utf-8", 200},
        {"/chunked", "abcdefg", "", 200},
        {"/close", "until the end", "", 200},
        {"/busy", "busy", "", 503},
        {"/nowhere", "", "", 404},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exchange x = get(cases[i].path, NULL);
        assert_int_equal(x.result.end, IPW_HTTP_OK);
        assert_int_equal(x.result.status, cases[i].status);
        assert_string_equal(x.body, cases[i].body);
        assert_string_equal(x.type, cases[i].type);
        assert_int_equal(x.headers, 1);
        assert_int_equal(x.result.bytes_received, strlen(cases[i].body));
        if (cases[i].status == 503) assert_non_null(strstr(x.fields, "Retry-After=2.5;"));
    }
}

static void test_keep_alive(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct exchange x = get(i % 2 ? "/plain" : "/chunked", NULL);
        assert_int_equal(x.result.end, IPW_HTTP_OK);
        assert_int_equal(x.result.reused, i > 0);
        assert_false(x.result.resent);
        if (i > 0) assert_int_equal(x.result.connect_ns + x.result.dns_ns + x.result.tls_ns, 0);
    }
    assert_int_equal(server.connections, 1);
    assert_int_equal(server.requests, 20);
}

static void test_request_forms(void **state)
{
    static const struct ipw_http_header headers[] = {
        {"Authorization", "Bearer secret"}, {"Content-Type", "application/json"}, {"X-Empty", ""}};
    struct ipw_buf lent = IPW_BUF(100);
    struct ipw_http_request post = {
        .headers = headers, .n_headers = 3, .body = "{}", .body_len = 2};
    struct exchange x;
    char *big = calloc(1, 3 << 20);

    (void)state;
    x = get("/count", &post);
    assert_string_equal(x.body, "2");
    assert_int_equal(x.result.bytes_sent, 2);
    assert_true(strncmp(server.last_request, "POST /count HTTP/1.1\r\n", 22) == 0);
    assert_non_null(strstr(server.last_request, "\r\nAuthorization: Bearer secret\r\n"));
    assert_non_null(strstr(server.last_request, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(server.last_request, "\r\nX-Empty:"));
    assert_non_null(strstr(server.last_request, "\r\nUser-Agent: ipw-agent/"));
    assert_null(strcasestr(server.last_request, "accept-encoding"));

    /* The same handle again: nothing of the last request is left in it. */
    x = get("/plain", NULL);
    assert_string_equal(x.body, "hello");
    assert_true(strncmp(server.last_request, "GET /plain HTTP/1.1\r\n", 21) == 0);
    assert_null(strstr(server.last_request, "Authorization"));
    assert_null(strstr(server.last_request, "Content-"));

    ipw_buf_adds(&lent, "lent bytes");
    x = get("/count", &(struct ipw_http_request){.lend_body = &lent});
    assert_string_equal(x.body, "10");
    assert_string_equal(lent.data, "lent bytes");
    ipw_buf_release(&lent);
    assert_null(strstr(server.last_request, "Content-Type"));
    assert_null(strcasestr(server.last_request, "expect"));

    x = get("/count", &(struct ipw_http_request){.body = big, .body_len = 3 << 20});
    assert_string_equal(x.body, "3145728");
    assert_int_equal(x.result.bytes_sent, 3 << 20);
    assert_null(strcasestr(server.last_request, "expect"));
    free(big);

    x = get("/count", &(struct ipw_http_request){.method = "DELETE"});
    assert_true(strncmp(server.last_request, "DELETE /count ", 14) == 0);
    x = get("/count", &(struct ipw_http_request){.method = "PUT", .body = "abc", .body_len = 3});
    assert_true(strncmp(server.last_request, "PUT /count ", 11) == 0);
    assert_string_equal(x.body, "3");
    x = get("/empty", &(struct ipw_http_request){.method = "HEAD"});
    assert_true(strncmp(server.last_request, "HEAD /empty ", 12) == 0);
    x = get("/count", &(struct ipw_http_request){.body = "", .body_len = 0});
    assert_true(strncmp(server.last_request, "POST /count ", 12) == 0);
    assert_string_equal(x.body, "0");
    x = get("/plain", NULL);
    assert_true(strncmp(server.last_request, "GET /plain ", 11) == 0);
    assert_string_equal(x.body, "hello");
}

static void test_big_answer(void **state)
{
    struct exchange x = get("/big", NULL);

    (void)state;
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    assert_int_equal(x.n_body, 8 << 20);
    x = get("/plain", NULL);
    assert_true(x.result.reused);
}

/* Every header in its order and spelling; of two a look finds the last. */
static void test_answer_headers(void **state)
{
    struct ipw_http_header fields[] = {{"A-b", "1"}, {"X", "2"}, {"a-B", "3"}};
    struct ipw_http_head head = {200, fields, 3};
    struct exchange x = get("/limits", NULL);

    (void)state;
    assert_int_equal(x.result.status, 429);
    assert_string_equal(x.fields,
                        "Retry-After-Ms=1500;X-Should-Retry=true;x-ratelimit-reset-tokens=6m0s;"
                        "X-RateLimit-Reset-Tokens=20ms;Content-Length=0;");
    assert_string_equal(ipw_http_field(&head, "a-b"), "3");
    assert_string_equal(ipw_http_field(&head, "x"), "2");
    assert_string_equal(ipw_http_field(&head, "y"), "");
    assert_string_equal(ipw_http_field(NULL, "x"), "");
    x = get("/interim", NULL);
    assert_string_equal(x.fields,
                        "content-type=text/event-stream; charset=utf-8;Content-Length=2;");
}

/* N-7: compression that nobody asked for is undone, and the ceiling counts what comes out. */
static void n7_compressed_answers(void **state)
{
    struct exchange x = get("/gzip", NULL);

    (void)state;
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    assert_string_equal(x.body, "data: squeezed\n\n");
    assert_null(strcasestr(server.last_request, "accept-encoding"));
    x = get("/bomb", &(struct ipw_http_request){.body_max_bytes = 1 << 20});
    assert_int_equal(x.result.end, IPW_HTTP_TOO_LARGE);
    assert_true(x.n_body <= 1 << 20);
    x = get("/plain", NULL);
    assert_string_equal(x.body, "hello");
}

/* Proxies are taken from the environment, but never for this machine. */
static void n12_proxies(void **state)
{
    char proxy[100], url[100];
    struct exchange x;

    (void)state;
    ipw_http_free(http);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", server.port);
    setenv("http_proxy", proxy, 1);
    setenv("no_proxy", "intern.invalid", 1);
    assert_int_equal(ipw_http_new(&http, loop, NULL, NULL), 0);
    x = (struct exchange){0};
    start_url(&x, "http://example.invalid/plain", NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.result.status, 404); /* the server does not know the path in this form */
    assert_true(strncmp(server.last_request, "GET http://example.invalid/plain ", 33) == 0);
    x = get("/plain", NULL);
    assert_int_equal(x.result.status, 200);
    assert_true(strncmp(server.last_request, "GET /plain ", 11) == 0);
    x = (struct exchange){0};
    snprintf(url, sizeof url, "http://localhost:%d/plain", server.port);
    start_url(&x, url, NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.result.status, 200);
    assert_true(strncmp(server.last_request, "GET /plain ", 11) == 0);
    x = (struct exchange){0};
    start_url(&x, "http://[::1]:1/plain", NULL);
    ipw_loop_run(loop);
    assert_int_equal(x.result.end, IPW_HTTP_REFUSED);
    /* What the user's own list names is not asked of the proxy either. */
    x = (struct exchange){0};
    start_url(&x, "http://intern.invalid/plain", &(struct ipw_http_request){.total_ns = 1000 * MS});
    ipw_loop_run(loop);
    assert_int_not_equal(x.result.end, IPW_HTTP_OK);
    assert_int_equal(server.requests, 3);
    unsetenv("http_proxy");
    unsetenv("no_proxy");
}

static void n8_a_redirect_is_not_followed(void **state)
{
    static const struct ipw_http_header key = {"Authorization", "Bearer secret"};
    struct server other;
    struct exchange x;

    (void)state;
    server_start(&other);
    server.redirect_port = other.port;
    x = get("/redirect", &(struct ipw_http_request){.headers = &key, .n_headers = 1});
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    assert_int_equal(x.result.status, 302);
    assert_non_null(strstr(x.fields, "/plain;"));
    assert_int_equal(other.connections, 0);
    server_stop(&other);
}

/* --- refused at once ------------------------------------------------------------------------  */

static void test_refused_at_once(void **state)
{
    static const struct {
        const char *url, *method, *name, *value, *says;
    } cases[] = {
        {"localhost:8000/v1", NULL, NULL, NULL, "http://"},
        {"ftp://127.0.0.1/", NULL, NULL, NULL, "http://"},
        {"file:///etc/passwd", NULL, NULL, NULL, "http://"},
        {"http://", NULL, NULL, NULL, "valid"},
        {"http://127.0.0.1:99999/", NULL, NULL, NULL, "valid"},
        {"http://a b/", NULL, NULL, NULL, "valid"},
        {"http://a/\r\nX: y", NULL, NULL, NULL, "valid"},
        {"http://127.0.0.1:1/", "GET /", NULL, NULL, "method"},
        {"http://127.0.0.1:1/", "", NULL, NULL, "method"},
        {"http://127.0.0.1:1/", NULL, "X-Key", "a\r\nEvil: 1", "X-Key"},
        {"http://127.0.0.1:1/", NULL, "X-Key", "a\nb", "X-Key"},
        {"http://127.0.0.1:1/", NULL, "X Key", "a", "name"},
        {"http://127.0.0.1:1/", NULL, "X-Key: b\r\nY", "a", "name"},
        {"http://127.0.0.1:1/", NULL, "", "a", "name"},
        {"http://127.0.0.1:1/", NULL, "X-Key", NULL, "no value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_http_header header = {cases[i].name, cases[i].value};
        struct ipw_http_request request = {.url = cases[i].url,
                                           .method = cases[i].method,
                                           .headers = &header,
                                           .n_headers = cases[i].name != NULL};
        struct ipw_http_call *call = NULL;
        struct ipw_err err = {0};
        if (ipw_http_start(&call, http, &request, &exchange_callbacks, &err) != IPW_EINVAL)
            fail_msg("%s was accepted", cases[i].url);
        assert_null(call);
        if (!strstr(err.text, cases[i].says)) fail_msg("%s", err.text);
        assert_null(strstr(err.text, "Evil"));
    }
    assert_int_equal(ipw_loop_leftovers(loop), 1); /* the pool itself */
}

/* --- a reused connection that turns out to be dead ------------------------------------------- */

static void n11_resent_once(void **state)
{
    struct ipw_http_request post = {.body = "again", .body_len = 5};
    struct exchange x = get("/once-a-connection", &post);

    (void)state;
    assert_false(x.result.resent);
    x = get("/once-a-connection", &post);
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    assert_string_equal(x.body, "once");
    assert_true(x.result.resent);
    assert_false(x.result.reused);
    assert_int_equal(server.requests, 3);
    assert_int_equal(server.connections, 2);
}

/* The reset comes while a long body is being written. */
static void n11_resent_in_the_middle_of_a_body(void **state)
{
    static char body[4 << 20];
    struct ipw_http_request post = {.body = body, .body_len = sizeof body};
    struct exchange x = get("/reset-next", NULL);

    (void)state;
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    x = get("/count", &post);
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    assert_string_equal(x.body, "4194304");
    assert_true(x.result.resent);
    assert_false(x.result.reused);
    assert_true(x.result.sent_ns > x.result.start_ns && x.result.connect_ns > 0);
    assert_int_equal(server.connections, 2);
    x = get("/count", &post); /* on the new one */
    assert_true(x.result.reused && !x.result.resent);
}

static void n11_resent_only_once(void **state)
{
    struct exchange a[4] = {{0}}, x;

    (void)state;
    /* Four kept connections, and a server that answers nothing on any of them any more. */
    for (int i = 0; i < 4; i++) start(&a[i], "/plain", NULL);
    ipw_loop_run(loop);
    assert_int_equal(server.connections, 4);
    x = get("/dies", NULL);
    assert_int_equal(x.result.end, IPW_HTTP_RESET);
    assert_true(x.result.resent);
    assert_int_equal(server.requests, 4 + 2);
    assert_int_equal(server.connections, 5);
    x = get("/plain", NULL); /* the handle reuses connections again */
    assert_true(x.result.reused);
}

/* --- many at once ---------------------------------------------------------------------------- */

static void fifty_at_once(size_t lane_most, size_t lanes)
{
    struct exchange *x = calloc(50, sizeof *x);
    int before = open_descriptors();

    http->lane_most = lane_most;
    for (int round = 0; round < 3; round++) {
        memset(x, 0, 50 * sizeof *x);
        for (int i = 0; i < 50; i++) start(&x[i], i % 3 ? "/plain" : "/chunked", NULL);
        assert_int_equal(http->in_flight, 50);
        ipw_loop_run(loop);
        for (int i = 0; i < 50; i++) {
            assert_int_equal(x[i].result.end, IPW_HTTP_OK);
            assert_string_equal(x[i].body, i % 3 ? "hello" : "abcdefg");
            assert_int_equal(x[i].result.reused, round > 0);
        }
    }
    assert_int_equal(http->n_lanes, lanes);
    assert_int_equal(server.connections, 50);
    assert_int_equal(server.requests, 150);
    ipw_http_free(http);
    assert_int_equal(ipw_http_new(&http, loop, NULL, NULL), 0);
    while (server.open) usleep(1000);
    assert_int_equal(open_descriptors(), before);
    free(x);
}

static void test_fifty_at_once(void **state)
{
    (void)state;
    fifty_at_once(http->lane_most, 1);
}

static void test_fifty_in_lanes(void **state)
{
    (void)state;
    fifty_at_once(8, 7);
}

/* A reused connection that dies is known in its own lane; a cancelled request makes room in it. */
static void test_lanes_are_apart(void **state)
{
    struct exchange first[4] = {0}, x[5] = {0}, y = {0};

    (void)state;
    http->lane_most = 2;
    for (int i = 0; i < 4; i++) start(&first[i], "/plain", NULL);
    ipw_loop_run(loop);
    for (int i = 0; i < 2; i++) start(&x[i], "/silent", NULL); /* fill the first lane */
    start(&y, "/dies", NULL);
    run_until(&y.done);
    assert_int_equal(y.result.end, IPW_HTTP_RESET);
    assert_true(y.result.resent);
    ipw_http_cancel(x[0].call);
    for (int i = 2; i < 5; i++) start(&x[i], "/plain", NULL);
    for (int i = 2; i < 5; i++) run_until(&x[i].done);
    for (int i = 2; i < 5; i++) assert_int_equal(x[i].result.end, IPW_HTTP_OK);
    assert_int_equal(http->n_lanes, 2);
    ipw_http_cancel(x[1].call);
}

static void n14_connections_over_the_limit_wait(void **state)
{
    struct ipw_http_options two = {.max_connections = 2, .user_agent = "probe/1"};
    struct exchange *x = calloc(20, sizeof *x), y = {0};

    (void)state;
    ipw_http_free(http);
    assert_int_equal(
        ipw_http_new(&http, loop, &(struct ipw_http_options){.user_agent = "a\nb"}, NULL),
        IPW_EINVAL);
    assert_int_equal(ipw_http_new(&http, loop, &two, NULL), 0);
    for (int i = 0; i < 20; i++) start(&x[i], "/plain", NULL);
    ipw_loop_run(loop);
    for (int i = 0; i < 20; i++) assert_int_equal(x[i].result.end, IPW_HTTP_OK);
    assert_true(server.connections <= 2);
    assert_non_null(strstr(server.last_request, "\r\nUser-Agent: probe/1\r\n"));

    /* A waiting request has only its total deadline; a cancelled one makes room. */
    memset(x, 0, 4 * sizeof *x);
    for (int i = 0; i < 2; i++) start(&x[i], "/silent", NULL);
    start(&x[2], "/plain", &(struct ipw_http_request){.total_ns = 50 * MS, .connect_ns = 1 * MS});
    start(&x[3], "/plain", NULL);
    start(&y, "/plain", NULL);
    run_until(&x[2].done);
    assert_int_equal(x[2].result.deadline, IPW_HTTP_TOTAL_DEADLINE);
    ipw_http_cancel(x[3].call);
    ipw_http_cancel(x[0].call);
    run_until(&y.done);
    assert_int_equal(y.result.end, IPW_HTTP_OK);
    assert_int_equal(x[3].done + x[0].done + x[1].done, 0);
    ipw_http_cancel(x[1].call);
    free(x);
}

/* A guarded request does not even connect to an address of this machine; another tells of it. */
static void test_guarded(void **state)
{
    struct ipw_http_request request = {.guarded = true};
    struct exchange x = get("/plain", &request);

    (void)state;
    assert_int_equal(x.result.end, IPW_HTTP_REFUSED);
    assert_non_null(strstr(x.error, "its address is not a public one"));
    assert_true(x.result.met_private);
    assert_int_equal(server.connections, 0);
    x = get("/plain", NULL);
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    assert_true(x.result.met_private);
}

/* ---- raw requests: those of a proxy ---- */

static void test_raw_request(void **state)
{
    static const struct ipw_http_header headers[] = {
        {"authorization", "Bearer secret"}, {"X-Twice", "1"},        {"x-twice", "2"},
        {"Content-Length", "999"},          {"connection", "close"}, {"Host", "elsewhere"},
        {"Transfer-Encoding", "chunked"},   {"X-Empty", ""},
    };
    struct ipw_http_request request = {.raw = true,
                                       .method = "Patch",
                                       .headers = headers,
                                       .n_headers = 8,
                                       .body = "{}",
                                       .body_len = 2};
    struct exchange x;
    char expected[512];

    (void)state;
    x = get("/a/../b%2f?c=%41&d", &request);
    assert_int_equal(x.result.end, IPW_HTTP_OK);
    snprintf(expected, sizeof expected,
             "Patch /a/../b%%2f?c=%%41&d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
             "authorization: Bearer secret\r\nX-Twice: 1\r\nx-twice: 2\r\nX-Empty:\r\n"
             "Content-Length: 2\r\n\r\n",
             server.port);
    assert_string_equal(server.last_request, expected);

    request = (struct ipw_http_request){.raw = true};
    x = get("/plain", &request);
    snprintf(expected, sizeof expected, "GET /plain HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
             server.port);
    assert_string_equal(server.last_request, expected);
    assert_true(x.result.reused);
    x = get("/plain", NULL); /* the handle again: its own headers are back */
    assert_non_null(strstr(server.last_request, "\r\nUser-Agent: ipw-agent/"));
}

/* Compressed bytes are handed on, with the header that says so. */
static void test_raw_answer(void **state)
{
    struct ipw_http_request request = {.raw = true};
    struct exchange x;

    (void)state;
    x = get("/gzip", &request);
    assert_int_equal(x.n_body, 36);
    assert_memory_equal(x.body, "\037\213\010", 3);
    x = get("/gzip", NULL);
    assert_int_equal(x.n_body, 16);
    x = get("/chunked", &request);
    assert_string_equal(x.body, "abcdefg");
    x = get("/redirect", &request);
    assert_int_equal(x.result.status, 302);
}

/* A body that comes in pieces, each a while after the last. */
struct pieces {
    struct exchange x; /* first: the callbacks of an exchange take it */
    const char *const *at;
    bool here;
};

static void bring(void *ud)
{
    struct pieces *p = ud;

    p->here = true;
    ipw_http_body_ready(p->x.call);
}

static size_t give_piece(void *ud, char *to, size_t size)
{
    struct pieces *p = ud;
    const char *piece = *p->at;

    if (!piece) return 0;
    if (!p->here) {
        ipw_timer_start(loop, MS, bring, p);
        return IPW_HTTP_BODY_LATER;
    }
    if (!*piece) return IPW_HTTP_BODY_BROKEN;
    assert_true(strlen(piece) <= size);
    memcpy(to, piece, strlen(piece));
    p->at++;
    p->here = false;
    return strlen(piece);
}

static void test_body_in_pieces(void **state)
{
    static const char *const texts[] = {"one", "and two", "three", NULL};
    static const char *const broken[] = {"one", "", NULL};
    static const struct {
        const char *const *texts;
        int64_t length;
        const char *line;
        enum ipw_http_end end;
    } cases[] = {
        {texts, 15, "\r\nContent-Length: 15\r\n", IPW_HTTP_OK},
        {texts, -1, "\r\nTransfer-Encoding: chunked\r\n", IPW_HTTP_OK},
        {broken, -1, "", IPW_HTTP_ABORTED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pieces p = {.at = cases[i].texts};
        struct ipw_http_callbacks on = exchange_callbacks;
        struct ipw_http_request request = {
            .raw = true, .method = "POST", .body_in_pieces = true, .pieces_len = cases[i].length};
        char url[100];

        snprintf(url, sizeof url, "http://127.0.0.1:%d/count", server.port);
        request.url = url;
        on.on_body = give_piece;
        on.ud = &p;
        assert_int_equal(ipw_http_start(&p.x.call, http, &request, &on, NULL), 0);
        ipw_loop_run(loop);
        assert_int_equal(p.x.result.end, cases[i].end);
        if (cases[i].end) continue;
        assert_string_equal(p.x.body, "15");
        assert_non_null(strstr(server.last_request, cases[i].line));
        assert_true(strncmp(server.last_request, "POST /count ", 12) == 0);
    }
    assert_string_equal(get("/plain", NULL).body, "hello");
}

struct slow {
    struct exchange x;
    struct ipw_timer *timer;
    size_t pauses, at_pause;
    bool paused;
};

static void go_on(void *ud)
{
    struct slow *s = ud;

    assert_int_equal(s->x.n_body, s->at_pause);
    s->paused = false;
    ipw_http_resume(s->x.call);
}

static int take_slowly(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct slow *s = ud;

    assert_false(s->paused);
    if (++s->pauses <= 10) {
        s->paused = true;
        ipw_http_pause(s->x.call);
        s->at_pause = s->x.n_body + n;
        s->timer = ipw_timer_start(loop, s->pauses == 1 ? 400 * MS : 2 * MS, go_on, s);
    }
    return exchange_callbacks.on_data(&s->x, t_ns, bytes, n);
}

/* While the reader pauses nothing comes, the idle deadline waits, and no byte is lost. */
static void test_paused_answer(void **state)
{
    struct slow s = {0};
    struct ipw_http_callbacks on = exchange_callbacks;
    struct ipw_http_request request = {.raw = true, .idle_ns = 300 * MS};
    char url[100];

    (void)state;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/big", server.port);
    request.url = url;
    on.on_data = take_slowly;
    on.ud = &s;
    assert_int_equal(ipw_http_start(&s.x.call, http, &request, &on, NULL), 0);
    ipw_loop_run(loop);
    assert_int_equal(s.x.result.end, IPW_HTTP_OK);
    assert_int_equal(s.x.n_body, 8 << 20);

    s = (struct slow){0}; /* cancelled while it is paused */
    assert_int_equal(ipw_http_start(&s.x.call, http, &request, &on, NULL), 0);
    while (!s.paused) uv_run(ipw_loop_uv(loop), UV_RUN_ONCE);
    ipw_http_cancel(s.x.call);
    ipw_timer_cancel(s.timer);
}

static int run(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(test_answers),
        CASE(test_keep_alive),
        CASE(test_request_forms),
        CASE(test_big_answer),
        CASE(n12_proxies),
        CASE(n8_a_redirect_is_not_followed),
        CASE(test_refused_at_once),
        CASE(n11_resent_once),
        CASE(n11_resent_in_the_middle_of_a_body),
        CASE(n11_resent_only_once),
        CASE(test_fifty_at_once),
        CASE(test_fifty_in_lanes),
        CASE(test_lanes_are_apart),
        CASE(n14_connections_over_the_limit_wait),
        CASE(test_answer_headers),
        CASE(n7_compressed_answers),
        CASE(test_raw_request),
        CASE(test_raw_answer),
        CASE(test_body_in_pieces),
        CASE(test_paused_answer),
        CASE(test_guarded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

UNIT(http) { return run_http_tests(run); }
