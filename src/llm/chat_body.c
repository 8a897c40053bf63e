/* Request bodies.  Our members and the caller's extra members are sorted together, so that equal
 * requests have equal bytes. */
#include "llm/chat_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"

/* One member of the body: the caller's (`node`), or ours (NULL). */
struct member {
    const char *key;
    const struct ipw_json *node;
};

/* The caller's members: `over` overrides `extra`, and `extra` overrides ours. */
struct layers {
    struct ipw_json *extra, *over;
};

struct members {
    struct member *items;
    size_t n, cap;
};

static bool has(const struct ipw_json *object, const char *key)
{
    return ipw_json_kind(ipw_json_get(object, key)) != IPW_JSON_ABSENT;
}

static void add_member(struct members *m, const struct layers *l, const char *key, bool wanted)
{
    if (!wanted || has(l->extra, key) || has(l->over, key)) return;
    IPW_GROW(m->items, m->cap, m->n + 1);
    m->items[m->n++] = (struct member){.key = key};
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
        IPW_GROW(m->items, m->cap, m->n + 1);
        m->items[m->n++] = (struct member){.key = key, .node = e};
    }
}

static void collect(struct members *m, const struct ipw_chat_request *r, const struct layers *extra)
{
    const struct ipw_json *stream =
        ipw_json_get(has(extra->over, "stream") ? extra->over : extra->extra, "stream");
    bool forced = r->force_tokens > 0;
    bool streams = stream ? ipw_json_bool(stream, false) : r->stream;

    add_member(m, extra, "ignore_eos", forced);
    add_member(m, extra, r->use_max_completion_tokens ? "max_completion_tokens" : "max_tokens",
               forced || r->max_tokens >= 0);
    add_member(m, extra, "messages", true);
    add_member(m, extra, "min_tokens", forced); /* llama.cpp does not need it */
    add_member(m, extra, "model", r->model != NULL);
    add_member(m, extra, "response_format", r->response_format != NULL);
    add_member(m, extra, "seed", r->seed != INT64_MIN);
    add_member(m, extra, "stop", r->stop != NULL);
    add_member(m, extra, "stream", true);
    /* vLLM and OpenAI answer 400 to stream_options without stream. */
    add_member(m, extra, "stream_options", streams && r->include_usage);
    add_member(m, extra, "temperature", !isnan(r->temperature));
    add_member(m, extra, "tool_choice", r->tool_choice != NULL);
    add_member(m, extra, "tools", r->tools != NULL);
    add_member(m, extra, "top_p", !isnan(r->top_p));
    add_layer(m, extra->extra, extra->over);
    add_layer(m, extra->over, NULL);
    qsort(m->items, m->n, sizeof *m->items, by_key);
}

static void write_messages(struct ipw_jw *w, const struct ipw_chat_request *r)
{
    ipw_jw_arr(w);
    for (size_t i = 0; i < r->n_messages; i++) ipw_jw_raw(w, r->messages[i].json, r->messages[i].n);
    ipw_jw_arr_end(w);
}

static void write_text(struct ipw_jw *w, const char *json) { ipw_jw_raw(w, json, strlen(json)); }

static void write_ours(struct ipw_jw *w, const struct ipw_chat_request *r, const char *key)
{
    if (strncmp(key, "max_", 4) == 0) {
        ipw_jw_int(w, r->force_tokens > 0 ? r->force_tokens : r->max_tokens);
    } else if (strcmp(key, "ignore_eos") == 0) {
        ipw_jw_bool(w, true);
    } else if (strcmp(key, "min_tokens") == 0) {
        ipw_jw_int(w, r->force_tokens);
    } else if (strcmp(key, "messages") == 0) {
        write_messages(w, r);
    } else if (strcmp(key, "model") == 0) {
        ipw_jw_str(w, r->model);
    } else if (strcmp(key, "response_format") == 0) {
        write_text(w, r->response_format);
    } else if (strcmp(key, "seed") == 0) {
        ipw_jw_int(w, r->seed);
    } else if (strcmp(key, "stop") == 0) {
        write_text(w, r->stop);
    } else if (strcmp(key, "stream") == 0) {
        ipw_jw_bool(w, r->stream);
    } else if (strcmp(key, "stream_options") == 0) {
        write_text(w, "{\"include_usage\":true}");
    } else if (strcmp(key, "temperature") == 0) {
        ipw_jw_num(w, r->temperature);
    } else if (strcmp(key, "tool_choice") == 0) {
        write_text(w, r->tool_choice);
    } else if (strcmp(key, "tools") == 0) {
        write_text(w, r->tools);
    } else {
        ipw_jw_num(w, r->top_p);
    }
}

static void write_member(struct ipw_buf *out, struct ipw_jw *w, const struct ipw_chat_request *r,
                         const struct member *m)
{
    ipw_jw_key_any(w, m->key, strlen(m->key));
    if (m->node) {
        struct ipw_buf text = IPW_BUF(out->max);

        ipw_json_print(&text, m->node);
        ipw_jw_raw(w, ipw_buf_str(&text), text.len);
        if (text.failed) out->failed = true;
        ipw_buf_release(&text);
    } else {
        write_ours(w, r, m->key);
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

int ipw_chat_body(struct ipw_buf *out, const struct ipw_chat_request *request, size_t *cut_at,
                  size_t *cut_n, struct ipw_err *err)
{
    struct layers layers = {0};
    struct members members = {0};
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
    free(members.items);
    ipw_json_free(layers.extra);
    ipw_json_free(layers.over);
    if (out->failed)
        return ipw_fail(err, IPW_ELIMIT, "the request is larger than %zu bytes", out->max);
    return 0;
}
