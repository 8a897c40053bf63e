/* Documents: kinds, exact integers, look-ups, strict getters, and that nothing stays behind. */
#include <malloc.h>
#include <math.h>

#include "check.h"
#include "unit/unit.h"

static void test_kinds(void **state)
{
    static const struct {
        const char *text;
        enum ipw_json_kind kind;
        int64_t as_int; /* with fallback -7 */
        double as_num;  /* with fallback -7 */
    } cases[] = {
        {"null", IPW_JSON_NULL, -7, -7},
        {"true", IPW_JSON_BOOL, -7, -7},
        {"false", IPW_JSON_BOOL, -7, -7},
        {"\"1\"", IPW_JSON_STR, -7, -7},
        {"[]", IPW_JSON_ARR, -7, -7},
        {"{}", IPW_JSON_OBJ, -7, -7},
        {"0", IPW_JSON_INT, 0, 0},
        {"42", IPW_JSON_INT, 42, 42},
        {"-42", IPW_JSON_INT, -42, -42},
        {"999999999999999", IPW_JSON_INT, 999999999999999, 999999999999999.0},
        {"1000000000000001", IPW_JSON_INT, 1000000000000001, 1000000000000001.0},
        {"9007199254740993", IPW_JSON_INT, 9007199254740993, 9007199254740992.0},
        {"9223372036854775807", IPW_JSON_INT, INT64_MAX, 0x1p63},
        {"-9223372036854775808", IPW_JSON_INT, INT64_MIN, -0x1p63},
        {"9223372036854775808", IPW_JSON_NUM, -7, 0x1p63},
        {"-9223372036854775809", IPW_JSON_NUM, INT64_MIN, -0x1p63}, /* as the double it is */
        {"1.0", IPW_JSON_NUM, 1, 1},
        {"3.0e0", IPW_JSON_NUM, 3, 3},
        {"1e3", IPW_JSON_NUM, 1000, 1000},
        {"1.5", IPW_JSON_NUM, -7, 1.5},
        {"-0", IPW_JSON_NUM, 0, 0},
        {"1e19", IPW_JSON_NUM, -7, 1e19},
        {"1e999", IPW_JSON_NUM, -7, HUGE_VAL},
        {"-1e999", IPW_JSON_NUM, -7, -HUGE_VAL},
        {"1e-999", IPW_JSON_NUM, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_json *doc = parse_text(cases[i].text);
        assert_int_equal(ipw_json_kind(doc), cases[i].kind);
        assert_true(ipw_json_int(doc, -7) == cases[i].as_int);
        assert_true(ipw_json_num(doc, -7) == cases[i].as_num);
        assert_string_equal(printed(cases[i].text), cases[i].text);
        ipw_json_free(doc);
    }
    struct ipw_json *zero = parse_text("-0");
    assert_true(signbit(ipw_json_num(zero, 1)));
    ipw_json_free(zero);
}

/* Numbers longer than cJSON can read, among numbers that are listed and numbers that are not. */
static void j3_long_numbers(void **state)
{
    struct ipw_buf text = IPW_BUF(4 * IPW_MIB);
    struct ipw_json *doc;

    (void)state;
    ipw_buf_adds(&text, "{\"a\":[1,2.50,");
    for (int i = 0; i < 400; i++) ipw_buf_addc(&text, '9');
    ipw_buf_adds(&text, ",3,0.");
    for (int i = 0; i < 400; i++) ipw_buf_addc(&text, '3');
    ipw_buf_adds(&text, ",9223372036854775807],\"b\":7,\"c\":");
    for (int i = 0; i < 1000000; i++) ipw_buf_addc(&text, '1');
    ipw_buf_adds(&text, "}");
    doc = parse_text(text.data);
    const struct ipw_json *a = ipw_json_get(doc, "a");
    assert_int_equal(ipw_json_count(a), 6);
    assert_int_equal(ipw_json_int(ipw_json_at(a, 0), 0), 1);
    assert_true(ipw_json_num(ipw_json_at(a, 1), 0) == 2.5);
    assert_true(isinf(ipw_json_num(ipw_json_at(a, 2), 0))); /* 1e400 is beyond a double */
    assert_int_equal(ipw_json_int(ipw_json_at(a, 3), 0), 3);
    assert_true(ipw_json_num(ipw_json_at(a, 4), 0) == 1.0 / 3);
    assert_true(ipw_json_int(ipw_json_at(a, 5), 0) == INT64_MAX);
    assert_int_equal(ipw_json_int(ipw_json_get(doc, "b"), 0), 7);
    assert_string_equal(printed(text.data), text.data);
    ipw_json_free(doc);
    ipw_buf_release(&text);
}

/* Many listed numbers: the guard's list moves to the heap and stays in step with the nodes. */
static void test_many_numbers(void **state)
{
    struct ipw_buf text = IPW_BUF(4 * IPW_MIB);
    struct ipw_json *doc;
    int64_t i = 0;

    (void)state;
    ipw_buf_addc(&text, '[');
    for (int k = 0; k < 5000; k++)
        ipw_buf_addf(&text, "%s%d,%d.5,{\"x\":\"1.5\",\"y\":[9007199254740%03d]}", k ? "," : "", k,
                     k, k % 1000);
    ipw_buf_addc(&text, ']');
    doc = parse_text(text.data);
    for (const struct ipw_json *x = ipw_json_first(doc); x; i++) {
        assert_int_equal(ipw_json_int(x, -1), i);
        x = ipw_json_next(x);
        assert_true(ipw_json_num(x, -1) == (double)i + 0.5);
        x = ipw_json_next(x);
        assert_int_equal(ipw_json_int(ipw_json_at(ipw_json_get(x, "y"), 0), -1),
                         INT64_C(9007199254740000) + i % 1000);
        x = ipw_json_next(x);
    }
    assert_int_equal(i, 5000);
    assert_string_equal(printed(text.data), text.data);
    ipw_json_free(doc);
    ipw_buf_release(&text);
}

static void j4_duplicate_and_similar_keys(void **state)
{
    struct ipw_json *doc =
        parse_text("{\"b\":1,\"a\":{\"x\":null},\"b\":\"two\",\"B\":true,\"\":[5,6,7]}");
    static const char *const keys[] = {"b", "a", "b", "B", ""};
    size_t i = 0;

    (void)state;
    assert_string_equal(ipw_json_str(ipw_json_get(doc, "b"), ""), "two"); /* the last wins */
    assert_true(ipw_json_bool(ipw_json_get(doc, "B"), false));            /* exact case */
    assert_null(ipw_json_get(doc, "c"));
    assert_null(ipw_json_get(doc, "bb"));
    assert_int_equal(ipw_json_int(ipw_json_at(ipw_json_get(doc, ""), 2), 0), 7);
    assert_null(ipw_json_at(ipw_json_get(doc, ""), 3));
    assert_int_equal(ipw_json_count(doc), 5);
    assert_true(ipw_json_is_null(ipw_json_get(ipw_json_get(doc, "a"), "x")));
    for (const struct ipw_json *x = ipw_json_first(doc); x; x = ipw_json_next(x), i++)
        assert_string_equal(ipw_json_key(x), keys[i]);
    assert_int_equal(i, 5);
    assert_null(ipw_json_key(doc));
    ipw_json_free(doc);
}

static void test_absent_nodes_say_no(void **state)
{
    struct ipw_buf out = IPW_BUF(16);

    (void)state;
    ipw_json_free(NULL);
    assert_int_equal(ipw_json_kind(NULL), IPW_JSON_ABSENT);
    assert_null(ipw_json_get(NULL, "x"));
    assert_null(ipw_json_at(NULL, 0));
    assert_null(ipw_json_first(NULL));
    assert_null(ipw_json_next(NULL));
    assert_null(ipw_json_key(NULL));
    assert_int_equal(ipw_json_count(NULL), 0);
    assert_string_equal(ipw_json_str(NULL, "f"), "f");
    assert_int_equal(ipw_json_str_len(NULL), 0);
    assert_int_equal(ipw_json_int(NULL, 3), 3);
    assert_true(ipw_json_num(NULL, 3) == 3);
    assert_true(ipw_json_bool(NULL, true));
    assert_true(ipw_json_is_null(NULL));
    ipw_json_print(&out, NULL);
    assert_string_equal(out.data, "null");
    ipw_buf_release(&out);
    /* the wrong container */
    struct ipw_json *doc = parse_text("[{\"a\":1}]");
    assert_null(ipw_json_get(doc, "a"));
    assert_null(ipw_json_at(ipw_json_first(doc), 0));
    assert_null(ipw_json_first(ipw_json_get(ipw_json_first(doc), "a")));
    ipw_json_free(doc);
}

static void test_strict_getters(void **state)
{
    struct ipw_json *doc =
        parse_text("{\"s\":\"x\",\"i\":3.0,\"n\":1.5,\"a\":[],\"o\":{},\"z\":null,"
                   "\"huge\":1e999,\"t\":true}");
    const struct ipw_json *node;
    struct ipw_err err;
    const char *s;
    int64_t i;
    double d;

    (void)state;
    assert_int_equal(ipw_json_need_str(&s, doc, "s", "", &err), 0);
    assert_string_equal(s, "x");
    assert_int_equal(ipw_json_need_int(&i, doc, "i", "", &err), 0);
    assert_int_equal(i, 3);
    assert_int_equal(ipw_json_need_num(&d, doc, "n", "", &err), 0);
    assert_true(d == 1.5);
    assert_int_equal(ipw_json_need_arr(&node, doc, "a", "", &err), 0);
    assert_int_equal(ipw_json_kind(node), IPW_JSON_ARR);
    assert_int_equal(ipw_json_need_obj(&node, doc, "o", "", &err), 0);
    assert_int_equal(ipw_json_kind(node), IPW_JSON_OBJ);

    assert_int_equal(ipw_json_need_int(&i, doc, "n", "turns[3]", &err), IPW_EPARSE);
    assert_string_equal(err.text, "turns[3].n: expected an integer, found a number");
    assert_int_equal(ipw_json_need_int(&i, doc, "gone", "", &err), IPW_EPARSE);
    assert_string_equal(err.text, "gone: expected an integer, found nothing");
    assert_int_equal(ipw_json_need_str(&s, doc, "z", "a.b", &err), IPW_EPARSE);
    assert_string_equal(err.text, "a.b.z: expected a string, found null");
    assert_int_equal(ipw_json_need_num(&d, doc, "s", "", &err), IPW_EPARSE);
    assert_string_equal(err.text, "s: expected a number, found a string");
    assert_int_equal(ipw_json_need_num(&d, doc, "huge", "", &err), IPW_EPARSE);
    assert_string_equal(err.text,
                        "huge: expected a number within the range of a double, found a number");
    assert_int_equal(ipw_json_need_arr(&node, doc, "o", "", &err), IPW_EPARSE);
    assert_string_equal(err.text, "o: expected an array, found an object");
    assert_int_equal(ipw_json_need_obj(&node, doc, "t", "", &err), IPW_EPARSE);
    assert_string_equal(err.text, "t: expected an object, found a boolean");
    assert_int_equal(ipw_json_need_obj(&node, NULL, "t", "", NULL), IPW_EPARSE);
    ipw_json_free(doc);
}

static void test_print_sorts(void **state)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB), expected = IPW_BUF(IPW_MIB);

    (void)state;
    assert_string_equal(printed("{\"b\":1,\"a\":2,\"\":3,\"ab\":4,\"\xC3\xA9\":5,\"Z\":6,\"a\":7}"),
                        "{\"\":3,\"Z\":6,\"a\":7,\"ab\":4,\"b\":1,\"\xC3\xA9\":5}");
    assert_string_equal(printed("[{\"b\":{\"d\":1,\"c\":[{}]},\"a\":0}]"),
                        "[{\"a\":0,\"b\":{\"c\":[{}],\"d\":1}}]");
    /* more members than fit on the stack, every second key given twice */
    ipw_buf_addc(&text, '{');
    ipw_buf_addc(&expected, '{');
    for (int i = 0; i < 1000; i++) {
        ipw_buf_addf(&text, "\"k%04d\":%d,", (i * 7) % 1000, i);
        ipw_buf_addf(&expected, "%s\"k%04d\":%d", i ? "," : "", i, i % 2 ? (i * 143) % 1000 : -i);
    }
    for (int i = 0; i < 1000; i += 2)
        ipw_buf_addf(&text, "\"k%04d\":%d%s", i, -i, i == 998 ? "}" : ",");
    ipw_buf_addc(&expected, '}');
    ipw_buf_truncate(&text, text.len);
    assert_string_equal(printed(text.data), ipw_buf_str(&expected));
    ipw_buf_release(&text);
    ipw_buf_release(&expected);
}

/* A million keys are read, found and printed. */
static void j1_a_million_keys(void **state)
{
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);
    struct ipw_json *doc;

    (void)state;
    ipw_buf_addc(&text, '{');
    for (int i = 0; i < 1000000; i++) ipw_buf_addf(&text, "%s\"k%06d\":%d", i ? "," : "", i, i);
    ipw_buf_addc(&text, '}');
    doc = parse_text(text.data);
    assert_int_equal(ipw_json_count(doc), 1000000);
    assert_int_equal(ipw_json_int(ipw_json_get(doc, "k654321"), 0), 654321);
    ipw_json_free(doc);
    assert_string_equal(printed(text.data), text.data);
    ipw_buf_release(&text);
}

/* Printing a printed text changes nothing; a ceiling is noticed. */
static void test_print_is_stable(void **state)
{
    static const char text[] =
        "{\"z\":[1.50,-0,1e999,\"\\ud800\\u0001\"],\"a\":{\"b\":[],\"a\":{}}}";
    struct ipw_buf tight = IPW_BUF(20);
    char *once = strdup(printed(text));
    struct ipw_json *doc = parse_text(text);

    (void)state;
    assert_string_equal(printed(once), once);
    ipw_json_print(&tight, doc);
    assert_true(tight.failed);
    assert_true(tight.len <= 20);
    ipw_json_free(doc);
    ipw_buf_release(&tight);
    free(once);
}

/* Every double is the one that strtod() reads, near halves of the last bit too. */
static void test_doubles(void **state)
{
    static const char *const texts[] = {
        "0",     "-0",       "0.0",     "-0.0", "0.1",
        "1e22",  "1e23",     "-1.5E+3", "4e-5", "999999999999999",
        "1e999", "2.5e-324", "1e-999",
    };
    uint64_t seed = 1;

    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        char text[64];
        struct ipw_json *doc;
        double want, got;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (i < sizeof texts / sizeof *texts)
            snprintf(text, sizeof text, "%s", texts[i]);
        else if (i % 3)
            snprintf(text, sizeof text, "%s%u.%0*llu", i % 2 ? "-" : "", (unsigned)(seed >> 60),
                     (int)(seed % 19) + 1, (unsigned long long)(seed >> (seed % 59)));
        else
            snprintf(text, sizeof text, "%llu.%u", (unsigned long long)(seed >> (seed % 30)),
                     (unsigned)(seed >> 33 & 7));
        want = strtod(text, NULL);
        assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, NULL), 0);
        got = ipw_json_num(doc, NAN);
        assert_memory_equal(&got, &want, sizeof got);
        ipw_json_free(doc);
    }
}

/* A document without some members prints as the whole one does with empty values in their places.
 */
static void test_parse_without(void **state)
{
    static const char *const unread[] = {"data", "x", NULL};
    static const struct {
        const char *text, *printed;
    } cases[] = {
        {"{\"data\":{\"a\":[1.5,{\"data\":2}],\"b\":\"}\"},\"k\":1.25}",
         "{\"data\":{},\"k\":1.25}"},
        {" { \"k\" : 2.50 , \"data\" :\t[1e3,-0] , \"z\" : 7.125 } ",
         "{\"data\":[],\"k\":2.50,\"z\":7.125}"},
        {"{\"a\":{\"data\":1.5},\"data\":12345678901234567890,\"n\":9007199254740993}",
         "{\"a\":{\"data\":1.5},\"data\":12345678901234567890,\"n\":9007199254740993}"},
        {"{\"data\":1,\"x\":[],\"dat\":2,\"datas\":3,\"data\":{\"a\":4}}",
         "{\"dat\":2,\"data\":{},\"datas\":3,\"x\":[]}"},
        {"{\"data\":[null,1,[2]],\"m\":null,\"x\":null,\"z\":[null,3,null]}",
         "{\"data\":[],\"m\":null,\"x\":null,\"z\":[null,3,null]}"},
        {"{\"x\":\"\xFF\",\"y\":\"\xFF\"}", "{\"x\":\"\",\"y\":\"\xEF\xBF\xBD\"}"},
        {"{}", "{}"},
        {"[{\"data\":1.5}]", "[{\"data\":1.5}]"},
    };
    static const char *const wrong[] = {
        "{\"data\":}",   "{\"data\":{\"a\":01}}", "{\"data\":1",         "{\"data\":[1,]}",
        "{\"data\":1}}", "{\"data\":\"\n\"}",     "{\"data\":1 \"x\":2}"};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(1000);
        struct ipw_json *doc;

        assert_int_equal(
            ipw_json_parse_without(&doc, cases[i].text, strlen(cases[i].text), unread, NULL, NULL),
            0);
        ipw_json_print(&out, doc);
        assert_string_equal(ipw_buf_str(&out), cases[i].printed);
        ipw_json_free(doc);
        ipw_buf_release(&out);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ipw_err whole, part;
        struct ipw_json *doc;

        assert_int_equal(ipw_json_parse(&doc, wrong[i], strlen(wrong[i]), NULL, &whole),
                         IPW_EPARSE);
        assert_int_equal(
            ipw_json_parse_without(&doc, wrong[i], strlen(wrong[i]), unread, NULL, &part),
            IPW_EPARSE);
        assert_string_equal(part.text, whole.text);
    }
}

static void test_leftovers(void **state)
{
    struct mallinfo2 before, after;

    (void)state;
    free(malloc(100));
    for (int round = 0; round < 2; round++) {
        before = mallinfo2();
        for (int i = 0; i < 1000; i++) {
            struct ipw_json *doc;
            ipw_json_free(parse_text("{\"a\":[1.5,9007199254740993,\"\\u0000\"]}"));
            assert_int_equal(ipw_json_parse(&doc, "[1.25,\"\xFF\",", 9, NULL, NULL), IPW_EPARSE);
        }
        after = mallinfo2();
    }
    assert_int_equal(after.uordblks, before.uordblks);
}

UNIT(json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(j3_long_numbers),
        cmocka_unit_test(test_many_numbers),
        cmocka_unit_test(j4_duplicate_and_similar_keys),
        cmocka_unit_test(test_absent_nodes_say_no),
        cmocka_unit_test(test_strict_getters),
        cmocka_unit_test(test_print_sorts),
        cmocka_unit_test(j1_a_million_keys),
        cmocka_unit_test(test_print_is_stable),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_parse_without),
        cmocka_unit_test(test_leftovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
