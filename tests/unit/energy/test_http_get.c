#include "energy/sources/http_get.h"

#include <stdlib.h>

#include "unit/energy/energy_test.h"

/* ---- the reply ---- */

static void test_http_replies(void **state)
{
    static const struct {
        const char *text;
        bool ended;
        int rc, status;
        const char *body;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, 1, 200, "abc"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", false, 1, 200, "abc"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false, 0, 200, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", true, IPW_ENET, 200, ""},
        {"HTTP/1.0 200 OK\r\n\r\nab", false, 0, 200, ""},
        {"HTTP/1.0 200 OK\r\n\r\nab", true, 1, 200, "ab"},
        {"HTTP/1.0 200 OK\n\nab", true, 1, 200, "ab"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
         false, 1, 200, "abc"},
        {"HTTP/1.1 200 OK\r\ntransfer-encoding:Chunked\r\n\r\nA\r\n0123456789\r\n0\r\n", false, 1,
         200, "0123456789"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na", false, 0, 200, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", true, IPW_ENET, 200,
         "ab"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", false, IPW_EPARSE, 200,
         ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", false, IPW_EPARSE,
         200, "a"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", false,
         IPW_ELIMIT, 200, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false, IPW_EUNSUPPORTED, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", false, IPW_EUNSUPPORTED, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", false, IPW_ELIMIT, 200,
         ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", false, IPW_EPARSE, 0, ""},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false, 1,
         200, "a"},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\n", false, 1, 404, ""},
        {"HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n", false, 1, 301, ""},
        {"HTTP/1.1 2", false, 0, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-", true, IPW_ENET, 0, ""},
        {"SSH-2.0-OpenSSH", false, IPW_EPARSE, 0, ""},
        {"HTTP/2 200\r\n\r\n", false, IPW_EPARSE, 0, ""},
        {"HTTP/1.1 abc\r\n\r\n", false, IPW_EPARSE, 0, ""},
        {"", true, IPW_ENET, 0, ""},
        {"HTTP/1.1x200 OK\r\n\r\n", false, IPW_EPARSE, 0, ""},
        {"HTTP/1.1 20\r\n\r\n", false, IPW_EPARSE, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", false, IPW_EPARSE, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: \t 2 \t\r\n\r\nab", false, 1, 200, "ab"},
        {"HTTP/1.1 200 OK\r\nContent-Lengthy: 7\r\nContent-Length:2\r\n\r\nab", false, 1, 200,
         "ab"},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 1\r\n\r\na", false, 1,
         200, "a"},
        {"HTTP/1.1 200 OK\r\nContent-Encoding:\r\nContent-Length: 1\r\n\r\na", false, 1, 200, "a"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identic\r\n\r\n", false, IPW_EUNSUPPORTED, 0, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nab\n0\n", false, 1, 200, "ab"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab", false, 0, 200, "ab"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2", false, 0, 200, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1/\r\na\r\n0\r\n", false, 1, 200,
         "a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf body = IPW_BUF(IPW_HTTP_GET_MAX);
        size_t n = strlen(cases[i].text);
        char *exact = malloc(n + 1);
        struct ipw_err err = {0};
        int status = -1, rc;

        memcpy(exact, cases[i].text, n + 1);
        exact = realloc(exact, n ? n : 1); /* so that reading beyond is seen */
        rc = ipw_http_reply(exact, n, cases[i].ended, &status, &body, &err);
        if (rc != cases[i].rc) fail_msg("case %zu: %d (%s)", i, rc, err.text);
        assert_int_equal(status, cases[i].status);
        if (rc >= 0) assert_string_equal(ipw_buf_str(&body), cases[i].body);
        if (rc < 0) assert_int_equal(err.code, rc);
        ipw_buf_release(&body);
        free(exact);
    }
}

static void test_urls(void **state)
{
    static const struct {
        const char *url;
        int rc;
        const char *host, *port, *path;
    } cases[] = {
        {"http://localhost:9400/metrics", 0, "localhost", "9400", "/metrics"},
        {"http://localhost:9400", 0, "localhost", "9400", "/metrics"},
        {"HTTP://gpu-box/", 0, "gpu-box", "80", "/metrics"},
        {"http://[::1]:9100/x?a=b#c", 0, "::1", "9100", "/x?a=b"},
        {"http://h?a=b", 0, "h", "80", "/metrics?a=b"},
        {"https://h/", IPW_EUNSUPPORTED, NULL, NULL, NULL},
        {"http://u:p@h/", IPW_EUNSUPPORTED, NULL, NULL, NULL},
        {"localhost:9400", IPW_EINVAL, NULL, NULL, NULL},
        {"http://", IPW_EINVAL, NULL, NULL, NULL},
        {"http://h:0/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://h:70000/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://h:/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://[::1/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://h/a b", IPW_EINVAL, NULL, NULL, NULL},
        {"http://h/\x7f", IPW_EINVAL, NULL, NULL, NULL},
        {"http://h:80x/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://h:123456789012345678901234567890/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://[::1]9100/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://[]:1/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://:1/", IPW_EINVAL, NULL, NULL, NULL},
        {"http://[::1]", 0, "::1", "80", "/metrics"},
        {"http://h#top", 0, "h", "80", "/metrics"},
        {"http://h/a\r\nHost: x", IPW_EINVAL, NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_http_target t;
        struct ipw_err err = {0};
        int rc = ipw_http_target_parse(&t, cases[i].url, &err);

        if (rc != cases[i].rc) fail_msg("%s: %d (%s)", cases[i].url, rc, err.text);
        if (rc < 0) continue;
        assert_string_equal(t.host, cases[i].host);
        assert_string_equal(t.port, cases[i].port);
        assert_string_equal(t.path, cases[i].path);
    }
}

/* Names and URLs have a ceiling; beyond it they are refused, never cut. */
static void test_long_urls(void **state)
{
    static const struct {
        int host, path, rc;
    } cases[] = {{200, 10, 0}, {300, 10, IPW_EINVAL}, {10, 4000, IPW_EINVAL}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_http_target t;
        char url[6000];

        snprintf(url, sizeof url, "http://%0*d/%0*d", cases[i].host, 0, cases[i].path, 0);
        assert_int_equal(ipw_http_target_parse(&t, url, NULL), cases[i].rc);
    }
}

/* A body over the ceiling is refused, however the server tells its length. */
static void test_large_replies(void **state)
{
    size_t n = IPW_HTTP_GET_MAX + 100;
    char *text = malloc(n), *body_at = text + sprintf(text, "HTTP/1.0 200 OK\r\n\r\n");
    struct ipw_buf body = IPW_BUF(IPW_HTTP_GET_MAX);
    struct ipw_err err = {0};
    int status;

    (void)state;
    memset(body_at, 'a', n - (size_t)(body_at - text));
    assert_int_equal(ipw_http_reply(text, n, false, &status, &body, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "MiB"));
    /* Two chunks, each below the ceiling, that are above it together. */
    body_at = text + sprintf(text, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
                             IPW_HTTP_GET_MAX - 10);
    *body_at = 'a';
    body_at += IPW_HTTP_GET_MAX - 10;
    memcpy(body_at, "\r\n14\r\n01234567890123456789\r\n", 28);
    assert_int_equal(
        ipw_http_reply(text, (size_t)(body_at + 28 - text), false, &status, &body, &err),
        IPW_ELIMIT);
    ipw_buf_release(&body);
    free(text);
}

/* A host that cannot be found is an error with its name. */
static void test_unknown_host(void **state)
{
    struct ipw_http_target t;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_http_target_open(&t, "http://[zz]:1/", &err), IPW_ENET);
    assert_non_null(strstr(err.text, "host zz: "));
    ipw_http_target_release(&t);
    assert_int_equal(ipw_http_target_open(&t, "ftp://h", &err), IPW_EINVAL);
    ipw_http_target_release(&t);
}

/* Case 35: what is on another host is remote; what is on this one's loopback is not. */
static void test_35_remote_hosts(void **state)
{
    static const struct {
        const char *url;
        bool loopback;
    } cases[] = {{"http://127.0.0.1:1", true},
                 {"http://127.8.9.10:1", true},
                 {"http://[::1]:1", true},
                 {"http://0.0.0.0:1", true}, /* what a listener calls itself */
                 {"http://[::]:1", true},
                 {"http://[::ffff:127.0.0.1]:1", true},
                 {"http://192.0.2.1:1", false},
                 {"http://[2001:db8::1]:1", false},
                 {"http://[::ffff:192.0.2.1]:1", false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_http_target t;
        struct ipw_err err = {0};

        if (ipw_http_target_open(&t, cases[i].url, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(t.loopback, cases[i].loopback);
        ipw_http_target_release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_replies), cmocka_unit_test(test_urls),
        cmocka_unit_test(test_long_urls),    cmocka_unit_test(test_large_replies),
        cmocka_unit_test(test_unknown_host), cmocka_unit_test(test_35_remote_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
