/* Numbers as letters: there and back, the letters that source maps have for them, and what is
 * none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/vlq.h"
#include "unit/unit.h"

static void known_letters(void **state)
{
    static const struct {
        int64_t x;
        const char *text;
    } cases[] = {{0, "A"},    {1, "C"},    {-1, "D"},    {15, "e"},           {16, "gB"},
                 {-16, "hB"}, {511, "+f"}, {512, "ggB"}, {IPW_VLQ_NONE, "B"}, {1000000, "gkh9B"}};
    struct ipw_buf out = IPW_BUF(64);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ipw_buf_clear(&out);
        ipw_vlq_put(&out, cases[i].x);
        assert_string_equal(ipw_buf_str(&out), cases[i].text);
    }
    ipw_buf_release(&out);
}

static void there_and_back(void **state)
{
    struct ipw_buf out = IPW_BUF(IPW_KIB);
    int64_t x;

    (void)state;
    for (int shift = 0; shift < 58; shift++) {
        for (int64_t d = -1; d <= 1; d++) {
            ipw_vlq_put(&out, (INT64_C(1) << shift) + d);
            ipw_vlq_put(&out, -(INT64_C(1) << shift) - d);
        }
        const char *at = ipw_buf_str(&out);
        for (int64_t d = -1; d <= 1; d++) {
            assert_true(ipw_vlq_take(&at, &x));
            assert_int_equal(x, (INT64_C(1) << shift) + d);
            assert_true(ipw_vlq_take(&at, &x));
            assert_int_equal(x, -(INT64_C(1) << shift) - d);
        }
        assert_int_equal(*at, '\0');
        ipw_buf_clear(&out);
    }
    ipw_buf_release(&out);
}

static void not_numbers(void **state)
{
    static const char *const texts[] = {"", "\"", "g", "gg", "g-", "gggggggggggggA", "-A"};
    int64_t x;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *at = texts[i];
        assert_false(ipw_vlq_take(&at, &x));
    }
}

UNIT(vlq)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_letters),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(not_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
