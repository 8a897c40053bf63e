/* data/sha1.c against the vectors of FIPS 180-4, in one piece and in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/sha1.h"
#include "unit/unit.h"

static void expect(const char *text, size_t repeat, size_t piece, const char *want)
{
    struct ipw_sha1 s;
    char hex[41];

    ipw_sha1_begin(&s);
    for (size_t r = 0; r < repeat; r++)
        for (size_t at = 0, n = strlen(text); at < n; at += piece)
            ipw_sha1_add(&s, text + at, piece < n - at ? piece : n - at);
    ipw_sha1_end(&s, hex);
    assert_string_equal(hex, want);
}

static void vectors(void **state)
{
    (void)state;
    expect("", 1, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect("abc", 1, 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect("aaaaaaaaaa", 100000, 10, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

static void pieces(void **state)
{
    static const char text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    (void)state;
    for (size_t piece = 1; piece < sizeof text; piece++)
        expect(text, 1, piece, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

UNIT(sha1)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(pieces)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
