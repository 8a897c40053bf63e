#include "trace/redact.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "json/write.h"
#include "trace/spec.h"

enum { CHUNK = 64, MAX_TEXT_BYTES = 512 * 1024 * 1024 };

/* ---- filler words ---- */

int ipw_redact_parse(enum ipw_redact *out, const char *name, struct ipw_err *err)
{
    for (int what = IPW_REDACT_TEXT; what <= IPW_REDACT_ALL; what++) {
        if (strcmp(name, ipw_redact_name((enum ipw_redact)what))) continue;
        *out = (enum ipw_redact)what;
        return 0;
    }
    return ipw_fail(err, IPW_EINVAL, "--redact %.40s: expected text, tools or all", name);
}

const char *ipw_redact_name(enum ipw_redact what)
{
    static const char *const names[] = {"", "text", "tools", "all"};

    return names[what & 3];
}

int ipw_redactor_init(struct ipw_redactor *r, enum ipw_redact what, struct ipw_err *err)
{
    r->what = what;
    if (getrandom(&r->key, sizeof r->key, 0) == sizeof r->key) return 0;
    return ipw_fail_errno(err, errno, "getrandom");
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
}

/* Writes exactly n bytes: words of four letters and a space, which is about one token each, as in
 * average text. */
static void put_filler(struct ipw_buf *out, const struct ipw_redactor *r, const char *s, size_t n)
{
    static const char words[32][5] = {
        "that", "with", "have", "this", "will", "your", "from", "they", "know", "want", "been",
        "good", "much", "some", "time", "very", "when", "come", "here", "just", "like", "long",
        "make", "many", "more", "only", "over", "such", "take", "than", "them", "well"};
    uint64_t hash = r->key, state = 0;

    for (size_t i = 0; i < n; i++) {
        if (i % CHUNK == 0) {
            for (size_t k = i; k < n && k < i + CHUNK; k++)
                hash = (hash ^ (unsigned char)s[k]) * 0x100000001B3ULL;
            state = mix(hash ^ r->key >> 7);
        }
        if (i % 5 == 0) state = mix(state + 0x9E3779B97F4A7C15ULL);
        ipw_buf_addc(out, i % 5 == 4 ? ' ' : words[state & 31][i % 5]);
    }
}

static void write_filler(struct ipw_jw *w, const struct ipw_redactor *r, const char *s, size_t n)
{
    struct ipw_buf text = IPW_BUF(MAX_TEXT_BYTES);

    put_filler(&text, r, s, n);
    ipw_jw_strn(w, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
}

/* Templates of some models read arguments as JSON, so they stay an object of the same length. */
static void write_arguments(struct ipw_jw *w, const struct ipw_redactor *r,
                            const struct ipw_json *node, bool as_text)
{
    struct ipw_buf was = IPW_BUF(MAX_TEXT_BYTES), text = IPW_BUF(MAX_TEXT_BYTES);

    if (ipw_json_kind(node) == IPW_JSON_STR)
        ipw_buf_add(&was, ipw_json_str(node, ""), ipw_json_str_len(node));
    else
        ipw_json_print(&was, node);
    if (was.len < 8) {
        ipw_buf_adds(&text, "{}");
    } else {
        ipw_buf_adds(&text, "{\"x\":\"");
        put_filler(&text, r, was.data, was.len - 8);
        ipw_buf_adds(&text, "\"}");
    }
    if (as_text)
        ipw_jw_strn(w, ipw_buf_str(&text), text.len);
    else
        ipw_jw_raw(w, ipw_buf_str(&text), text.len);
    ipw_buf_release(&was);
    ipw_buf_release(&text);
}

/* ---- which texts belong to which kind ---- */

static bool is_one_of(const char *key, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(key, *list) == 0) return true;
    return false;
}

static void key_of(struct ipw_jw *w, const struct ipw_json *member)
{
    ipw_jw_key_any(w, ipw_json_key(member), strlen(ipw_json_key(member)));
}

static void copy(struct ipw_jw *w, const struct ipw_json *node)
{
    struct ipw_buf text = IPW_BUF(MAX_TEXT_BYTES);

    ipw_json_print(&text, node);
    ipw_jw_raw(w, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
}

/* The member's row of the table of the format; NULL: it has none. */
static const struct ipw_spec *row_of(const struct ipw_spec *table, const struct ipw_json *member)
{
    const struct ipw_spec *row = table;

    while (row && row->key && strcmp(row->key, ipw_json_key(member))) row++;
    return row && row->key ? row : NULL;
}

static bool is_open(const struct ipw_spec *row)
{
    return row && (row->words || row->kind & IPW_SPEC_OPEN);
}

struct walk {
    const struct ipw_redactor *r;
    struct ipw_jw *w;
    const char *const *kept; /* members whose text reveals nothing */
    /* A script's note: member names that equal ours have another meaning. */
    bool note;
};

/* A call that was not finished has no event with its error.  The word "unfinished" is the program's
 * own, and it appears again when the trace is built from the events. */
static bool is_our_word(const char *key, const struct ipw_json *node)
{
    return strcmp(key, "error") == 0 && strcmp(ipw_json_str(node, ""), "unfinished") == 0;
}

/* Writes the node; all texts below it are of the kind `whose`, except those of kept members. */
static void put(const struct walk *k, const struct ipw_json *node, const char *key, unsigned whose)
{
    static const char *const arguments[] = {"arguments", NULL};
    static const char *const gone[] = {"metadata", "score_metadata", "logprobs", NULL};
    bool hide = (k->r->what & whose) != 0;

    switch (ipw_json_kind(node)) {
    case IPW_JSON_STR:
        if (is_one_of(key, arguments) && k->r->what & IPW_REDACT_TOOLS)
            write_arguments(k->w, k->r, node, true);
        else if (hide && !is_one_of(key, k->kept) && !is_our_word(key, node))
            write_filler(k->w, k->r, ipw_json_str(node, ""), ipw_json_str_len(node));
        else
            copy(k->w, node);
        break;
    case IPW_JSON_ARR:
        ipw_jw_arr(k->w);
        for (const struct ipw_json *e = ipw_json_first(node); e; e = ipw_json_next(e))
            put(k, e, key, whose);
        ipw_jw_arr_end(k->w);
        break;
    case IPW_JSON_OBJ:
        if (is_one_of(key, arguments) && k->r->what & IPW_REDACT_TOOLS) {
            write_arguments(k->w, k->r, node, false);
            break;
        }
        ipw_jw_obj(k->w);
        if (!is_one_of(key, gone) || !hide) {
            const char *role = ipw_json_str(ipw_json_get(node, "role"), "");

            bool call = !k->note && ipw_json_get(node, "name"); /* a tool call */

            for (const struct ipw_json *m = ipw_json_first(node); m; m = ipw_json_next(m)) {
                bool tools =
                    strcmp(role, "tool") == 0 || (call && is_one_of(ipw_json_key(m), arguments));

                key_of(k->w, m);
                put(k, m, ipw_json_key(m), tools ? (unsigned)IPW_REDACT_TOOLS : whose);
            }
        }
        ipw_jw_obj_end(k->w);
        break;
    default: copy(k->w, node);
    }
}

/* ---- events ---- */

/* The manifest inside contains paths, addresses and the command. */
static void put_run_start(struct ipw_jw *w, const struct ipw_json *data)
{
    ipw_jw_obj(w);
    for (const struct ipw_json *m = ipw_json_first(data); m; m = ipw_json_next(m)) {
        key_of(w, m);
        if (strcmp(ipw_json_key(m), "manifest") == 0)
            ipw_jw_null(w);
        else
            copy(w, m);
    }
    ipw_jw_obj_end(w);
}

static void put_data(const struct walk *k, const struct ipw_json *data, const char *event,
                     const char *name)
{
    static const char *const own_notes[] = {
        "clock_step", "concurrency", "prompt_truncated", "sensor_back", "sensor_doubted",
        "sensor_gap", "sensor_lost", "sensor_stuck",     "suspend",     NULL};
    bool tool = strncmp(event, "tool_call", 9) == 0 || strncmp(event, "span", 4) == 0;
    unsigned whose = tool ? IPW_REDACT_TOOLS : IPW_REDACT_TEXT;

    if (strcmp(event, "run_start") == 0)
        put_run_start(k->w, data);
    else if (strcmp(event, "note") == 0 && is_one_of(name, own_notes))
        copy(k->w, data);
    else if (strcmp(event, "note") == 0 && strcmp(name, "effect") == 0)
        ipw_jw_raw(k->w, "{}", 2); /* everything that a script read */
    else if (strcmp(event, "note") == 0 && strcmp(name, "native_module") == 0)
        put(k, data, "data", IPW_REDACT_ALL); /* a path */
    else
        put(k, data, "data", whose);
}

void ipw_redact_event(struct ipw_buf *out, const struct ipw_redactor *r,
                      const struct ipw_json *line)
{
    /* "name" belongs to a tool or a function; ids come from the server. */
    static const char *const in_data[] = {
        "answer_source",    "arrivals", "call_id", "finish", "id",          "model",        "name",
        "reasoning_effort", "required", "role",    "type",   "tool_choice", "tool_call_id", NULL};
    const char *event = ipw_json_str(ipw_json_get(line, "event"), "");
    const char *name = ipw_json_str(ipw_json_get(ipw_json_get(line, "data"), "name"), "");
    struct ipw_jw w;
    static const char *const nothing[] = {NULL}, *const module[] = {"name", NULL};
    const struct ipw_spec *table = ipw_spec_event(event);
    bool note = strcmp(event, "note") == 0;
    struct walk inner = {r, &w, in_data, note}, outer = {r, &w, nothing, false};

    if (ipw_json_get(line, "name")) name = ipw_json_str(ipw_json_get(line, "name"), "");
    if (note) inner.kept = strcmp(name, "native_module") == 0 ? module : nothing;
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    for (const struct ipw_json *m = ipw_json_first(line); m; m = ipw_json_next(m)) {
        key_of(&w, m);
        if (strcmp(ipw_json_key(m), "data") == 0)
            put_data(&inner, m, event, name);
        else if (is_open(row_of(table, m)))
            copy(&w, m);
        else
            put(&outer, m, ipw_json_key(m), IPW_REDACT_ALL);
    }
    ipw_jw_obj_end(&w);
}

/* ---- traces ---- */

static void put_trace(const struct walk *k, const struct ipw_json *object,
                      const struct ipw_spec *table);

/* The name of these spans is a host, or a script's word. */
static bool is_private_name(const struct ipw_json *object, const struct ipw_spec *row)
{
    const char *kind = ipw_json_str(ipw_json_get(object, "kind"), "");

    return row && strcmp(row->key, "name") == 0 &&
           (strcmp(kind, "http") == 0 || strcmp(kind, "event") == 0);
}

static void put_each(const struct walk *k, const struct ipw_json *node, const struct ipw_spec *row)
{
    bool list = ipw_json_kind(node) == IPW_JSON_ARR;

    (list ? ipw_jw_arr : ipw_jw_obj)(k->w);
    for (const struct ipw_json *e = ipw_json_first(node); e; e = ipw_json_next(e)) {
        if (!list) key_of(k->w, e);
        if (ipw_json_kind(e) == IPW_JSON_OBJ)
            put_trace(k, e, row->of);
        else
            put(k, e, row->key, IPW_REDACT_TEXT);
    }
    (list ? ipw_jw_arr_end : ipw_jw_obj_end)(k->w);
}

static void put_member(const struct walk *k, const struct ipw_json *object,
                       const struct ipw_json *m, const struct ipw_spec *row)
{
    enum ipw_json_kind kind = ipw_json_kind(m);

    if (row && row->kind & IPW_SPEC_GONE)
        ipw_jw_raw(k->w, "{}", 2);
    else if (is_private_name(object, row) || (row && row->kind & IPW_SPEC_PRIVATE))
        put(k, m, ipw_json_key(m), IPW_REDACT_ALL);
    else if (is_open(row))
        copy(k->w, m);
    else if (row && row->of && (kind == IPW_JSON_ARR || row->kind & IPW_SPEC_EACH))
        put_each(k, m, row);
    else if (row && row->of && kind == IPW_JSON_OBJ)
        put_trace(k, m, row->of);
    else
        put(k, m, ipw_json_key(m), IPW_REDACT_TEXT);
}

static void put_trace(const struct walk *k, const struct ipw_json *object,
                      const struct ipw_spec *table)
{
    ipw_jw_obj(k->w);
    for (const struct ipw_json *m = ipw_json_first(object); m; m = ipw_json_next(m)) {
        const struct ipw_spec *row = row_of(table, m);

        if (row && row->kind & IPW_SPEC_GONE && row->kind & IPW_SPEC_OPTIONAL) continue;
        key_of(k->w, m);
        put_member(k, object, m, row);
    }
    ipw_jw_obj_end(k->w);
}

void ipw_redact_trace(struct ipw_buf *out, const struct ipw_redactor *r,
                      const struct ipw_json *line)
{
    static const char *const nothing[] = {NULL};
    struct ipw_jw w;
    struct walk k = {r, &w, nothing, false};

    ipw_jw_init(&w, out);
    put_trace(&k, line, ipw_spec_trace);
}

/* ---- the manifest and the summary ---- */

/* A list of texts stays a list; everything else becomes null. */
static void put_hidden(struct ipw_buf *out, const struct ipw_redactor *r,
                       const struct ipw_json *node)
{
    struct ipw_jw w;

    if (strcmp(ipw_json_key(node), "forced") || ipw_json_kind(node) != IPW_JSON_ARR) {
        ipw_buf_adds(out, "null");
        return;
    }
    ipw_jw_init(&w, out);
    ipw_jw_arr(&w);
    for (const struct ipw_json *e = ipw_json_first(node); e; e = ipw_json_next(e))
        write_filler(&w, r, ipw_json_str(e, ""), ipw_json_str_len(e));
    ipw_jw_arr_end(&w);
}

/* The summary's tools are figures; the configuration's are names of files.  An empty list tells
 * nothing. */
static bool is_figures(const struct ipw_json *node)
{
    return strcmp(ipw_json_key(node), "tools") == 0 && ipw_json_kind(node) == IPW_JSON_ARR &&
           ipw_json_kind(ipw_json_first(node)) != IPW_JSON_STR;
}

void ipw_redact_document(struct ipw_buf *out, const struct ipw_redactor *r,
                         const struct ipw_json *doc)
{
    /* Texts of sensors contain paths and addresses: "telemetry", "text", "energy_note". */
    static const char *const hidden[] = {"agent_file",  "body",      "client_base_url",
                                         "command",     "cwd",       "dataset_source",
                                         "energy_note", "forced",    "host",
                                         "limit",       "not_quiet", "note",
                                         "of",          "path",      "prompt",
                                         "telemetry",   "text",      "tools",
                                         "url",         NULL};
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    if (ipw_json_kind(doc) == IPW_JSON_ARR) {
        ipw_jw_arr(&w);
        for (const struct ipw_json *e = ipw_json_first(doc); e; e = ipw_json_next(e)) {
            struct ipw_buf inner = IPW_BUF(MAX_TEXT_BYTES);

            ipw_redact_document(&inner, r, e);
            ipw_jw_raw(&w, ipw_buf_str(&inner), inner.len);
            ipw_buf_release(&inner);
        }
        ipw_jw_arr_end(&w);
    } else if (ipw_json_kind(doc) == IPW_JSON_OBJ) {
        ipw_jw_obj(&w);
        for (const struct ipw_json *m = ipw_json_first(doc); m; m = ipw_json_next(m)) {
            struct ipw_buf inner = IPW_BUF(MAX_TEXT_BYTES);

            key_of(&w, m);
            if (is_one_of(ipw_json_key(m), hidden) && !is_figures(m))
                put_hidden(&inner, r, m);
            else
                ipw_redact_document(&inner, r, m);
            ipw_jw_raw(&w, ipw_buf_str(&inner), inner.len);
            ipw_buf_release(&inner);
        }
        ipw_jw_obj_end(&w);
    } else {
        copy(&w, doc);
    }
}
