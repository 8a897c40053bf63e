/* Pictures in a column: the bytes of data URLs, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/data_url.h"
#include "unit/unit.h"

static void bytes_come_back(void **state)
{
    static const struct {
        const char *url, *bytes;
        size_t n;
    } rows[] = {
        {"data:image/png;base64,aGVsbG8=", "hello", 5},
        {"data:image/png;base64,aGVsbG8", "hello", 5},
        {"data:;base64,aGVs\r\nbG8h", "hello!", 6},
        {"data:image/webp;x=y;base64,AP_-", "\0\xff\xfe", 3},
        {"data:image/png;base64,", "", 0},
        {"data:image/png;base64,AA==\n", "\0", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_buf out = IPW_BUF(100);
        struct ipw_err err = {0};

        assert_int_equal(ipw_data_url_decode(&out, rows[i].url, &err), 0);
        assert_int_equal(out.len, rows[i].n);
        if (rows[i].n) assert_memory_equal(out.data, rows[i].bytes, rows[i].n);
        ipw_buf_release(&out);
    }
}

static void what_is_none_says_so(void **state)
{
    static const struct {
        const char *url;
        int code;
    } rows[] = {
        {"", IPW_EPARSE},
        {"http://x/y.png", IPW_EPARSE},
        {"data:image/png,raw", IPW_EPARSE},
        {"data:image/png;base64,a*", IPW_EPARSE},
        {"data:image/png;base64,aGVsb", IPW_EPARSE},
        {"data:image/png;base64,aA==aA", IPW_EPARSE},
        {"data:image/png;base64,aGVsbG8gaGVsbG8=", IPW_ELIMIT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_buf out = IPW_BUF(8);
        struct ipw_err err = {0};

        assert_int_equal(ipw_data_url_decode(&out, rows[i].url, &err), rows[i].code);
        assert_true(strlen(err.text) > 0);
        ipw_buf_release(&out);
    }
}

UNIT(data_url)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(what_is_none_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
