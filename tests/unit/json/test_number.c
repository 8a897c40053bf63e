/* Doubles and integers as text: they read back the same, and no shorter text would. */
#include <float.h>
#include <math.h>

#include "check.h"
#include "json/number.h"
#include "unit/unit.h"

static const char *text_of(double x)
{
    static char text[IPW_NUMBER_MAX + 1];
    size_t n = ipw_number_double(text, x);

    assert_in_range(n, 1, IPW_NUMBER_MAX);
    text[n] = '\0';
    return text;
}

static void j3_shortest_texts(void **state)
{
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-1, "-1.0"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.5, "1.5"},
        {100, "100.0"},
        {123.456, "123.456"},
        {-2.5e-3, "-0.0025"},
        {0.0001, "0.0001"},
        {0.00001, "1e-5"},
        {1.25e-7, "1.25e-7"},
        {1e-21, "1e-21"},
        {1e-22, "1e-22"},
        {1.5e300, "1.5e300"},
        {1e15, "1000000000000000.0"},
        {999999999999999.0, "999999999999999.0"},
        {1e16, "1e16"},
        {1e22, "1e22"},
        {1e23, "1e23"},
        {9007199254740991.0, "9007199254740991.0"},
        {9007199254740992.0, "9007199254740992.0"},
        {4503599627370495.5, "4503599627370495.5"},
        {2.0 / 3, "0.6666666666666666"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e308"},
        {0.5, "0.5"},
        {0x1p-70, "8.470329472543003e-22"},
        {299792.458, "299792.458"},
        {1e-4 + 1e-20, "0.00010000000000000002"},
        {0.999999999999999889, "0.9999999999999999"},
        {9.5367431640625e-07, "9.5367431640625e-7"},
        {5e-5, "5e-5"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(text_of(cases[i].x), cases[i].text);
}

/* 17 significant digits at most, and one digit less does not read back the same. */
static void check_shortest(double x, const char *text)
{
    char shorter[64];
    int digits = 0, zeros = 0;

    for (const char *p = text; *p && *p != 'e'; p++) {
        if (*p < '0' || *p > '9') continue;
        if (digits || *p != '0') digits++;
        zeros = *p == '0' ? zeros + 1 : 0;
    }
    digits -= zeros;
    assert_in_range(digits, 1, 17);
    if (digits < 2) return;
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, x);
    if (strtod(shorter, NULL) == x) fail_msg("%s has a shorter form %s", text, shorter);
}

static void j3_round_trip(void **state)
{
    uint64_t seed = 0x9E3779B97F4A7C15U;
    size_t tried = 0;

    (void)state;
    while (tried < 1000000) {
        uint64_t bits = random_next(&seed);
        unsigned kind = (unsigned)(tried % 9);
        double x, back;
        const char *text;

        if (kind == 0)
            memcpy(&x, &bits, sizeof x); /* any bit pattern */
        else if (kind == 1)
            x = (double)(bits >> 11) * 0x1p-53; /* a fraction */
        else if (kind == 2)
            x = (double)(bits % 100000000) / 1000; /* a short decimal */
        else if (kind == 3)
            x = (double)(bits >> 11) * 0x1p-53 * 1e6; /* joules */
        else if (kind == 4)
            x = ldexp((double)(1 + (bits & 3)), (int)(bits >> 32) % 1000); /* powers */
        else if (kind == 5)
            x = (double)(bits >> (bits & 63)); /* whole */
        else if (kind == 8)
            x = (double)(bits >> 12 >> (bits & 31)) /
                1e9; /* nanoseconds, from few to beyond 1e15 */
        else if (kind == 6)
            x = nextafter(ldexp(1, (int)((bits >> 32) % 120) - 70), (double)(bits & 1) * 1e300);
        else
            x = (double)(bits >> 11) * 0x1p-53 * pow(10, -(int)(bits % 25));
        if (!isfinite(x)) continue;
        text = text_of(x);
        back = strtod(text, NULL);
        if (memcmp(&back, &x, sizeof x) != 0) fail_msg("%.17g was written as %s", x, text);
        if (!strpbrk(text, ".e")) fail_msg("%s reads as an integer", text);
        if (!ipw_json_valid(text, strlen(text))) fail_msg("%s is no JSON", text);
        if (x != 0) check_shortest(x, text);
        tried++;
    }
}

/* The text of the whole millionth nearest to x is that of its double. */
static void j3_millionths(void **state)
{
    static const double edges[] = {0,
                                   -0.0,
                                   4e-7,
                                   -4e-7,
                                   6e-7,
                                   -6e-7,
                                   1e-6,
                                   0.99999949,
                                   0.99999951,
                                   -1.5e-6,
                                   999999999.999999,
                                   1e9,
                                   1e15,
                                   1e300,
                                   12.5,
                                   3};
    const size_t n_edges = sizeof edges / sizeof *edges;
    uint64_t seed = 11;
    (void)state;
    for (size_t i = 0; i < 300000 + n_edges; i++) {
        uint64_t bits = random_next(&seed);
        double x =
            i < n_edges ? edges[i] : (double)(bits >> 11) * 0x1p-53 * pow(10, (double)(i % 13) - 5);
        double whole = fabs(x) < 1e9 ? trunc(x * 1e6 + (x < 0 ? -0.5 : 0.5)) / 1e6 : x;
        char text[IPW_NUMBER_MAX + 1];
        size_t n;

        if (i >= n_edges && bits & 1) x = -x, whole = -whole;
        n = ipw_number_micro(text, x);
        assert_in_range(n, 1, IPW_NUMBER_MAX);
        text[n] = '\0';
        assert_string_equal(text, text_of(whole == 0 ? 0 : whole));
    }
}

static void j3_never_nan(void **state)
{
    struct ipw_buf out = IPW_BUF(100);

    (void)state;
    ipw_json_double(&out, NAN);
    ipw_json_double(&out, INFINITY);
    ipw_json_double(&out, -INFINITY);
    assert_string_equal(ipw_buf_str(&out), "nullnullnull");
    ipw_buf_release(&out);
}

static void j3_integers_are_exact(void **state)
{
    static const char *const beyond[] = {"9223372036854775808", "-9223372036854775809",
                                         "18446744073709551616", "99999999999999999999999",
                                         "-10000000000000000000"};
    uint64_t seed = 7;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        int64_t x = (int64_t)(random_next(&seed) >> (random_next(&seed) & 63)), back;
        char text[IPW_NUMBER_MAX], expected[32];
        size_t n;

        if (i == 0) x = INT64_MIN;
        if (i == 1) x = INT64_MAX;
        if (i == 2) x = INT64_MIN + 1;
        if (i == 3) x = 0;
        if (i > 3 && i % 2) x = -x;
        n = ipw_number_int(text, x);
        snprintf(expected, sizeof expected, "%lld", (long long)x);
        assert_int_equal(n, strlen(expected));
        assert_memory_equal(text, expected, n);
        assert_true(ipw_number_read_int(&back, text, n));
        assert_true(back == x);
    }
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        int64_t x;
        assert_false(ipw_number_read_int(&x, beyond[i], strlen(beyond[i])));
    }
}

UNIT(number)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(j3_shortest_texts),     cmocka_unit_test(j3_round_trip),
        cmocka_unit_test(j3_millionths),         cmocka_unit_test(j3_never_nan),
        cmocka_unit_test(j3_integers_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
