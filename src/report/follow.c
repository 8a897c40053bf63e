#include "report/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "report/format.h"
#include "report/words.h"
#include "trace/event.h"
#include "trace/find_query.h"

enum { WIDTH_MIN = 80, TEXT_COLUMN = 34, SHOWN_BYTES = 2000, ID_COLUMNS = 10 };

struct open { /* a query in flight, or a span of one (span > 0) */
    int32_t query, span;
    int64_t t_ns;
    int turn;
    char *text; /* the query's id; the tool's arguments */
};

struct ipw_follow {
    struct ipw_timeline_options o;
    char *id;
    int64_t start_ns;
    struct open *open;
    size_t n, cap;
};

struct ipw_follow *ipw_follow_new(const char *id, const struct ipw_timeline_options *options)
{
    struct ipw_follow *f = ipw_calloc(1, sizeof *f);

    f->o = *options;
    if (f->o.width < WIDTH_MIN) f->o.width = WIDTH_MIN;
    f->id = ipw_strdup(id);
    return f;
}

void ipw_follow_free(struct ipw_follow *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->n; i++) free(f->open[i].text);
    free(f->open);
    free(f->id);
    free(f);
}

static struct open *find(struct ipw_follow *f, int32_t query, int32_t span)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->open[i].query == query && f->open[i].span == span) return &f->open[i];
    return NULL;
}

static struct open *add(struct ipw_follow *f, const struct ipw_event *e, int32_t span, char *text)
{
    struct open *o = find(f, e->query, span);

    if (!o) {
        IPW_GROW(f->open, f->cap, f->n + 1);
        o = &f->open[f->n++];
        *o = (struct open){0};
    }
    free(o->text);
    *o = (struct open){.query = e->query, .span = span, .t_ns = e->t_ns, .text = text};
    return o;
}

/* Number 0 is the query itself: a file that gives it to a span is damaged. */
static void begin(struct ipw_follow *f, const struct ipw_event *e, char *text)
{
    if (e->span > 0)
        add(f, e, e->span, text);
    else
        free(text);
}

static struct open *begun(struct ipw_follow *f, const struct ipw_event *e)
{
    return e->span > 0 ? find(f, e->query, e->span) : NULL;
}

static void drop(struct ipw_follow *f, struct open *o)
{
    if (!o) return;
    free(o->text);
    *o = f->open[--f->n];
}

/* A long id is shown by its beginning and its end, because ids of one dataset often begin alike. */
static void put_id(struct ipw_buf *out, const char *id)
{
    size_t n = strlen(id), ascii = 0;
    char text[ID_COLUMNS + 4];

    while (id[ascii] > ' ' && id[ascii] < 0x7f) ascii++;
    if (n > ID_COLUMNS && ascii == n) {
        snprintf(text, sizeof text, "%.5s\xE2\x80\xA6%s", id, id + n - 4);
        id = text;
    }
    ipw_format_cell(out, id, ID_COLUMNS, IPW_ALIGN_LEFT);
}

/* "  12.3s  q0003       turn 2   " */
static void put_head(struct ipw_follow *f, struct ipw_buf *out, const struct ipw_event *e,
                     const struct open *q, const char *what, enum ipw_style style)
{
    char time[32];

    ipw_format_seconds(time, ipw_ns_to_s(e->t_ns - f->start_ns));
    ipw_buf_addf(out, "%8s  %s", time, ipw_style(IPW_DIM, f->o.colour));
    put_id(out, q ? q->text : "?");
    ipw_buf_addf(out, "%s  %s%-10s%s ", ipw_style(IPW_PLAIN, f->o.colour),
                 ipw_style(style, f->o.colour), what, ipw_style(IPW_PLAIN, f->o.colour));
}

static void put_rest(struct ipw_follow *f, struct ipw_buf *out, const char *text)
{
    ipw_format_cell(out, text, f->o.width - TEXT_COLUMN, IPW_ALIGN_NONE);
    ipw_buf_addc(out, '\n');
}

/* A text on one line. */
static void put_said(struct ipw_follow *f, struct ipw_buf *out, const char *mark, const char *text)
{
    struct ipw_buf line = IPW_BUF(2 * SHOWN_BYTES);

    if (!text || !*text) return;
    for (size_t i = 0; text[i] && i < SHOWN_BYTES; i++) {
        bool blank = strchr(" \n\t\r", text[i]) != NULL;

        if (!blank)
            ipw_buf_addc(&line, text[i]);
        else if (line.len && line.data[line.len - 1] != ' ')
            ipw_buf_addc(&line, ' ');
    }
    ipw_buf_addf(out, "%*s%s%s ", TEXT_COLUMN - 2, "", ipw_style(IPW_DIM, f->o.colour), mark);
    ipw_format_cell(out, ipw_buf_str(&line), f->o.width - TEXT_COLUMN, IPW_ALIGN_NONE);
    ipw_buf_addf(out, "%s\n", ipw_style(IPW_PLAIN, f->o.colour));
    ipw_buf_release(&line);
}

static void put_reply(struct ipw_follow *f, struct ipw_buf *out, const struct ipw_event *e,
                      const struct ipw_json *data)
{
    const struct ipw_lm_facts *m = &e->lm;
    struct open *q = find(f, e->query, 0), *start = begun(f, e);
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char turn[32], a[32], b[32], s[32];
    bool ok = m->outcome == IPW_LM_OK;

    snprintf(turn, sizeof turn, "turn %d", q ? q->turn : 0);
    if (start)
        ipw_buf_addf(&text, "%s  ", ipw_format_seconds(s, ipw_ns_to_s(e->t_ns - start->t_ns)));
    if (ok)
        ipw_buf_addf(&text, "%s in, %s out%s%s", ipw_format_count(a, m->input_tokens),
                     ipw_format_count(b, m->output_tokens), m->finish_reason ? ", " : "",
                     m->finish_reason ? m->finish_reason : "");
    else
        ipw_buf_addf(&text, "attempt %d: %s", m->attempt, ipw_lm_outcome_name(m->outcome));
    put_head(f, out, e, q, turn, ok ? IPW_BOLD : IPW_YELLOW);
    put_rest(f, out, ipw_buf_str(&text));
    if (!ok) put_said(f, out, "!", m->error);
    put_said(f, out, "~", ipw_json_str(ipw_json_get(data, "reasoning"), NULL));
    put_said(f, out, "\"", ipw_json_str(ipw_json_get(data, "text"), NULL));
    drop(f, start);
    ipw_buf_release(&text);
}

static void put_tool(struct ipw_follow *f, struct ipw_buf *out, const struct ipw_event *e,
                     const struct ipw_json *data)
{
    struct open *start = begun(f, e);
    const char *what = e->kind == IPW_EV_SPAN_END && e->tool.kind ? e->tool.kind : "tool";
    const char *content = ipw_json_str(ipw_json_get(data, "content"), NULL);
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char s[32];

    if (start)
        ipw_buf_addf(&text, "%s  ", ipw_format_seconds(s, ipw_ns_to_s(e->t_ns - start->t_ns)));
    ipw_buf_addf(&text, "%s: %s", e->tool.name, e->tool.outcome ? e->tool.outcome : "?");
    put_head(f, out, e, find(f, e->query, 0), what, e->tool.ok ? IPW_CYAN : IPW_YELLOW);
    put_rest(f, out, ipw_buf_str(&text));
    put_said(f, out, ">", start ? start->text : NULL);
    put_said(f, out, content ? "<" : "!", content ? content : e->tool.error);
    drop(f, start);
    ipw_buf_release(&text);
}

static void put_end(struct ipw_follow *f, struct ipw_buf *out, const struct ipw_event *e,
                    const struct ipw_json *data)
{
    struct open *q = find(f, e->query, 0);
    const struct ipw_json *resolved = ipw_json_get(data, "resolved");
    bool scored = ipw_json_kind(resolved) == IPW_JSON_BOOL, right = ipw_json_bool(resolved, false);
    const char *answer = ipw_json_str(ipw_json_get(data, "answer"), e->q.error);
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    ipw_buf_addf(&text, "%s%s%s%s", e->q.outcome ? ipw_words_outcome(e->q.outcome) : "?",
                 !scored ? ""
                 : right ? ", correct"
                         : ", wrong",
                 answer ? ": " : "", answer ? ipw_words_outcome(answer) : "");
    put_head(f, out, e, q, "end", !scored ? IPW_PLAIN : right ? IPW_GREEN : IPW_RED);
    put_rest(f, out, ipw_buf_str(&text));
    for (size_t i = f->n; i-- > 0;)
        if (f->open[i].query == e->query) drop(f, &f->open[i]);
    ipw_buf_release(&text);
}

static char *arguments_of(const struct ipw_json *data)
{
    struct ipw_buf text = IPW_BUF(16 * IPW_MIB);
    char *copy;

    ipw_json_print(&text, ipw_json_get(data, "arguments"));
    copy = ipw_buf_take(&text, NULL);
    return copy;
}

static void show(struct ipw_follow *f, struct ipw_buf *out, const struct ipw_event *e,
                 const struct ipw_json *data)
{
    struct open *q;

    switch (e->kind) {
    case IPW_EV_QUERY_START:
        q = add(f, e, 0, ipw_strdup(e->q.id ? e->q.id : "?"));
        put_head(f, out, e, q, "question", IPW_BOLD);
        put_rest(f, out, ipw_json_str(ipw_json_get(data, "prompt"), ""));
        break;
    case IPW_EV_LM_START:
        q = find(f, e->query, 0);
        if (q && e->lm.attempt == 1) q->turn++;
        begin(f, e, NULL);
        break;
    case IPW_EV_LM_END: put_reply(f, out, e, data); break;
    case IPW_EV_TOOL_START: begin(f, e, arguments_of(data)); break;
    case IPW_EV_SPAN_START: begin(f, e, NULL); break;
    case IPW_EV_SPAN_END:
    case IPW_EV_TOOL_END: put_tool(f, out, e, data); break;
    case IPW_EV_QUERY_END: put_end(f, out, e, data); break;
    default: break;
    }
}

static bool is_meant(const char *want, const struct ipw_event *start, const struct ipw_json *data)
{
    struct ipw_query_names names = {0};
    bool yes;

    ipw_query_names_start(&names, start, data);
    yes = names.n && ipw_find_query_is_meant(&names.all[0], want);
    ipw_query_names_release(&names);
    return yes;
}

bool ipw_follow_line(struct ipw_follow *f, struct ipw_buf *out, const char *line, size_t n)
{
    struct ipw_json *doc;
    struct ipw_event e;
    const struct ipw_json *data;
    const char *id;
    bool over = false;

    if (ipw_json_parse(&doc, line, n, NULL, NULL)) return false; /* the reader reports damage */
    data = ipw_json_get(doc, "data");
    if (ipw_event_read(&e, doc, NULL) == 0) {
        if (!f->start_ns || e.kind == IPW_EV_RUN_START) f->start_ns = e.t_ns;
        over = e.kind == IPW_EV_RUN_END;
        id = e.kind == IPW_EV_QUERY_START ? e.q.id : NULL;
        if (!f->id || (id && is_meant(f->id, &e, data)) || (!id && find(f, e.query, 0)))
            if (e.query >= 0) show(f, out, &e, data);
    }
    ipw_json_free(doc);
    return over;
}
