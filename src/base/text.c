#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uniwidth.h>

#include "base/utf8.h"

struct unit {
    const char *name;
    double factor;
};

static int parse_number_with_unit(double *out, const char *text, const struct unit *units,
                                  const char *what, const char *examples, struct ipw_err *err)
{
    char *end;
    double x;

    /* strtod also accepts spaces, signs, words and hexadecimal numbers. */
    if ((isdigit((unsigned char)text[0]) || text[0] == '.') && (text[1] | 0x20) != 'x') {
        x = strtod(text, &end);
        for (const struct unit *u = units; u->name; u++) {
            if (strcmp(end, u->name) == 0 && isfinite(x)) {
                *out = x * u->factor;
                return 0;
            }
        }
    }
    return ipw_fail(err, IPW_EINVAL, "'%s' is not %s (examples: %s)", text, what, examples);
}

int ipw_parse_duration_ns(int64_t *out, const char *text, struct ipw_err *err)
{
    static const struct unit units[] = {{"", 1e9},   {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                                        {"ns", 1.0}, {"m", 60e9}, {"h", 3600e9}, {NULL, 0}};
    double ns;
    int rc = parse_number_with_unit(&ns, text, units, "a duration", "30s, 500ms, 2m", err);

    if (rc) return rc;
    if (ns > 9e18) return ipw_fail(err, IPW_EINVAL, "'%s' is too long a duration", text);
    *out = (int64_t)(ns + 0.5);
    return 0;
}

int ipw_parse_bytes(size_t *out, const char *text, struct ipw_err *err)
{
    static const struct unit units[] = {{"", 1},
                                        {"B", 1},
                                        {"K", 1024.0},
                                        {"KB", 1024.0},
                                        {"KiB", 1024.0},
                                        {"k", 1024.0},
                                        {"M", 1048576.0},
                                        {"MB", 1048576.0},
                                        {"MiB", 1048576.0},
                                        {"G", 1073741824.0},
                                        {"GB", 1073741824.0},
                                        {"GiB", 1073741824.0},
                                        {NULL, 0}};
    double bytes;
    int rc = parse_number_with_unit(&bytes, text, units, "a size", "64K, 2M, 4096", err);

    if (rc) return rc;
    if (bytes > 1e15) return ipw_fail(err, IPW_EINVAL, "'%s' is too large a size", text);
    *out = (size_t)bytes;
    return 0;
}

int ipw_parse_joules(double *out, const char *text, struct ipw_err *err)
{
    static const struct unit units[] = {
        {"", 1},       {"J", 1},       {" J", 1},       {"mJ", 1e-3}, {" mJ", 1e-3},
        {"kJ", 1e3},   {" kJ", 1e3},   {"MJ", 1e6},     {" MJ", 1e6}, {"Wh", 3600},
        {" Wh", 3600}, {"kWh", 3.6e6}, {" kWh", 3.6e6}, {NULL, 0}};
    double j;
    int rc =
        parse_number_with_unit(&j, text, units, "an energy", "500J, 2kJ, 1MJ, 3Wh, 0.2kWh", err);

    if (rc) return rc;
    if (!(j > 0) || j > 1e18)
        return ipw_fail(err, IPW_EINVAL, "'%s' is not an energy above zero", text);
    *out = j;
    return 0;
}

int ipw_parse_int(int64_t *out, const char *text, int64_t min, int64_t max, struct ipw_err *err)
{
    const char *digits = text[0] == '-' || text[0] == '+' ? text + 1 : text;
    char *end;
    long long x;

    errno = 0;
    x = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)digits[0]) || *end)
        return ipw_fail(err, IPW_EINVAL, "'%s' is not a whole number", text);
    if (x < min && max == INT64_MAX)
        return ipw_fail(err, IPW_EINVAL, "%s is less than %lld", text, (long long)min);
    if (errno == ERANGE || x < min || x > max)
        return ipw_fail(err, IPW_EINVAL, "%s is outside %lld to %lld", text, (long long)min,
                        (long long)max);
    *out = x;
    return 0;
}

int ipw_parse_double(double *out, const char *text, struct ipw_err *err)
{
    static const struct unit none[] = {{"", 1}, {NULL, 0}};
    bool negative = text[0] == '-';
    double x;

    if (parse_number_with_unit(&x, text + negative, none, "", "", NULL))
        return ipw_fail(err, IPW_EINVAL, "'%s' is not a number (examples: 0.7, 1, 2.5e-3)", text);
    *out = negative ? -x : x;
    return 0;
}

/* Optimal string alignment distance, with its rows on the stack; names over 63 bytes never
 * match. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    size_t n = strlen(a), m = strlen(b);
    size_t rows[3][MAX];
    size_t *prev2 = rows[0], *prev = rows[1], *cur = rows[2];

    if (n >= MAX || m >= MAX) return MAX;
    for (size_t j = 0; j <= m; j++) prev[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *t;
        cur[0] = i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            size_t best = prev[j - 1] + (x != y);
            if (prev[j] + 1 < best) best = prev[j] + 1;
            if (cur[j - 1] + 1 < best) best = cur[j - 1] + 1;
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                tolower((unsigned char)a[i - 2]) == y && prev2[j - 2] + 1 < best)
                best = prev2[j - 2] + 1;
            cur[j] = best;
        }
        t = prev2, prev2 = prev, prev = cur, cur = t;
    }
    return prev[m];
}

/* Is `end` what stands behind a dash of the name, and more than one word itself? */
static bool is_last_words(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n > m && name[n - m - 1] == '-' && strchr(end, '-') && strcmp(name + n - m, end) == 0;
}

const char *ipw_nearest(const char *name, const char *const *candidates)
{
    const char *best = NULL;
    size_t best_distance = 0, n = strlen(name);

    for (; *candidates; candidates++) {
        size_t d = edit_distance(name, *candidates);
        size_t limit = (n > 3 ? 2 : 1) + n / 6;
        /* A partly typed word is a slip as well: "temp" for "temperature". */
        if (n >= 3 && strncmp(name, *candidates, n) == 0 && d > limit) d = limit;
        /* And a word too many before it: "query-energy-limit" for "energy-limit". */
        if (is_last_words(name, *candidates)) d = 1;
        if (d <= limit && (!best || d < best_distance)) {
            best = *candidates;
            best_distance = d;
        }
    }
    return best;
}

bool ipw_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

void ipw_slug(struct ipw_buf *out, const char *text)
{
    size_t start = out->len;

    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool keep = c >= 0x80 || isalnum(c);
        if (!keep && out->len == start) continue;
        ipw_buf_addc(out, keep ? *p : '_');
    }
    while (out->len > start && out->data[out->len - 1] == '_') ipw_buf_truncate(out, out->len - 1);
    if (out->len == start) ipw_buf_adds(out, "model");
}

size_t ipw_utf8_clean(struct ipw_buf *out, const char *s, size_t n)
{
    size_t replaced = 0;

    for (size_t i = 0, from = 0; i <= n;) {
        size_t k = i < n ? ipw_utf8_len(s + i, n - i) : 0;
        if (k) {
            i += k;
            continue;
        }
        ipw_buf_add(out, s + from, i - from);
        if (i < n) {
            ipw_buf_adds(out, "\xEF\xBF\xBD");
            replaced++;
        }
        from = ++i;
    }
    return replaced;
}

static bool is_bidi_mark(unsigned cp)
{
    return (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069) || cp == 0x200E ||
           cp == 0x200F || cp == 0x061C;
}

static unsigned decode(const char *s, size_t k)
{
    const unsigned char *p = (const unsigned char *)s;

    switch (k) {
    case 2: return (p[0] & 0x1FU) << 6 | (p[1] & 0x3FU);
    case 3: return (p[0] & 0x0FU) << 12 | (p[1] & 0x3FU) << 6 | (p[2] & 0x3FU);
    case 4:
        return (p[0] & 0x07U) << 18 | (p[1] & 0x3FU) << 12 | (p[2] & 0x3FU) << 6 | (p[3] & 0x3FU);
    default: return p[0];
    }
}

/* Appends one character, or what stands for one that a terminal would obey. */
static void add_harmless(struct ipw_buf *out, const char *s, size_t k, unsigned cp)
{
    if (!k)
        ipw_buf_adds(out, "\xEF\xBF\xBD");
    else if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || is_bidi_mark(cp))
        ipw_buf_addf(out, "\\u{%x}", cp);
    else
        ipw_buf_add(out, s, k);
}

void ipw_text_printable(struct ipw_buf *out, const char *s, size_t n, size_t max_columns)
{
    size_t columns = 0;

    for (size_t i = 0; i < n; columns++) {
        size_t k = ipw_utf8_len(s + i, n - i);
        unsigned cp = k ? decode(s + i, k) : 0xFFFD;

        if (max_columns && columns + 1 >= max_columns && i + (k ? k : 1) < n) {
            ipw_buf_adds(out, "\xE2\x80\xA6");
            return;
        }
        if (cp == '\n' || cp == '\t' || cp == '\r')
            ipw_buf_addc(out, ' ');
        else
            add_harmless(out, s + i, k, cp);
        i += k ? k : 1;
    }
}

/* The length of a colour as our own tables use it: ESC, '[', one or two digits, 'm'; 0: it is none.
 * 8 would hide text. */
static size_t colour_len(const char *s, size_t n)
{
    size_t k = 2;

    if (n < 4 || s[0] != '\x1b' || s[1] != '[' || (s[2] == '8' && s[3] == 'm')) return 0;
    while (k < n && k < 4 && s[k] >= '0' && s[k] <= '9') k++;
    return k > 2 && k < n && s[k] == 'm' ? k + 1 : 0;
}

void ipw_text_shown(struct ipw_buf *out, const char *s, size_t n, bool terminal)
{
    for (size_t i = 0; i < n;) {
        size_t k = ipw_utf8_len(s + i, n - i), colour = colour_len(s + i, n - i);
        bool kept = s[i] == '\n' || s[i] == '\t' ||
                    (s[i] == '\r' && i + 1 < n && s[i + 1] == '\n') ||
                    (!terminal && s[i] != '\x1b');

        if (colour || kept)
            ipw_buf_add(out, s + i, colour ? colour : k ? k : 1);
        else
            add_harmless(out, s + i, k, k ? decode(s + i, k) : 0);
        i += colour ? colour : k ? k : 1;
    }
}

void ipw_text_shell_word(struct ipw_buf *out, const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+=,-";

    if (*s && s[strspn(s, plain)] == '\0') {
        ipw_buf_adds(out, s);
        return;
    }
    ipw_buf_addc(out, '\'');
    for (; *s; s++) {
        if (*s == '\'')
            ipw_buf_adds(out, "'\\''");
        else
            ipw_buf_addc(out, *s);
    }
    ipw_buf_addc(out, '\'');
}

/* Length up to the next blank that may become a line break. */
static size_t word_length(const char *s)
{
    size_t n = strcspn(s, " \n`");

    while (s[n] == '`') {
        const char *end = strpbrk(s + n + 1, "`\n");

        if (!end || *end != '`') return n + strcspn(s + n, " \n");
        n = (size_t)(end - s) + 1;
        n += strcspn(s + n, " \n`");
    }
    return n;
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

size_t ipw_text_columns(const char *s, size_t n)
{
    size_t columns = 0;

    for (size_t i = 0, k; i < n; i += k ? k : 1) {
        ucs4_t c = (unsigned char)s[i];
        int width = 1;

        if (c < 0x80) {
            k = style_length(s + i, n - i);
            columns += !k;
            continue;
        }
        k = ipw_utf8_len(s + i, n - i);
        c &= 0xFFu >> (k + 1);
        for (size_t m = 1; m < k; m++) c = c << 6 | ((unsigned char)s[i + m] & 0x3F);
        if (k) width = uc_width(c, "UTF-8");
        columns += width > 0 ? (size_t)width : 0;
    }
    return columns;
}

void ipw_text_wrapped(struct ipw_buf *out, const char *s, size_t at, size_t indent, size_t columns)
{
    while (*s) {
        size_t n, wide;

        if (at == 0 && *s == ' ') { /* an indented line stays unchanged */
            n = strcspn(s, "\n");
            ipw_buf_add(out, s, n);
            s += n;
        }
        if (*s == '\n') {
            ipw_buf_addc(out, '\n');
            s++;
            at = 0;
            continue;
        }
        n = strspn(s, " ");
        wide = n + ipw_text_columns(s + n, word_length(s + n));
        if (at && n && s[n] && at + wide > columns) {
            ipw_buf_addf(out, "\n%*s", (int)indent, "");
            s += n;
            at = indent;
            wide -= n;
            n = 0;
        }
        n += word_length(s + n);
        ipw_buf_add(out, s, n);
        s += n;
        at += wide;
    }
}

void ipw_text_hex(struct ipw_buf *out, const char *s, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        ipw_buf_addc(out, digits[(unsigned char)s[i] >> 4]);
        ipw_buf_addc(out, digits[(unsigned char)s[i] & 15]);
    }
}

static int hex_digit(char c) { return (c <= '9' ? c - '0' : c - 'a' + 10) & 15; }

void ipw_text_unhex(char *to, const char *s, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        to[i / 2] = (char)(hex_digit(s[i]) << 4 | hex_digit(s[i + 1]));
}
