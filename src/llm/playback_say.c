/* Describes divergences for messages. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/diff.h"
#include "llm/playback_priv.h"

enum { BEFORE_BYTES = 40, SHOWN_COLUMNS = 96, MAX_BYTES = 512 * 1024 * 1024 };

static void say(struct ipw_buf *out, const struct ipw_event *e)
{
    ipw_buf_adds(out, ipw_event_name(e->kind));
    if (e->kind == IPW_EV_LM_START || e->kind == IPW_EV_LM_END) {
        ipw_buf_addf(out, " (attempt %d)", e->lm.attempt);
    } else if (e->kind != IPW_EV_QUERY_END && e->tool.name) {
        ipw_buf_addc(out, ' ');
        ipw_text_printable(out, e->tool.name, strlen(e->tool.name), 60);
    }
    if (e->span) ipw_buf_addf(out, ", span %d", (int)e->span);
}

static void say_data(struct ipw_buf *out, const struct ipw_json *data, const char *key)
{
    struct ipw_buf text = IPW_BUF(MAX_BYTES);
    const struct ipw_json *node = ipw_json_get(data, key);

    if (!node) return;
    ipw_json_print(&text, node);
    ipw_buf_addc(out, ' ');
    ipw_text_printable(out, ipw_buf_str(&text), text.len, 72);
    ipw_buf_release(&text);
}

void ipw_playback_say_line(struct ipw_buf *out, const struct ipw_event_line *line)
{
    if (line->number) ipw_buf_addf(out, "line %lld: ", (long long)line->number);
    say(out, &line->event);
    if (line->event.kind == IPW_EV_TOOL_START) say_data(out, line->data, "arguments");
    if (ipw_playback_effect_id(line)) say_data(out, line->data, "of");
}

/* ---- two values ---- */

/* Appends part of the text, from shortly before byte `at`. */
static void excerpt(struct ipw_buf *out, const char *text, size_t n, size_t at)
{
    size_t from = at > BEFORE_BYTES ? at - BEFORE_BYTES : 0;

    while (from > 0 && ((unsigned char)text[from] & 0xC0) == 0x80) from--;
    if (from) ipw_buf_adds(out, "\xE2\x80\xA6");
    ipw_text_printable(out, text + from, n - from, SHOWN_COLUMNS);
}

static size_t first_difference(const char *a, size_t na, const char *b, size_t nb)
{
    size_t i = 0;

    while (i < na && i < nb && a[i] == b[i]) i++;
    return i;
}

static void say_texts(struct ipw_buf *out, const char *x, size_t nx, const char *y, size_t ny)
{
    size_t at = first_difference(x, nx, y, ny), lines = 1;

    for (size_t i = 0; i < at; i++) lines += x[i] == '\n';
    ipw_buf_addf(out, ", byte %zu", at + 1);
    if (lines > 1) ipw_buf_addf(out, " (line %zu)", lines);
    ipw_buf_adds(out, "\n    saved   ");
    excerpt(out, x, nx, at);
    ipw_buf_adds(out, "\n    now     ");
    excerpt(out, y, ny, at);
}

void ipw_playback_say_texts(struct ipw_buf *out, const char *then, const char *now)
{
    say_texts(out, then, strlen(then), now, strlen(now));
}

static void say_json(struct ipw_buf *out, const struct ipw_json *node)
{
    struct ipw_buf text = IPW_BUF(MAX_BYTES);

    ipw_json_print(&text, node);
    if (node)
        excerpt(out, ipw_buf_str(&text), text.len, 0);
    else
        ipw_buf_adds(out, "(nothing)");
    ipw_buf_release(&text);
}

static void say_values(struct ipw_buf *out, const char *where, const struct ipw_json *a,
                       const struct ipw_json *b)
{
    ipw_buf_addf(out, " at %s", *where ? where : "the whole");
    if (ipw_json_kind(a) == IPW_JSON_STR && ipw_json_kind(b) == IPW_JSON_STR) {
        say_texts(out, ipw_json_str(a, ""), ipw_json_str_len(a), ipw_json_str(b, ""),
                  ipw_json_str_len(b));
        return;
    }
    ipw_buf_adds(out, "\n    saved   ");
    say_json(out, a);
    ipw_buf_adds(out, "\n    now     ");
    say_json(out, b);
}

/* ---- two requests ---- */

/* The messages of the agent's new request.  `data` has only the changes against the request before
 * it. */
static void messages_now(struct ipw_request_messages *out, const struct ipw_playback *r,
                         const struct ipw_json *data)
{
    /* All requests up to this line equalled the saved ones. */
    ipw_request_messages(out, r->o.events, r->o.query, r->last_line, NULL);
    ipw_request_messages_add(out, data);
}

bool ipw_playback_say_message(struct ipw_buf *out, size_t i, const char *was, const char *now)
{
    struct ipw_json *a = NULL, *b = NULL;
    struct ipw_json_difference d;
    struct ipw_buf where = IPW_BUF(4096);
    const char *role;
    bool differ;

    if (was) ipw_json_parse(&a, was, strlen(was), NULL, NULL);
    if (now) ipw_json_parse(&b, now, strlen(now), NULL, NULL);
    ipw_buf_addf(&where, "messages[%zu]", i);
    differ = ipw_json_differ(&where, &d, a, b);
    if (differ) {
        role = ipw_json_str(ipw_json_get(b ? b : a, "role"), "?");
        ipw_buf_addf(out, "message %zu (", i + 1);
        ipw_text_printable(out, role, strlen(role), 20);
        ipw_buf_adds(out, ") of the request");
        ipw_buf_adds(out, !a ? " is not in the saved run" : !b ? " is missing" : " differs");
        say_values(out, ipw_buf_str(&where), d.a, d.b);
    }
    ipw_json_free(a);
    ipw_json_free(b);
    ipw_buf_release(&where);
    return differ;
}

static bool say_request(struct ipw_buf *out, const struct ipw_playback *r,
                        const struct ipw_event_line *line, const struct ipw_json *now)
{
    struct ipw_request_messages a, b;
    bool found = false;

    ipw_request_messages(&a, r->o.events, r->o.query, line->number, NULL);
    messages_now(&b, r, now);
    for (size_t i = 0; !found && (i < a.n || i < b.n); i++)
        found = ipw_playback_say_message(out, i, i < a.n ? a.texts[i] : NULL,
                                         i < b.n ? b.texts[i] : NULL);
    ipw_request_messages_release(&a);
    ipw_request_messages_release(&b);
    return found;
}

void ipw_playback_say_difference(struct ipw_buf *out, const struct ipw_playback *r,
                                 const struct ipw_event_line *line,
                                 const struct ipw_event_line *now)
{
    struct ipw_json_difference d;
    struct ipw_buf where = IPW_BUF(4096);

    if (line->event.kind != IPW_EV_LM_START || !say_request(out, r, line, now->data)) {
        if (!ipw_json_differ(&where, &d, line->doc, now->doc)) {
            ipw_buf_addf(out, "line %lld holds the same values, written otherwise",
                         (long long)line->number);
        } else {
            const char *path = ipw_buf_str(&where);

            if (line->event.kind == IPW_EV_LM_START)
                ipw_buf_adds(out, "the request differs");
            else
                ipw_buf_addf(out, "%s differs", ipw_event_name(line->event.kind));
            if (strncmp(path, "data.", 5) == 0) path += 5;
            say_values(out, path, d.a, d.b);
        }
    }
    ipw_buf_release(&where);
}
