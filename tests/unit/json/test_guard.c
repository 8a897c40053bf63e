/* The guard, seen through ipw_json_parse and ipw_json_valid: what is accepted, what is refused and
 * where, what is repaired.  Names follow the public suites: y_ must be accepted, n_ must be
 * refused, i_ is ours to decide. */
#include "check.h"
#include "json/guard.h"
#include "unit/unit.h"

#define BYTES(literal) literal, sizeof(literal) - 1

struct accept {
    const char *name, *text;
    size_t n;
    const char *printed;
    size_t repairs;
};

static const struct accept accepted[] = {
    {"y_array_empty", BYTES("[]"), "[]", 0},
    {"y_array_of_all", BYTES("[null,true,false,1,\"x\",{},[]]"), "[null,true,false,1,\"x\",{},[]]",
     0},
    {"y_array_spaces", BYTES(" [ 1 ,\t2 ,\r\n3 ] \n"), "[1,2,3]", 0},
    {"y_object_empty", BYTES("{}"), "{}", 0},
    {"y_object_spaces", BYTES("{ \"b\" : 1 ,\n\"a\" : 2 }"), "{\"a\":2,\"b\":1}", 0},
    {"y_object_empty_key", BYTES("{\"\":0}"), "{\"\":0}", 0},
    {"y_object_duplicate", BYTES("{\"a\":1,\"a\":2}"), "{\"a\":2}", 0},
    {"y_object_case", BYTES("{\"a\":1,\"A\":2}"), "{\"A\":2,\"a\":1}", 0},
    {"y_scalar_string", BYTES("\"\""), "\"\"", 0},
    {"y_scalar_null", BYTES("null"), "null", 0},
    {"y_scalar_number", BYTES("-1"), "-1", 0},
    {"y_number_zero", BYTES("0"), "0", 0},
    {"y_number_minus_zero", BYTES("-0"), "-0", 0},
    {"y_number_minus_zero_point", BYTES("-0.0"), "-0.0", 0},
    {"y_number_one_point_zero", BYTES("1.0"), "1.0", 0},
    {"y_number_exponents", BYTES("[1e1,1E1,1e+1,1e-1,0e0,1.5E3]"), "[1e1,1E1,1e+1,1e-1,0e0,1.5E3]",
     0},
    {"y_number_2_53_1", BYTES("9007199254740993"), "9007199254740993", 0},
    {"y_number_int64", BYTES("[9223372036854775807,-9223372036854775808]"),
     "[9223372036854775807,-9223372036854775808]", 0},
    {"y_number_beyond_int64", BYTES("[9223372036854775808,-9223372036854775809]"),
     "[9223372036854775808,-9223372036854775809]", 0},
    {"y_number_exact_decimal", BYTES("0.30000000000000004"), "0.30000000000000004", 0},
    {"i_number_overflow", BYTES("[1e999,-1e999]"), "[1e999,-1e999]", 0},
    {"i_number_underflow", BYTES("1e-999"), "1e-999", 0},
    {"y_string_escapes", BYTES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "\"\\\"\\\\/\\b\\f\\n\\r\\t\"",
     0},
    {"y_string_u", BYTES("\"\\u0041\\u00e9\\u20AC\\u001f\""), "\"A\xC3\xA9\xE2\x82\xAC\\u001f\"",
     0},
    {"y_string_pair", BYTES("\"\\uD83D\\ude00\""), "\"\xF0\x9F\x98\x80\"", 0},
    {"y_string_utf8", BYTES("\"\xC2\x80\xE2\x82\xAC\xF4\x8F\xBF\xBF\""),
     "\"\xC2\x80\xE2\x82\xAC\xF4\x8F\xBF\xBF\"", 0},
    {"y_string_del", BYTES("\"\x7F\""), "\"\x7F\"", 0},
    {"y_string_noncharacter", BYTES("\"\\uFFFF\""), "\"\xEF\xBF\xBF\"", 0},
    {"y_string_line_separators", BYTES("\"\xE2\x80\xA8\xE2\x80\xA9\""),
     "\"\xE2\x80\xA8\xE2\x80\xA9\"", 0},
    {"i_bom", BYTES("\xEF\xBB\xBF{}"), "{}", 0},
    {"i_string_nul", BYTES("\"a\\u0000b\""),
     "\"a\xEF\xBF\xBD"
     "b\"",
     1},
    {"i_string_nul_in_key", BYTES("{\"a\\u0000\":1}"), "{\"a\xEF\xBF\xBD\":1}", 1},
    {"i_string_lone_high", BYTES("\"\\uD800\""), "\"\xEF\xBF\xBD\"", 1},
    {"i_string_lone_high_text", BYTES("\"\\uD800abcdef\""),
     "\"\xEF\xBF\xBD"
     "abcdef\"",
     1},
    {"i_string_lone_low", BYTES("\"\\uDC00x\""), "\"\xEF\xBF\xBDx\"", 1},
    {"i_string_two_high", BYTES("\"\\uD800\\uD83D\\uDE00\""), "\"\xEF\xBF\xBD\xF0\x9F\x98\x80\"",
     1},
    {"i_string_pair_swapped", BYTES("\"\\uDE00\\uD83D\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"", 2},
    {"i_string_high_then_nul", BYTES("\"\\uD83D\\u0000\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"", 2},
    {"i_utf8_ff", BYTES("[\"\xFF\"]"), "[\"\xEF\xBF\xBD\"]", 1},
    {"i_utf8_lone_continuation", BYTES("\"\x80\""), "\"\xEF\xBF\xBD\"", 1},
    {"i_utf8_overlong", BYTES("\"\xC0\xAF\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"", 2},
    {"i_utf8_surrogate", BYTES("\"\xED\xA0\x80\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", 3},
    {"i_utf8_cut", BYTES("\"\xE2\x82\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"", 2},
    {"i_utf8_above_10ffff", BYTES("\"\xF4\x90\x80\x80\""),
     "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"", 4},
    {"i_utf8_latin1", BYTES("\"caf\xE9\""), "\"caf\xEF\xBF\xBD\"", 1},
    {"i_two_places", BYTES("{\"a\xFF\":\"\\udfff\",\"b\":[\"\\u0000\"]}"),
     "{\"a\xEF\xBF\xBD\":\"\xEF\xBF\xBD\",\"b\":[\"\xEF\xBF\xBD\"]}", 3},
};

struct refusal {
    const char *name, *text;
    size_t n;
    const char *message;
};

static const struct refusal refused[] = {
    {"n_empty", BYTES(""), "at byte 0: expected a value, found the end of the text"},
    {"n_space_only", BYTES(" \n"), "at byte 2: expected a value, found the end of the text"},
    {"n_bom_only", BYTES("\xEF\xBB\xBF"), "at byte 3: expected a value, found the end of the text"},
    {"n_bom_half", BYTES("\xEF\xBB{}"), "at byte 0: expected a value, found byte 0xEF"},
    {"n_bom_twice", BYTES("\xEF\xBB\xBF\xEF\xBB\xBF{}"),
     "at byte 3: expected a value, found byte 0xEF"},
    {"n_trailing_text", BYTES("{} x"), "at byte 3: expected nothing after the value, found 'x'"},
    {"n_trailing_nul", BYTES("{}\0"),
     "at byte 2: expected nothing after the value, found byte 0x00"},
    {"n_trailing_comma_top", BYTES("1,"), "at byte 1: expected nothing after the value, found ','"},
    {"n_two_values", BYTES("[][]"), "at byte 2: expected nothing after the value, found '['"},
    {"n_utf16", BYTES("\xFF\xFE{\0}\0"), "at byte 0: expected a value, found byte 0xFF"},
    {"n_form_feed", BYTES("[\f]"), "at byte 1: expected a value, found byte 0x0C"},
    {"n_no_break_space", BYTES("\xC2\xA0{}"), "at byte 0: expected a value, found byte 0xC2"},
    {"n_comment", BYTES("[1/**/]"), "at byte 2: expected ',' or ']', found '/'"},
    {"n_array_open", BYTES("["), "at byte 1: expected a value, found the end of the text"},
    {"n_array_open_after", BYTES("[1"),
     "at byte 2: expected ',' or ']', found the end of the text"},
    {"n_array_comma", BYTES("[1,]"), "at byte 3: expected a value, found ']'"},
    {"n_array_commas", BYTES("[1,,2]"), "at byte 3: expected a value, found ','"},
    {"n_array_leading_comma", BYTES("[,1]"), "at byte 1: expected a value, found ','"},
    {"n_array_colon", BYTES("[1:2]"), "at byte 2: expected ',' or ']', found ':'"},
    {"n_array_no_comma", BYTES("[1 2]"), "at byte 3: expected ',' or ']', found '2'"},
    {"n_array_wrong_bracket", BYTES("[1}"), "at byte 2: expected ',' or ']', found '}'"},
    {"n_close_only", BYTES("]"), "at byte 0: expected a value, found ']'"},
    {"n_object_open", BYTES("{"),
     "at byte 1: expected '\"' before a key, found the end of the text"},
    {"n_object_key_only", BYTES("{\"a\"}"), "at byte 4: expected ':', found '}'"},
    {"n_object_no_colon", BYTES("{\"a\" 1}"), "at byte 5: expected ':', found '1'"},
    {"n_object_no_value", BYTES("{\"a\":}"), "at byte 5: expected a value, found '}'"},
    {"n_object_comma", BYTES("{\"a\":1,}"), "at byte 7: expected '\"' before a key, found '}'"},
    {"n_object_bare_key", BYTES("{a:1}"), "at byte 1: expected '\"' before a key, found 'a'"},
    {"n_object_number_key", BYTES("{1:1}"), "at byte 1: expected '\"' before a key, found '1'"},
    {"n_object_single_quotes", BYTES("{'a':1}"),
     "at byte 1: expected '\"' before a key, found '''"},
    {"n_object_wrong_bracket", BYTES("{\"a\":1]"), "at byte 6: expected ',' or '}', found ']'"},
    {"n_object_cut", BYTES("{\"a\":\"b"),
     "at byte 7: expected '\"' at the end of a string, found the end of the text"},
    {"n_word_cut", BYTES("tru"), "at byte 0: expected a value, found 't'"},
    {"n_word_case", BYTES("True"), "at byte 0: expected a value, found 'T'"},
    {"n_word_long", BYTES("nullx"), "at byte 4: expected nothing after the value, found 'x'"},
    {"n_word_nan", BYTES("NaN"), "at byte 0: expected a value, found 'N'"},
    {"n_word_infinity", BYTES("[-Infinity]"), "at byte 2: expected a digit, found 'I'"},
    {"n_number_plus", BYTES("+1"), "at byte 0: expected a value, found '+'"},
    {"n_number_minus", BYTES("-"), "at byte 1: expected a digit, found the end of the text"},
    {"n_number_minus_minus", BYTES("--1"), "at byte 1: expected a digit, found '-'"},
    {"n_number_leading_zero", BYTES("01"),
     "at byte 1: expected nothing after the value, found '1'"},
    {"n_number_minus_leading_zero", BYTES("[-01]"), "at byte 3: expected ',' or ']', found '1'"},
    {"n_number_point_first", BYTES(".5"), "at byte 0: expected a value, found '.'"},
    {"n_number_point_last", BYTES("[1.]"),
     "at byte 3: expected a digit after the point, found ']'"},
    {"n_number_point_exponent", BYTES("1.e1"),
     "at byte 2: expected a digit after the point, found 'e'"},
    {"n_number_exponent_open", BYTES("1e"),
     "at byte 2: expected a digit in the exponent, found the end of the text"},
    {"n_number_exponent_sign", BYTES("[1e+]"),
     "at byte 4: expected a digit in the exponent, found ']'"},
    {"n_number_hex", BYTES("0x1F"), "at byte 1: expected nothing after the value, found 'x'"},
    {"n_number_space", BYTES("[1 000]"), "at byte 3: expected ',' or ']', found '0'"},
    {"n_number_wide_digit", BYTES("\xEF\xBC\x91"), "at byte 0: expected a value, found byte 0xEF"},
    {"n_string_open", BYTES("\""),
     "at byte 1: expected '\"' at the end of a string, found the end of the text"},
    {"n_string_escaped_end", BYTES("\"\\\""),
     "at byte 3: expected '\"' at the end of a string, found the end of the text"},
    {"n_string_backslash_end", BYTES("\"\\"),
     "at byte 2: expected the rest of an escape, found the end of the text"},
    {"n_string_bad_escape", BYTES("\"\\x41\""),
     "at byte 2: expected one of \"\\/bfnrtu after a backslash, found 'x'"},
    {"n_string_u_short", BYTES("\"\\u00\""),
     "at byte 3: expected four hexadecimal digits after \\u, found '0'"},
    {"n_string_u_cut", BYTES("\"\\u00"),
     "at byte 3: expected four hexadecimal digits after \\u, found '0'"},
    {"n_string_u_letter", BYTES("\"\\u00g0\""),
     "at byte 3: expected four hexadecimal digits after \\u, found '0'"},
    {"n_string_pair_broken", BYTES("\"\\uD800\\u12\""),
     "at byte 9: expected four hexadecimal digits after \\u, found '1'"},
    {"n_string_newline", BYTES("\"a\nb\""),
     "at byte 2: expected an escape for a control character, found byte 0x0A"},
    {"n_string_tab", BYTES("\"\t\""),
     "at byte 1: expected an escape for a control character, found byte 0x09"},
    {"n_string_nul", BYTES("\"a\0b\""),
     "at byte 2: expected an escape for a control character, found byte 0x00"},
    {"n_string_cut_utf8", BYTES("\"\xE2\x82"),
     "at byte 3: expected '\"' at the end of a string, found the end of the text"},
};

static void j2_accepted_or_repaired(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        const struct accept *c = &accepted[i];
        struct ipw_buf out = IPW_BUF(IPW_KIB);
        struct ipw_json *doc;
        struct ipw_err err = {0};
        size_t repairs = 99;
        bool bom = c->n >= 3 && memcmp(c->text, "\xEF\xBB\xBF", 3) == 0;
        /* exact allocation: reading past the end is a report under ASan */
        char *text = malloc(c->n);

        memcpy(text, c->text, c->n);
        if (ipw_json_parse(&doc, text, c->n, &repairs, &err)) fail_msg("%s: %s", c->name, err.text);
        assert_int_equal(ipw_json_valid(text, c->n), c->repairs == 0 && !bom);
        memset(text, 'x', c->n); /* the document keeps nothing of the text */
        free(text);
        ipw_json_print(&out, doc);
        if (strcmp(ipw_buf_str(&out), c->printed) != 0 || repairs != c->repairs)
            fail_msg("%s: %s with %zu repairs", c->name, ipw_buf_str(&out), repairs);
        assert_true(ipw_json_valid(out.data, out.len));
        ipw_json_free(doc);
        ipw_buf_release(&out);
    }
}

static void j2_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct refusal *c = &refused[i];
        struct ipw_json *doc = (struct ipw_json *)&doc;
        struct ipw_err err = {0};
        char *text = malloc(c->n + !c->n);
        int rc;

        memcpy(text, c->text, c->n);
        rc = ipw_json_parse(&doc, text, c->n, NULL, &err);
        if (rc == 0) fail_msg("%s was accepted", c->name);
        assert_int_equal(rc, IPW_EPARSE);
        assert_null(doc);
        if (strcmp(err.text, c->message) != 0) fail_msg("%s: %s", c->name, err.text);
        assert_false(ipw_json_valid(text, c->n));
        free(text);
    }
}

/* Every text cut at every byte: refused, or (a number, a value and space) still whole. */
static void test_every_cut(void **state)
{
    static const char text[] =
        "{\"k\":[-12.5e+3,\"\\uD83D\\uDE00\xE2\x82\xAC\",true,null,{\"\":[]}],"
        "\"z\":123456789012345678901234567890}";
    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *cut = malloc(n + !n);
        struct ipw_json *doc;
        memcpy(cut, text, n);
        assert_int_equal(ipw_json_parse(&doc, cut, n, NULL, NULL), IPW_EPARSE);
        free(cut);
    }
    assert_true(ipw_json_valid(text, sizeof text - 1));
}

static char *nested(size_t depth, char open, char close)
{
    char *text = malloc(2 * depth + 1);

    memset(text, open, depth);
    memset(text + depth, close, depth);
    text[2 * depth] = '\0';
    return text;
}

static void j1_depth(void **state)
{
    struct ipw_json *doc;
    struct ipw_err err;
    char *text = nested(IPW_JSON_MAX_DEPTH, '[', ']');

    (void)state;
    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, &err), 0);
    ipw_json_free(doc);
    assert_false(ipw_json_valid(text, strlen(text))); /* no room for a line around it */
    assert_true(ipw_json_valid(text + 16, strlen(text) - 32));
    assert_false(ipw_json_valid(text + 15, strlen(text) - 30));
    free(text);

    text = nested(IPW_JSON_MAX_DEPTH + 1, '[', ']');
    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, &err), IPW_ELIMIT);
    assert_string_equal(err.text, "at byte 128: nested deeper than 128 levels");
    free(text);

    text = nested(100000, '[', ']');
    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, &err), IPW_ELIMIT);
    free(text);
    text = nested(100000, '{', '}');
    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, &err), IPW_EPARSE);
    free(text);
}

static void j1_value_ceiling(void **state)
{
    size_t values = (size_t)IPW_JSON_MAX_VALUES, n = 2 * values + 1;
    char *text = malloc(n);
    struct ipw_json *doc;
    struct ipw_err err;

    (void)state;
    /* [0,0,...,0]: the array is a value too */
    for (size_t i = 0; i < n; i++) text[i] = i % 2 ? '0' : ',';
    text[0] = '[';
    text[n - 1] = ']';
    assert_int_equal(ipw_json_parse(&doc, text, n, NULL, &err), IPW_ELIMIT);
    assert_non_null(strstr(err.text, "more than 4194304 values"));
    text[n - 3] = ']';
    text[n - 2] = ' ', text[n - 1] = ' ';
    assert_true(ipw_json_valid(text, n));
    free(text);
}

static void j1_a_string_of_64_mib(void **state)
{
    size_t n = 64 * IPW_MIB;
    char *text = malloc(n);
    struct ipw_json *doc;

    (void)state;
    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    assert_int_equal(ipw_json_parse(&doc, text, n, NULL, NULL), 0);
    assert_int_equal(ipw_json_str_len(doc), n - 2);
    ipw_json_free(doc);
    free(text);
}

/* Odd bytes at every distance from the 16-byte blocks of the scanner. */
static void test_alignment(void **state)
{
    static const char *const odd[] = {"\\n", "\\u0000", "\xFF", "\xE2\x82\xAC", "\\\"", "\x01"};

    (void)state;
    for (size_t before = 0; before < 40; before++) {
        for (size_t after = 0; after < 40; after++) {
            for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
                char text[128];
                size_t n = 0, repairs, odd_n = strlen(odd[k]);
                struct ipw_json *doc;
                int rc;

                text[n++] = '"';
                memset(text + n, 'a', before);
                memcpy(text + n + before, odd[k], odd_n);
                memset(text + n + before + odd_n, 'b', after);
                n += before + odd_n + after;
                text[n++] = '"';
                rc = ipw_json_parse(&doc, text, n, &repairs, NULL);
                assert_int_equal(rc, k == 5 ? IPW_EPARSE : 0);
                if (rc) continue;
                assert_int_equal(repairs, k == 1 || k == 2);
                assert_int_equal(ipw_json_str_len(doc),
                                 before + after + (k == 0 || k == 4 ? 1 : 3));
                ipw_json_free(doc);
            }
        }
    }
}

UNIT(guard)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(j2_accepted_or_repaired), cmocka_unit_test(j2_refused_by_name),
        cmocka_unit_test(test_every_cut),          cmocka_unit_test(j1_depth),
        cmocka_unit_test(j1_value_ceiling),        cmocka_unit_test(j1_a_string_of_64_mib),
        cmocka_unit_test(test_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
