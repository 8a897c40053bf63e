#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/secret_name.h"
#include "unit/unit.h"

static void test_names(void **state)
{
    static const char *const secret[] = {"api_key",
                                         "API_KEY",
                                         "apiKey",
                                         "apikey",
                                         "key",
                                         "x-api-key",
                                         "token",
                                         "access_token",
                                         "accessToken",
                                         "HF_TOKEN",
                                         "password",
                                         "dbpassword",
                                         "PASSWD",
                                         "client-secret",
                                         "clientsecret",
                                         "Authorization",
                                         "Proxy-Authorization",
                                         "cookie",
                                         "Set-Cookie",
                                         "OPENAI_API_KEY",
                                         "AWS_SECRET_ACCESS_KEY",
                                         "private_key",
                                         "my.pwd",
                                         "auth"};
    static const char *const plain[] = {"",
                                        "max_tokens",
                                        "max_completion_tokens",
                                        "stop_token_ids",
                                        "monkey",
                                        "KEYBOARD",
                                        "key_name",
                                        "author",
                                        "tokenizer",
                                        "model",
                                        "HOME",
                                        "SSH_AUTH_SOCK",
                                        "return_tokens_as_token_ids",
                                        "keys",
                                        "X-Route",
                                        "PASSWORD_STORE_DIR"};

    (void)state;
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!ipw_secret_name(secret[i], strlen(secret[i]))) fail_msg("%s", secret[i]);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (ipw_secret_name(plain[i], strlen(plain[i]))) fail_msg("%s", plain[i]);
}

static void gather(void *ud, const char *value, size_t n)
{
    char *out = ud;
    size_t used = strlen(out);

    snprintf(out + used, 200 - used, "<%.*s>", (int)n, value);
}

static void check(const char *text, const char *expected)
{
    char found[200] = "";

    ipw_secret_in_urls(text, gather, found);
    assert_string_equal(found, expected);
}

static void test_urls(void **state)
{
    (void)state;
    check("", "");
    check("no address: a:b@c?key=x", "");
    check("http://host/v1", "");
    check("http://me:pw@host/v1", "<pw>");
    check("http://me:p@w@host", "<p@w>");
    check("http://tok@host/v1", "<tok>");
    check("http://host/a:b@c", "");
    check("http://host/v1?api_key=x", "<x>");
    check("http://host?a=1&token=x&b=2;secret=y#key=z", "<x><y><z>");
    check("http://host/?key=", "");
    check("http://host/?key", "");
    check("http://host/?key&token=x", "<x>");
    check("http://host/?a=key=b&", "");
    check("exec=curl 'http://a:b@h/' https://c:d@i/?password=e\" f", "<b><d><e>");
    check("http://", "");
    check("http://@host", "<>");
}

UNIT(secret_name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_urls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
