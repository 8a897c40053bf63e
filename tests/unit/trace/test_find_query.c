/* Which query a person means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/find_query.h"
#include "unit/unit.h"

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

    assert_int_equal(ipw_find_query_pick(&got, &at, &names, want, &err), 0);
    assert_string_equal(got, id);
    assert_int_equal(at, index);
}

static void refused(const char *want, int code, const char *part)
{
    const char *got;
    int32_t at;
    struct ipw_err err;

    assert_int_equal(ipw_find_query_pick(&got, &at, &names, want, &err), code);
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
    means("d91e3\xE2\x80\xA6", "d91e3f72-1f", -1); /* as screens have it */
    means("\xE2\x80\xA6-1f", "d91e3f72-1f", -1);
    refused("\xE2\x80\xA6", IPW_ENOTFOUND, "there is no query");
}

/* Two of the warm-up come first; tasks 4 and 5 of the dataset, twice each. */
static void counts_the_warmup(void **state)
{
    static const struct ipw_query_name all[] = {{"aa", 0, 4, 0, true},  {"bb", 1, 5, 0, true},
                                                {"aa", 2, 4, 0, false}, {"bb", 3, 5, 0, false},
                                                {"aa", 4, 4, 1, false}, {"bb", 5, 5, 1, false}};
    struct ipw_query_names before = names;

    (void)state;
    names = (struct ipw_query_names){0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ipw_query_names_add(&names, all[i].id, all[i].index);
        names.all[i].task = all[i].task;
        names.all[i].epoch = all[i].epoch;
        names.all[i].warmup = all[i].warmup;
    }
    means("q0004", "aa", -1);
    means("q0005", "bb", -1);
    means("0", "aa", -1);
    means("3", "bb", 3);
    means("4", "aa", 4);
    refused("q0000", IPW_ENOTFOUND, "no query");
    refused("9", IPW_ENOTFOUND, "no query");
    ipw_query_names_release(&names);
    names = before;
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

/* The names in a run's events, as far as they can be read. */
static void names_of_a_damaged_run(void **state)
{
    static const char text[] =
        "{\"event\":\"query_start\",\"id\":\n"
        "{\"event\":\"query_start\",\"query\":\"x\",\"id\":5}\n"
        "{\"event\":\"query_start\",\"query\":3,\"span\":0,\"t_ns\":1}\n"
        "{\"event\":\"note\",\"name\":\"\\\"event\\\":\\\"query_start\\\"\",\"query\":5,\"span\":0,"
        "\"t_ns\":1}\n"
        "{\"data\":{\"epoch\":2,\"number\":4,\"warmup\":true},\"event\":\"query_start\",\"id\":"
        "\"a\","
        "\"query\":6,\"span\":0,\"t_ns\":1}\n"
        "{\"event\":\"query_start\",\"id\":\"torn\"";
    char dir[] = "/tmp/ipw-pick-XXXXXX", path[64];
    struct ipw_query_names read = {0};
    struct ipw_err err = {0};
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    assert_int_equal(ipw_query_names_read(&read, dir, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, path));
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(ipw_query_names_read(&read, dir, &err), 0);
    assert_int_equal(read.n, 1);
    assert_string_equal(read.all[0].id, "a");
    assert_int_equal(read.all[0].index, 6);
    assert_int_equal(read.all[0].task, 3);
    assert_int_equal(read.all[0].epoch, 2);
    assert_true(read.all[0].warmup);
    ipw_query_names_release(&read);
    unlink(path);
    rmdir(dir);
}

/* A wild index is damage: it takes no memory, and hides no other. */
static void names_are_joined_by_index(void **state)
{
    struct ipw_query_names a = {0}, b = {0};

    (void)state;
    ipw_query_names_add(&a, "x", -5);
    ipw_query_names_add(&a, "y", 2);
    ipw_query_names_add(&a, "z", INT32_MAX);
    ipw_query_names_add(&b, "none", -5);
    ipw_query_names_add(&b, "there", 2);
    ipw_query_names_add(&b, "between", 1);
    ipw_query_names_add(&b, "beyond", 7);
    ipw_query_names_join(&a, &b);
    assert_int_equal(a.n, 6);
    assert_string_equal(a.all[3].id, "none");
    assert_string_equal(a.all[4].id, "between");
    assert_string_equal(a.all[5].id, "beyond");
    ipw_query_names_release(&a);
    ipw_query_names_release(&b);
}

UNIT(find_query)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks), cmocka_unit_test(counts_the_warmup), cmocka_unit_test(refuses),
        cmocka_unit_test(names_of_a_damaged_run), cmocka_unit_test(names_are_joined_by_index)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
