/* Which proxy a request goes through, for the user to know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/proxy.h"

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
        any = ipw_http_proxy_for(&out, cases[i].url);
        if (any != (cases[i].proxy != NULL)) fail_msg("case %zu: %d", i, any);
        assert_string_equal(ipw_buf_str(&out), any ? cases[i].proxy : "");
        ipw_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(n12_which_proxy)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
