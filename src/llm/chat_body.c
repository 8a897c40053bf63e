/* Request bodies.  Our members and the caller's extra members are sorted together, so that equal
 * requests have equal bytes. */
#include "llm/chat_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"

/* One member of the body. */
struct member {
    const char *key;
    bool wanted;
    enum { CALLERS, MESSAGES, JSON, STRING, INTEGER, NUMBER } kind;
    const char *text;
    int64_t integer;
    double number;
    const struct ipw_json *node; /* the caller's */
};

/* The caller's members: `over` overrides `extra`, and `extra` overrides ours. */
struct layers {
    struct ipw_json *extra, *over;
};

enum { MAX_OURS = 14 };

struct members {
    struct member ours[MAX_OURS], *items;
    size_t n;
};

static bool has(const struct ipw_json *object, const char *key)
{
    return object && ipw_json_kind(ipw_json_get(object, key)) != IPW_JSON_ABSENT;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static void add_layer(struct members *m, const struct ipw_json *layer, const struct ipw_json *above)
{
    for (const struct ipw_json *e = ipw_json_first(layer); e; e = ipw_json_next(e)) {
        const char *key = ipw_json_key(e);

        if (ipw_json_get(layer, key) != e) continue; /* the last duplicate wins */
        if (has(above, key)) continue;
        m->items[m->n++] = (struct member){.key = key, .node = e};
    }
}

static void add_layers(struct members *m, const struct layers *l)
{
    size_t n = m->n + ipw_json_count(l->extra) + ipw_json_count(l->over);

    m->items = ipw_malloc(n * sizeof *m->items);
    memcpy(m->items, m->ours, m->n * sizeof *m->items);
    add_layer(m, l->extra, l->over);
    add_layer(m, l->over, NULL);
    qsort(m->items, m->n, sizeof *m->items, by_key);
}

static void collect(struct members *m, const struct ipw_chat_request *r, const struct layers *l)
{
    const struct ipw_json *stream =
        ipw_json_get(has(l->over, "stream") ? l->over : l->extra, "stream");
    bool forced = r->force_tokens > 0, streams = stream ? ipw_json_bool(stream, false) : r->stream;
    int64_t most = forced ? r->force_tokens : r->max_tokens;
    const struct member ours[MAX_OURS] = {
        /* by key */
        {"ignore_eos", forced, JSON, .text = "true"},
        {r->use_max_completion_tokens ? "max_completion_tokens" : "max_tokens", most >= 0, INTEGER,
         .integer = most},
        {"messages", true, MESSAGES},
        {"min_tokens", forced, INTEGER, .integer = most}, /* llama.cpp does not need it */
        {"model", r->model != NULL, STRING, .text = r->model},
        {"response_format", r->response_format != NULL, JSON, .text = r->response_format},
        {"seed", r->seed != INT64_MIN, INTEGER, .integer = r->seed},
        {"stop", r->stop != NULL, JSON, .text = r->stop},
        {"stream", true, JSON, .text = r->stream ? "true" : "false"},
        /* vLLM and OpenAI answer 400 to stream_options without stream. */
        {"stream_options", streams && r->include_usage, JSON, .text = "{\"include_usage\":true}"},
        {"temperature", !isnan(r->temperature), NUMBER, .number = r->temperature},
        {"tool_choice", r->tool_choice != NULL, JSON, .text = r->tool_choice},
        {"tools", r->tools != NULL, JSON, .text = r->tools},
        {"top_p", !isnan(r->top_p), NUMBER, .number = r->top_p},
    };

    m->n = 0;
    m->items = m->ours;
    for (size_t i = 0; i < MAX_OURS; i++)
        if (ours[i].wanted && !has(l->extra, ours[i].key) && !has(l->over, ours[i].key))
            m->ours[m->n++] = ours[i];
    if (l->extra || l->over) add_layers(m, l);
}

static void write_callers(struct ipw_buf *out, struct ipw_jw *w, const struct member *m)
{
    struct ipw_buf text = IPW_BUF(out->max);

    ipw_json_print(&text, m->node);
    ipw_jw_raw(w, ipw_buf_str(&text), text.len);
    if (text.failed) out->failed = true;
    ipw_buf_release(&text);
}

static void write_member(struct ipw_buf *out, struct ipw_jw *w, const struct ipw_chat_request *r,
                         const struct member *m)
{
    if (m->kind == CALLERS)
        ipw_jw_key_any(w, m->key, strlen(m->key));
    else
        ipw_jw_key(w, m->key);
    switch (m->kind) {
    case CALLERS: write_callers(out, w, m); break;
    case MESSAGES:
        ipw_jw_arr(w);
        for (size_t i = 0; i < r->n_messages; i++)
            ipw_jw_raw(w, r->messages[i].json, r->messages[i].n);
        ipw_jw_arr_end(w);
        break;
    case JSON: ipw_jw_raw(w, m->text, strlen(m->text)); break;
    case STRING: ipw_jw_str(w, m->text); break;
    case INTEGER: ipw_jw_int(w, m->integer); break;
    case NUMBER: ipw_jw_num(w, m->number); break;
    }
}

static int parse_layer(struct ipw_json **out, const char *text, struct ipw_err *err)
{
    int rc = 0;

    if (!text) return 0;
    rc = ipw_json_parse(out, text, strlen(text), NULL, err);
    if (rc) {
        ipw_err_prefix(err, "extra request fields");
        return rc;
    }
    if (ipw_json_kind(*out) == IPW_JSON_OBJ) return 0;
    return ipw_fail(err, IPW_EINVAL, "extra request fields: expected a JSON object");
}

/* About how many bytes the body has: its two long members, and some for the others. */
static size_t size_of(const struct ipw_chat_request *r)
{
    size_t n = 400 + (r->tools ? strlen(r->tools) : 0);

    for (size_t i = 0; i < r->n_messages; i++) n += r->messages[i].n;
    return n;
}

int ipw_chat_body(struct ipw_buf *out, const struct ipw_chat_request *request, size_t *cut_at,
                  size_t *cut_n, struct ipw_err *err)
{
    struct layers layers = {0};
    struct members members;
    struct ipw_jw w;
    int rc;

    *cut_at = *cut_n = 0;
    rc = parse_layer(&layers.extra, request->extra, err);
    if (rc == 0) rc = parse_layer(&layers.over, request->over, err);
    if (rc) {
        ipw_json_free(layers.extra);
        ipw_json_free(layers.over);
        return rc;
    }
    collect(&members, request, &layers);
    ipw_buf_expect(out, size_of(request));
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    for (size_t i = 0; i < members.n; i++) {
        size_t before = out->len;

        write_member(out, &w, request, &members.items[i]);
        if (strcmp(members.items[i].key, "stream_options") == 0) {
            *cut_at = before; /* "messages" comes before it, so there is a comma */
            *cut_n = out->len - before;
        }
    }
    ipw_jw_obj_end(&w);
    if (members.items != members.ours) free(members.items);
    ipw_json_free(layers.extra);
    ipw_json_free(layers.over);
    if (out->failed)
        return ipw_fail(err, IPW_ELIMIT, "the request is larger than %zu bytes", out->max);
    return 0;
}
