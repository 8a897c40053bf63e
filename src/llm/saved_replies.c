/* The index of a saved run's requests. */
#include "llm/saved_replies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/open.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "llm/saved_replies_priv.h"

enum { MAX_MODELS = 1000 };

/* ---- hashes ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint64_t hash_bytes(uint64_t key, const char *s, size_t n)
{
    uint64_t h = key ^ n;

    for (; n >= 8; s += 8, n -= 8) {
        uint64_t word;

        memcpy(&word, s, 8);
        h = mix(h ^ word) + key;
    }
    for (; n; s++, n--) h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001B3);
    return mix(h);
}

/* Numbers by value: a client in JavaScript cannot write 0.0; it sends a saved 0.0 as 0. */
static uint64_t hash_node(const struct ipw_saved_replies *r, const struct ipw_json *node)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);
    uint64_t h;

    ipw_json_print_by_value(&text, node);
    h = hash_bytes(r->key, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
    return h;
}

void ipw_saved_replies_hash_message(struct ipw_saved_replies_message *out,
                                    const struct ipw_saved_replies *r,
                                    const struct ipw_json *message)
{
    const struct ipw_json *role = ipw_json_get(message, "role");

    out->hash = hash_node(r, message);
    out->role = hash_bytes(r->key, ipw_json_str(role, ""), ipw_json_str_len(role));
}

void ipw_saved_replies_hash_all(uint64_t *messages, uint64_t *roles,
                                const struct ipw_saved_replies_message *said, size_t n)
{
    *messages = *roles = n;
    for (size_t i = 0; i < n; i++) {
        *messages = mix(*messages ^ said[i].hash);
        *roles = mix(*roles ^ said[i].role);
    }
}

uint64_t ipw_saved_replies_hash_rest(const struct ipw_saved_replies *r,
                                     const struct ipw_json *request)
{
    static const char *const passed[] = {"messages", "stream", "stream_options"};
    uint64_t sum = 0;

    for (const struct ipw_json *m = ipw_json_first(request); m; m = ipw_json_next(m)) {
        const char *key = ipw_json_key(m);
        bool counts = !ipw_json_is_null(m);

        for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
            counts &= strcmp(key, passed[i]) != 0;
        if (counts) sum += mix(hash_bytes(r->key, key, strlen(key)) ^ hash_node(r, m));
    }
    return sum;
}

/* ---- lines ---- */

int ipw_saved_replies_line(struct ipw_json **doc, const struct ipw_saved_replies *r, int64_t at,
                           size_t n, struct ipw_err *err)
{
    char *text = ipw_malloc(n + 1);
    size_t have = 0;
    int rc;

    *doc = NULL;
    while (have < n) {
        ssize_t got = pread(r->fd, text + have, n - have, (off_t)at + (off_t)have);

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += (size_t)got;
    }
    text[have] = '\0';
    rc = have < n ? ipw_fail(err, IPW_EIO, "%s: is shorter than it was", r->path)
                  : ipw_json_parse(doc, text, n, NULL, err);
    if (rc == IPW_EPARSE) ipw_err_prefix(err, "%s, from byte %lld", r->path, (long long)at);
    free(text);
    return rc;
}

/* ---- building ---- */

static struct ipw_saved_replies_query *find_live(struct ipw_saved_replies *r, int32_t index,
                                                 size_t *slot)
{
    for (size_t i = 0; i < r->n_live; i++) {
        if (r->queries[r->live[i]].index != index) continue;
        if (slot) *slot = i;
        return &r->queries[r->live[i]];
    }
    return NULL;
}

static void end_query(struct ipw_saved_replies *r, int32_t index)
{
    size_t slot;

    if (find_live(r, index, &slot)) r->live[slot] = r->live[--r->n_live];
}

static struct ipw_saved_replies_query *begin_query(struct ipw_saved_replies *r, int32_t index,
                                                   const char *id)
{
    end_query(r, index); /* if it was interrupted and began again */
    IPW_GROW(r->queries, r->cap_queries, r->n_queries + 1);
    r->queries[r->n_queries] = (struct ipw_saved_replies_query){
        .index = index, .id = ipw_strdup(id), .first = IPW_NO_REQUEST, .last = IPW_NO_REQUEST};
    IPW_GROW(r->live, r->cap_live, r->n_live + 1);
    r->live[r->n_live++] = r->n_queries;
    return &r->queries[r->n_queries++];
}

static void add_model(struct ipw_saved_replies *r, const char *name)
{
    if (!name || !*name || r->n_models >= MAX_MODELS) return;
    for (size_t i = 0; i < r->n_models; i++)
        if (strcmp(r->models[i], name) == 0) return;
    IPW_GROW(r->models, r->cap_models, r->n_models + 1);
    r->models[r->n_models++] = ipw_strdup(name);
}

static void add_request(struct ipw_saved_replies *r, const struct ipw_event *e,
                        const struct ipw_json *data, const struct ipw_jsonl_line *line)
{
    struct ipw_saved_replies_query *q = find_live(r, e->query, NULL);
    const struct ipw_json *messages = ipw_json_get(data, "messages");
    int64_t kept = ipw_json_int(ipw_json_get(data, "messages_kept"), 0);
    struct ipw_saved_replies_message *said, *own;
    struct ipw_asked *a;
    size_t had;

    if (!q) q = begin_query(r, e->query, "?");
    had = q->last == IPW_NO_REQUEST ? 0 : r->asked[q->last].n;
    IPW_GROW(r->asked, r->cap, r->n + 1);
    a = &r->asked[r->n];
    *a = (struct ipw_asked){.query = (size_t)(q - r->queries),
                            .attempt = e->lm.attempt,
                            .span = e->span,
                            .start_at = line->offset,
                            .start_n = line->n,
                            .before = q->last,
                            .kept = kept < 0             ? 0
                                    : (size_t)kept < had ? (size_t)kept
                                                         : had};
    if (e->lm.attempt <= 1) q->turns++;
    a->turn = q->turns;
    a->n = a->kept + ipw_json_count(messages);
    a->own = own = ipw_calloc(a->n - a->kept + 1, sizeof *a->own);
    for (const struct ipw_json *m = ipw_json_first(messages); m; m = ipw_json_next(m))
        ipw_saved_replies_hash_message(own++, r, m);
    said = ipw_calloc(a->n + 1, sizeof *said);
    ipw_saved_replies_gather(said, r, a);
    ipw_saved_replies_hash_all(&a->messages, &a->roles, said, a->n);
    free(said);
    a->rest = ipw_saved_replies_hash_rest(r, ipw_json_get(data, "request"));
    add_model(r, ipw_json_str(ipw_json_get(ipw_json_get(data, "request"), "model"), e->lm.model));
    if (q->first == IPW_NO_REQUEST) q->first = r->n;
    q->last = r->n++;
}

static void add_end(struct ipw_saved_replies *r, const struct ipw_event *e,
                    const struct ipw_jsonl_line *line)
{
    const struct ipw_saved_replies_query *q = find_live(r, e->query, NULL);
    size_t i = q ? q->last : IPW_NO_REQUEST;

    while (i != IPW_NO_REQUEST && (r->asked[i].span != e->span || r->asked[i].end_n))
        i = r->asked[i].before;
    if (i == IPW_NO_REQUEST) return;
    r->asked[i].end_at = line->offset;
    r->asked[i].end_n = line->n;
    r->asked[i].outcome = e->lm.outcome;
}

static int add_line(struct ipw_saved_replies *r, const struct ipw_jsonl_line *line,
                    struct ipw_err *err)
{
    struct ipw_json *doc;
    struct ipw_event e;
    int rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);

    if (!rc) rc = ipw_event_read(&e, doc, err);
    if (rc) {
        ipw_err_prefix(err, "%s:%lld", r->path, (long long)line->number);
    } else if (e.kind == IPW_EV_QUERY_START) {
        begin_query(r, e.query, e.q.id ? e.q.id : "?");
    } else if (e.kind == IPW_EV_QUERY_END) {
        end_query(r, e.query);
    } else if (e.kind == IPW_EV_LM_START) {
        add_request(r, &e, ipw_json_get(doc, "data"), line);
    } else if (e.kind == IPW_EV_LM_END) {
        add_end(r, &e, line);
    }
    ipw_json_free(doc);
    return rc;
}

void ipw_saved_replies_gather(struct ipw_saved_replies_message *said,
                              const struct ipw_saved_replies *r, const struct ipw_asked *a)
{
    size_t to = a->n;

    for (;; a = &r->asked[a->before]) {
        if (a->kept < to) {
            memcpy(said + a->kept, a->own, (to - a->kept) * sizeof *said);
            to = a->kept;
        }
        if (to == 0 || a->before == IPW_NO_REQUEST) return;
    }
}

static int compare(const void *x, const void *y, void *ud)
{
    const struct ipw_saved_replies *r = ud;
    size_t i = *(const size_t *)x, k = *(const size_t *)y;
    uint64_t a = r->asked[i].messages, b = r->asked[k].messages;

    return a != b ? (a < b ? -1 : 1) : i < k ? -1 : i > k;
}

static int build(struct ipw_saved_replies *r, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, r->path, IPW_LINE_MAX, err);

    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0 && !line.torn) {
        rc = add_line(r, &line, err);
        if (rc) break;
    }
    ipw_jsonl_close(reader);
    if (rc < 0) return rc;
    r->by_messages = ipw_calloc(r->n + 1, sizeof *r->by_messages);
    for (size_t i = 0; i < r->n; i++) r->by_messages[i] = i;
    qsort_r(r->by_messages, r->n, sizeof *r->by_messages, compare, r);
    r->fd = ipw_open_read(r->path, err);
    return r->fd < 0 ? r->fd : 0;
}

int ipw_saved_replies_open(struct ipw_saved_replies **out, const char *run, bool with_failures,
                           struct ipw_err *err)
{
    struct ipw_saved_replies *r = ipw_calloc(1, sizeof *r);
    size_t n = strlen(run);
    int rc = 0;

    r->fd = -1;
    r->with_failures = with_failures;
    r->path = ipw_asprintf("%s%sevents.jsonl", run, n && run[n - 1] == '/' ? "" : "/");
    if (getrandom(&r->key, sizeof r->key, 0) != sizeof r->key)
        rc = ipw_fail_errno(err, errno, "getrandom");
    if (!rc) rc = build(r, err);
    if (rc) {
        ipw_saved_replies_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

void ipw_saved_replies_close(struct ipw_saved_replies *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n; i++) free(r->asked[i].own);
    for (size_t i = 0; i < r->n_queries; i++) free(r->queries[i].id);
    for (size_t i = 0; i < r->n_models; i++) free(r->models[i]);
    if (r->fd >= 0) close(r->fd);
    free(r->asked);
    free(r->by_messages);
    free(r->queries);
    free(r->live);
    free(r->models);
    free(r->path);
    free(r);
}

bool ipw_saved_replies_can_give(const struct ipw_saved_replies *r, const struct ipw_asked *a)
{
    if (!a->end_n || a->outcome == IPW_LM_CANCELLED) return false;
    return a->outcome == IPW_LM_OK || r->with_failures;
}

size_t ipw_saved_replies_count(const struct ipw_saved_replies *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) n += ipw_saved_replies_can_give(r, &r->asked[i]);
    return n;
}

const char *ipw_saved_replies_model(const struct ipw_saved_replies *r, size_t i)
{
    return i < r->n_models ? r->models[i] : NULL;
}
