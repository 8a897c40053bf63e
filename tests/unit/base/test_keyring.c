#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "base/secret.h"
#include "unit/unit.h"

static int release(void **state)
{
    (void)state;
    ipw_keyring_release();
    ipw_secret_forget_all();
    return 0;
}

static void check(const char *text, const char *expected)
{
    char *copy = ipw_strdup(text);

    ipw_secret_clean_text(copy);
    assert_string_equal(copy, expected);
    free(copy);
}

static void take_nothing(void)
{
    char name[] = "ipw-agent", *argv[] = {name, NULL};

    ipw_keyring_take(1, argv);
}

/* Headers for a collector: the list is taken, and each value is a secret, encoded or not. */
static void test_headers(void **state)
{
    const char *list;

    (void)state;
    setenv("OTEL_EXPORTER_OTLP_HEADERS",
           "x-key=first%20abcdef, Authorization=Bearer%20s3cr3t-token", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318", 1);
    list = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    take_nothing();
    assert_null(strstr(list, "abcdef"));
    assert_null(getenv("OTEL_EXPORTER_OTLP_HEADERS"));
    assert_string_equal(getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://localhost:4318");
    assert_string_equal(ipw_keyring_env("OTEL_EXPORTER_OTLP_HEADERS"),
                        "x-key=first%20abcdef, Authorization=Bearer%20s3cr3t-token");
    check("first abcdef", "***");
    check("Authorization: Bearer s3cr3t-token", "Authorization: ***");
    check("a s3cr3t-token b", "a *** b");
    check("Bearer%20s3cr3t-token", "***");
    unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
}

/* The bytes that /proc/PID/environ shows are overwritten, the variable is gone, the value is
 * kept. */
static void test_environment(void **state)
{
    const char *token, *proxy, *plain;

    (void)state;
    setenv("HF_TOKEN", "hf_abcdefghijk", 1);
    setenv("MY_SHOP_API_KEY", "shop-abcdefghijk", 1);
    setenv("https_proxy", "http://me:pass-word-1@proxy:3128", 1);
    setenv("all_proxy", "http://proxy:3128/a:b@c", 1);
    setenv("KEYBOARD", "de", 1);
    setenv("PWD", "/tmp/no-such-folder", 1);
    setenv("SSH_KEY", "/dev/null", 1);
    token = getenv("HF_TOKEN");
    proxy = getenv("https_proxy");
    plain = getenv("all_proxy");
    take_nothing();
    assert_string_equal(token, "**************");
    assert_null(getenv("HF_TOKEN"));
    assert_null(getenv("MY_SHOP_API_KEY"));
    assert_string_equal(proxy, "http://me:***********@proxy:3128");
    assert_ptr_equal(getenv("https_proxy"), proxy);
    assert_string_equal(plain, "http://proxy:3128/a:b@c");
    assert_string_equal(ipw_keyring_env("HF_TOKEN"), "hf_abcdefghijk");
    assert_string_equal(ipw_keyring_env("MY_SHOP_API_KEY"), "shop-abcdefghijk");
    assert_string_equal(ipw_keyring_env("https_proxy"), "http://me:pass-word-1@proxy:3128");
    assert_string_equal(ipw_keyring_env("KEYBOARD"), "de");
    assert_string_equal(getenv("PWD"), "/tmp/no-such-folder");
    assert_string_equal(getenv("SSH_KEY"), "/dev/null");
    assert_null(ipw_keyring_env("NO_SUCH_VARIABLE"));
    check("hf_abcdefghijk http://me:pass-word-1@proxy", "*** http://me:***@proxy");
    unsetenv("https_proxy");
    unsetenv("all_proxy");
    unsetenv("KEYBOARD");
    unsetenv("SSH_KEY");
}

static void test_variable_that_an_option_names(void **state)
{
    const char *value;

    (void)state;
    setenv("INNOCENT", "abcdefgh1234", 1);
    value = getenv("INNOCENT");
    take_nothing();
    assert_string_equal(value, "abcdefgh1234");
    ipw_keyring_take_variable("INNOCENT");
    ipw_keyring_take_variable("INNOCENT"); /* the default of one option, named by another */
    ipw_keyring_take_variable("NO_SUCH_VARIABLE");
    assert_string_equal(value, "************");
    assert_null(getenv("INNOCENT"));
    assert_string_equal(ipw_keyring_env("INNOCENT"), "abcdefgh1234");
    check("abcdefgh1234", "***");
}

/* Whoever puts a variable into the environment twice gets both overwritten. */
static void test_twice(void **state)
{
    char first[] = "HF_TOKEN=first-value", second[] = "HF_TOKEN=second-value", *both[3];
    char **before = environ;

    (void)state;
    both[0] = first;
    both[1] = second;
    both[2] = NULL;
    environ = both;
    take_nothing();
    environ = before;
    assert_string_equal(first, "HF_TOKEN=***********");
    assert_string_equal(second, "HF_TOKEN=************");
    assert_string_equal(ipw_keyring_env("HF_TOKEN"), "first-value");
}

static void test_command_line(void **state)
{
    char name[] = "ipw-agent", option[] = "--header=X-Key: abcdefgh", other[] = "--quiet";
    char url[] = "https://me:pass-word-1@host/v1?api_key=abcdefgh1234&page=2";
    char *argv[] = {name, option, other, url, NULL}, **copies;

    (void)state;
    copies = ipw_keyring_take(4, argv);
    assert_string_equal(url, "https://me:***********@host/v1?api_key=************&page=2");
    assert_string_equal(copies[3], "https://me:pass-word-1@host/v1?api_key=abcdefgh1234&page=2");
    assert_null(copies[4]);
    ipw_keyring_hide(copies[1] + 16);
    ipw_keyring_hide("of somebody else");
    assert_string_equal(option, "--header=X-Key: ********");
    assert_string_equal(copies[1], "--header=X-Key: abcdefgh");
    assert_string_equal(other, "--quiet");
    check("pass-word-1 abcdefgh1234", "*** ***");
}

UNIT(keyring)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_headers, release),
        cmocka_unit_test_teardown(test_environment, release),
        cmocka_unit_test_teardown(test_variable_that_an_option_names, release),
        cmocka_unit_test_teardown(test_twice, release),
        cmocka_unit_test_teardown(test_command_line, release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
