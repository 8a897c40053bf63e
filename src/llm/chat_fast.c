/* The fast path of a stream.
 *
 * Servers send hundreds of events that differ in one string only.  If an event was read in full
 * (parsed, or by chat_scan.c) and only appended one string, its bytes before and after that string
 * are kept as its shape.  An event with the same bytes around another string is the same JSON value
 * with another string.  So parsing it would only append that string.  This holds because:
 *   - the string is found in a text that the JSON guard accepted without a repair, by member names
 *     that occur once in their object and have no escapes;
 *   - id and model keep their first non-empty value, which was already seen;
 *   - an element of tool_calls belongs to the same call again: it has an index, or neither id nor
 *     name (chat_fold_call.c).  Every event that could change this takes the full path, which
 *     forgets the shape;
 *   - an empty string, and a string with more than printable text and simple escapes, takes the
 *     full path.
 * tests/unit/llm/test_chat_fast.c compares both paths over all captures and over mutated events. */
#include "llm/chat_priv.h"

#include <string.h>

#include "base/utf8.h"

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* p is an opening quote.  Returns the byte after the closing quote, or NULL. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == '"')
            return p + 1;
    }
    return NULL;
}

/* Returns the end of the value at p.  The text must be valid JSON. */
static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;

    while (p && p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            if (depth == 0) return p;
            continue;
        }
        if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            if (depth == 0) return p;
            if (--depth == 0) return p + 1;
        } else if (depth == 0 &&
                   (*p == ',' || *p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) {
            return p;
        }
        p++;
    }
    return p;
}

/* The value of the member `key` of the object at p; NULL if there is not exactly one. */
static const char *find_member(const char *p, const char *end, const char *key)
{
    size_t key_n = strlen(key);
    const char *found = NULL;

    if (!p || p >= end || *p != '{') return NULL;
    p = skip_space(p + 1, end);
    while (p && p < end && *p == '"') {
        const char *name = p + 1, *after = skip_string(p, end);
        size_t name_n;
        bool same;

        if (!after) return NULL;
        name_n = (size_t)(after - 1 - name);
        if (memchr(name, '\\', name_n)) return NULL; /* an escaped name can be any name */
        same = name_n == key_n && memcmp(name, key, key_n) == 0;
        p = skip_space(after, end);
        if (p >= end || *p != ':') return NULL;
        p = skip_space(p + 1, end);
        if (same && found) return NULL;
        if (same) found = p;
        p = skip_value(p, end);
        if (!p) return NULL;
        p = skip_space(p, end);
        if (p < end && *p == ',') p = skip_space(p + 1, end);
    }
    return found;
}

/* The element of the array at p; NULL if there is not exactly one. */
static const char *only_element(const char *p, const char *end)
{
    const char *element, *after;

    if (!p || p >= end || *p != '[') return NULL;
    element = skip_space(p + 1, end);
    after = skip_value(element, end);
    if (!after) return NULL;
    after = skip_space(after, end);
    return after < end && *after == ']' ? element : NULL;
}

void ipw_chat_fast_learn(struct ipw_chat_fold *fold, const char *data, size_t n)
{
    struct ipw_chat_shape *shape = &fold->shape;
    const char *end = data + n, *p = skip_space(data, end), *after;

    shape->ready = false;
    if (fold->did.appends != 1 || !fold->did.field) return;
    p = only_element(find_member(p, end, "choices"), end);
    p = find_member(p, end, "delta");
    if (fold->did.kind == IPW_SEEN_CALL) {
        p = only_element(find_member(p, end, "tool_calls"), end);
        p = find_member(p, end, "function");
    }
    p = find_member(p, end, fold->did.field);
    if (!p || p >= end || *p != '"') return;
    after = skip_string(p, end);
    if (after) ipw_chat_fast_keep(fold, data, n, p + 1, (size_t)(after - 1 - (p + 1)));
}

void ipw_chat_fast_keep(struct ipw_chat_fold *fold, const char *data, size_t n, const char *body,
                        size_t body_n)
{
    struct ipw_chat_shape *shape = &fold->shape;

    ipw_buf_clear(&shape->head);
    ipw_buf_clear(&shape->tail);
    ipw_buf_add(&shape->head, data, (size_t)(body - data));
    ipw_buf_add(&shape->tail, body + body_n, (size_t)(data + n - (body + body_n)));
    shape->kind = fold->did.kind;
    shape->call = fold->did.call;
    shape->ready = !shape->head.failed && !shape->tail.failed;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Writes \uXXXX (s is after the u) as UTF-8.  0: the full path must decide. */
static size_t unescape_unicode(char *to, const char *s, size_t n)
{
    unsigned code = 0;

    if (n < 4) return 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(s[i]);

        if (digit < 0) return 0;
        code = code * 16 + (unsigned)digit;
    }
    if (code == 0 || (code >= 0xd800 && code <= 0xdfff)) return 0;
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | (code >> 6));
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    to[0] = (char)(0xe0 | (code >> 12));
    to[1] = (char)(0x80 | ((code >> 6) & 0x3f));
    to[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

static char unescape_simple(char c)
{
    switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    }
    return 0;
}

bool ipw_chat_unescape(char *to, size_t *written, const char *s, size_t n)
{
    size_t i = 0, o = 0;

    while (i < n) {
        unsigned char c = (unsigned char)s[i];

        if (c == '\\') {
            size_t k;

            if (i + 1 >= n) return false;
            if (s[i + 1] == 'u') {
                k = unescape_unicode(to + o, s + i + 2, n - i - 2);
                if (k == 0) return false;
                o += k;
                i += 6;
            } else {
                to[o] = unescape_simple(s[i + 1]);
                if (to[o++] == 0) return false;
                i += 2;
            }
        } else if (c < 0x20 || c == '"') {
            return false;
        } else if (c < 0x80) {
            to[o++] = (char)c;
            i++;
        } else {
            size_t k = ipw_utf8_len(s + i, n - i);

            if (k == 0) return false;
            memcpy(to + o, s + i, k);
            o += k;
            i += k;
        }
    }
    *written = o;
    return true;
}

int ipw_chat_fast(struct ipw_chat_fold *fold, const char *data, size_t n)
{
    struct ipw_chat_shape *shape = &fold->shape;
    size_t head = shape->head.len, tail = shape->tail.len, body, written = 0;
    struct ipw_buf *to;
    char *room;

    if (!shape->ready || n <= head + tail) return 0;
    body = n - head - tail;
    if (body > fold->left) return 0;
    if (memcmp(data, shape->head.data, head) != 0) return 0;
    if (memcmp(data + n - tail, shape->tail.data, tail) != 0) return 0;
    if (shape->kind == IPW_SEEN_TEXT)
        to = &fold->reply.text;
    else if (shape->kind == IPW_SEEN_REASONING)
        to = &fold->reply.reasoning;
    else
        to = &fold->reply.calls[shape->call].arguments;
    room = ipw_buf_room(to, body);
    if (!room) return 0;
    if (!ipw_chat_unescape(room, &written, data + head, body)) {
        *room = '\0'; /* the buffer is always a C string */
        return 0;
    }
    ipw_buf_added(to, written);
    fold->left -= written;
    fold->reply.chunks++;
    return (int)shape->kind;
}
