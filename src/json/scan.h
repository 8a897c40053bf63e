/* json/scan.h: counts the bytes of a string that need no escaping or checking.
 *
 * The reader's guard and the printer's escape both spend their time on long runs of plain text.
 * These functions look at eight bytes at once.  Plain means ASCII from 0x20 up, without '"' and
 * '\\'. */
#ifndef IPW_JSON_SCAN_H
#define IPW_JSON_SCAN_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static inline bool ipw_scan_is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

/* 0 if these eight bytes are all plain.  Otherwise the lowest bit that is set is in the first byte
 * that is not plain. */
static inline uint64_t ipw_scan_word(const char *s)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t w, quote, slash;

    memcpy(&w, s, sizeof w);
    w = le64toh(w);
    quote = w ^ ones * '"';
    slash = w ^ ones * '\\';
    /* x - ones sets the high bit of a byte that was 0 (for quote, slash) or below 0x20.  A borrow
     * can change the bytes behind it, never those before it. */
    return (w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & high;
}

/* Number of plain bytes at the start of s[0..n). */
static inline size_t ipw_scan_plain(const char *s, size_t n)
{
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        uint64_t odd = ipw_scan_word(s + i);

        if (odd) return i + (size_t)__builtin_ctzll(odd) / 8;
    }
    while (i < n && ipw_scan_is_plain(s[i])) i++;
    return i;
}

/* Number of bytes at the start of s[0..n) that are valid UTF-8 outside ASCII. */
static inline size_t ipw_scan_wide(const char *s, size_t n)
{
    size_t i = 0;

    for (;;) {
        size_t k;
        /* Three bytes with a lead byte that allows every continuation: most non-Latin text. */
        while (n - i >= 3 && (unsigned char)s[i] > 0xE0 && (unsigned char)s[i] < 0xED &&
               (signed char)s[i + 1] < -0x40 && (signed char)s[i + 2] < -0x40)
            i += 3;
        if (i == n || (signed char)s[i] >= 0) return i;
        k = ipw_utf8_len(s + i, n - i);
        if (k == 0) return i;
        i += k;
    }
}

#endif
