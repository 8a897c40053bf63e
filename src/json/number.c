#include "json/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pairs[] = "0001020304050607080910111213141516171819"
                            "2021222324252627282930313233343536373839"
                            "4041424344454647484950515253545556575859"
                            "6061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

/* 1233 / 4096 is log10(2), near enough that the guess is the number of digits, or one less. */
static size_t count_digits(uint64_t u)
{
    /* clang-format off */
    static const uint64_t powers[] = {
        0, UINT64_C(10), UINT64_C(100), UINT64_C(1000), UINT64_C(10000), UINT64_C(100000),
        UINT64_C(1000000), UINT64_C(10000000), UINT64_C(100000000), UINT64_C(1000000000),
        UINT64_C(10000000000), UINT64_C(100000000000), UINT64_C(1000000000000),
        UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000),
        UINT64_C(10000000000000000), UINT64_C(100000000000000000), UINT64_C(1000000000000000000),
        UINT64_C(10000000000000000000)};
    /* clang-format on */
    unsigned bits = 64 - (unsigned)__builtin_clzll(u | 1), guess = bits * 1233 >> 12;

    return guess + (u >= powers[guess]);
}

/* Writes two digits at a time: a division costs more than everything else here. */
static size_t write_digits(char *to, uint64_t u)
{
    size_t n;
    char *p;

    if (u < 10) {
        *to = (char)('0' + u);
        return 1;
    }
    n = count_digits(u);
    p = to + n;
    for (; u >= 100; u /= 100) memcpy(p -= 2, pairs + u % 100 * 2, 2);
    if (u >= 10)
        memcpy(p - 2, pairs + u * 2, 2);
    else
        p[-1] = (char)('0' + u);
    return n;
}

size_t ipw_number_int(char *to, int64_t i)
{
    size_t n = 0;

    if (i < 0) to[n++] = '-';
    return n + write_digits(to + n, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
}

bool ipw_number_read_int(int64_t *out, const char *text, size_t n)
{
    enum { SAFE = 18 }; /* so many digits are within int64 */
    bool negative = n && text[0] == '-';
    uint64_t u = 0, most = (uint64_t)INT64_MAX + negative;
    size_t i = negative, safe = n < SAFE ? n : SAFE;

    for (; i < safe; i++) u = u * 10 + (uint64_t)(text[i] - '0');
    for (; i < n; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (u > (most - digit) / 10) return false;
        u = u * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

static inline const char *read_digits(uint64_t *u, const char *p, const char *end)
{
    for (unsigned digit; p < end && (digit = (unsigned)(*p - '0')) <= 9; p++) *u = *u * 10 + digit;
    return p;
}

/* Whole numbers up to 2^53 and these powers are exact as doubles, so that one division of the two
 * is rounded as the decimal itself. */
double ipw_number_read_double(const char *text, size_t n)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
    enum { MOST = 19 }; /* bytes, so that the digits fit 64 bits and the power is in the table */
    const char *p = text, *end = text + n;
    bool negative = *p == '-';
    size_t after_point = 0;
    uint64_t u = 0;
    double x;

    p += negative;
    if (end - p > MOST) return strtod(text, NULL);
    p = read_digits(&u, p, end);
    if (p < end && *p == '.') {
        const char *point = ++p;

        p = read_digits(&u, p, end);
        after_point = (size_t)(p - point);
    }
    if (p < end || u > UINT64_C(1) << 53) return strtod(text, NULL); /* or an exponent */
    x = (double)u / powers[after_point];
    return negative ? -x : x;
}

/* Writes whole.digits, or digits with an exponent where four zeros follow the point. */
static size_t put_fraction(char *to, uint64_t whole, const char *digits, size_t count)
{
    size_t zeros = 0, n;

    while (whole == 0 && digits[zeros] == '0') zeros++;
    if (zeros < 4) {
        n = write_digits(to, whole);
        to[n++] = '.';
        memcpy(to + n, digits, count);
        return n + count;
    }
    n = 0;
    to[n++] = digits[zeros];
    if (count > zeros + 1) {
        to[n++] = '.';
        memcpy(to + n, digits + zeros + 1, count - zeros - 1);
        n += count - zeros - 1;
    }
    to[n++] = 'e', to[n++] = '-';
    return n + write_digits(to + n, zeros + 1);
}

/* Writes the digits after the point of an x that is a count of billionths: a time in nanoseconds,
 * an energy in microjoules.  Two decimals of at most 15 digits are never the same double, so this
 * one is the shortest.  0: it is no such count. */
static size_t billionth_digits(char *to, uint64_t *whole, double x)
{
    double scaled = x * 1e9;
    uint32_t fraction;
    int64_t k;
    size_t n = 9;

    if (scaled >= 999999999999999.0) return 0;
    k = (int64_t)(scaled + 0.5);
    if ((double)k / 1e9 != x) return 0;
    *whole = (uint64_t)k / 1000000000;
    fraction = (uint32_t)((uint64_t)k % 1000000000);
    for (size_t i = n; i > 1; i -= 2, fraction /= 100)
        memcpy(to + i - 2, pairs + fraction % 100 * 2, 2);
    to[0] = (char)('0' + fraction);
    while (to[n - 1] == '0') n--;
    return n;
}

/* Writes any other positive x with the C library, at the lowest precision that reads back the
 * same. */
static size_t write_by_printf(char *to, double x)
{
    char text[IPW_NUMBER_MAX];
    char *e;
    size_t n;

    /* 15 digits always suffice for a short decimal; below the normal range a double has fewer
     * digits. */
    for (int precision = x < 2.3e-308 ? 1 : 15;; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, x);
        if (precision >= 17 || strtod(text, NULL) == x) break;
    }
    e = strchr(text, 'e');
    n = e ? (size_t)(e - text) : strlen(text);
    memcpy(to, text, n);
    if (!e) {
        if (memchr(text, '.', n)) return n;
        memcpy(to + n, ".0", 2);
        return n + 2;
    }
    /* "e+07" and "e-07" become "e7" and "e-7" */
    to[n++] = 'e';
    if (*++e == '-') to[n++] = '-';
    for (e++; *e == '0'; e++) continue;
    memcpy(to + n, e, strlen(e));
    return n + strlen(e);
}

size_t ipw_number_double(char *to, double x)
{
    char digits[16];
    uint64_t whole;
    size_t n = 0, count;

    if (signbit(x)) {
        to[n++] = '-';
        x = -x;
    }
    if (x < 0x1p53 && x == (double)(int64_t)x) {
        n += write_digits(to + n, (uint64_t)x);
        memcpy(to + n, ".0", 2);
        return n + 2;
    }
    count = billionth_digits(digits, &whole, x);
    return n + (count ? put_fraction(to + n, whole, digits, count) : write_by_printf(to + n, x));
}

size_t ipw_number_micro(char *to, double x)
{
    double millionths = (x < 0 ? -x : x) * 1e6 + 0.5;
    uint32_t fraction;
    char digits[16];
    size_t n = 0, count = 6;
    uint64_t k;

    if (millionths >= 1e15) return ipw_number_double(to, x);
    k = (uint64_t)millionths;
    if (x < 0 && k) to[n++] = '-';
    fraction = (uint32_t)(k % 1000000);
    if (!fraction) {
        n += write_digits(to + n, k / 1000000);
        memcpy(to + n, ".0", 2);
        return n + 2;
    }
    memcpy(digits, pairs + fraction / 10000 * 2, 2);
    memcpy(digits + 2, pairs + fraction / 100 % 100 * 2, 2);
    memcpy(digits + 4, pairs + fraction % 100 * 2, 2);
    while (digits[count - 1] == '0') count--;
    return n + put_fraction(to + n, k / 1000000, digits, count);
}
