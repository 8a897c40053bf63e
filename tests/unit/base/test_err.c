/* Errors, the clock's labels, allocation. */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "check.h"
#include "unit/unit.h"

static void test_fail(void **state)
{
    struct ipw_err err = {0};
    char longest[2000];

    (void)state;
    assert_int_equal(ipw_fail(&err, IPW_EPARSE, "%s:%d: bad", "f", 3), IPW_EPARSE);
    assert_int_equal(err.code, IPW_EPARSE);
    assert_int_equal(err.detail, 0);
    assert_string_equal(err.text, "f:3: bad");
    assert_int_equal(ipw_err_prefix(&err, "query %d", 7), IPW_EPARSE);
    assert_string_equal(err.text, "query 7: f:3: bad");
    assert_int_equal(ipw_fail(NULL, IPW_ENET, "nobody reads this"), IPW_ENET);
    assert_int_equal(ipw_fail_errno(&err, ENOENT, "%s", "x"), IPW_ENOTFOUND);
    assert_string_equal(err.text, "x: No such file or directory");
    assert_int_equal(err.detail, ENOENT);
    assert_int_equal(ipw_fail_errno(&err, EACCES, "x"), IPW_EPERM);
    assert_int_equal(ipw_fail_errno(&err, EPERM, "x"), IPW_EPERM);
    assert_int_equal(ipw_fail_errno(NULL, EIO, "x"), IPW_EIO);

    memset(longest, 'y', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ipw_fail_errno(&err, EIO, "%s", longest);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    ipw_err_prefix(&err, "%s", longest);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void test_prefix_on_nobody(void **state)
{
    (void)state;
    assert_int_equal(ipw_err_prefix(NULL, "x"), IPW_EINVAL);
}

static void test_code_names(void **state)
{
    const char *seen[16] = {NULL};

    (void)state;
    for (int code = 0; code >= IPW_EEXISTS; code--) {
        const char *name = ipw_code_name((enum ipw_code)code);
        assert_string_not_equal(name, "unknown");
        for (int i = 0; i < -code; i++) assert_string_not_equal(name, seen[i]);
        seen[-code] = name;
    }
    assert_string_equal(ipw_code_name((enum ipw_code) - 99), "unknown");
}

static void test_clock_labels(void **state)
{
    static const struct {
        int64_t wall_ns;
        const char *iso, *compact;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z", "19700101-000000"},
        {1795228267123999999, "2026-11-21T02:31:07.123Z", "20261121-023107"},
        {951782399999000000, "2000-02-28T23:59:59.999Z", "20000228-235959"},
        {951782400000000000, "2000-02-29T00:00:00.000Z", "20000229-000000"},
        {-1000000, "1969-12-31T23:59:59.999Z", "19691231-235959"},
        {-1000000000, "1969-12-31T23:59:59.000Z", "19691231-235959"},
        {INT64_MIN, "1677-09-21T00:12:43.145Z", "16770921-001243"}, /* a record that is damaged */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[32];
        assert_string_equal(ipw_clock_iso8601(out, sizeof out, cases[i].wall_ns), cases[i].iso);
        assert_string_equal(ipw_clock_compact(out, sizeof out, cases[i].wall_ns), cases[i].compact);
    }
}

static void test_clock(void **state)
{
    volatile double zero = 0;
    struct ipw_anchor anchor;
    int64_t a = ipw_now_ns(), b = ipw_now_ns();

    (void)state;
    assert_true(a > 0 && b >= a);
    ipw_anchor_take(&anchor);
    assert_true(anchor.mono_ns >= b && anchor.boot_ns >= anchor.mono_ns - IPW_NS_PER_S);
    assert_true(ipw_anchor_wall_ns(&anchor, anchor.mono_ns) == anchor.wall_ns);
    assert_true(ipw_anchor_wall_ns(&anchor, anchor.mono_ns - 5) == anchor.wall_ns - 5);
    a = ipw_cpu_thread_ns();
    assert_true(a > 0 && ipw_cpu_thread_ns() >= a && ipw_cpu_self_ns() >= a);
    assert_true(ipw_s_to_ns(1.5) == 1500000000 && ipw_s_to_ns(-1.5) == -1500000000);
    assert_true(ipw_s_to_ns(1e-9) == 1 && ipw_ns_to_s(2500000000) == 2.5);
    assert_true(ipw_s_to_ns(1e300) == INT64_MAX && ipw_s_to_ns(-1e300) == INT64_MIN);
    assert_true(ipw_s_to_ns(9223372036.854776) == INT64_MAX && ipw_s_to_ns(0.0 / zero) == 0);
}

/* Whatever is put into a message, and wherever it is cut, it is UTF-8. */
static void test_messages_are_utf8(void **state)
{
    struct ipw_err err;
    char longer[2 * sizeof err.text];

    (void)state;
    ipw_fail(&err, IPW_EPARSE, "name '%s', %.2s", "\xFF\xC3\xA9", "a\xC3\xA9");
    assert_string_equal(err.text, "name '?\xC3\xA9', a?");
    ipw_fail(&err, IPW_EPARSE, "key a\r\nb: \n");
    assert_string_equal(err.text, "key a  b:  ");
    ipw_fail(&err, IPW_EPARSE, "name '%s', %.2s", "\xFF\xC3\xA9", "a\xC3\xA9");
    ipw_err_prefix(&err, "\xE2\x82");
    assert_string_equal(err.text, "??: name '?\xC3\xA9', a?");
    ipw_fail_errno(&err, ENOENT, "\x80");
    assert_true(err.text[0] == '?' && ipw_utf8_valid(err.text, strlen(err.text)));
    for (size_t shift = 0; shift < 3; shift++) {
        for (size_t i = 0; i + 1 < sizeof longer; i++) longer[i] = "\xE2\x82\xAC"[(i + shift) % 3];
        longer[sizeof longer - 1] = '\0';
        ipw_fail(&err, IPW_EIO, "%s", longer);
        assert_int_equal(strlen(err.text), sizeof err.text - 1);
        assert_true(ipw_utf8_valid(err.text, strlen(err.text)));
        ipw_err_prefix(&err, "x");
        assert_true(ipw_utf8_valid(err.text, strlen(err.text)));
    }
}

static void test_memory(void **state)
{
    int *numbers = NULL;
    size_t cap = 0;
    char *text = ipw_asprintf("%s-%d", "x", 300), *copy = ipw_memdup("a\0b", 3);

    (void)state;
    assert_string_equal(text, "x-300");
    assert_memory_equal(copy, "a\0b", 4);
    assert_null(ipw_strdup(NULL));
    free(text);
    free(copy);
    free(ipw_malloc(0));
    free(ipw_calloc(0, 0));
    for (size_t n = 1; n < 1000; n++) {
        IPW_GROW(numbers, cap, n);
        assert_true(cap >= n);
        numbers[n - 1] = (int)n;
    }
    for (size_t n = 1; n < 1000; n++) assert_int_equal(numbers[n - 1], n);
    free(numbers);
}

UNIT(err)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_prefix_on_nobody),
        cmocka_unit_test(test_code_names),
        cmocka_unit_test(test_clock_labels),
        cmocka_unit_test(test_messages_are_utf8),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
