#include "base/secret.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The search is Wu and Manber's.  For each three bytes a table says how far the window may move
 * before any pattern can end there.  So a text without secrets is searched in steps of nearly the
 * shortest pattern's length. */
enum { SHORTEST = 8, ENOUGH = 16, BLOCK = 3, TABLE = 4096, MARK = 3, MAX_SECRET = 4096 };

struct form {
    char *bytes;
    size_t n;
    char fill; /* 0: replace by ***; else repeat this character */
};

static struct {
    struct form *forms;
    size_t n, cap;
    size_t shortest; /* length of the shortest form */
    uint8_t shift[TABLE];
} known;

static unsigned slot(const unsigned char *p)
{
    return ((unsigned)p[0] << 8 ^ (unsigned)p[1] << 4 ^ p[2]) & (TABLE - 1);
}

static void index_forms(void)
{
    size_t m = SIZE_MAX;

    for (size_t i = 0; i < known.n; i++)
        if (known.forms[i].n < m) m = known.forms[i].n;
    if (m > ENOUGH) m = ENOUGH;
    known.shortest = m;
    memset(known.shift, (int)(m - BLOCK + 1), sizeof known.shift);
    for (size_t i = 0; i < known.n; i++) {
        for (size_t k = 0; k + BLOCK <= m; k++) {
            uint8_t *at = &known.shift[slot((const unsigned char *)known.forms[i].bytes + k)];
            uint8_t left = (uint8_t)(m - BLOCK - k);

            if (left < *at) *at = left;
        }
    }
}

/* A number is masked by digits, so that a line of JSON stays valid. */
static char fill_of(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i])) return 0;
    return '1';
}

static void add_form(const char *s, size_t n)
{
    if (n < SHORTEST) return;
    for (size_t i = 0; i < known.n; i++)
        if (known.forms[i].n == n && memcmp(known.forms[i].bytes, s, n) == 0) return;
    IPW_GROW(known.forms, known.cap, known.n + 1);
    known.forms[known.n++] = (struct form){ipw_memdup(s, n), n, fill_of(s, n)};
}

/* ---- the forms ---- */

/* The text as a JSON string holds it; `slash`: also escape the slash, as some printers do. */
static void json_form(struct ipw_buf *out, const char *s, size_t n, bool slash)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c == '"' || c == '\\' || (c == '/' && slash))
            ipw_buf_addf(out, "\\%c", c);
        else if (c < 0x20)
            ipw_buf_addf(out, "\\u%04x", c);
        else
            ipw_buf_addc(out, (char)c);
    }
}

static void add_json(const char *s, size_t n, int depth)
{
    for (int slash = 0; slash < 2; slash++) {
        struct ipw_buf out = IPW_BUF(8 * MAX_SECRET * 6);

        json_form(&out, s, n, slash);
        add_form(ipw_buf_str(&out), out.len);
        if (depth > 1) add_json(ipw_buf_str(&out), out.len, depth - 1);
        ipw_buf_release(&out);
    }
}

/* Programs differ in the bytes that they leave unencoded: only the unreserved ones, or also those
 * that a query may contain. */
static void add_percent(const char *s, size_t n, const char *digits, const char *kept)
{
    struct ipw_buf out = IPW_BUF(4 * MAX_SECRET);

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if ((c < 0x80 && isalnum(c)) || (c && strchr(kept, c))) {
            ipw_buf_addc(&out, (char)c);
        } else {
            ipw_buf_addc(&out, '%');
            ipw_buf_addc(&out, digits[c >> 4]);
            ipw_buf_addc(&out, digits[c & 15]);
        }
    }
    add_form(ipw_buf_str(&out), out.len);
    ipw_buf_release(&out);
}

/* The characters of a base64 text that depend on this value alone, if `before` bytes (modulo 3)
 * precede it in the encoded text. */
static void add_base64(const char *s, size_t n, size_t before, const char *last_two)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    struct ipw_buf out = IPW_BUF(2 * MAX_SECRET);
    size_t first = (8 * before + 5) / 6, end = 8 * (before + n) / 6;

    for (size_t i = first; i < end; i++) {
        unsigned v = 0;

        for (size_t bit = 6 * i; bit < 6 * i + 6; bit++) {
            unsigned char byte = (unsigned char)s[bit / 8 - before];
            v = v << 1 | (byte >> (7 - bit % 8) & 1);
        }
        ipw_buf_addc(&out, v < 62 ? alphabet[v] : last_two[v - 62]);
    }
    add_form(ipw_buf_str(&out), out.len);
    if (memchr(ipw_buf_str(&out), '/', out.len)) add_json(ipw_buf_str(&out), out.len, 1);
    ipw_buf_release(&out);
}

/* The disguises that a program with the key may print to avoid this filter: the key reversed, as
 * hexadecimal digits, and with every byte percent-encoded. */
static void add_disguised(const char *s, size_t n)
{
    static const char *const digits[] = {"0123456789abcdef", "0123456789ABCDEF"};
    char *backwards = ipw_memdup(s, n);

    for (size_t i = 0; i < n; i++) backwards[i] = s[n - 1 - i];
    add_form(backwards, n);
    add_json(backwards, n, 2);
    free(backwards);
    for (int set = 0; set < 2; set++) {
        struct ipw_buf hex = IPW_BUF(2 * MAX_SECRET), percent = IPW_BUF(3 * MAX_SECRET);

        for (size_t i = 0; i < n; i++) {
            unsigned char c = (unsigned char)s[i];

            ipw_buf_addf(&hex, "%c%c", digits[set][c >> 4], digits[set][c & 15]);
            ipw_buf_addf(&percent, "%%%c%c", digits[set][c >> 4], digits[set][c & 15]);
        }
        add_form(ipw_buf_str(&hex), hex.len);
        add_form(ipw_buf_str(&percent), percent.len);
        ipw_buf_release(&hex);
        ipw_buf_release(&percent);
    }
}

static bool is_word(const char *s, size_t n)
{
    static const char *const words[] = {"lm-studio",       "not-needed",         "not-required",
                                        "no-key-required", "sk-no-key-required", NULL};

    if (n < SHORTEST || n > MAX_SECRET) return true;
    for (const char *const *w = words; *w; w++)
        if (strcmp(s, *w) == 0) return true;
    return false;
}

void ipw_secret_add(const char *value)
{
    size_t n = value ? strlen(value) : 0;

    if (!value || is_word(value, n)) return;
    add_form(value, n);
    add_json(value, n, 2);
    add_percent(value, n, "0123456789ABCDEF", "-_.~");
    add_percent(value, n, "0123456789abcdef", "-_.~");
    add_percent(value, n, "0123456789ABCDEF", "-_.~!$'()*,;:@/?");
    for (size_t before = 0; before < 3; before++) {
        add_base64(value, n, before, "+/");
        add_base64(value, n, before, "-_");
    }
    add_disguised(value, n);
    index_forms();
}

void ipw_secret_forget_all(void)
{
    for (size_t i = 0; i < known.n; i++) free(known.forms[i].bytes);
    free(known.forms);
    memset(&known, 0, sizeof known);
}

/* ---- the search ---- */

/* The length of the form's beginning at s.  A truncated message may end inside a secret, so its
 * first 16 bytes are enough; 0 if there are fewer. */
static size_t match(const struct form *f, const char *s, size_t n)
{
    size_t enough = f->n < ENOUGH ? f->n : ENOUGH, k;

    if (n < enough || f->bytes[0] != s[0] || memcmp(f->bytes, s, enough)) return 0;
    for (k = enough; k < n && k < f->n && s[k] == f->bytes[k]; k++) continue;
    return k;
}

static const struct form *form_at(const char *s, size_t n, size_t *len)
{
    const struct form *longest = NULL;

    *len = 0;
    for (size_t i = 0; i < known.n; i++) {
        size_t k = match(&known.forms[i], s, n);

        if (k > *len) {
            *len = k;
            longest = &known.forms[i];
        }
    }
    return longest;
}

/* The first occurrence at or after `at`; NULL if there is none. */
static const struct form *find(const char *text, size_t n, size_t *at, size_t *len)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t m = known.shortest, i = *at + m;

    while (i <= n) {
        size_t step = known.shift[slot(p + i - BLOCK)];

        if (step == 0) {
            const struct form *f = form_at(text + i - m, n - (i - m), len);
            if (f) {
                *at = i - m;
                return f;
            }
            step = 1;
        }
        i += step;
    }
    return NULL;
}

size_t ipw_secret_clean_bytes(char *text, size_t *n)
{
    size_t from = 0, to = 0, at = 0, count = 0, len;
    const struct form *f;

    if (!known.n) return 0;
    while ((f = find(text, *n, &at, &len)) != NULL) {
        size_t keep = f->fill ? len : MARK;

        if (to != from) memmove(text + to, text + from, at - from);
        to += at - from;
        memset(text + to, f->fill ? f->fill : '*', keep);
        to += keep;
        at += len;
        from = at;
        count++;
    }
    if (count) {
        memmove(text + to, text + from, *n - from);
        *n = to + (*n - from);
    }
    return count;
}

size_t ipw_secret_clean(struct ipw_buf *b, size_t from)
{
    size_t n = b->len - from, count;

    if (!known.n || !b->data || n == 0) return 0;
    count = ipw_secret_clean_bytes(b->data + from, &n);
    if (count) ipw_buf_truncate(b, from + n);
    return count;
}

size_t ipw_secret_clean_text(char *text)
{
    size_t n = strlen(text), count = ipw_secret_clean_bytes(text, &n);

    if (count) text[n] = '\0';
    return count;
}
