#include "json/write.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "json/number.h"

void ipw_jw_init(struct ipw_jw *w, struct ipw_buf *out) { *w = (struct ipw_jw){.out = out}; }

/* Writes the separator before a value: a comma, unless a key or a bracket was just written. */
static void before(struct ipw_jw *w)
{
    if (w->comma) ipw_buf_addc(w->out, ',');
    w->comma = true;
}

static const char **last_key(struct ipw_jw *w)
{
    return w->depth < sizeof w->last_key / sizeof *w->last_key ? &w->last_key[w->depth] : NULL;
}

static void open_level(struct ipw_jw *w, char bracket)
{
    before(w);
    ipw_buf_addc(w->out, bracket);
    w->comma = false;
    w->depth++;
    if (last_key(w)) *last_key(w) = NULL;
}

static void close_level(struct ipw_jw *w, char bracket)
{
    if (w->depth == 0) IPW_BUG("%c without its opening bracket", bracket);
    ipw_buf_addc(w->out, bracket);
    w->comma = true;
    w->depth--;
}

void ipw_jw_obj(struct ipw_jw *w) { open_level(w, '{'); }
void ipw_jw_obj_end(struct ipw_jw *w) { close_level(w, '}'); }
void ipw_jw_arr(struct ipw_jw *w) { open_level(w, '['); }
void ipw_jw_arr_end(struct ipw_jw *w) { close_level(w, ']'); }

void ipw_jw_key(struct ipw_jw *w, const char *key)
{
    size_t n = strlen(key);
    char *p = ipw_buf_room(w->out, n + 4), *start = p;

#ifndef NDEBUG
    const char **last = last_key(w);
    if (last) {
        if (*last && strcmp(*last, key) >= 0) IPW_BUG("key \"%s\" after key \"%s\"", key, *last);
        *last = key;
    }
#endif
    if (p) {
        if (w->comma) *p++ = ',';
        *p++ = '"';
        p = mempcpy(p, key, n);
        *p++ = '"';
        *p++ = ':';
        ipw_buf_added(w->out, (size_t)(p - start));
    }
    w->comma = false;
}

void ipw_jw_key_any(struct ipw_jw *w, const char *key, size_t n)
{
    if (last_key(w)) *last_key(w) = NULL;
    before(w);
    ipw_json_escape(w->out, key, n);
    ipw_buf_addc(w->out, ':');
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

    if (isfinite(x))
        ipw_buf_add(out, text, ipw_number_double(text, x));
    else
        ipw_buf_add(out, "null", 4);
}

void ipw_jw_num(struct ipw_jw *w, double x)
{
    before(w);
    ipw_json_double(w->out, x);
}

void ipw_jw_micro(struct ipw_jw *w, double x)
{
    char text[IPW_NUMBER_MAX];

    if (!isfinite(x)) {
        ipw_jw_null(w);
        return;
    }
    before(w);
    ipw_buf_add(w->out, text, ipw_number_micro(text, x));
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
