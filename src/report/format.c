#include "report/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

#define OUT 32

/* Three significant digits of 1 <= x < 1000. */
static void three_digits(char *out, size_t size, double x)
{
    snprintf(out, size, "%.*f", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x);
}

char *ipw_format_si(char *out, double x, const char *unit)
{
    static const char *const prefixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P"};
    const char *space = "";
    char digits[16];
    size_t p = 3;
    double y = fabs(x);

    if (!isfinite(x)) return strcpy(out, IPW_UNKNOWN_TEXT);
    if (*unit == ' ') {
        space = " ";
        unit++;
    }
    if (y < 1e-12) {
        snprintf(out, OUT, "0%s%.8s", space, unit);
        return out;
    }
    while (y >= 999.5 && p + 1 < sizeof prefixes / sizeof *prefixes) {
        y /= 1000;
        p++;
    }
    while (y < 0.9995 && p > 0) {
        y *= 1000;
        p--;
    }
    three_digits(digits, sizeof digits, y);
    snprintf(out, OUT, "%s%s%s%s%.8s", x < 0 ? "-" : "", digits, space, prefixes[p], unit);
    return out;
}

char *ipw_format_seconds(char *out, double s)
{
    double whole = floor(s + 0.5);
    char digits[16];

    if (!isfinite(s) || s < 0) return strcpy(out, IPW_UNKNOWN_TEXT);
    if (s < 99.95) {
        if (s < 0.9995) return ipw_format_si(out, s, "s");
        three_digits(digits, sizeof digits, s);
        snprintf(out, OUT, "%ss", digits);
    } else if (whole < 3600) {
        snprintf(out, OUT, "%dm%02ds", (int)(whole / 60), (int)fmod(whole, 60));
    } else {
        whole = floor(s / 60 + 0.5);
        snprintf(out, OUT, "%.0fh%02dm", floor(whole / 60), (int)fmod(whole, 60));
    }
    return out;
}

/* Widths. */

struct range {
    unsigned first, last;
};

/* Characters without width: combining marks, joiners, variation selectors. */
static const struct range zero_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489},   {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x06D6, 0x06DC}, {0x0900, 0x0902},   {0x093C, 0x093C}, {0x0941, 0x0948}, {0x094D, 0x094D},
    {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},   {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
    {0x200B, 0x200F}, {0x2060, 0x2064},   {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
    {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF},
};
/* Characters of two columns: East Asian wide and full-width forms, pictographs. */
static const struct range double_width[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26A1, 0x26A1},   {0x2705, 0x2705},
    {0x270A, 0x270B},   {0x2728, 0x2728},   {0x274C, 0x274C},   {0x2753, 0x2755},
    {0x2795, 0x2797},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2E80, 0x303E},
    {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
    {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD},
};

static bool within(const struct range *ranges, size_t n, unsigned cp)
{
    for (size_t i = 0; i < n && ranges[i].first <= cp; i++) {
        if (cp <= ranges[i].last) return true;
    }
    return false;
}

/* One character at s: its bytes, and the columns it takes. */
static size_t step(const char *s, size_t n, size_t *columns)
{
    size_t k = ipw_utf8_len(s, n);
    unsigned cp;

    *columns = 1;
    if (k <= 1) return 1;
    cp = (unsigned char)s[0] & (0xFFu >> (k + 1));
    for (size_t i = 1; i < k; i++) cp = cp << 6 | ((unsigned char)s[i] & 0x3F);
    if (within(zero_width, sizeof zero_width / sizeof *zero_width, cp)) *columns = 0;
    if (within(double_width, sizeof double_width / sizeof *double_width, cp)) *columns = 2;
    return k;
}

/* Bytes of the colour sequence at s; 0 if there is none. */
static size_t style_length(const char *s, size_t n)
{
    if (n < 3 || s[0] != '\033' || s[1] != '[') return 0;
    for (size_t i = 2; i < n; i++) {
        if (s[i] == 'm') return i + 1;
    }
    return 0;
}

size_t ipw_format_width(const char *s, size_t n)
{
    size_t width = 0;

    for (size_t i = 0; i < n;) {
        size_t columns = 0, k = style_length(s + i, n - i);

        if (!k) k = step(s + i, n - i, &columns);
        width += columns;
        i += k;
    }
    return width;
}

static void pad(struct ipw_buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++) ipw_buf_addc(out, ' ');
}

void ipw_format_cell(struct ipw_buf *out, const char *s, size_t columns,
                     enum ipw_format_align align)
{
    struct ipw_buf clean = IPW_BUF(IPW_MIB);
    size_t n = strlen(s), width, used = 0, i = 0;

    if (n > 64 * IPW_KIB) n = 64 * IPW_KIB;
    ipw_text_printable(&clean, s, n, 0);
    width = ipw_format_width(ipw_buf_str(&clean), clean.len);
    if (width <= columns) {
        if (align == IPW_ALIGN_RIGHT) pad(out, columns - width);
        ipw_buf_add(out, ipw_buf_str(&clean), clean.len);
        if (align == IPW_ALIGN_LEFT) pad(out, columns - width);
    } else if (columns > 0) {
        while (i < clean.len) {
            size_t c, k = step(clean.data + i, clean.len - i, &c);

            if (used + c > columns - 1) break;
            used += c;
            i += k;
        }
        ipw_buf_add(out, ipw_buf_str(&clean), i);
        ipw_buf_adds(out, "\xE2\x80\xA6");
        if (align != IPW_ALIGN_NONE) pad(out, columns - used - 1);
    }
    ipw_buf_release(&clean);
}

void ipw_format_wrapped(struct ipw_buf *out, const char *text, size_t at, size_t indent,
                        size_t width)
{
    bool first = true;

    while (*text) {
        size_t n = strcspn(text, " "), columns = ipw_format_width(text, n);

        if (!first && at + 1 + columns > width) {
            ipw_buf_addc(out, '\n');
            pad(out, indent);
            at = indent;
        } else if (!first) {
            ipw_buf_addc(out, ' ');
            at++;
        }
        ipw_buf_add(out, text, n);
        at += columns;
        first = false;
        text += n;
        while (*text == ' ') text++;
    }
    ipw_buf_addc(out, '\n');
}

const char *ipw_style(enum ipw_style style, bool colour)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m", "\033[32m",
                                        "\033[31m", "\033[33m", "\033[36m"};

    return colour ? codes[style] : "";
}
