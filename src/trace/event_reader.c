#include "trace/event_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/jsonl.h"

enum { MOST_QUERIES = 10 * 1000 * 1000 }; /* do not allocate gigabytes for a damaged index */

struct ipw_event_reader {
    char *path;
    struct ipw_jsonl_reader *reader;
    struct ipw_event_line *first, **tail;
    bool end;
    struct ipw_err err; /* error of the line after the last one held */
};

int ipw_event_reader_open(struct ipw_event_reader **out, const char *run, struct ipw_err *err)
{
    struct ipw_event_reader *r = ipw_calloc(1, sizeof *r);
    size_t n = strlen(run);
    int rc;

    r->path = ipw_asprintf("%s%sevents.jsonl", run, n && run[n - 1] == '/' ? "" : "/");
    r->tail = &r->first;
    rc = ipw_jsonl_open(&r->reader, r->path, IPW_LINE_MAX, err);
    if (rc) {
        ipw_event_reader_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

struct ipw_event_line *ipw_event_line_new(char *text, size_t n, struct ipw_err *err)
{
    struct ipw_event_line *line = ipw_calloc(1, sizeof *line);

    line->text = text;
    line->n = n;
    if (ipw_json_parse(&line->doc, text, n, NULL, err) ||
        ipw_event_read(&line->event, line->doc, err)) {
        ipw_event_line_free(line);
        return NULL;
    }
    line->data = ipw_json_get(line->doc, "data");
    return line;
}

void ipw_event_line_free(struct ipw_event_line *line)
{
    if (!line) return;
    ipw_json_free(line->doc);
    free(line->text);
    free(line);
}

void ipw_event_reader_close(struct ipw_event_reader *r)
{
    if (!r) return;
    while (r->first) {
        struct ipw_event_line *line = r->first;

        r->first = line->next;
        ipw_event_line_free(line);
    }
    if (r->reader) ipw_jsonl_close(r->reader);
    free(r->path);
    free(r);
}

/* Reads one more line; false at the end or at a damaged line. */
static bool more(struct ipw_event_reader *r)
{
    struct ipw_jsonl_line raw;
    struct ipw_event_line *line;
    int rc;

    if (r->end) return false;
    rc = ipw_jsonl_next(r->reader, &raw, &r->err);
    if (rc <= 0 || raw.torn) {
        r->end = true;
        return false;
    }
    line = ipw_event_line_new(ipw_memdup(raw.text, raw.n), raw.n, &r->err);
    if (!line) {
        ipw_err_prefix(&r->err, "%s:%lld", r->path, (long long)raw.number);
        r->end = true;
        return false;
    }
    line->number = raw.number;
    *r->tail = line;
    r->tail = &line->next;
    return true;
}

int ipw_event_reader_head(struct ipw_event_reader *r, const struct ipw_event_line **line,
                          struct ipw_err *err)
{
    *line = NULL;
    if (!r->first && !more(r)) {
        if (r->err.code && err) *err = r->err;
        return r->err.code;
    }
    *line = r->first;
    return 1;
}

const struct ipw_event_line *ipw_event_reader_peek(struct ipw_event_reader *r, int32_t query,
                                                   size_t i, size_t reach)
{
    struct ipw_event_line **at = &r->first;

    for (size_t n = 0; n < reach; n++) {
        if (!*at && !more(r)) return NULL;
        if ((*at)->event.query == query && i-- == 0) return *at;
        at = &(*at)->next;
    }
    return NULL;
}

void ipw_event_reader_drop(struct ipw_event_reader *r, const struct ipw_event_line *line)
{
    struct ipw_event_line **at = &r->first, *gone;

    while (*at && *at != line) at = &(*at)->next;
    if (!*at) IPW_BUG("dropped a line that the reader does not hold");
    gone = *at;
    *at = gone->next;
    if (r->tail == &gone->next) r->tail = at;
    ipw_event_line_free(gone);
}

/* ---- the places where queries begin ---- */

static void take_start(struct ipw_query_starts *starts, const struct ipw_jsonl_line *line)
{
    static const char start[] = "\"event\":\"query_start\"";
    struct ipw_event event;
    struct ipw_json *doc;

    /* Parse only the few lines that contain the event's name. */
    if (!memmem(line->text, line->n, start, sizeof start - 1) ||
        ipw_json_parse(&doc, line->text, line->n, NULL, NULL))
        return;
    if (!ipw_event_read(&event, doc, NULL) && event.kind == IPW_EV_QUERY_START &&
        event.query >= 0 && event.query < MOST_QUERIES) {
        size_t i = (size_t)event.query;

        if (i >= starts->n) {
            IPW_GROW(starts->lines, starts->cap, i + 1);
            memset(starts->lines + starts->n, 0, (i + 1 - starts->n) * sizeof *starts->lines);
            starts->n = i + 1;
        }
        starts->lines[i] = line->number;
    }
    ipw_json_free(doc);
}

int ipw_query_starts(struct ipw_query_starts *out, const struct ipw_event_reader *events,
                     struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc;

    *out = (struct ipw_query_starts){0};
    rc = ipw_jsonl_open(&reader, events->path, IPW_LINE_MAX, err);
    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0 && !line.torn) take_start(out, &line);
    ipw_jsonl_close(reader);
    return rc < 0 ? rc : 0;
}

void ipw_query_starts_release(struct ipw_query_starts *starts)
{
    free(starts->lines);
    *starts = (struct ipw_query_starts){0};
}

/* ---- the messages of a request ---- */

void ipw_request_messages_add(struct ipw_request_messages *m, const struct ipw_json *data)
{
    int64_t kept = ipw_json_int(ipw_json_get(data, "messages_kept"), 0);
    const struct ipw_json *messages = ipw_json_get(data, "messages");

    while (m->n > (size_t)(kept < 0 ? 0 : kept)) free(m->texts[--m->n]);
    for (const struct ipw_json *e = ipw_json_first(messages); e; e = ipw_json_next(e)) {
        struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);

        ipw_json_print(&text, e);
        IPW_GROW(m->texts, m->cap, m->n + 1);
        m->texts[m->n++] = ipw_buf_take(&text, NULL);
    }
}

int ipw_request_messages(struct ipw_request_messages *out, const struct ipw_event_reader *events,
                         int32_t query, int64_t upto, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc;

    *out = (struct ipw_request_messages){0};
    rc = ipw_jsonl_open(&reader, events->path, IPW_LINE_MAX, err);
    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0 && !line.torn && line.number <= upto) {
        struct ipw_json *doc;
        struct ipw_event event;

        if (ipw_json_parse(&doc, line.text, line.n, NULL, NULL)) continue;
        if (ipw_event_read(&event, doc, NULL) == 0 && event.query == query) {
            if (event.kind == IPW_EV_QUERY_START)
                while (out->n) free(out->texts[--out->n]);
            if (event.kind == IPW_EV_LM_START)
                ipw_request_messages_add(out, ipw_json_get(doc, "data"));
        }
        ipw_json_free(doc);
    }
    ipw_jsonl_close(reader);
    return rc < 0 ? rc : 0;
}

void ipw_request_messages_release(struct ipw_request_messages *m)
{
    for (size_t i = 0; i < m->n; i++) free(m->texts[i]);
    free(m->texts);
    *m = (struct ipw_request_messages){0};
}
