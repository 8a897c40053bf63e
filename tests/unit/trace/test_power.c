/* Rows of power.jsonl, written and read back: every integer comes back, and what is no row is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/power.h"
#include "unit/unit.h"

enum { MANY = 8 };

static uint64_t seed = 88172645463325252u;

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* The line without its newline. */
static const char *write_line(struct ipw_buf *line, size_t source, int64_t t_ns,
                              const int64_t *values, size_t n)
{
    struct ipw_sampler_row row = {.source = source, .n = n, .t_ns = t_ns, .values = values};

    ipw_buf_clear(line);
    ipw_power_row_write(line, &row);
    assert_false(line->failed);
    assert_int_equal(line->data[line->len - 1], '\n');
    line->data[line->len - 1] = '\0';
    return line->data;
}

static void the_text_is_as_documented(void **state)
{
    struct ipw_buf line = IPW_BUF(IPW_MIB);

    (void)state;
    assert_string_equal(write_line(&line, 0, 1000000, (int64_t[]){100, IPW_NO_VALUE}, 2),
                        "[1000000,0,100,null]");
    assert_string_equal(write_line(&line, 12, 7, (int64_t[]){-5, 0, INT64_MAX}, 3),
                        "[7,12,-5,0,9223372036854775807]");
    assert_string_equal(write_line(&line, 1, 7, NULL, 0), "[7,1]");
    ipw_buf_release(&line);
}

static void any_integers_come_back(void **state)
{
    struct ipw_buf line = IPW_BUF(IPW_MIB);

    (void)state;
    for (int i = 0; i < 10000; i++) {
        int64_t t_ns = (int64_t)(rnd() >> (1 + rnd() % 60)), values[MANY], got[MANY];
        size_t n = rnd() % (MANY + 1), source = rnd() % 1000;
        struct ipw_sampler_row row = {0};

        for (size_t k = 0; k < n; k++) {
            values[k] = rnd() % 8 ? (int64_t)rnd() >> rnd() % 64 : IPW_NO_VALUE;
            if (rnd() % 8 == 0) values[k] = rnd() % 2 ? INT64_MAX : INT64_MIN + 1;
        }
        assert_true(
            ipw_power_row_read(write_line(&line, source, t_ns, values, n), &row, got, MANY));
        assert_true(row.t_ns == t_ns && row.source == source && row.n == n && row.values == got);
        for (size_t k = 0; k < n; k++) assert_true(got[k] == values[k]);
    }
    ipw_buf_release(&line);
}

static void lines_that_are_no_rows(void **state)
{
    static const char *const lines[] = {
        "",           "[",          "[]",
        "[1]",        "[1,0",       "[1,0,2,3,4]",
        "[1,-1,2,3]", "[1,null,2]", "[null,0,1,2]",
        "[1,0,2,3]x", "[1,0,2,x]",  "[1,0,]",
        "[1.5,0,2]",  "[1,0,2 ]",   "[\"AUgB\"]",
        "{}",         "1,0,2",      "[1,0,99999999999999999999,0]",
    };
    struct ipw_sampler_row row;
    int64_t got[2];

    (void)state;
    assert_true(ipw_power_row_read("[1000,0,2,3]", &row, got, 2));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (ipw_power_row_read(lines[i], &row, got, 2)) fail_msg("read as a row: %s", lines[i]);
    }
}

UNIT(power)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_as_documented),
        cmocka_unit_test(any_integers_come_back),
        cmocka_unit_test(lines_that_are_no_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
