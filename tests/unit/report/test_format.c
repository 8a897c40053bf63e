#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/format.h"
#include "unit/unit.h"

static void numbers(void **state)
{
    static const struct {
        double x;
        const char *joules, *seconds;
    } cases[] = {
        {0, "0 J", "0s"},
        {0.0004, "400 uJ", "400us"},
        {0.9994, "999 mJ", "999ms"},
        {0.9996, "1.00 J", "1.00s"},
        {9.994, "9.99 J", "9.99s"},
        {9.996, "10.0 J", "10.0s"},
        {59.94, "59.9 J", "59.9s"},
        {99.96, "100 J", "1m40s"},
        {119.6, "120 J", "2m00s"},
        {999.4, "999 J", "16m39s"},
        {999.6, "1.00 kJ", "16m40s"},
        {3599.4, "3.60 kJ", "59m59s"},
        {3599.6, "3.60 kJ", "1h00m"},
        {123456789, "123 MJ", "34293h33m"},
        {NAN, IPW_UNKNOWN_TEXT, IPW_UNKNOWN_TEXT},
        {INFINITY, IPW_UNKNOWN_TEXT, IPW_UNKNOWN_TEXT},
    };
    char out[32];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(ipw_format_si(out, cases[i].x, " J"), cases[i].joules);
        assert_string_equal(ipw_format_seconds(out, cases[i].x), cases[i].seconds);
    }
    assert_string_equal(ipw_format_si(out, -1234, "J"), "-1.23kJ");
    assert_string_equal(ipw_format_seconds(out, -1), IPW_UNKNOWN_TEXT);
}

static void widths_and_cells(void **state)
{
    static const struct {
        const char *text;
        size_t columns;
        enum ipw_format_align align;
        const char *cell;
    } cases[] = {
        {"abc", 5, IPW_ALIGN_LEFT, "abc  "},
        {"abc", 5, IPW_ALIGN_RIGHT, "  abc"},
        {"abc", 5, IPW_ALIGN_NONE, "abc"},
        {"abcdef", 5, IPW_ALIGN_LEFT, "abcd\xE2\x80\xA6"},
        {"\xE6\x9D\xB1\xE4\xBA\xAC\xE9\x83\xBD", 5, IPW_ALIGN_LEFT,
         "\xE6\x9D\xB1\xE4\xBA\xAC\xE2\x80\xA6"},
        {"\xE6\x9D\xB1\xE4\xBA\xAC\xE9\x83\xBD", 4, IPW_ALIGN_LEFT,
         "\xE6\x9D\xB1\xE2\x80\xA6 "}, /* a wide one that does not fit leaves a blank */
        {"e\xCC\x81t\xC3\xA9", 3, IPW_ALIGN_RIGHT, "e\xCC\x81t\xC3\xA9"},
        {"a\033[31mb", 20, IPW_ALIGN_NONE, "a\\u{1b}[31mb"},
        {"x\ny", 3, IPW_ALIGN_LEFT, "x y"},
        {"\xFF!", 2, IPW_ALIGN_LEFT, "\xEF\xBF\xBD!"},
        {"abc", 0, IPW_ALIGN_LEFT, ""},
        {"", 2, IPW_ALIGN_LEFT, "  "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(1000);

        ipw_format_cell(&out, cases[i].text, cases[i].columns, cases[i].align);
        assert_string_equal(ipw_buf_str(&out), cases[i].cell);
        ipw_buf_release(&out);
    }
}

UNIT(format)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(widths_and_cells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
