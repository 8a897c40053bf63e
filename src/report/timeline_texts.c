#include "report/timeline_texts.h"

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
static void add(struct ipw_timeline_texts *texts, const struct ipw_event *e,
                enum ipw_timeline_text_kind kind, char *text)
{
    if (!text) return;
    IPW_GROW(texts->all, texts->cap, texts->n + 1);
    texts->all[texts->n] = (struct ipw_timeline_text){e->query, e->span, kind, texts->n, text};
    texts->n++;
}

static void keep(struct ipw_timeline_texts *texts, const struct ipw_event *e,
                 const struct ipw_json *line)
{
    const struct ipw_json *data = ipw_json_get(line, "data");
    enum ipw_timeline_text_kind kind;
    char *text;

    switch (e->kind) {
    case IPW_EV_LM_END:
        add(texts, e, IPW_TEXT_REASONING, text_of(ipw_json_get(data, "reasoning")));
        kind = IPW_TEXT_REPLY;
        text = text_of(ipw_json_get(data, "text"));
        break;
    case IPW_EV_TOOL_START:
        kind = IPW_TEXT_ARGUMENTS;
        text = text_of(ipw_json_get(data, "arguments"));
        break;
    case IPW_EV_SPAN_START:
        kind = IPW_TEXT_ARGUMENTS;
        text = text_of(data);
        break;
    case IPW_EV_SPAN_END:
        kind = IPW_TEXT_RESULT;
        text = text_of(data);
        break;
    case IPW_EV_TOOL_END:
        kind = IPW_TEXT_RESULT;
        text = text_of(ipw_json_get(data, "error"));
        if (!text) text = text_of(ipw_json_get(data, "content"));
        break;
    default: return;
    }
    add(texts, e, kind, text);
}

static int by_place(const void *a, const void *b)
{
    const struct ipw_timeline_text *x = a, *y = b;

    if (x->query != y->query) return x->query < y->query ? -1 : 1;
    if (x->span != y->span) return x->span < y->span ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int read_line(struct ipw_timeline_texts *texts, const struct ipw_jsonl_line *line,
                     int32_t query, struct ipw_err *err)
{
    struct ipw_json *doc;
    struct ipw_event event;
    int rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);

    if (rc < 0) return rc;
    rc = ipw_event_read(&event, doc, err);
    if (rc == 0 && (query == IPW_TIMELINE_ALL || event.query == query)) keep(texts, &event, doc);
    ipw_json_free(doc);
    return rc;
}

void ipw_timeline_texts_load(struct ipw_timeline_texts *texts, const char *path, int32_t query)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    struct ipw_err err = {0};
    int rc;

    *texts = (struct ipw_timeline_texts){0};
    if (!path) return;
    if (ipw_jsonl_open(&reader, path, IPW_LINE_MAX, &err) < 0) {
        snprintf(texts->remark, sizeof texts->remark, "without texts: %.300s", err.text);
        return;
    }
    while ((rc = ipw_jsonl_next(reader, &line, &err)) > 0) {
        if (line.torn)
            break; /* the writer was killed inside this line: no earlier line is missing */
        rc = read_line(texts, &line, query, &err);
        if (rc < 0) {
            ipw_err_prefix(&err, "%s:%lld", path, (long long)line.number);
            break;
        }
    }
    ipw_jsonl_close(reader);
    if (rc < 0) {
        snprintf(texts->remark, sizeof texts->remark, "texts may be missing: %.300s", err.text);
    }
    if (texts->n) qsort(texts->all, texts->n, sizeof *texts->all, by_place);
}

const char *ipw_timeline_texts_find(const struct ipw_timeline_texts *texts, int32_t query,
                                    int32_t span, enum ipw_timeline_text_kind kind)
{
    const struct ipw_timeline_text want = {query, span, kind, SIZE_MAX, NULL};
    const struct ipw_timeline_text *last;
    size_t from = 0, to = texts->n;

    while (from < to) { /* finds the first entry after the place */
        size_t mid = from + (to - from) / 2;

        if (by_place(&texts->all[mid], &want) <= 0) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    if (!from) return NULL;
    last = &texts->all[from - 1];
    return last->query == query && last->span == span && last->kind == kind ? last->text : NULL;
}

void ipw_timeline_texts_release(struct ipw_timeline_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++) free(texts->all[i].text);
    free(texts->all);
    *texts = (struct ipw_timeline_texts){0};
}
