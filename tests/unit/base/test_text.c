/* Quantities, names and UTF-8. */
#include "base/text.h"
#include "base/utf8.h"
#include "check.h"
#include "unit/unit.h"

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ns; /* -1: refused */
    } cases[] = {
        {"30s", 30000000000},
        {"500ms", 500000000},
        {"2m", 120000000000},
        {"1h", 3600000000000},
        {"1.5", 1500000000},
        {"0", 0},
        {"7us", 7000},
        {"12ns", 12},
        {"0.25s", 250000000},
        {".5s", 500000000},
        {"1e3ms", 1000000000},
        {"2499999h", 8999996400000000000},
        {"2562047h", -1},
        {"", -1},
        {"s", -1},
        {"-1s", -1},
        {"+1s", -1},
        {" 1s", -1},
        {"1 s", -1},
        {"1s ", -1},
        {"1sec", -1},
        {"1S", -1},
        {"1m30s", -1},
        {"1e300h", -1},
        {"inf", -1},
        {"nan", -1},
        {"1e999", -1},
        {"9000000001s", -1},
        {"1d", -1},
        {"0x10s", -1},
        {".", -1},
        {".s", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = -5;
        struct ipw_err err = {0};
        int rc = ipw_parse_duration_ns(&ns, cases[i].text, &err);

        if (cases[i].ns < 0) {
            if (rc == 0) fail_msg("'%s' was taken as %lld ns", cases[i].text, (long long)ns);
            assert_int_equal(rc, IPW_EINVAL);
            assert_non_null(strstr(err.text, cases[i].text));
            assert_true(ns == -5);
        } else if (rc || ns != cases[i].ns) {
            fail_msg("'%s' is %lld ns (%s)", cases[i].text, (long long)ns, err.text);
        }
    }
}

static void test_bytes(void **state)
{
    static const struct {
        const char *text;
        long long bytes;
    } cases[] = {
        {"0", 0},        {"4096", 4096},   {"64K", 65536},       {"64k", 65536},
        {"64KB", 65536}, {"64KiB", 65536}, {"2M", 2097152},      {"1G", 1073741824},
        {"1.5K", 1536},  {"10B", 10},      {"1GiB", 1073741824}, {"", -1},
        {"K", -1},       {"-1", -1},       {"1T", -1},           {"1 K", -1},
        {"1e16", -1},    {"64Kb", -1},     {"0x40", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes = 7;
        struct ipw_err err = {0};
        int rc = ipw_parse_bytes(&bytes, cases[i].text, &err);

        if (cases[i].bytes < 0) {
            if (rc != IPW_EINVAL) fail_msg("'%s' was taken as %zu", cases[i].text, bytes);
        } else if (rc || bytes != (size_t)cases[i].bytes) {
            fail_msg("'%s' is %zu (%s)", cases[i].text, bytes, err.text);
        }
    }
}

static void test_ints(void **state)
{
    static const struct {
        const char *text;
        int64_t min, max;
        int rc;
        int64_t value;
    } cases[] = {
        {"0", 0, 9, 0, 0},
        {"9", 0, 9, 0, 9},
        {"10", 0, 9, IPW_EINVAL, 0},
        {"-1", 0, 9, IPW_EINVAL, 0},
        {"-1", -1, 9, 0, -1},
        {"+5", 0, 9, 0, 5},
        {"007", 0, 9, 0, 7},
        {"", 0, 9, IPW_EINVAL, 0},
        {"5x", 0, 9, IPW_EINVAL, 0},
        {" 5", 0, 9, IPW_EINVAL, 0},
        {"5 ", 0, 9, IPW_EINVAL, 0},
        {"--5", -9, 9, IPW_EINVAL, 0},
        {"-", -9, 9, IPW_EINVAL, 0},
        {"1.0", 0, 9, IPW_EINVAL, 0},
        {"1e3", 0, 9999, IPW_EINVAL, 0},
        {"0x5", 0, 9, IPW_EINVAL, 0},
        {"9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX},
        {"-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN},
        {"9223372036854775808", INT64_MIN, INT64_MAX, IPW_EINVAL, 0},
        {"99999999999999999999999", INT64_MIN, INT64_MAX, IPW_EINVAL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t x = 0;
        struct ipw_err err = {0};
        int rc = ipw_parse_int(&x, cases[i].text, cases[i].min, cases[i].max, &err);
        if (rc != cases[i].rc || (!rc && x != cases[i].value))
            fail_msg("'%s' gave %d, %lld", cases[i].text, rc, (long long)x);
    }
}

static void a_refused_integer_is_told_its_limits(void **state)
{
    struct ipw_err err = {0};
    int64_t x;

    (void)state;
    assert_int_equal(ipw_parse_int(&x, "0", 1, 9, &err), IPW_EINVAL);
    assert_string_equal(err.text, "0 is outside 1 to 9");
    assert_int_equal(ipw_parse_int(&x, "0", 1, INT64_MAX, &err), IPW_EINVAL);
    assert_string_equal(err.text, "0 is less than 1");
}

static void test_doubles(void **state)
{
    static const struct {
        const char *text;
        int rc;
        double value;
    } cases[] = {
        {"0.7", 0, 0.7},          {"1", 0, 1},
        {"2.5e-3", 0, 0.0025},    {"-1.5", 0, -1.5},
        {".5", 0, 0.5},           {"", IPW_EINVAL, 0},
        {"-", IPW_EINVAL, 0},     {"--1", IPW_EINVAL, 0},
        {"1,5", IPW_EINVAL, 0},   {"nan", IPW_EINVAL, 0},
        {"inf", IPW_EINVAL, 0},   {"-inf", IPW_EINVAL, 0},
        {"1e999", IPW_EINVAL, 0}, {"1x", IPW_EINVAL, 0},
        {" 1", IPW_EINVAL, 0},    {"0x1p3", IPW_EINVAL, 0},
        {"-+1", IPW_EINVAL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double x = 0;
        struct ipw_err err = {0};
        int rc = ipw_parse_double(&x, cases[i].text, &err);
        if (rc != cases[i].rc || (!rc && x != cases[i].value))
            fail_msg("'%s' gave %d, %g", cases[i].text, rc, x);
    }
    double x;
    struct ipw_err err;
    assert_int_equal(ipw_parse_double(&x, "-abc", &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "'-abc'")); /* as it was typed */
}

static void test_ends(void **state)
{
    (void)state;
    assert_true(ipw_ends_with("a.lua", ".lua"));
    assert_true(ipw_ends_with(".lua", ".lua"));
    assert_true(ipw_ends_with("a", ""));
    assert_false(ipw_ends_with("lua", ".lua"));
    assert_false(ipw_ends_with("a.lua.txt", ".lua"));
}

static void test_nearest(void **state)
{
    static const char *const names[] = {"run",          "replay",    "report", "export",
                                        "temperature",  "max_turns", "doctor", "run-energy-limit",
                                        "energy-limit", NULL};
    static const char *const none[] = {NULL};
    static const struct {
        const char *typed, *meant;
    } cases[] = {
        {"rnu", "run"},
        {"reprot", "report"},
        {"Report", "report"},
        {"exprot", "export"},
        {"temp", "temperature"},
        {"temprature", "temperature"},
        {"max_turn", "max_turns"},
        {"maxturns", "max_turns"},
        {"docter", "doctor"},
        {"run", "run"},
        {"query-energy-limit", "energy-limit"},
        {"xyzzy", NULL},
        {"", NULL},
        {"q", NULL},
        {"completely_else", NULL},
    };
    char longest[200];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = ipw_nearest(cases[i].typed, names);
        if (!found != !cases[i].meant || (found && strcmp(found, cases[i].meant) != 0))
            fail_msg("'%s' is nearest to '%s'", cases[i].typed, found ? found : "nothing");
    }
    assert_null(ipw_nearest("run", none));
    memset(longest, 'r', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(ipw_nearest(longest, names));
    assert_ptr_equal(ipw_nearest("rnu", names), names[0]); /* the caller's own pointer */
}

static void test_slug(void **state)
{
    static const struct {
        const char *text, *slug;
    } cases[] = {
        {"gpt-4o", "gpt_4o"},
        {"Qwen/Qwen3-8B", "Qwen_Qwen3_8B"},
        {"llama3.2:1b", "llama3_2_1b"},
        {"", "model"},
        {"---", "model"},
        {"-a-", "a"},
        {"a--b", "a__b"},
        {"../../etc", "etc"},
        {"caf\xC3\xA9", "caf\xC3\xA9"},
        {"a b\n", "a_b"},
        {"demo", "demo"},
        {"_x_", "x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(100);
        ipw_buf_adds(&out, "runs/_"); /* what stands before it is not stripped */
        ipw_slug(&out, cases[i].text);
        assert_string_equal(out.data + 6, cases[i].slug);
        assert_memory_equal(out.data, "runs/_", 6);
        ipw_buf_release(&out);
    }
}

#define BYTES(literal) literal, sizeof(literal) - 1
#define R              "\xEF\xBF\xBD"

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        const char *clean;
        size_t replaced;
    } cases[] = {
        {BYTES(""), "", 0},
        {BYTES("abc"), "abc", 0},
        {BYTES("\xC3\xA9"), "\xC3\xA9", 0},
        {BYTES("\xE0\xA0\x80"), "\xE0\xA0\x80", 0},
        {BYTES("\xED\x9F\xBF"), "\xED\x9F\xBF", 0},
        {BYTES("\xEE\x80\x80"), "\xEE\x80\x80", 0},
        {BYTES("\xF0\x90\x80\x80"), "\xF0\x90\x80\x80", 0},
        {BYTES("\xF4\x8F\xBF\xBF"), "\xF4\x8F\xBF\xBF", 0},
        {BYTES("\x80"), R, 1},
        {BYTES("a\x80z"), "a" R "z", 1},
        {BYTES("\xC0\x80"), R R, 2},
        {BYTES("\xC1\xBF"), R R, 2},
        {BYTES("\xE0\x9F\xBF"), R R R, 3},
        {BYTES("\xED\xA0\x80"), R R R, 3},
        {BYTES("\xF0\x8F\xBF\xBF"), R R R R, 4},
        {BYTES("\xF4\x90\x80\x80"), R R R R, 4},
        {BYTES("\xF5\x80\x80\x80"), R R R R, 4},
        {BYTES("\xFF"), R, 1},
        {BYTES("\xC3"), R, 1},
        {BYTES("\xE2\x82"), R R, 2},
        {BYTES("\xF0\x9F\x98"), R R R, 3},
        {BYTES("\xC3(\xC3\xA9"), R "(\xC3\xA9", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(100);
        char *exact = malloc(cases[i].n + 1);

        exact = realloc(exact, cases[i].n + !cases[i].n);
        memcpy(exact, cases[i].text, cases[i].n);
        assert_int_equal(ipw_utf8_clean(&out, exact, cases[i].n), cases[i].replaced);
        assert_string_equal(ipw_buf_str(&out), cases[i].clean);
        assert_int_equal(ipw_utf8_valid(exact, cases[i].n), cases[i].replaced == 0);
        assert_true(ipw_utf8_valid(ipw_buf_str(&out), out.len));
        free(exact);
        ipw_buf_release(&out);
    }
    /* every code point: exactly the scalar values are valid */
    for (unsigned cp = 0x80; cp < 0x120000; cp++) {
        char s[4];
        size_t k = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        bool scalar = !(cp >= 0xD800 && cp < 0xE000) && cp < 0x110000;

        for (size_t i = k - 1; i > 0; i--) s[i] = (char)(0x80 | ((cp >> (6 * (k - 1 - i))) & 0x3F));
        s[0] = (char)((k == 2 ? 0xC0 : k == 3 ? 0xE0 : 0xF0) | cp >> (6 * (k - 1)));
        if (ipw_utf8_len(s, k) != (scalar ? k : 0)) fail_msg("U+%X", cp);
        if (ipw_utf8_len(s, k - 1) != 0) fail_msg("U+%X cut", cp);
    }
}

/* What commands print: lines, tabs and our own colours stay, nothing else that a terminal obeys. */
static void test_shown(void **state)
{
    static const struct {
        const char *text, *terminal, *data; /* data NULL: as on a terminal */
    } cases[] = {
        {"a\n\tb\r\nc", "a\n\tb\r\nc", NULL},
        {"\x1B[1mbold\x1B[0m \x1B[33mx", "\x1B[1mbold\x1B[0m \x1B[33mx", NULL},
        {"a\x1B[2Jb", "a\\u{1b}[2Jb", NULL},
        {"\x1B]0;title\x07", "\\u{1b}]0;title\\u{7}", "\\u{1b}]0;title\x07"},
        {"\x1B[8mhidden", "\\u{1b}[8mhidden", NULL},
        {"\x1B[m \x1B[123m \x1B[3", "\\u{1b}[m \\u{1b}[123m \\u{1b}[3", NULL},
        {"over\rwritten\x08", "over\\u{d}written\\u{8}", "over\rwritten\x08"},
        {"\xC2\x9B"
         "2J\xE2\x80\xAE",
         "\\u{9b}2J\\u{202e}",
         "\xC2\x9B"
         "2J\xE2\x80\xAE"},
        {"\xFF\xE4\xB8\xAD", R "\xE4\xB8\xAD", "\xFF\xE4\xB8\xAD"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *data = cases[i].data ? cases[i].data : cases[i].terminal;
        struct ipw_buf out = IPW_BUF(200);

        ipw_text_shown(&out, cases[i].text, strlen(cases[i].text), true);
        assert_string_equal(ipw_buf_str(&out), cases[i].terminal);
        ipw_buf_clear(&out);
        ipw_text_shown(&out, cases[i].text, strlen(cases[i].text), false);
        assert_string_equal(ipw_buf_str(&out), data);
        ipw_buf_release(&out);
    }
}

static void test_printable(void **state)
{
    static const struct {
        const char *text;
        size_t n, columns;
        const char *shown;
    } cases[] = {
        {BYTES("plain"), 0, "plain"},
        {BYTES("a\nb\tc\rd"), 0, "a b c d"},
        {BYTES("\x1B[31mred"), 0, "\\u{1b}[31mred"},
        {BYTES("\0"), 0, "\\u{0}"},
        {BYTES("\x7F"), 0, "\\u{7f}"},
        {BYTES("\xC2\x9B"), 0, "\\u{9b}"},
        {BYTES("\xE2\x80\xAE"
               "x"),
         0, "\\u{202e}x"},
        {BYTES("\xE2\x81\xA6"), 0, "\\u{2066}"},
        {BYTES("\xFF"), 0, R},
        {BYTES("\xE4\xB8\xAD\xE6\x96\x87"), 0, "\xE4\xB8\xAD\xE6\x96\x87"},
        {BYTES("abcdef"), 4, "abc\xE2\x80\xA6"},
        {BYTES("abcd"), 4, "abcd"},
        {BYTES("abcde"), 4, "abc\xE2\x80\xA6"},
        {BYTES("abc"), 1, "\xE2\x80\xA6"},
        {BYTES("a"), 1, "a"},
        {BYTES(""), 3, ""},
        {BYTES("\xE4\xB8\xAD\xE6\x96\x87"), 2, "\xE4\xB8\xAD\xE6\x96\x87"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(100);
        ipw_text_printable(&out, cases[i].text, cases[i].n, cases[i].columns);
        assert_string_equal(ipw_buf_str(&out), cases[i].shown);
        ipw_buf_release(&out);
    }
}

static void test_joules(void **state)
{
    static const struct {
        const char *text;
        double j; /* 0: refused */
    } cases[] = {
        {"500", 500},      {"500J", 500},   {"2kJ", 2000}, {"1.5 MJ", 1.5e6}, {"3Wh", 10800},
        {"0.2kWh", 7.2e5}, {"250mJ", 0.25}, {".5J", 0.5},  {"0", 0},          {"0J", 0},
        {"-1J", 0},        {"", 0},         {"J", 0},      {"2 k J", 0},      {"2kj", 0},
        {"inf", 0},        {"0x10", 0},     {"5W", 0},     {"1e300kWh", 0},   {"2kJ ", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_err err = {0};
        double j = -1;
        int rc = ipw_parse_joules(&j, cases[i].text, &err);

        if (cases[i].j > 0) {
            assert_int_equal(rc, 0);
            assert_true(j > cases[i].j * (1 - 1e-12) && j < cases[i].j * (1 + 1e-12));
        } else {
            assert_int_equal(rc, IPW_EINVAL);
            assert_non_null(strstr(err.text, cases[i].text));
        }
    }
}

static void test_shell_word(void **state)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"runs/react_m_gaia_2026", "runs/react_m_gaia_2026"},
        {"my work/a", "'my work/a'"},
        {"it's", "'it'\\''s'"},
        {"", "''"},
        {"$HOME", "'$HOME'"},
        {"~x", "'~x'"},
        {"\xc3\xa9t\xc3\xa9", "'\xc3\xa9t\xc3\xa9'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(256);

        ipw_text_shell_word(&out, cases[i].text);
        assert_string_equal(ipw_buf_str(&out), cases[i].word);
        ipw_buf_release(&out);
    }
}

static void test_wrapped(void **state)
{
    static const struct {
        const char *text, *want;
        size_t columns;
    } cases[] = {
        {"", "", 20},
        {"one line\n", "one line\n", 20},
        {"warning: the machine is busy", "warning: the machine\n    is busy", 20},
        {"a  bc", "a\n    bc", 4},
        /* As long as the line, and one more. */
        {"aaaa bbbb", "aaaa bbbb", 9},
        {"aaaa bbbbb", "aaaa\n    bbbbb", 9},
        /* Characters are counted, not bytes. */
        {"\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9", "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9",
         6},
        {"see http://127.0.0.1:1234/v1/models now",
         "see\n    http://127.0.0.1:1234/v1/models\n    now", 12},
        /* A command is copied in one piece. */
        {"run `apt install x y z` now", "run\n    `apt install x y z`\n    now", 12},
        {"a `lone backquote", "a `lone\n    backquote", 8},
        {"first line\n    its own break stays as it is\n",
         "first\n    line\n    its own break stays as it is\n", 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(1000);

        ipw_text_wrapped(&out, cases[i].text, 0, 4, cases[i].columns);
        assert_string_equal(ipw_buf_str(&out), cases[i].want);
        ipw_buf_release(&out);
    }
}

static void test_columns(void **state)
{
    static const struct {
        const char *text;
        size_t columns;
    } cases[] = {{"", 0},
                 {"abc", 3},
                 {"\xC3\xA9t\xC3\xA9", 3},
                 {"e\xCC\x81", 1},                /* a combining mark */
                 {"\xE6\x9D\xB1\xE4\xBA\xAC", 4}, /* wide */
                 {"\xF0\x9F\x98\x80", 2},         /* a pictograph */
                 {"\033[1mab\033[0m", 2},         /* our own colours */
                 {"\xFF!", 2}};                   /* no UTF-8 */

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ipw_text_columns(cases[i].text, strlen(cases[i].text)), cases[i].columns);
}

static void test_wrapped_beside_a_column(void **state)
{
    struct ipw_buf out = IPW_BUF(1000);

    (void)state;
    ipw_text_wrapped(&out, "one two three four5678901234 six", 3, 2, 12);
    assert_string_equal(ipw_buf_str(&out), "one two\n  three\n  four5678901234\n  six");
    ipw_buf_release(&out);
}

UNIT(text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joules),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_wrapped_beside_a_column),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_ints),
        cmocka_unit_test(a_refused_integer_is_told_its_limits),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_slug),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_printable),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_shell_word),
        cmocka_unit_test(test_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
