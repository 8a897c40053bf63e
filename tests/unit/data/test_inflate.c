#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/inflate.h"
#include "unit/unit.h"

/* "hello hello hello hello\n", raw deflate. */
static const char packed[] = "\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\xb9\x00";

static void gives_what_was_packed(void **state)
{
    struct ipw_buf out = IPW_BUF(100);
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_inflate(&out, packed, sizeof packed - 1, &err), 0);
    assert_string_equal(ipw_buf_str(&out), "hello hello hello hello\n");
    assert_int_equal(ipw_inflate_checksum(ipw_buf_str(&out), out.len), 0x0b598800u);
    ipw_buf_release(&out);
}

static void stops_at_the_limit(void **state)
{
    struct ipw_buf out = IPW_BUF(23);
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_inflate(&out, packed, sizeof packed - 1, &err), IPW_ELIMIT);
    assert_string_equal(err.text, "more than 23 bytes unpacked");
    ipw_buf_release(&out);
}

static void refuses_what_is_cut_or_damaged(void **state)
{
    struct ipw_err err = {0};

    (void)state;
    for (size_t n = 0; n < sizeof packed - 1; n++) {
        struct ipw_buf out = IPW_BUF(100);

        assert_int_equal(ipw_inflate(&out, packed, n, &err), IPW_EPARSE);
        ipw_buf_release(&out);
    }
    for (int bad = 6; bad < 8; bad++) { /* a block of a type that does not exist */
        struct ipw_buf out = IPW_BUF(100);
        const char block[] = {(char)bad, 0};

        assert_int_equal(ipw_inflate(&out, block, 2, &err), IPW_EPARSE);
        ipw_buf_release(&out);
    }
}

UNIT(inflate)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_was_packed),
        cmocka_unit_test(stops_at_the_limit),
        cmocka_unit_test(refuses_what_is_cut_or_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
