#include "json/write.h"

#include <string.h>

#include "base/text.h"
#include "json/scan.h"

enum {
    WORST = 6,  /* one byte of text becomes at most \u00XX */
    SLACK = 16, /* the code stores whole blocks of 16, even if fewer bytes count */
    PIECE = 1024,
    SMALL = 128,
    SHORT = 32,
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

static bool four_are_plain(const char *s)
{
    char twice[8];

    memcpy(twice, s, 4);
    memcpy(twice + 4, s, 4);
    return ipw_scan_word_is_plain(twice);
}

/* Writes s from *at until *at has reached `until` (or the end of a UTF-8 sequence that crosses it).
 * `to` has room for WORST * (until - *at) + SLACK bytes. */
static char *escape_run(char *to, const char *s, size_t *at, size_t until, size_t n)
{
    /* Ends a sequence that began before until. */
    size_t i = *at, whole = n - until > 3 ? until + 3 : n;

    while (i < until) {
        size_t k;

        if (until - i >= 16) {
            k = ipw_scan_plain16(s + i);
            memcpy(to, s + i, 16);
            to += k, i += k;
            if (k == 16) continue;
        } else if (until - i >= 8 && ipw_scan_word_is_plain(s + i)) {
            memcpy(to, s + i, 8);
            to += 8, i += 8;
            continue;
        } else if (until - i >= 4 && four_are_plain(s + i)) {
            memcpy(to, s + i, 4);
            to += 4, i += 4;
            continue;
        } else if (ipw_scan_is_plain(s[i])) {
            *to++ = s[i++];
            continue;
        }
        if ((unsigned char)s[i] < 0x80 && s[i]) {
            to = escape_byte(to, (unsigned char)s[i++]);
            continue;
        }
        k = s[i] ? ipw_scan_wide(s + i, whole - i) : 0; /* a reader could not return a NUL */
        memcpy(to, s + i, k);
        to += k, i += k;
        if (k == 0) {
            memcpy(to, "\xEF\xBF\xBD", 3);
            to += 3, i++;
        }
    }
    *at = i;
    return to;
}

/* Is all of a text of up to 32 bytes plain, as nearly all keys and words are? */
static bool is_plain(const char *s, size_t n)
{
    char ends[8];

    if (n >= 16) return ipw_scan_plain16(s) == 16 && ipw_scan_plain16(s + n - 16) == 16;
    if (n >= 8) return ipw_scan_word_is_plain(s) && ipw_scan_word_is_plain(s + n - 8);
    if (n >= 4) {
        memcpy(ends, s, 4);
        memcpy(ends + 4, s + n - 4, 4);
        return ipw_scan_word_is_plain(ends);
    }
    for (size_t i = 0; i < n; i++)
        if (!ipw_scan_is_plain(s[i])) return false;
    return true;
}

void ipw_json_escape(struct ipw_buf *out, const char *s, size_t n)
{
    size_t i = 0, start = out->len;
    char *to;

    if (n <= SHORT) {
        to = ipw_buf_room(out, n + 2);
        if (!to) return;
        if (is_plain(s, n)) {
            to[0] = to[n + 1] = '"';
            ipw_scan_copy(to + 1, s, n);
            ipw_buf_added(out, n + 2);
            return;
        }
    }
    if (n <= SMALL && out->max - out->len >= WORST * SMALL + SLACK + 2) {
        to = ipw_buf_room(out, WORST * n + SLACK + 2);
        if (!to) return;
        *to = '"';
        to = escape_run(to + 1, s, &i, n, n);
        *to++ = '"';
        ipw_buf_added(out, (size_t)(to - out->data) - start);
        return;
    }
    ipw_buf_addc(out, '"');
    while (i < n && !out->failed) {
        size_t piece = n - i < PIECE ? n - i : PIECE;
        size_t most = WORST * piece + SLACK;

        if (out->max - out->len >= most) {
            to = ipw_buf_room(out, most);
            ipw_buf_added(out, (size_t)(escape_run(to, s, &i, i + piece, n) - to));
        } else { /* near the limit, count only the bytes that are really written */
            char tmp[WORST * SMALL + SLACK];
            size_t until = i + (piece < SMALL ? piece : SMALL);
            ipw_buf_add(out, tmp, (size_t)(escape_run(tmp, s, &i, until, n) - tmp));
        }
    }
    ipw_buf_addc(out, '"');
    if (out->failed) ipw_buf_truncate(out, start);
}
