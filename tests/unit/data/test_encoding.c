#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/encoding.h"
#include "unit/unit.h"

static void test_texts(void **state)
{
    static const struct {
        const char *encoding, *bytes;
        size_t n;
        const char *want; /* the text, or "!" and a part of the message */
    } cases[] = {
        {"latin1", "caf\xe9 \xa4", 6, "caf\xc3\xa9 \xc2\xa4"},
        {"ISO-8859-1", "\xfc", 1, "\xc3\xbc"},
        {"iso-8859-15", "\xa4", 1, "\xe2\x82\xac"},
        {"windows-1252", "\x80\x93", 2, "\xe2\x82\xac\xe2\x80\x9c"},
        {"utf-16", "\xff\xfe\x65\x00\xac\x20", 6, "e\xe2\x82\xac"},
        {"utf-16", "\xfe\xff\x00\x65\x20\xac", 6, "e\xe2\x82\xac"},
        {"utf-8", "caf\xc3\xa9", 5, "caf\xc3\xa9"},
        {"latin1", "", 0, ""},
        {"windows-1252", "a\nb\n\x81", 5,
         "!x.csv:3: byte 5 of the file (0x81) is not windows-1252"},
        {"utf-16", "\xff\xfe\x65\x00\x0a\x00\x65", 7, "!x.csv:2: byte 7 of the file (0x65)"},
        {"utf-8", "\xe9", 1, "!x.csv:1: byte 1 of the file (0xE9) is not utf-8"},
        {"klingon", "a", 1, "!x.csv: unknown encoding 'klingon'. Try latin1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_buf out = IPW_BUF(IPW_MIB);
        struct ipw_err err = {0};
        int rc = ipw_encoding_to_utf8(&out, cases[i].encoding, "x.csv", cases[i].bytes, cases[i].n,
                                      &err);

        if (*cases[i].want == '!') {
            assert_int_not_equal(rc, 0);
            if (!strstr(err.text, cases[i].want + 1)) fail_msg("%s", err.text);
        } else {
            if (rc) fail_msg("%s", err.text);
            assert_string_equal(ipw_buf_str(&out), cases[i].want);
        }
        ipw_buf_release(&out);
    }
}

/* Longer than one piece: each é becomes two bytes, and pieces end inside of one. */
static void test_long_text(void **state)
{
    enum { N = 200001 };
    char *bytes = malloc(N);
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 0xe9, N);
    bytes[0] = 'x';
    assert_int_equal(ipw_encoding_to_utf8(&out, "latin1", "x.csv", bytes, N, NULL), 0);
    assert_int_equal(out.len, 1 + 2 * (N - 1));
    for (size_t i = 1; i < out.len; i += 2) assert_memory_equal(out.data + i, "\xc3\xa9", 2);
    ipw_buf_release(&out);
    free(bytes);
}

static void test_ceiling(void **state)
{
    struct ipw_buf out = IPW_BUF(4);
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_encoding_to_utf8(&out, "latin1", "x.csv", "\xe9\xe9\xe9", 3, &err),
                     IPW_ELIMIT);
    assert_non_null(strstr(err.text, "x.csv: the text is too long"));
    ipw_buf_release(&out);
}

UNIT(encoding)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
