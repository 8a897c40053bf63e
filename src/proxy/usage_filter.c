#include "proxy/usage_filter.h"

#include <string.h>

#include "json/json.h"

enum { EVENT_MAX_BYTES = 1024 * 1024 };

void ipw_usage_filter_init(struct ipw_usage_filter *f)
{
    *f = (struct ipw_usage_filter){.event = IPW_BUF(EVENT_MAX_BYTES)};
}

void ipw_usage_filter_release(struct ipw_usage_filter *f) { ipw_buf_release(&f->event); }

/* {"choices": [], "usage": {...}} and nothing that a client could use. */
static bool is_usage_alone(const char *event, size_t n)
{
    struct ipw_json *doc = NULL;
    bool alone = false;

    while (n && (event[n - 1] == '\n' || event[n - 1] == '\r')) n--;
    if (n < 5 || strncmp(event, "data:", 5) != 0 || memchr(event, '\n', n)) return false;
    if (!memmem(event, n, "\"usage\"", 7)) return false;
    if (ipw_json_parse(&doc, event + 5, n - 5, NULL, NULL)) return false;
    alone = ipw_json_kind(ipw_json_get(doc, "usage")) == IPW_JSON_OBJ &&
            ipw_json_kind(ipw_json_get(doc, "choices")) == IPW_JSON_ARR &&
            !ipw_json_count(ipw_json_get(doc, "choices"));
    ipw_json_free(doc);
    return alone;
}

/* A quote inside of a JSON text stands behind a backslash, so these bytes are a member. */
static void add_without_null(struct ipw_buf *out, const char *event, size_t n)
{
    static const char *const members[] = {",\"usage\":null", ", \"usage\": null"};

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        size_t m = strlen(members[i]);
        const char *at = memmem(event, n, members[i], m);

        if (!at) continue;
        ipw_buf_add(out, event, (size_t)(at - event));
        ipw_buf_add(out, at + m, n - (size_t)(at - event) - m);
        return;
    }
    ipw_buf_add(out, event, n);
}

static void take_event(struct ipw_usage_filter *f, struct ipw_buf *out)
{
    const char *event = ipw_buf_str(&f->event);

    if (!is_usage_alone(event, f->event.len)) add_without_null(out, event, f->event.len);
    ipw_buf_clear(&f->event);
}

/* Whether the bytes end with a blank line. */
static bool ends_event(const struct ipw_buf *b)
{
    const char *s = b->data;
    size_t n = b->len;

    return (n >= 2 && s[n - 1] == '\n' && s[n - 2] == '\n') ||
           (n >= 4 && memcmp(s + n - 4, "\r\n\r\n", 4) == 0);
}

void ipw_usage_filter_feed(struct ipw_usage_filter *f, struct ipw_buf *out, const char *bytes,
                           size_t n)
{
    while (n) {
        const char *end = memchr(bytes, '\n', n);
        size_t line = end ? (size_t)(end - bytes) + 1 : n;

        if (f->passes) {
            ipw_buf_add(out, bytes, n);
            return;
        }
        if (ipw_buf_add(&f->event, bytes, line)) { /* no event of a model is so long */
            ipw_usage_filter_end(f, out);
            f->passes = true;
            continue;
        }
        if (ends_event(&f->event)) take_event(f, out);
        bytes += line;
        n -= line;
    }
}

void ipw_usage_filter_end(struct ipw_usage_filter *f, struct ipw_buf *out)
{
    f->event.failed = false;
    if (f->event.len) ipw_buf_add(out, f->event.data, f->event.len);
    ipw_buf_clear(&f->event);
}
