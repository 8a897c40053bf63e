#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/secret.h"
#include "unit/unit.h"

static const char key[] = "sk-Canary/7f+3Q==\"x\\9Zz";

static void check(const char *text, const char *expected)
{
    char *copy = ipw_strdup(text);

    ipw_secret_clean_text(copy);
    assert_string_equal(copy, expected);
    free(copy);
}

static int forget(void **state)
{
    (void)state;
    ipw_secret_forget_all();
    return 0;
}

static void test_plain(void **state)
{
    (void)state;
    ipw_secret_add("abcdefgh1234");
    check("", "");
    check("abcdefgh1234", "***");
    check("a abcdefgh1234 b abcdefgh1234", "a *** b ***");
    check("abcdefgh1234abcdefgh1234", "******");
    check("abcdefgh123", "abcdefgh123");
    check("aabcdefgh1234", "a***");
    check("abcdefgabcdefgh1234!", "abcdefg***!");
}

/* Each offset, so that the window meets the secret at each of its steps. */
static void test_each_offset(void **state)
{
    (void)state;
    ipw_secret_add("abcdefgh1234");
    for (size_t before = 0; before < 80; before++) {
        char text[200], expected[200];

        snprintf(
            text, sizeof text, "%.*sabcdefgh1234%.*s", (int)before,
            "abcdabcdefgh123xefgh1234abcdefghabcdefgh123xefgh1234abcdefghabcdefgh123xefgh1234gh", 3,
            "zzz");
        snprintf(
            expected, sizeof expected, "%.*s***%.*s", (int)before,
            "abcdabcdefgh123xefgh1234abcdefghabcdefgh123xefgh1234abcdefghabcdefgh123xefgh1234gh", 3,
            "zzz");
        check(text, expected);
    }
}

static void test_escaped(void **state)
{
    (void)state;
    ipw_secret_add(key);
    check("<sk-Canary/7f+3Q==\"x\\9Zz>", "<***>");
    check("{\"k\":\"sk-Canary/7f+3Q==\\\"x\\\\9Zz\"}", "{\"k\":\"***\"}");
    check("{\"k\":\"sk-Canary\\/7f+3Q==\\\"x\\\\9Zz\"}", "{\"k\":\"***\"}");
    check("{\"a\":\"{\\\"k\\\":\\\"sk-Canary/7f+3Q==\\\\\\\"x\\\\\\\\9Zz\\\"}\"}",
          "{\"a\":\"{\\\"k\\\":\\\"***\\\"}\"}");
    check("?key=sk-Canary%2F7f%2B3Q%3D%3D%22x%5C9Zz&a", "?key=***&a");
    check("?key=sk-Canary%2f7f%2b3Q%3d%3d%22x%5c9Zz&a", "?key=***&a");
}

/* What a program prints that has the key and means to get past the redactor. */
static void test_disguised(void **state)
{
    (void)state;
    ipw_secret_add(key);
    check("<zZ9\\x\"==Q3+f7/yranaC-ks>", "<***>");
    check("{\"k\":\"zZ9\\\\x\\\"==Q3+f7/yranaC-ks\"}", "{\"k\":\"***\"}");
    check("<736b2d43616e6172792f37662b33513d3d22785c395a7a>", "<***>");
    check("<736B2D43616E6172792F37662B33513D3D22785C395A7A>", "<***>");
    check("<%73%6b%2d%43%61%6e%61%72%79%2f%37%66%2b%33%51%3d%3d%22%78%5c%39%5a%7a>", "<***>");
    check("<%73%6B%2D%43%61%6E%61%72%79%2F%37%66%2B%33%51%3D%3D%22%78%5C%39%5A%7A>", "<***>");
}

static void encode64(char *out, const char *s, size_t n, bool url)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *digits = url ? safe : plain;

    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)(unsigned char)s[i] << 16;

        if (i + 1 < n) v |= (unsigned)(unsigned char)s[i + 1] << 8;
        if (i + 2 < n) v |= (unsigned char)s[i + 2];
        *out++ = digits[v >> 18];
        *out++ = digits[v >> 12 & 63];
        *out++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
        *out++ = i + 2 < n ? digits[v & 63] : '=';
    }
    *out = '\0';
}

/* Whatever comes before and after, of the encoded text no run of the secret's own characters is
 * left: cleaning finds exactly one occurrence.  The second one has both of the digits that differ
 * between the alphabets, wherever it begins. */
static void test_base64(void **state)
{
    const char *const keys[] = {key, "~~~???Canary???~~~+7f"};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        ipw_secret_forget_all();
        ipw_secret_add(keys[k]);
        for (size_t i = 0; i < 7 * 4 * 2; i++) {
            size_t before = i % 7, after = i / 7 % 4, n;
            char text[100], encoded[200];

            snprintf(text, sizeof text, "%.*s%s%.*s", (int)before, "Bearer:", keys[k], (int)after,
                     "end");
            encode64(encoded, text, strlen(text), i / 28);
            if (k) assert_non_null(strpbrk(encoded, i / 28 ? "-" : "+"));
            if (k) assert_non_null(strpbrk(encoded, i / 28 ? "_" : "/"));
            n = strlen(encoded);
            assert_int_equal(ipw_secret_clean_text(encoded), 1);
            /* At most what the neighbours share with it is left beside the mark. */
            assert_true(strlen(encoded) <= n - (8 * strlen(keys[k]) / 6 - 2) + 3);
        }
    }
}

static void test_words_are_kept(void **state)
{
    (void)state;
    ipw_secret_add(NULL);
    ipw_secret_add("");
    ipw_secret_add("EMPTY");
    ipw_secret_add("ollama");
    ipw_secret_add("lm-studio");
    check("lm-studio at ollama, EMPTY", "lm-studio at ollama, EMPTY");
}

static void test_digits_stay_a_number(void **state)
{
    (void)state;
    ipw_secret_add("1234567890123456");
    check("{\"n\":1234567890123456}", "{\"n\":1111111111111111}");
}

static void test_several(void **state)
{
    (void)state;
    ipw_secret_add("first-secret");
    ipw_secret_add("second-one-that-is-longer");
    ipw_secret_add("first-secret-extended");
    check("first-secret second-one-that-is-longer first-secret-extended!", "*** *** ***!");
}

/* Messages are cut to fit: what is left of a secret at their end is still one. */
static void test_cut_short(void **state)
{
    (void)state;
    ipw_secret_add("abcdefghijklmnopqrstuvwxyz");
    check("key abcdefghijklmnopqrstuvwxyz.", "key ***.");
    check("key abcdefghijklmnopqrstuv", "key ***");
    check("{\"e\":\"abcdefghijklmnop...\"}", "{\"e\":\"***...\"}");
    check("abcdefghijklmno", "abcdefghijklmno");
    check("abcdefghijklmnoabcdefghijklmnop", "abcdefghijklmno***");
}

static void test_buffer(void **state)
{
    struct ipw_buf b = IPW_BUF(1000);

    (void)state;
    ipw_secret_add("abcdefgh1234");
    ipw_buf_adds(&b, "abcdefgh1234 stays; ");
    assert_int_equal(ipw_secret_clean(&b, 12), 0);
    ipw_buf_adds(&b, "abcdefgh1234 goes");
    assert_int_equal(ipw_secret_clean(&b, 12), 1);
    assert_string_equal(b.data, "abcdefgh1234 stays; *** goes");
    assert_int_equal(b.len, strlen(b.data));
    ipw_buf_release(&b);
    assert_int_equal(ipw_secret_clean(&b, 0), 0);
}

/* The work, not the time: counted by hand it looks at one byte in (shortest - 2) of plain text, so
 * a megabyte is passed over quickly; what it takes is printed for a person. */
static void test_passes_over_plain_text(void **state)
{
    struct ipw_buf b = IPW_BUF(2 * IPW_MIB);
    int64_t t;

    (void)state;
    ipw_secret_add("sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH");
    while (b.len < IPW_MIB)
        ipw_buf_addf(&b, "{\"event\":\"note\",\"text\":\"the quick brown fox %zu\"}\n", b.len);
    t = ipw_now_ns();
    assert_int_equal(ipw_secret_clean(&b, 0), 0);
    t = ipw_now_ns() - t;
    print_message("%.3f us a KiB\n", (double)t / 1000.0 / (double)(b.len / 1024));
    ipw_buf_release(&b);
}

UNIT(secret)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_plain, forget),
        cmocka_unit_test_teardown(test_each_offset, forget),
        cmocka_unit_test_teardown(test_escaped, forget),
        cmocka_unit_test_teardown(test_disguised, forget),
        cmocka_unit_test_teardown(test_base64, forget),
        cmocka_unit_test_teardown(test_words_are_kept, forget),
        cmocka_unit_test_teardown(test_digits_stay_a_number, forget),
        cmocka_unit_test_teardown(test_several, forget),
        cmocka_unit_test_teardown(test_cut_short, forget),
        cmocka_unit_test_teardown(test_buffer, forget),
        cmocka_unit_test_teardown(test_passes_over_plain_text, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
