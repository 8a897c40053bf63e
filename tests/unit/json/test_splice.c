/* Members changed in the text of an object: what a document of it would give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "json/document.h"
#include "json/splice.h"
#include "unit/unit.h"

static const struct {
    const char *text;
    struct {
        const char *key, *value;
    } changes[4];
    const char *out; /* NULL: the text is refused */
} cases[] = {
    {"{}", {{0}}, "{}"},
    {"{}", {{"b", "1"}, {"a", "\"x\""}}, "{\"a\":\"x\",\"b\":1}"},
    {"{\"b\":2}", {{"a", "1"}, {"c", "3"}}, "{\"a\":1,\"b\":2,\"c\":3}"},
    {"{\"a\":{\"b\":[1,{\"b\":2}]},\"b\":-1.5e3}",
     {{"b", "7"}},
     "{\"a\":{\"b\":[1,{\"b\":2}]},\"b\":7}"},
    {"{\"a\":\"}\\\"],{\",\"b\":true}", {{"b", "null"}}, "{\"a\":\"}\\\"],{\",\"b\":null}"},
    {"{\"a\":\"\\\\\",\"b\":1}", {{"b", "2"}}, "{\"a\":\"\\\\\",\"b\":2}"},
    {"{\"rows\":1,\"rows_more\":2}",
     {{"row", "0"}, {"rows", "9"}},
     "{\"row\":0,\"rows\":9,\"rows_more\":2}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", {{"a", ""}, {"c", ""}, {"d", ""}}, "{\"b\":2}"},
    {"{\"a\":1", {{"a", "2"}}, NULL},
    {"{\"a", {{"a", "2"}}, NULL},
    {"{\"a\"}", {{"a", "2"}}, NULL},
    {"[1]", {{"a", "2"}}, NULL},
    {"", {{"a", "2"}}, NULL},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(4096);
        struct ipw_splice s = {.n = 0};

        for (size_t k = 0; k < 4 && cases[i].changes[k].key; k++)
            ipw_splice_text(&s, cases[i].changes[k].key, cases[i].changes[k].value);
        assert_int_equal(ipw_splice_write(&out, &s, cases[i].text, strlen(cases[i].text)),
                         cases[i].out != NULL);
        if (cases[i].out) assert_string_equal(ipw_buf_str(&out), cases[i].out);
        ipw_buf_release(&out);
    }
}

static void test_as_a_document(void **state)
{
    static const char text[] = "{\"attempt\":1,\"data\":{\"x\":[\"a\",{}]},\"event\":\"note\","
                               "\"query\":3,\"t_ns\":99}";
    struct ipw_buf spliced = IPW_BUF(4096), patched = IPW_BUF(4096);
    struct ipw_splice s = {.n = 0};
    struct ipw_json *doc;

    (void)state;
    assert_int_equal(ipw_json_parse(&doc, text, sizeof text - 1, NULL, NULL), 0);
    ipw_splice_int(&s, "t_ns", INT64_MIN);
    ipw_splice_int(&s, "query", 64000);
    ipw_splice_int(&s, "rows", 0);
    assert_true(ipw_splice_write(&spliced, &s, text, sizeof text - 1));
    ipw_json_patch(&patched, doc, "{\"query\":64000,\"rows\":0,\"t_ns\":-9223372036854775808}");
    assert_string_equal(ipw_buf_str(&spliced), ipw_buf_str(&patched));
    ipw_json_free(doc);
    ipw_buf_release(&spliced);
    ipw_buf_release(&patched);
}

UNIT(splice)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),
                                       cmocka_unit_test(test_as_a_document)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
