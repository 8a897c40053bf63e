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
    width = ipw_text_columns(ipw_buf_str(&clean), clean.len);
    if (width <= columns) {
        if (align == IPW_ALIGN_RIGHT) pad(out, columns - width);
        ipw_buf_add(out, ipw_buf_str(&clean), clean.len);
        if (align == IPW_ALIGN_LEFT) pad(out, columns - width);
    } else if (columns > 0) {
        while (i < clean.len) {
            size_t k = ipw_utf8_len(clean.data + i, clean.len - i);
            size_t c = ipw_text_columns(clean.data + i, k);

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

const char *ipw_style(enum ipw_style style, bool colour)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m", "\033[32m",
                                        "\033[31m", "\033[33m", "\033[36m"};

    return colour ? codes[style] : "";
}
