#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>

#include "data/gaia.h"
#include "data/pytext.h"
#include "unit/unit.h"

struct score_row {
    const char *answer, *truth;
    bool right;
};

/* Forty pairs with the verdict of the benchmark's own scorer. */
static const struct score_row reference[] = {
    {"17", "17", true},
    {"17.0", "17", true},
    {"$1,234.50", "1234.5", true},
    {"1,234", "1,234", true},
    {"1234", "1,234", false},
    {"1;234", "1,234", true},
    {"5%", "5", true},
    {"5%", "0.05", false},
    {"17 thousand", "17", false},
    {"1 000", "1000", false},
    {" 1000 ", "1000", true},
    {"1_000", "1000", true},
    {"0x10", "16", false},
    {"1e3", "1000", true},
    {"\u0661\u0662", "12", true},
    {"banana", "inf", true},
    {"nan", "nan", false},
    {"\u20ac5", "5", false},
    {"-5", "5", false},
    {"+5", "5", true},
    {"0.30000000000000004", "0.3", false},
    {"sea gull", "seagull", true},
    {"St. Petersburg", "St Petersburg", true},
    {"St. Petersburg, Moscow", "St Petersburg, Moscow", false},
    {"The cat", "cat", false},
    {"Don\u2019t", "Don't", false},
    {"e-mail", "email", true},
    {"a, b", "b, a", false},
    {"a,b,", "a,b", false},
    {"apple, $5", "apple, 5", true},
    {"Apple;Pear", "apple, pear", true},
    {"a b, c", "ab,c", true},
    {"cat, and dog", "cat, dog", false},
    {"a,b", "ab", true},
    {NULL, "None", true},
    {"", "?", true},
    {"\u0130", "i\u0307", true},
    {"stra\u00dfe", "STRASSE", false},
    {"1.5, 2", "1.50;2.0", true},
    {"FINAL ANSWER: 17", "17", false},
};

static const struct score_row more[] = {
    {"42.", "42", true},
    {"-0", "0", true},
    {"$1,000", "1000", true},
    {"1000", "1,000", false},
    {"I do not know", "Infinity", true},
    {"Fred., x", "Fred, x", false},
    {"USA", "U.S.A.", true},
    {"!!!", ".", true},
    {"\u0663", "3", true},
    {"a\u00a0b", "ab", true},
    {"a\u200bb", "ab", false}, /* a zero-width space is none */
    {"Gr\u00f6\u00dfe", "GR\u00d6SSE", false},
    {"\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2", true}, /* final sigma */
    {"\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c3", false},
    {"A'\u03a3", "a'\u03c2", true}, /* an apostrophe does not part words here */
    {"A\u03a3'", "a\u03c2'", true},
    {"A\u03a3'B", "a\u03c3'b", true},
    {"\u03a3", "\u03c3", true}, /* no word ends where none began */
    {"A\u0345\u03a3", "a\u0345\u03c2", true},
    {"A1\u03a3", "a1\u03c3", true},
    {"", "x", false},
    {"none", "None", true},
    {NULL, "5", false},
    {NULL, "inf", true}, /* "None" is no number, which counts as infinite: the rule's own fault */
    {",", ";", true},
    {"nan, 1", "nan, 1", false},
    {"x, banana", "x, inf", true},
    {"1,2;3", "1;2,3", true},
    {"\xff", "\xef\xbf\xbd", true}, /* invalid UTF-8 counts as U+FFFD */
    {"1e999", "inf", true},
    {"-inf", "-inf", true},
    {"$", "5", false},
    {"%,$5", "5", true},
};

static void check_scores(const struct score_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ipw_gaia_score(rows[i].answer, rows[i].truth) != rows[i].right)
            fail_msg("%s vs %s: expected %s", rows[i].answer ? rows[i].answer : "(none)",
                     rows[i].truth, rows[i].right ? "right" : "wrong");
}

static void test_reference_rows(void **state)
{
    (void)state;
    assert_int_equal(sizeof reference / sizeof *reference, 40);
    check_scores(reference, sizeof reference / sizeof *reference);
}

static void test_more_rows(void **state)
{
    (void)state;
    check_scores(more, sizeof more / sizeof *more);
}

static void test_routes(void **state)
{
    (void)state;
    assert_string_equal(ipw_gaia_route("17"), "number");
    assert_string_equal(ipw_gaia_route(" 1e3 "), "number");
    assert_string_equal(ipw_gaia_route("nan"), "number");
    assert_string_equal(ipw_gaia_route("1,234"), "list");
    assert_string_equal(ipw_gaia_route("a; b"), "list");
    assert_string_equal(ipw_gaia_route("0x10"), "string");
    assert_string_equal(ipw_gaia_route(""), "string");
}

/* string.punctuation */
static void test_punctuation(void **state)
{
    (void)state;
    for (char c = 1; c < 127; c++)
        assert_int_equal(ipw_py_punct(c), !!strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c));
}

static void test_python_float(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        double value;
    } rows[] = {
        {"0", true, 0},
        {"007", true, 7},
        {"1.", true, 1},
        {".5", true, 0.5},
        {"+.5e-1", true, 0.05},
        {"1E+2", true, 100},
        {"1e0_2", true, 100},
        {"1_2.3_4", true, 12.34},
        {"\t\n\v\f\r 3 \u3000", true, 3},
        {"\u00a0\u20033\u205f", true, 3},
        {"\uff11\uff12", true, 12},        /* full-width digits */
        {"\U0001d7ce\U0001d7d9", true, 1}, /* mathematical digits */
        {"\u0967\u096c.5", true, 16.5},
        {"0e99999999999999999999", true, 0},
        {"1e-99999999999999999999", true, 0},
        {"1e400", true, INFINITY},
        {"-1e400", true, -INFINITY},
        {"inf", true, INFINITY},
        {"+InFiNiTy", true, INFINITY},
        {"-inf", true, -INFINITY},
        {"1.7976931348623157e308", true, 1.7976931348623157e308},
        {"4.9406564584124654e-324", true, 4.9406564584124654e-324},
        {"9007199254740993", true, 9007199254740992.0},
        {"0.1", true, 0.1},
        {"", false, 0},
        {" ", false, 0},
        {".", false, 0},
        {"+", false, 0},
        {"e5", false, 0},
        {".e5", false, 0},
        {"1e", false, 0},
        {"1e+", false, 0},
        {"1..2", false, 0},
        {"1.2.3", false, 0},
        {"--1", false, 0},
        {"+-1", false, 0},
        {"- 1", false, 0},
        {"1 2", false, 0},
        {"_1", false, 0},
        {"1_", false, 0},
        {"1__0", false, 0},
        {"1_.5", false, 0},
        {"1._5", false, 0},
        {"1_e5", false, 0},
        {"1e_5", false, 0},
        {"in_f", false, 0},
        {"0x10", false, 0},
        {"0b1", false, 0},
        {"nan(1)", false, 0},
        {"infinit", false, 0},
        {"infinity1", false, 0},
        {"1,5", false, 0},
        {"1f", false, 0},
        {"1d0", false, 0},
        {"\u00bd", false, 0}, /* a half is a number, but no decimal digit */
        {"\u00b2", false, 0},
        {"\u2160", false, 0},
        {"\u22125", false, 0}, /* the minus sign of typographers */
        {"\u200b1", false, 0},
        {"\ufeff1", false, 0},
        {"\u180e1", false, 0},
        {"\x1c"
         "1",
         false, 0}, /* isspace() says yes, float() says no */
        {"1\x1f", false, 0},
        {"\x7f"
         "1",
         false, 0},
        {"1\xff", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = -1;
        bool ok = ipw_py_float(rows[i].text, &value);

        if (ok != rows[i].ok)
            fail_msg("float(\"%s\"): expected %s", rows[i].text, rows[i].ok ? "a number" : "none");
        if (ok && value != rows[i].value)
            fail_msg("float(\"%s\") gave %.17g, expected %.17g", rows[i].text, value,
                     rows[i].value);
    }
    double nan_value = 0;
    assert_true(ipw_py_float(" -NaN ", &nan_value));
    assert_true(isnan(nan_value));
}

/* The point stays a point where the process has another locale's comma. */
static void test_locale(void **state)
{
    double value = 0;

    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        print_message("locale de_DE.UTF-8 is not installed: checked in the C locale only\n");
    assert_true(ipw_py_float("1.5", &value));
    assert_true(value == 1.5);
    setlocale(LC_NUMERIC, "C");
}

static void test_extract(void **state)
{
    static const struct {
        const char *text, *answer, *source;
    } rows[] = {
        {"FINAL ANSWER: 17", "17", "marker"},
        {"I think.\nFINAL ANSWER: 17\n", "17", "marker"},
        {"final answer: Paris", "Paris", "marker"},
        {"Final Answer\uff1a\u6771\u4eac", "\u6771\u4eac", "marker"},
        {"FINAL ANSWER 17", "17", "marker"},
        {"FINAL ANSWER : 17", "17", "marker"},
        {"FINAL ANSWER:17", "17", "marker"},
        {"FINAL ANSWER: 1\nFINAL ANSWER: 2", "2", "marker"},
        {"FINAL ANSWER: 17\nSome more words.", "17", "marker"},
        {"FINAL ANSWER: 17\r\nmore", "17", "marker"},
        {"FINAL ANSWER:\n\n  \n  17  \n18", "17", "marker"},
        {"FINAL ANSWER: \u00a017\u3000", "17", "marker"},
        {"FINAL ANSWER: **17**", "17", "marker"},
        {"FINAL ANSWER: `17`", "17", "marker"},
        {"FINAL ANSWER: [17]", "17", "marker"},
        {"FINAL ANSWER: [ 17 ]", "17", "marker"},
        {"FINAL ANSWER: **[17]**", "[17]", "marker"},
        {"FINAL ANSWER: [1, 2], [3]", "[1, 2], [3]", "marker"},
        {"FINAL ANSWER: [[1], [2]]", "[1], [2]", "marker"},
        {"FINAL ANSWER: **a** and **b**", "**a** and **b**", "marker"},
        {"FINAL ANSWER: `a` or `b`", "`a` or `b`", "marker"},
        {"FINAL ANSWER: \"17\".", "\"17\".", "marker"},
        {"FINAL ANSWER: 17.", "17.", "marker"},
        {"FINAL ANSWER: *17*", "*17*", "marker"},
        {"**FINAL ANSWER:** 17", "17", "marker"},
        {"**FINAL ANSWER**: 17", "17", "marker"},
        {"**FINAL ANSWER: 17**", "17", "marker"},
        {"**FINAL ANSWER:** **17**", "17", "marker"},
        {"**FINAL ANSWER:**\n\n17", "17", "marker"},
        {"**FINAL ANSWER: [17]**", "17", "marker"},
        {"[FINAL ANSWER: 17]", "17", "marker"},
        {"`FINAL ANSWER: 17`", "17", "marker"},
        {"FINAL ANSWER: a: b", "a: b", "marker"},
        {"My final answer is 3", "is 3", "marker"}, /* the rule, to the letter */
        {"FINAL ANSWER:", "", "none"},
        {"17\nFINAL ANSWER: \n \n", "", "none"},
        {"FINAL ANSWER: ****", "", "none"},
        {"", "", "none"},
        {" \n\t\n\u3000\n", "", "none"},
        {"I add.\nThe sum is 17.", "The sum is 17.", "last_line"},
        {"a\n**17**\n\n", "17", "last_line"},
        {"FINAL  ANSWER: 17", "FINAL  ANSWER: 17", "last_line"},
        {"\xff\n\xfe", "\xfe", "last_line"},
    };
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* From the heap without a NUL after it, so that a sanitizer sees a byte read too far. */
        size_t n = strlen(rows[i].text);
        char *text = malloc(n ? n : 1);
        const char *source;

        assert_non_null(text);
        memcpy(text, rows[i].text, n);
        source = ipw_gaia_extract(&out, text, n);
        free(text);
        if (strcmp(source, rows[i].source) != 0 || strcmp(ipw_buf_str(&out), rows[i].answer) != 0)
            fail_msg("\"%s\": got \"%s\" from %s, expected \"%s\" from %s", rows[i].text,
                     ipw_buf_str(&out), source, rows[i].answer, rows[i].source);
    }
    ipw_buf_release(&out);
}

UNIT(gaia)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_rows), cmocka_unit_test(test_more_rows),
        cmocka_unit_test(test_routes),         cmocka_unit_test(test_punctuation),
        cmocka_unit_test(test_python_float),   cmocka_unit_test(test_locale),
        cmocka_unit_test(test_extract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
