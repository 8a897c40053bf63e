#include "data/pytext.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unictype.h>

#include "base/buf.h"
#include "base/utf8.h"

uint32_t ipw_py_char(const char *s, size_t len)
{
    const unsigned char *u = (const unsigned char *)s;

    switch (len) {
    case 2: return (uint32_t)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
    case 3: return (uint32_t)(u[0] & 0x0f) << 12 | (uint32_t)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
    case 4:
        return (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3f) << 12 |
               (uint32_t)(u[2] & 0x3f) << 6 | (u[3] & 0x3f);
    default: return u[0];
    }
}

bool ipw_py_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

bool ipw_py_punct(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

void ipw_py_strip(const char **s, size_t *n)
{
    while (*n) {
        size_t len = ipw_utf8_len(*s, *n);
        if (len == 0 || !ipw_py_space(ipw_py_char(*s, len))) break;
        *s += len;
        *n -= len;
    }
    while (*n) {
        size_t len = 1;
        while (len < 4 && len < *n && ((unsigned char)(*s)[*n - len] & 0xc0) == 0x80) len++;
        const char *last = *s + *n - len;
        if (ipw_utf8_len(last, len) != len || !ipw_py_space(ipw_py_char(last, len))) break;
        *n -= len;
    }
}

/* Python first turns text into ASCII.  Decimal digits of any script become '0'..'9', and white
 * space beyond ASCII becomes a blank.  With any other character beyond ASCII the text is not a
 * number.  U+001C..1F are white space for str.isspace() but not for float() (tested with CPython
 * 3.11). */
static bool to_ascii(struct ipw_buf *out, const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n;) {
        size_t len = ipw_utf8_len(text + i, n - i);
        uint32_t c;
        int digit;

        if (len == 0) return false;
        c = ipw_py_char(text + i, len);
        i += len;
        if (c < 0x80)
            ipw_buf_addc(out, (char)c);
        else if (ipw_py_space(c))
            ipw_buf_addc(out, ' ');
        else if ((digit = uc_decimal_value(c)) >= 0)
            ipw_buf_addc(out, (char)('0' + digit));
        else
            return false;
    }
    return !out->failed;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Removes every '_' between two digits; with any other '_' the text is not a number. */
static bool drop_underscores(char *s)
{
    char *to = s;
    char before = '\0';

    for (const char *p = s; *p; p++) {
        if (*p == '_') {
            if (!is_digit(before) || !is_digit(p[1])) return false;
        } else {
            *to++ = *p;
        }
        before = *p;
    }
    *to = '\0';
    return true;
}

/* digits [. digits] [e [sign] digits], with at least one digit before the e */
static bool is_decimal(const char *s)
{
    size_t whole = strspn(s, "0123456789"), part = 0;

    s += whole;
    if (*s == '.') {
        part = strspn(s + 1, "0123456789");
        s += 1 + part;
    }
    if (whole + part == 0) return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-') s++;
        if (!is_digit(*s)) return false;
        s += strspn(s, "0123456789");
    }
    return *s == '\0';
}

static bool is_named(const char *s)
{
    return strcasecmp(s, "inf") == 0 || strcasecmp(s, "infinity") == 0 || strcasecmp(s, "nan") == 0;
}

/* The decimal separator is a point in every locale of the process.  glibc's "C" object is static
 * and never freed. */
static double c_strtod(const char *s)
{
    static locale_t c_locale;

    if (!c_locale) c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return strtod_l(s, NULL, c_locale);
}

bool ipw_py_float(const char *text, double *value)
{
    static const char blanks[] = " \t\n\v\f\r";
    struct ipw_buf ascii = IPW_BUF(64 * IPW_MIB);
    bool ok = to_ascii(&ascii, text) && ascii.len > 0;

    if (ok) {
        char *s = ascii.data + strspn(ascii.data, blanks);
        size_t n = strlen(s);

        while (n && strchr(blanks, s[n - 1])) n--;
        s[n] = '\0';
        ok = drop_underscores(s);
        if (ok) {
            const char *body = s + (*s == '+' || *s == '-');
            ok = is_decimal(body) || is_named(body);
        }
        if (ok) *value = c_strtod(s);
    }
    ipw_buf_release(&ascii);
    return ok;
}
