#include "io/sse.h"

#include <string.h>

/* The data buffer limits the bytes of an event, the line buffer those of one line.  A line over the
 * limit cannot belong to an event within the limit. */
void ipw_sse_init(struct ipw_sse *sse, size_t event_max_bytes, ipw_sse_fn on_event, void *ud)
{
    *sse = (struct ipw_sse){.on_event = on_event, .ud = ud};
    ipw_buf_init(&sse->line, event_max_bytes);
    ipw_buf_init(&sse->data, event_max_bytes);
}

void ipw_sse_release(struct ipw_sse *sse)
{
    ipw_buf_release(&sse->line);
    ipw_buf_release(&sse->data);
}

static int too_large(const struct ipw_sse *sse, struct ipw_err *err)
{
    return ipw_fail(err, IPW_ELIMIT, "a server-sent event is larger than %zu bytes", sse->data.max);
}

static int end_event(struct ipw_sse *sse, struct ipw_err *err)
{
    int rc = 0;

    if (sse->has_data) {
        struct ipw_sse_event event = {
            .name = sse->name, .data = ipw_buf_str(&sse->data), .data_len = sse->data.len};
        rc = sse->on_event(sse->ud, &event, err);
    }
    ipw_buf_clear(&sse->data);
    sse->has_data = false;
    sse->name[0] = '\0';
    return rc;
}

static int add_data(struct ipw_sse *sse, const char *value, size_t n, struct ipw_err *err)
{
    ipw_buf_expect(&sse->data, 500);
    if (sse->has_data) ipw_buf_addc(&sse->data, '\n');
    ipw_buf_add(&sse->data, value, n);
    sse->has_data = true;
    return sse->data.failed ? too_large(sse, err) : 0;
}

static int take_line(struct ipw_sse *sse, const char *line, size_t n, struct ipw_err *err)
{
    const char *colon, *value;
    size_t name_len, value_len;

    if (!sse->started) {
        sse->started = true;
        if (n >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
            line += 3;
            n -= 3;
        }
    }
    if (n == 0) return end_event(sse, err);
    if (line[0] == ':') {
        sse->comments++;
        return 0;
    }
    colon = memchr(line, ':', n);
    name_len = colon ? (size_t)(colon - line) : n;
    value = colon ? colon + 1 : line + n;
    value_len = n - (size_t)(value - line);
    if (value_len && value[0] == ' ') {
        value++;
        value_len--;
    }
    if (name_len == 4 && memcmp(line, "data", 4) == 0) return add_data(sse, value, value_len, err);
    if (name_len == 5 && memcmp(line, "event", 5) == 0) {
        /* Names are words.  Only the start of a longer name is kept; it matches no known name. */
        if (value_len > sizeof sse->name - 1) value_len = sizeof sse->name - 1;
        memcpy(sse->name, value, value_len);
        sse->name[value_len] = '\0';
    }
    return 0;
}

int ipw_sse_feed(struct ipw_sse *sse, const char *bytes, size_t n, struct ipw_err *err)
{
    const char *from = bytes, *end = bytes + n;
    const char *lf = NULL; /* the first LF from `from` on, or `end`: no byte is searched twice */

    while (from < end) {
        const char *stop;
        size_t part;
        int rc;

        if (sse->after_cr) {
            sse->after_cr = false;
            if (*from == '\n') {
                from++;
                continue;
            }
        }
        if (!lf || lf < from) lf = memchr(from, '\n', (size_t)(end - from));
        if (!lf) lf = end;
        stop = memchr(from, '\r', (size_t)(lf - from));
        if (!stop) stop = lf;
        part = (size_t)(stop - from);
        if (sse->line.failed || part > sse->line.max - sse->line.len) {
            sse->line.failed = true;
            return too_large(sse, err);
        }
        if (stop == end) {
            ipw_buf_add(&sse->line, from, part);
            return 0;
        }
        sse->after_cr = *stop == '\r';
        if (sse->line.len) {
            ipw_buf_add(&sse->line, from, part);
            rc = take_line(sse, sse->line.data, sse->line.len, err);
            ipw_buf_clear(&sse->line);
        } else {
            rc = take_line(sse, from, part, err);
        }
        if (rc) return rc;
        from = stop + 1;
    }
    return 0;
}

int ipw_sse_end(struct ipw_sse *sse, struct ipw_err *err)
{
    if (sse->line.len) {
        int rc = take_line(sse, sse->line.data, sse->line.len, err);
        ipw_buf_clear(&sse->line);
        if (rc) return rc;
    }
    return end_event(sse, err);
}
