#include "data/pytext.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <unistr.h>

#include "base/err.h"
#include "base/text.h"

#define CAPITAL_SIGMA 0x3a3u

/* The character at s, U+FFFD for bytes that are none; returns its length. */
static size_t char_at(ucs4_t *c, const char *s, size_t n)
{
    return (size_t)u8_mbtouc(c, (const uint8_t *)s, n);
}

/* Is the nearest character before `at` that is not case-ignorable a cased one? */
static bool cased_before(const struct ipw_buf *text, size_t at)
{
    ucs4_t c;

    while (at > 0) {
        while (at-- > 0 && ((unsigned char)text->data[at] & 0xc0) == 0x80) continue;
        char_at(&c, text->data + at, text->len - at);
        if (!uc_is_property_case_ignorable(c)) return uc_is_property_cased(c);
    }
    return false;
}

/* The same for the text from `at` on. */
static bool cased_from(const struct ipw_buf *text, size_t at)
{
    ucs4_t c;

    while (at < text->len) {
        at += char_at(&c, text->data + at, text->len - at);
        if (!uc_is_property_case_ignorable(c)) return uc_is_property_cased(c);
    }
    return false;
}

/* Only a capital sigma has a lower case that depends on its neighbours: at the end of a word it
 * differs.  Python's rule is applied here, because u8_tolower of libunistring 1.0 treats an
 * apostrophe and U+0345 differently (found by tests/data/oracle_gaia.py). */
static void lower_sigmas(struct ipw_buf *text)
{
    ucs4_t c;

    for (size_t i = 0, len; i < text->len; i += len) {
        len = char_at(&c, text->data + i, text->len - i);
        if (c == CAPITAL_SIGMA) {
            bool final = cased_before(text, i) && !cased_from(text, i + 2);
            memcpy(text->data + i, final ? "\u03c2" : "\u03c3", 2);
        }
    }
}

void ipw_py_lower(struct ipw_buf *out, const char *s, size_t n)
{
    struct ipw_buf clean = IPW_BUF(out->max);
    uint8_t *lower;
    size_t lower_n = 0;

    ipw_utf8_clean(&clean, s, n);
    lower_sigmas(&clean);
    /* No language: Python's lower() does not depend on the locale. */
    lower = u8_tolower((const uint8_t *)ipw_buf_str(&clean), clean.len, NULL, NULL, NULL, &lower_n);
    if (!lower && clean.len) IPW_BUG("u8_tolower failed on %zu bytes", clean.len);
    ipw_buf_add(out, (const char *)lower, lower_n);
    out->failed |= clean.failed;
    free(lower);
    ipw_buf_release(&clean);
}

bool ipw_py_digits(struct ipw_buf *out, const char *s, size_t n)
{
    ucs4_t c;

    for (size_t i = 0, len; i < n; i += len) {
        int digit;

        len = char_at(&c, s + i, n - i);
        digit = c < 0x80 ? -1 : uc_decimal_value(c);
        if (c < 0x80)
            ipw_buf_addc(out, (char)c);
        else if (digit >= 0)
            ipw_buf_addc(out, (char)('0' + digit));
        else if (uc_is_property_white_space(c))
            ipw_buf_addc(out, ' ');
        else
            return false; /* also invalid UTF-8, which is U+FFFD */
    }
    return !out->failed;
}
