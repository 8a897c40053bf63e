#include "json/write.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "json/number.h"
#include "json/scan.h"

void ipw_jw_init(struct ipw_jw *w, struct ipw_buf *out) { *w = (struct ipw_jw){.out = out}; }

/* Writes the separator before a value: a comma, unless a key or a bracket was just written. */
static void before(struct ipw_jw *w)
{
    if (w->comma) ipw_buf_add(w->out, ",", 1);
    w->comma = true;
}

static const char **last_key(struct ipw_jw *w)
{
    return w->depth < sizeof w->last_key / sizeof *w->last_key ? &w->last_key[w->depth] : NULL;
}

static void written(struct ipw_jw *w, const char *end)
{
    ipw_buf_added(w->out, (size_t)(end - w->out->data) - w->out->len);
}

static void open_level(struct ipw_jw *w, char bracket)
{
    char *p = ipw_buf_room(w->out, 2);

    if (p) {
        if (w->comma) *p++ = ',';
        *p++ = bracket;
        written(w, p);
    }
    w->comma = false;
    w->depth++;
    if (last_key(w)) *last_key(w) = NULL;
}

static void close_level(struct ipw_jw *w, char bracket)
{
    char *p = ipw_buf_room(w->out, 1);

    if (w->depth == 0) IPW_BUG("%c without its opening bracket", bracket);
    if (p) {
        *p++ = bracket;
        written(w, p);
    }
    w->comma = true;
    w->depth--;
}

void ipw_jw_obj(struct ipw_jw *w) { open_level(w, '{'); }
void ipw_jw_obj_end(struct ipw_jw *w) { close_level(w, '}'); }
void ipw_jw_arr(struct ipw_jw *w) { open_level(w, '['); }
void ipw_jw_arr_end(struct ipw_jw *w) { close_level(w, ']'); }

/* Writes the key with its comma and colon, and makes room for `more` bytes: returns where to write
 * them, or NULL at the limit.  Then call written(). */
static char *key_room(struct ipw_jw *w, const char *key, size_t n, size_t more)
{
    char *p = ipw_buf_room(w->out, n + 4 + more);

#ifndef NDEBUG
    const char **last = last_key(w);
    if (last) {
        if (*last && strcmp(*last, key) >= 0) IPW_BUG("key \"%s\" after key \"%s\"", key, *last);
        *last = key;
    }
#endif
    if (!p) return NULL;
    if (w->comma) *p++ = ',';
    *p++ = '"';
    if (n <= 32)
        ipw_scan_copy(p, key, n);
    else
        memcpy(p, key, n);
    p += n;
    *p++ = '"';
    *p++ = ':';
    return p;
}

void ipw_jw_key_n(struct ipw_jw *w, const char *key, size_t n)
{
    char *p = key_room(w, key, n, 0);

    if (p) written(w, p);
    w->comma = false;
}

void ipw_jw_key_any(struct ipw_jw *w, const char *key, size_t n)
{
    if (last_key(w)) *last_key(w) = NULL;
    before(w);
    ipw_json_escape(w->out, key, n);
    ipw_buf_add(w->out, ":", 1);
    w->comma = false;
}

void ipw_jw_str(struct ipw_jw *w, const char *s)
{
    if (s)
        ipw_jw_strn(w, s, strlen(s));
    else
        ipw_jw_null(w);
}

void ipw_jw_strn(struct ipw_jw *w, const char *s, size_t n)
{
    before(w);
    ipw_json_escape(w->out, s, n);
}

void ipw_jw_int(struct ipw_jw *w, int64_t i)
{
    char text[IPW_NUMBER_MAX];

    before(w);
    ipw_buf_add(w->out, text, ipw_number_int(text, i));
}

void ipw_json_double(struct ipw_buf *out, double x)
{
    char text[IPW_NUMBER_MAX];

    if (!isfinite(x)) {
        ipw_buf_add(out, "null", 4);
        return;
    }
    ipw_buf_add(out, text, ipw_number_double(text, x));
}

void ipw_jw_num(struct ipw_jw *w, double x)
{
    before(w);
    ipw_json_double(w->out, x);
}

void ipw_jw_bool(struct ipw_jw *w, bool b)
{
    before(w);
    ipw_buf_add(w->out, b ? "true" : "false", b ? 4 : 5);
}

void ipw_jw_null(struct ipw_jw *w)
{
    before(w);
    ipw_buf_add(w->out, "null", 4);
}

void ipw_jw_raw(struct ipw_jw *w, const char *json, size_t n)
{
    size_t start;

    before(w);
    start = w->out->len;
    if (ipw_buf_add(w->out, json, n)) return;
    /* A line break in a JSON text can only be white space between its parts.  In our file it would
     * end the line. */
    for (char *p = w->out->data + start, *end = p + n; (p = memchr(p, '\n', (size_t)(end - p)));)
        *p++ = ' ';
}

void ipw_jw_kstr_n(struct ipw_jw *w, const char *key, size_t n, const char *s)
{
    if (!s) {
        ipw_jw_knull_n(w, key, n);
        return;
    }
    ipw_jw_key_n(w, key, n);
    ipw_json_escape(w->out, s, strlen(s));
    w->comma = true;
}

/* Near the limit, count only the bytes that are really written. */
static bool is_tight(const struct ipw_buf *out) { return out->max - out->len < 1024; }

void ipw_jw_kint_n(struct ipw_jw *w, const char *key, size_t n, int64_t i)
{
    char *p;

    if (is_tight(w->out)) {
        ipw_jw_key_n(w, key, n);
        ipw_jw_int(w, i);
        return;
    }
    p = key_room(w, key, n, IPW_NUMBER_MAX);
    if (p) written(w, p + ipw_number_int(p, i));
    w->comma = true;
}

static inline void put_number(struct ipw_jw *w, const char *key, size_t n, double x,
                              size_t (*text)(char *to, double x))
{
    char *p;

    if (!isfinite(x)) {
        ipw_jw_knull_n(w, key, n);
        return;
    }
    if (is_tight(w->out)) {
        char number[IPW_NUMBER_MAX];

        ipw_jw_key_n(w, key, n);
        before(w);
        ipw_buf_add(w->out, number, text(number, x));
        return;
    }
    p = key_room(w, key, n, IPW_NUMBER_MAX);
    if (p) written(w, p + text(p, x));
    w->comma = true;
}

void ipw_jw_knum_n(struct ipw_jw *w, const char *key, size_t n, double x)
{
    put_number(w, key, n, x, ipw_number_double);
}

void ipw_jw_kmicro_n(struct ipw_jw *w, const char *key, size_t n, double x)
{
    put_number(w, key, n, x, ipw_number_micro);
}

void ipw_jw_kbool_n(struct ipw_jw *w, const char *key, size_t n, bool b)
{
    char *p = key_room(w, key, n, b ? 4 : 5);

    if (p) written(w, b ? mempcpy(p, "true", 4) : mempcpy(p, "false", 5));
    w->comma = true;
}

void ipw_jw_knull_n(struct ipw_jw *w, const char *key, size_t n)
{
    char *p = key_room(w, key, n, 4);

    if (p) written(w, mempcpy(p, "null", 4));
    w->comma = true;
}
