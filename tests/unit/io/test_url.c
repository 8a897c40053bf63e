/* Which way a request goes: through which proxy, to this machine or another, in the clear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/http_priv.h"
#include "io/url.h"
#include "unit/unit.h"

static void n12_which_proxy(void **state)
{
    static const char *const variables[] = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                            "HTTPS_PROXY", "all_proxy",  "ALL_PROXY",
                                            "no_proxy",    "NO_PROXY"};
    static const struct {
        const char *values[8];   /* of the variables, in their order */
        const char *url, *proxy; /* proxy NULL: none */
    } cases[] = {
        {{NULL}, "http://h/v1", NULL},
        {{"http://p:3128"}, "http://h/v1", "http://p:3128"},
        {{"http://p:3128"}, "https://h/v1", NULL},
        {{NULL, "http://p:3128"}, "http://h/v1", NULL}, /* set by web servers: not believed */
        {{NULL, NULL, "http://p"}, "https://h/v1", "http://p"},
        {{NULL, NULL, NULL, "http://p"}, "https://h", "http://p"},
        {{NULL, NULL, NULL, NULL, "socks5://p"}, "http://h", "socks5://p"},
        {{"", NULL, NULL, NULL, NULL, "http://q"}, "http://h", "http://q"},
        {{"http://me:secret@p:1/x"}, "http://h", "http://p:1/x"},
        {{"http://p"}, "http://localhost:8000/v1", NULL},
        {{"http://p"}, "http://127.0.0.1:8000/v1", NULL},
        {{"http://p"}, "http://127.9.9.9/v1", NULL},
        {{"http://p"}, "http://[::1]:8000/v1", NULL},
        {{"http://p"}, "http://127.0.0.1.example/v1", "http://p"},
        {{"http://p", [6] = "example.org, h"}, "http://h", NULL},
        {{"http://p", [6] = ".example.org"}, "http://a.example.org:1/", NULL},
        {{"http://p", [6] = "example.org"}, "http://badexample.org", "http://p"},
        {{"http://p", [7] = "*"}, "http://h", NULL},
        {{"http://p", [6] = ",,"}, "http://h", "http://p"},
        {{"http://p"}, "http://", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(1000);
        bool any;

        for (size_t k = 0; k < 8; k++) {
            if (cases[i].values[k])
                setenv(variables[k], cases[i].values[k], 1);
            else
                unsetenv(variables[k]);
        }
        any = ipw_url_proxy(&out, cases[i].url);
        if (any != (cases[i].proxy != NULL)) fail_msg("case %zu: %d", i, any);
        assert_string_equal(ipw_buf_str(&out), any ? cases[i].proxy : "");
        ipw_buf_release(&out);
    }
}

static void which_machine(void **state)
{
    static const struct {
        const char *url;
        bool here, clear;
        int port;
    } cases[] = {
        {"http://127.0.0.1:8000/v1", true, false, 8000},
        {"http://127.9.9.9/v1", true, false, 80},
        {"http://localhost/v1?a=1:2", true, false, 80},
        {"http://LocalHost:1", true, false, 1},
        {"https://localhost/v1", true, false, 443},
        {"HTTPS://localhost:8443", true, false, 8443},
        {"http://[::1]:9/v1", true, false, 9},
        {"http://[::1]/v1", true, false, 80},
        {"http://[127.8.9.10]", true, false, 80}, /* as libcurl names the address of a peer */
        {"http://[::ffff:127.0.0.1]", true, true, 80},
        {"http://[::ffff:192.0.2.1]", false, true, 80},
        {"http://[2001:db8::1]:1", false, true, 1},
        {"http://me:p:a@127.0.0.1:7/v1", true, false, 7},
        {"http://me@else@127.0.0.1:7/v1", true, false, 7},
        {"localhost:8000", true, false, 8000},
        /* What servers say of themselves when they listen everywhere. */
        {"http://0.0.0.0:8000/v1", true, true, 8000},
        {"http://[::]:8000/v1", true, true, 8000},
        {"http://localhost.example.org:8000/v1", false, true, 8000},
        {"http:/far.example/http://localhost:9/", false, true, 0}, /* as libcurl reads it */
        {"http://localhost@example.org/v1", false, true, 80},
        {"http://127.0.0.1.example.org/v1", false, true, 80},
        {"http://127.example.org", false, true, 80},
        {"https://api.example.org/v1", false, false, 443},
        {"http://[fe80::1]:5/v1", false, true, 5},
        {"http://h:/v1", false, true, 0},
        {"http://h:99999/v1", false, true, 0},
        {"http://h:123456789/v1", false, true, 0},
        {"http://h:x", false, true, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (ipw_url_is_local(cases[i].url) != cases[i].here) fail_msg("here: %s", cases[i].url);
        if (ipw_url_is_clear(cases[i].url) != cases[i].clear) fail_msg("clear: %s", cases[i].url);
        if (ipw_url_port(cases[i].url) != cases[i].port)
            fail_msg("%s: port %d", cases[i].url, ipw_url_port(cases[i].url));
    }
}

/* What is shown of an address, well formed or not, holds no user and no password. */
static void plain_urls(void **state)
{
    static const struct {
        const char *url, *plain;
    } cases[] = {
        {"http://me:secret@h:1/v1?key=secret#secret", "http://h:1/v1"},
        {"http:/me:secret@h/v1", "h/v1"},
        {"me:secret@h?x=secret", "h"},
        {"http:/me:secret@h/http://x", "h/http://x"},
        {"http://h/a@b", "http://h/a@b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(IPW_KIB);

        ipw_url_plain(&out, cases[i].url);
        assert_string_equal(ipw_buf_str(&out), cases[i].plain);
        ipw_buf_release(&out);
    }
}

static void letters_of_hosts(void **state)
{
    (void)state;
    assert_true(ipw_url_host_is_ascii("http://example.org/\xC3\xA9"));
    assert_true(ipw_url_host_is_ascii("http://\xC3\xA9@example.org"));
    assert_false(ipw_url_host_is_ascii("http://m\xC3\xBCller.example:80/"));
    assert_false(ipw_url_host_is_ascii("\xE2\x91\xA0"));
}

UNIT(url)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n12_which_proxy), cmocka_unit_test(which_machine),
        cmocka_unit_test(plain_urls), cmocka_unit_test(letters_of_hosts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
