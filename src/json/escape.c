#include "json/write.h"

#include <string.h>

#include "json/scan.h"

enum {
    WORST = 6, /* one byte of text becomes at most \u00XX */
    PIECE = 256,
};

static char *escape_byte(char *to, unsigned char c)
{
    static const char letters[] = "btn\0fr"; /* 0x08 to 0x0D; 0x0B has no letter */
    static const char hex[] = "0123456789abcdef";

    *to++ = '\\';
    if (c == '"' || c == '\\') {
        *to++ = (char)c;
    } else if (c >= 0x08 && c <= 0x0D && letters[c - 0x08]) {
        *to++ = letters[c - 0x08];
    } else {
        memcpy(to, "u00", 3);
        to[3] = hex[c >> 4];
        to[4] = hex[c & 15];
        to += 5;
    }
    return to;
}

/* Writes one byte that is not plain, or a UTF-8 sequence of at most `n` bytes; returns how many
 * bytes of the text it was. */
static size_t escape_next(char **to, const char *s, size_t n)
{
    size_t k;

    if ((unsigned char)*s < 0x80 && *s) {
        *to = escape_byte(*to, (unsigned char)*s);
        return 1;
    }
    k = *s ? ipw_scan_wide(s, n) : 0; /* a reader could not return a NUL */
    *to = k ? mempcpy(*to, s, k) : mempcpy(*to, "\xEF\xBF\xBD", 3);
    return k ? k : 1;
}

void ipw_json_escape(struct ipw_buf *out, const char *s, size_t n)
{
    size_t start = out->len;

    if (ipw_scan_plain(s, n) == n) { /* as nearly all keys and words are */
        char *p = ipw_buf_room(out, n + 2);

        if (!p) return;
        *p = '"';
        p = mempcpy(p + 1, s, n);
        *p = '"';
        ipw_buf_added(out, n + 2);
        return;
    }
    ipw_buf_addc(out, '"');
    for (size_t i = 0; i < n && !out->failed;) {
        size_t plain = ipw_scan_plain(s + i, n - i);
        char odd[WORST * PIECE], *to = odd;

        if (plain) ipw_buf_add(out, s + i, plain);
        for (i += plain; i < n && to < odd + sizeof odd / 2 && !ipw_scan_is_plain(s[i]);)
            i += escape_next(&to, s + i, n - i < PIECE ? n - i : PIECE);
        ipw_buf_add(out, odd, (size_t)(to - odd));
    }
    ipw_buf_addc(out, '"');
    if (out->failed) ipw_buf_truncate(out, start);
}
