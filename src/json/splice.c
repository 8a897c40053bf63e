#include "json/splice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static struct ipw_splice_member *add(struct ipw_splice *s, const char *key)
{
    size_t i = s->n;

    if (s->n == IPW_SPLICE_MOST) IPW_BUG("too many members are spliced into a line");
    for (; i > 0 && strcmp(s->members[i - 1].key, key) > 0; i--) s->members[i] = s->members[i - 1];
    s->n++;
    s->members[i] = (struct ipw_splice_member){.key = key};
    return &s->members[i];
}

void ipw_splice_text(struct ipw_splice *s, const char *key, const char *text)
{
    add(s, key)->text = text;
}

void ipw_splice_int(struct ipw_splice *s, const char *key, int64_t value)
{
    struct ipw_splice_member *m = add(s, key);

    snprintf(m->number, sizeof m->number, "%" PRId64, value);
}

/* Behind the string that begins at p; NULL: it does not end. */
static const char *behind_string(const char *p, const char *end)
{
    for (p++; p < end;) {
        const char *quote = memchr(p, '"', (size_t)(end - p)), *slash;

        if (!quote) return NULL;
        slash = memchr(p, '\\', (size_t)(quote - p));
        if (!slash) return quote + 1;
        p = slash + 2; /* whatever is escaped */
    }
    return NULL;
}

/* Behind the value that begins at p. */
static const char *behind_value(const char *p, const char *end)
{
    size_t depth = 0;

    while (p && p < end) {
        switch (*p) {
        case '"': p = behind_string(p, end); continue;
        case '{':
        case '[': depth++; break;
        case '}':
        case ']':
            if (!depth) return p;
            depth--;
            break;
        case ',':
            if (!depth) return p;
            break;
        default: break;
        }
        p++;
    }
    return NULL;
}

static void put(struct ipw_buf *out, const struct ipw_splice_member *m, bool *comma)
{
    if (m->text && !*m->text) return;
    if (*comma) ipw_buf_addc(out, ',');
    *comma = true;
    ipw_buf_addc(out, '"');
    ipw_buf_adds(out, m->key);
    ipw_buf_adds(out, "\":");
    ipw_buf_adds(out, m->text ? m->text : m->number);
}

/* How the member's key (n bytes, with its quotes) stands to that of a splice. */
static int compare(const char *key, size_t n, const struct ipw_splice_member *m)
{
    size_t length = strlen(m->key);
    int order = memcmp(key + 1, m->key, n - 2 < length ? n - 2 : length);

    return order ? order : (n - 2 > length) - (n - 2 < length);
}

bool ipw_splice_write(struct ipw_buf *out, const struct ipw_splice *s, const char *text, size_t n)
{
    const char *p = text + 1, *end = text + n;
    size_t next = 0;
    bool comma = false;

    if (n < 2 || *text != '{') return false;
    ipw_buf_addc(out, '{');
    while (p < end && *p == '"') {
        const char *key = p, *colon = behind_string(p, end);
        const char *value_end = colon && colon < end ? behind_value(colon + 1, end) : NULL;
        size_t key_n;

        if (!value_end || *colon != ':') return false;
        key_n = (size_t)(colon - key);
        while (next < s->n && compare(key, key_n, &s->members[next]) > 0)
            put(out, &s->members[next++], &comma);
        if (next < s->n && compare(key, key_n, &s->members[next]) == 0) {
            put(out, &s->members[next++], &comma);
        } else {
            if (comma) ipw_buf_addc(out, ',');
            comma = true;
            ipw_buf_add(out, key, (size_t)(value_end - key));
        }
        p = *value_end == ',' ? value_end + 1 : value_end;
    }
    while (next < s->n) put(out, &s->members[next++], &comma);
    ipw_buf_addc(out, '}');
    return p < end && *p == '}';
}
