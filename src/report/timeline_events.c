#include "report/timeline_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "trace/event.h"

#define KEPT_BYTES 1000

static char *kept(const char *text, size_t n)
{
    if (n > KEPT_BYTES) {
        n = KEPT_BYTES;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    }
    return ipw_memdup(text, n);
}

/* Text as it is, other values as JSON; NULL for null. */
static char *text_of(const struct ipw_json *node)
{
    struct ipw_buf json = IPW_BUF(64 * IPW_MIB);
    char *text;

    if (ipw_json_is_null(node)) return NULL;
    if (ipw_json_kind(node) == IPW_JSON_STR) {
        return ipw_json_str_len(node) ? kept(ipw_json_str(node, ""), ipw_json_str_len(node)) : NULL;
    }
    ipw_json_print(&json, node);
    text = json.failed ? NULL : kept(ipw_buf_str(&json), json.len);
    ipw_buf_release(&json);
    return text;
}

/* Takes over the text; NULL: there is none. */
static void add(struct ipw_said_book *book, const struct ipw_event *e, enum ipw_said_kind kind,
                char *text)
{
    if (!text) return;
    IPW_GROW(book->all, book->cap, book->n + 1);
    book->all[book->n] = (struct ipw_said){e->query, e->span, kind, book->n, text};
    book->n++;
}

static void keep(struct ipw_said_book *book, const struct ipw_event *e, const struct ipw_json *line)
{
    const struct ipw_json *data = ipw_json_get(line, "data");
    enum ipw_said_kind kind;
    char *text;

    switch (e->kind) {
    case IPW_EV_LM_END:
        add(book, e, IPW_SAID_REASONING, text_of(ipw_json_get(data, "reasoning")));
        kind = IPW_SAID_REPLY;
        text = text_of(ipw_json_get(data, "text"));
        break;
    case IPW_EV_TOOL_START:
        kind = IPW_SAID_ARGUMENTS;
        text = text_of(ipw_json_get(data, "arguments"));
        break;
    case IPW_EV_SPAN_START:
        kind = IPW_SAID_ARGUMENTS;
        text = text_of(data);
        break;
    case IPW_EV_SPAN_END:
        kind = IPW_SAID_RESULT;
        text = text_of(data);
        break;
    case IPW_EV_TOOL_END:
        kind = IPW_SAID_RESULT;
        text = text_of(ipw_json_get(data, "error"));
        if (!text) text = text_of(ipw_json_get(data, "content"));
        break;
    default: return;
    }
    add(book, e, kind, text);
}

static int by_place(const void *a, const void *b)
{
    const struct ipw_said *x = a, *y = b;

    if (x->query != y->query) return x->query < y->query ? -1 : 1;
    if (x->span != y->span) return x->span < y->span ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int read_line(struct ipw_said_book *book, const struct ipw_jsonl_line *line, int32_t query,
                     struct ipw_err *err)
{
    struct ipw_json *doc;
    struct ipw_event event;
    int rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);

    if (rc < 0) return rc;
    rc = ipw_event_read(&event, doc, err);
    if (rc == 0 && (query == IPW_SAID_ALL || event.query == query)) keep(book, &event, doc);
    ipw_json_free(doc);
    return rc;
}

void ipw_said_load(struct ipw_said_book *book, const char *path, int32_t query)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    struct ipw_err err = {0};
    int rc;

    *book = (struct ipw_said_book){0};
    if (!path) return;
    if (ipw_jsonl_open(&reader, path, IPW_LINE_MAX, &err) < 0) {
        snprintf(book->remark, sizeof book->remark, "without texts: %.300s", err.text);
        return;
    }
    while ((rc = ipw_jsonl_next(reader, &line, &err)) > 0) {
        if (line.torn)
            break; /* the writer was killed inside this line: no earlier line is missing */
        rc = read_line(book, &line, query, &err);
        if (rc < 0) {
            ipw_err_prefix(&err, "%s:%lld", path, (long long)line.number);
            break;
        }
    }
    ipw_jsonl_close(reader);
    if (rc < 0) {
        snprintf(book->remark, sizeof book->remark, "texts may be missing: %.300s", err.text);
    }
    if (book->n) qsort(book->all, book->n, sizeof *book->all, by_place);
}

const char *ipw_said_find(const struct ipw_said_book *book, int32_t query, int32_t span,
                          enum ipw_said_kind kind)
{
    const struct ipw_said want = {query, span, kind, SIZE_MAX, NULL};
    const struct ipw_said *last;
    size_t from = 0, to = book->n;

    while (from < to) { /* finds the first entry after the place */
        size_t mid = from + (to - from) / 2;

        if (by_place(&book->all[mid], &want) <= 0) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    if (!from) return NULL;
    last = &book->all[from - 1];
    return last->query == query && last->span == span && last->kind == kind ? last->text : NULL;
}

void ipw_said_release(struct ipw_said_book *book)
{
    for (size_t i = 0; i < book->n; i++) free(book->all[i].text);
    free(book->all);
    *book = (struct ipw_said_book){0};
}
