/* Which query a person means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/pick.h"

static struct ipw_query_names names;

static int setup(void **state)
{
    (void)state;
    ipw_query_names_add(&names, "d91e3f72-1f", 0);
    ipw_query_names_add(&names, "d91e8000-22", 1);
    ipw_query_names_add(&names, "q0001", 2); /* an id goes before a number */
    ipw_query_names_add(&names, "task", 3);
    ipw_query_names_add(&names, "task", 4); /* another epoch */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ipw_query_names_release(&names);
    return 0;
}

static void means(const char *want, const char *id, int32_t index)
{
    const char *got = NULL;
    int32_t at = -2;
    struct ipw_err err;

    assert_int_equal(ipw_query_pick(&got, &at, &names, want, &err), 0);
    assert_string_equal(got, id);
    assert_int_equal(at, index);
}

static void refused(const char *want, int code, const char *part)
{
    const char *got;
    int32_t at;
    struct ipw_err err;

    assert_int_equal(ipw_query_pick(&got, &at, &names, want, &err), code);
    assert_non_null(strstr(err.text, part));
}

static void picks(void **state)
{
    (void)state;
    means("task", "task", -1);
    means("q0001", "q0001", -1);
    means("q0004", "task", 4);
    means("1", "d91e8000-22", 1);
    means("d91e3", "d91e3f72-1f", -1);
    means("ta", "task", -1);
}

static void refuses(void **state)
{
    (void)state;
    refused("d91", IPW_EINVAL, "several queries begin with \"d91\": d91e3f72-1f, d91e8000-22");
    refused("tsak", IPW_ENOTFOUND, "did you mean \"task\"?");
    refused("q0009", IPW_ENOTFOUND, "q0001");
    refused("", IPW_ENOTFOUND, "no query");
    refused("q99999999999", IPW_ENOTFOUND, "no query");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(picks), cmocka_unit_test(refuses)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
