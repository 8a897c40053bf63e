/* json/scan.h: counts the bytes of a string that need no escaping or checking.
 *
 * The reader's guard and the printer's escape both spend their time on long runs of plain text.
 * These functions look at 16 bytes at once: with SSE2 if the compiler has it (every x86-64), else
 * with two 64-bit words.  Plain means ASCII from 0x20 up, without '"' and '\\'. */
#ifndef IPW_JSON_SCAN_H
#define IPW_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/utf8.h"

static inline bool ipw_scan_is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

/* Are these eight bytes all plain? */
static inline bool ipw_scan_word_is_plain(const char *s)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t w, quote, slash;

    memcpy(&w, s, sizeof w);
    quote = w ^ ones * '"';
    slash = w ^ ones * '\\';
    /* x - ones borrows into the high bit of a byte that was 0 (for quote, slash) or below 0x20. */
    return ((w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & high) == 0;
}

#ifdef __SSE2__
/* One bit for each byte of s[0..16) that is not plain.  The signed comparison finds controls and
 * everything from 0x80 up at once. */
static inline unsigned ipw_scan_mask16(const char *s)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)s);
    __m128i odd = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)),
                               _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                                            _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));
    return (unsigned)_mm_movemask_epi8(odd);
}

/* Number of plain bytes at the start of s[0..16): 16 if all are.  A branch gives the usual answer,
 * so that it is predicted and the next load need not wait for a computation. */
static inline size_t ipw_scan_plain16(const char *s)
{
    unsigned mask = ipw_scan_mask16(s);

    if (__builtin_expect(mask == 0, 1)) return 16;
    return (size_t)__builtin_ctz(mask);
}
#else
static inline size_t ipw_scan_plain16(const char *s)
{
    size_t i = 0;

    if (ipw_scan_word_is_plain(s)) i = ipw_scan_word_is_plain(s + 8) ? 16 : 8;
    while (i < 16 && ipw_scan_is_plain(s[i])) i++;
    return i;
}
#endif

/* Number of plain bytes at the start of s[0..n). */
static inline size_t ipw_scan_plain(const char *s, size_t n)
{
    size_t i = 0;

    while (n - i >= 16) {
        size_t k = ipw_scan_plain16(s + i);
        i += k;
        if (k < 16) return i;
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
