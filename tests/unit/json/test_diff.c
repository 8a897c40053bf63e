/* The first place at which two documents differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "json/diff.h"
#include "unit/unit.h"

/* `where` NULL: they are equal. */
static void differ(const char *x, const char *y, const char *where)
{
    struct ipw_json *a, *b;
    struct ipw_json_difference d;
    struct ipw_buf path = IPW_BUF(1000);

    assert_int_equal(ipw_json_parse(&a, x, strlen(x), NULL, NULL), 0);
    assert_int_equal(ipw_json_parse(&b, y, strlen(y), NULL, NULL), 0);
    assert_int_equal(ipw_json_differ(&path, &d, a, b), where != NULL);
    if (where) assert_string_equal(ipw_buf_str(&path), where);
    ipw_json_free(a);
    ipw_json_free(b);
    ipw_buf_release(&path);
}

static void equal(void **state)
{
    (void)state;
    differ("null", "null", NULL);
    differ("{\"a\":1,\"b\":[true,\"x\"]}", "{\"b\":[true,\"x\"],\"a\":1}", NULL);
}

static void places(void **state)
{
    (void)state;
    differ("1", "2", "");
    differ("1", "\"1\"", "");
    differ("{\"a\":{\"b\":[1,2]}}", "{\"a\":{\"b\":[1,3]}}", "a.b[1]");
    differ("[1]", "[1,2]", "[1]");
    differ("{\"a\":null}", "{}", "a");
    differ("{}", "{\"z\":null}", "z");
}

UNIT(diff)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal),
        cmocka_unit_test(places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
