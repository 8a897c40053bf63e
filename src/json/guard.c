#include "json/guard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/number.h"
#include "json/scan.h"

enum {
    PLAIN_DIGITS = 15, /* a double holds every integer of so many digits exactly */
    COPY_MARGIN = 64,
};

struct walk {
    struct ipw_guard *g;
    const char *s;
    size_t n, i;
    size_t copied; /* source bytes that are already in g->copy */
    size_t nulls;  /* that cJSON gets: of the text, and in place of numbers */
    bool list;
    const char *const *unread; /* see ipw_guard_run(); NULL: none */
    /* The unread member that the walk is in, and the counts before it. */
    bool passing;
    size_t passing_at, values_before, strings_before;
    struct ipw_err *err;
};

static int refuse(struct walk *w, size_t at, const char *expected)
{
    unsigned char c = at < w->n ? (unsigned char)w->s[at] : 0;

    if (at >= w->n)
        return ipw_fail(w->err, IPW_EPARSE, "at byte %zu: expected %s, found the end of the text",
                        at, expected);
    if (c > 0x20 && c < 0x7F)
        return ipw_fail(w->err, IPW_EPARSE, "at byte %zu: expected %s, found '%c'", at, expected,
                        c);
    return ipw_fail(w->err, IPW_EPARSE, "at byte %zu: expected %s, found byte 0x%02X", at, expected,
                    c);
}

/* Gives cJSON `text` in place of the n source bytes at `at`. */
static void replace(struct walk *w, size_t at, size_t n, const char *text)
{
    struct ipw_buf *copy = &w->g->copy;
    size_t same = at - w->copied, more = strlen(text);
    char *to;

    if (!w->list) return;
    if (!copy->cap) ipw_buf_room(copy, w->n - w->copied + COPY_MARGIN);
    to = ipw_buf_room(copy, same + more);
    memcpy(to, w->s + w->copied, same);
    memcpy(to + same, text, more);
    ipw_buf_added(copy, same + more);
    w->copied = at + n;
}

static void repair(struct walk *w, size_t at, size_t n)
{
    w->g->repairs++;
    replace(w, at, n, "\xEF\xBF\xBD");
}

/* Reads the four hexadecimal digits at i; -1 if they are not. */
static int hex4(const struct walk *w, size_t i)
{
    int x = 0;

    if (w->n - i < 4) return -1;
    for (size_t end = i + 4; i < end; i++) {
        char c = w->s[i];
        if (c >= '0' && c <= '9')
            x = x * 16 + (c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            x = x * 16 + ((c | 0x20) - 'a' + 10);
        else
            return -1;
    }
    return x;
}

/* Reads an escape; w->i is at the backslash. */
static int escape(struct walk *w)
{
    size_t at = w->i;
    int unit, low;

    if (w->n - at < 2) return refuse(w, w->n, "the rest of an escape");
    switch (w->s[at + 1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': w->i += 2; return 0;
    case 'u': break;
    default: return refuse(w, at + 1, "one of \"\\/bfnrtu after a backslash");
    }
    unit = hex4(w, at + 2);
    if (unit < 0) return refuse(w, at + 2, "four hexadecimal digits after \\u");
    w->i += 6;
    if (unit >= 0xD800 && unit < 0xDC00 && w->n - w->i >= 6 && w->s[w->i] == '\\' &&
        w->s[w->i + 1] == 'u') {
        low = hex4(w, w->i + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            w->i += 6;
            return 0;
        }
    }
    /* Half a surrogate pair is not a character.  A NUL would end the string early for every C
     * function. */
    if (unit == 0 || (unit >= 0xD800 && unit < 0xE000)) repair(w, at, 6);
    return 0;
}

/* Reads a string; w->i is at the opening quote. */
static int string(struct walk *w)
{
    const char *p = w->s + w->i + 1, *end = w->s + w->n;

    w->g->strings++;
    for (;;) {
        p += ipw_scan_plain(p, (size_t)(end - p));
        if (p == end) return refuse(w, w->n, "'\"' at the end of a string");
        if (*p == '"') break;
        if (*p == '\\') {
            int rc;
            w->i = (size_t)(p - w->s);
            rc = escape(w);
            if (rc) return rc;
            p = w->s + w->i;
        } else if ((unsigned char)*p < 0x20) {
            return refuse(w, (size_t)(p - w->s), "an escape for a control character");
        } else {
            p += ipw_scan_wide(p, (size_t)(end - p));
            if (p < end && (unsigned char)*p >= 0x80) repair(w, (size_t)(p++ - w->s), 1);
        }
    }
    w->i = (size_t)(p - w->s) + 1;
    return 0;
}

static size_t digits(struct walk *w)
{
    size_t from = w->i;

    while (w->i < w->n && w->s[w->i] >= '0' && w->s[w->i] <= '9') w->i++;
    return w->i - from;
}

static void list_number(struct walk *w, size_t at, bool whole, bool plain)
{
    struct ipw_guard *g = w->g;
    struct ipw_guard_number *x;
    int64_t ignored;

    if (g->number_count == g->number_cap) {
        if (g->numbers == g->few) {
            g->number_cap = 0;
            g->numbers = NULL;
            IPW_GROW(g->numbers, g->number_cap, 4 * g->number_count);
            memcpy(g->numbers, g->few, sizeof g->few);
        } else {
            IPW_GROW(g->numbers, g->number_cap, g->number_count + 1);
        }
    }
    x = &g->numbers[g->number_count++];
    *x = (struct ipw_guard_number){.ordinal = w->nulls, .at = at, .n = w->i - at, .plain = plain};
    if (!plain) {
        x->is_int64 = whole && ipw_number_read_int(&ignored, w->s + at, x->n);
        g->number_bytes += x->n + 8;
    }
    replace(w, at, x->n, "null");
}

static int number(struct walk *w)
{
    size_t at = w->i, count;
    bool negative = w->s[at] == '-', whole = true, zero;

    w->i += negative;
    zero = w->i < w->n && w->s[w->i] == '0';
    if (zero) w->i++;
    count = zero ? 1 : digits(w);
    if (count == 0) return refuse(w, w->i, "a digit");
    if (w->i < w->n && w->s[w->i] == '.') {
        whole = false;
        w->i++;
        if (digits(w) == 0) return refuse(w, w->i, "a digit after the point");
    }
    if (w->i < w->n && (w->s[w->i] | 0x20) == 'e') {
        whole = false;
        w->i++;
        if (w->i < w->n && (w->s[w->i] == '+' || w->s[w->i] == '-')) w->i++;
        if (digits(w) == 0) return refuse(w, w->i, "a digit in the exponent");
    }
    if (zero && negative) whole = false;
    if (w->list) list_number(w, at, whole, whole && count <= PLAIN_DIGITS);
    w->nulls += w->list;
    return 0;
}

static int word(struct walk *w, const char *name, size_t n)
{
    if (w->n - w->i < n || memcmp(w->s + w->i, name, n) != 0) return refuse(w, w->i, "a value");
    w->i += n;
    return 0;
}

static int scalar(struct walk *w)
{
    if (w->i == w->n) return refuse(w, w->i, "a value");
    switch (w->s[w->i]) {
    case '"': return string(w);
    case 't': return word(w, "true", 4);
    case 'f': return word(w, "false", 5);
    case 'n': w->nulls += w->list; return word(w, "null", 4);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return number(w);
    default: return refuse(w, w->i, "a value");
    }
}

/* Returns the next byte that is not white space, or 0 at the end (a NUL byte is refused anyway). */
static inline char skip_space(struct walk *w)
{
    if (w->i < w->n && w->s[w->i] > ' ') return w->s[w->i];
    while (w->i < w->n) {
        char c = w->s[w->i];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
        w->i++;
    }
    return 0;
}

static int key(struct walk *w)
{
    int rc;

    if (skip_space(w) != '"') return refuse(w, w->i, "'\"' before a key");
    rc = string(w);
    if (rc) return rc;
    if (skip_space(w) != ':') return refuse(w, w->i, "':'");
    w->i++;
    return 0;
}

/* A member of the top object begins; its key was read from `at`. */
static void begin_member(struct walk *w, size_t at)
{
    size_t n = w->i - at;

    for (const char *const *name = w->unread; *name; name++) {
        size_t k = strlen(*name);

        if (n < k + 3 || w->s[at + 1 + k] != '"' || memcmp(w->s + at + 1, *name, k) != 0) continue;
        if (!memchr("{[\"", skip_space(w), 3)) return;
        w->passing = true;
        w->passing_at = w->i;
        w->values_before = w->g->values;
        w->strings_before = w->g->strings;
        w->list = false;
        return;
    }
}

/* Only the empty value in its place counts. */
static void end_member(struct walk *w)
{
    char open = w->s[w->passing_at];

    w->passing = false;
    w->list = true;
    w->g->values = w->values_before + 1;
    w->g->strings = w->strings_before + 1;
    replace(w, w->passing_at, w->i - w->passing_at,
            open == '{'   ? "{}"
            : open == '[' ? "[]"
                          : "\"\"");
}

/* Reads the key of the next member of an object that is `depth` levels deep. */
static int next_key(struct walk *w, unsigned depth)
{
    size_t at;
    int rc;

    skip_space(w);
    at = w->i;
    rc = key(w);
    if (!rc && w->unread && depth == 1) begin_member(w, at);
    return rc;
}

/* Reads one value with its content, without recursion: `closer` holds the closing bracket of each
 * open level. */
static int value(struct walk *w, unsigned max_depth)
{
    char closer[IPW_JSON_MAX_DEPTH];
    unsigned depth = 0;
    int rc;

    for (;;) {
        char c = skip_space(w);

        if (++w->g->values > IPW_JSON_MAX_VALUES)
            return ipw_fail(w->err, IPW_ELIMIT, "at byte %zu: more than %d values", w->i,
                            (int)IPW_JSON_MAX_VALUES);
        if (c == '{' || c == '[') {
            char close = c == '{' ? '}' : ']';
            if (depth == max_depth)
                return ipw_fail(w->err, IPW_ELIMIT, "at byte %zu: nested deeper than %u levels",
                                w->i, max_depth);
            w->i++;
            if (skip_space(w) != close) {
                closer[depth++] = close;
                if (close == '}' && (rc = next_key(w, depth))) return rc;
                continue;
            }
            w->i++;
        } else if ((rc = scalar(w))) {
            return rc;
        }
        for (;;) { /* after a value */
            if (w->passing && depth == 1) end_member(w);
            if (depth == 0) return 0;
            c = skip_space(w);
            if (c == ',') break;
            if (c != closer[depth - 1])
                return refuse(w, w->i, closer[depth - 1] == '}' ? "',' or '}'" : "',' or ']'");
            w->i++;
            depth--;
        }
        w->i++;
        if (closer[depth - 1] == '}' && (rc = next_key(w, depth))) return rc;
    }
}

int ipw_guard_run(struct ipw_guard *g, const char *text, size_t n, unsigned max_depth, bool list,
                  const char *const *unread, struct ipw_err *err)
{
    struct walk w = {.g = g, .s = text, .n = n, .list = list, .unread = unread, .err = err};
    size_t start, end;
    int rc;

    g->values = g->strings = g->repairs = 0;
    g->numbers = g->few;
    g->number_cap = sizeof g->few / sizeof *g->few;
    g->number_count = g->number_bytes = 0;
    /* Two bytes become at most six; the caller limits the length of the text. */
    g->copy = IPW_BUF(n > SIZE_MAX / 4 ? SIZE_MAX / 2 : 3 * n + 2 * COPY_MARGIN);
    g->bom = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
    if (g->bom) w.i = 3;

    skip_space(&w);
    start = w.copied = w.i;
    rc = value(&w, max_depth < IPW_JSON_MAX_DEPTH ? max_depth : IPW_JSON_MAX_DEPTH);
    if (rc) return rc;
    end = w.i;
    skip_space(&w);
    if (w.i < n) return refuse(&w, w.i, "nothing after the value");
    g->text = text + start;
    g->n = end - start;
    if (g->copy.len) {
        ipw_buf_add(&g->copy, text + w.copied, end - w.copied);
        g->text = g->copy.data;
        g->n = g->copy.len;
    }
    return 0;
}

void ipw_guard_release(struct ipw_guard *g)
{
    if (g->numbers != g->few) free(g->numbers);
    ipw_buf_release(&g->copy);
}
