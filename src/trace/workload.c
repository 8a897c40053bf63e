#include "trace/workload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "trace/record.h"
#include "json/write.h"

/* ---- the queries ---- */

struct ipw_workload_query *ipw_workload_add(struct ipw_workload *w)
{
    IPW_GROW(w->queries, w->cap, w->n + 1);
    w->queries[w->n] = (struct ipw_workload_query){0};
    return &w->queries[w->n++];
}

struct ipw_workload_turn *ipw_workload_add_turn(struct ipw_workload_query *q)
{
    IPW_GROW(q->turns, q->cap, q->n + 1);
    q->turns[q->n] = (struct ipw_workload_turn){.input_tokens = -1, .output_tokens = -1};
    return &q->turns[q->n++];
}

static void clear_query(struct ipw_workload_query *q)
{
    for (size_t i = 0; i < q->n; i++) {
        free(q->turns[i].messages);
        free(q->turns[i].rest);
        free(q->turns[i].blocks);
    }
    for (size_t i = 0; i < q->n_texts; i++) free(q->texts[i]);
    free(q->turns);
    free(q->texts);
    free(q->id);
    free(q->prompt);
    *q = (struct ipw_workload_query){0};
}

void ipw_workload_free(struct ipw_workload *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->n; i++) clear_query(&w->queries[i]);
    free(w->queries);
    free(w->path);
    free(w);
}

/* ---- out of a record ---- */

struct open_query { /* what is being read of a query */
    int32_t index;
    size_t at;                /* in the workload */
    int64_t start_ns, end_ns; /* of the query, of its last reply */
    const char **thread;      /* the messages of its last request */
    size_t n, cap;
};

struct reading {
    struct ipw_workload *w;
    struct open_query *open;
    size_t n, cap;
    int64_t base_ns, last_ns; /* what stands for the time 0 of the record's clock */
    bool begun;
};

static struct open_query *find(struct reading *r, int32_t index)
{
    for (size_t i = r->n; i-- > 0;)
        if (r->open[i].index == index) return &r->open[i];
    return NULL;
}

static void close_query(struct reading *r, struct open_query *q)
{
    free(q->thread);
    *q = r->open[--r->n];
}

static void on_query_start(struct reading *r, const struct ipw_record_line *line, int64_t t_ns)
{
    struct open_query *q = find(r, line->event.query);
    struct ipw_workload_query *out;

    if (q) close_query(r, q); /* cut down: the session after this one begins it again */
    if (ipw_json_bool(ipw_json_get(line->data, "warmup"), false)) return;
    out = ipw_workload_add(r->w);
    out->id = ipw_strdup(line->event.q.id ? line->event.q.id : "");
    out->prompt = ipw_strdup(ipw_json_str(ipw_json_get(line->data, "prompt"), NULL));
    out->epoch = (int)ipw_json_int(ipw_json_get(line->data, "epoch"), 0);
    out->at_ns = t_ns;
    IPW_GROW(r->open, r->cap, r->n + 1);
    r->open[r->n++] = (struct open_query){
        .index = line->event.query, .at = r->w->n - 1, .start_ns = t_ns, .end_ns = t_ns};
}

/* Members that are the client's, not the request's: the one who sends it again sets them anew. */
static bool is_ours(const char *key)
{
    static const char *const ours[] = {
        "ignore_eos", "max_completion_tokens", "max_tokens", "messages", "min_tokens", "model",
        "stream",     "stream_options"};

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(key, ours[i]) == 0) return true;
    return false;
}

static char *rest_of(const struct ipw_json *request)
{
    struct ipw_buf out = IPW_BUF(512 * IPW_MIB), value = IPW_BUF(512 * IPW_MIB);
    struct ipw_jw w;
    size_t n = 0;

    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    for (const struct ipw_json *m = ipw_json_first(request); m; m = ipw_json_next(m)) {
        if (is_ours(ipw_json_key(m))) continue;
        ipw_buf_clear(&value);
        ipw_json_print(&value, m);
        ipw_jw_key_any(&w, ipw_json_key(m), strlen(ipw_json_key(m)));
        ipw_jw_raw(&w, ipw_buf_str(&value), value.len);
        n++;
    }
    ipw_jw_obj_end(&w);
    ipw_buf_release(&value);
    if (n) return ipw_buf_take(&out, NULL);
    ipw_buf_release(&out);
    return NULL;
}

/* A request repeats only what the one before it did not have. */
static void take_messages(struct open_query *q, struct ipw_workload_query *out,
                          const struct ipw_json *data)
{
    int64_t kept = ipw_json_int(ipw_json_get(data, "messages_kept"), 0);
    const struct ipw_json *messages = ipw_json_get(data, "messages");

    if (q->n > (size_t)(kept < 0 ? 0 : kept)) q->n = (size_t)(kept < 0 ? 0 : kept);
    for (const struct ipw_json *m = ipw_json_first(messages); m; m = ipw_json_next(m)) {
        struct ipw_buf text = IPW_BUF(512 * IPW_MIB);

        ipw_json_print(&text, m);
        IPW_GROW(out->texts, out->cap_texts, out->n_texts + 1);
        out->texts[out->n_texts++] = ipw_buf_take(&text, NULL);
        IPW_GROW(q->thread, q->cap, q->n + 1);
        q->thread[q->n++] = out->texts[out->n_texts - 1];
    }
}

static void on_request(struct reading *r, const struct ipw_record_line *line, int64_t t_ns)
{
    struct open_query *q = find(r, line->event.query);
    struct ipw_workload_query *out;
    struct ipw_workload_turn *turn;

    if (!q) return;
    out = &r->w->queries[q->at];
    take_messages(q, out, line->data);
    if (line->event.lm.attempt > 1) return; /* the same request once more */
    turn = ipw_workload_add_turn(out);
    turn->at_ns = t_ns;
    turn->gap_ns = t_ns - q->end_ns;
    turn->rest = rest_of(ipw_json_get(line->data, "request"));
    turn->n_messages = q->n;
    turn->messages = (void *)ipw_memdup(q->thread, q->n * sizeof *q->thread);
}

static void on_reply(struct reading *r, const struct ipw_record_line *line, int64_t t_ns)
{
    struct open_query *q = find(r, line->event.query);
    const struct ipw_lm_facts *f = &line->event.lm;
    struct ipw_workload_turn *turn;

    if (!q || !r->w->queries[q->at].n) return;
    q->end_ns = t_ns;
    turn = &r->w->queries[q->at].turns[r->w->queries[q->at].n - 1];
    if (f->input_tokens >= 0) turn->input_tokens = f->input_tokens;
    if (f->output_tokens >= 0) turn->output_tokens = f->output_tokens;
    turn->tokens_estimated = f->tokens_estimated;
}

static void on_line(struct reading *r, const struct ipw_record_line *line)
{
    const struct ipw_event *e = &line->event;
    int64_t t_ns;

    /* Each session of a run has a clock of its own: they are laid end to end. */
    if (e->kind == IPW_EV_RUN_START || !r->begun) {
        r->base_ns = e->t_ns - (r->begun ? r->last_ns : 0);
        r->begun = true;
    }
    t_ns = e->t_ns - r->base_ns;
    if (t_ns > r->last_ns) r->last_ns = t_ns;
    switch (e->kind) {
    case IPW_EV_QUERY_START: on_query_start(r, line, t_ns); break;
    case IPW_EV_LM_START: on_request(r, line, t_ns); break;
    case IPW_EV_LM_END: on_reply(r, line, t_ns); break;
    case IPW_EV_QUERY_END: {
        struct open_query *q = find(r, e->query);

        if (q) close_query(r, q);
        break;
    }
    default: break;
    }
}

static int read_record(struct ipw_workload *w, struct ipw_err *err)
{
    struct reading r = {.w = w};
    struct ipw_record *record = NULL;
    const struct ipw_record_line *line;
    int rc = ipw_record_open(&record, w->path, err);

    while (!rc && (rc = ipw_record_head(record, &line, err)) > 0) {
        on_line(&r, line);
        ipw_record_drop(record, line);
        rc = 0;
    }
    while (r.n) close_query(&r, &r.open[0]);
    free(r.open);
    ipw_record_close(record);
    return rc;
}

/* ---- opening ---- */

static int by_time(const void *a, const void *b)
{
    const struct ipw_workload_query *x = a, *y = b;

    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static int by_id(const void *a, const void *b)
{
    const struct ipw_workload_query *x = a, *y = b;
    int order = strcmp(x->id, y->id);

    if (!order) order = (x->epoch > y->epoch) - (x->epoch < y->epoch);
    return order ? order : by_time(a, b);
}

/* Queries that never asked anything are no work; a query that a run began twice (it was resumed)
 * counts as it was begun last. */
static void tidy(struct ipw_workload *w)
{
    size_t n = 0;

    if (!w->lines && w->n) {
        qsort(w->queries, w->n, sizeof *w->queries, by_id);
        for (size_t i = 1; i < w->n; i++) {
            struct ipw_workload_query *a = &w->queries[i - 1], *b = &w->queries[i];

            if (strcmp(a->id, b->id) == 0 && a->epoch == b->epoch) a->superseded = true;
        }
    }
    for (size_t i = 0; i < w->n; i++) {
        if (!w->queries[i].n || w->queries[i].superseded)
            clear_query(&w->queries[i]);
        else
            w->queries[n++] = w->queries[i];
    }
    w->n = n;
    if (n) qsort(w->queries, n, sizeof *w->queries, by_time);
    w->n_turns = 0;
    for (size_t i = 0; i < n; i++) w->n_turns += w->queries[i].n;
}

int ipw_workload_open(struct ipw_workload **out, const char *path, struct ipw_err *err)
{
    struct ipw_workload *w = ipw_calloc(1, sizeof *w);
    struct stat st;
    int rc;

    w->path = ipw_strdup(path);
    w->lines = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    rc = w->lines ? ipw_workload_read_lines(w, err) : read_record(w, err);
    tidy(w);
    if (!rc && !w->n) rc = ipw_fail(err, IPW_EINVAL, "%s: holds no request", path);
    if (rc) {
        ipw_workload_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

int ipw_workload_keep(struct ipw_workload *w, const char *id, size_t limit, struct ipw_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct ipw_workload_query q = w->queries[i];

        if ((id && strcmp(id, q.id)) || (limit && n >= limit))
            clear_query(&q);
        else
            w->queries[n++] = q;
    }
    w->n = n;
    tidy(w);
    if (!n) return ipw_fail(err, IPW_ENOTFOUND, "%s: holds no query \"%.80s\"", w->path, id);
    return 0;
}

/* ---- prompts ---- */

static uint64_t draw(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9E3779B97F4A7C15ULL;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
}

/* Each of these is one token, with the space before it, in the vocabularies in use. */
static void put_words(struct ipw_buf *out, uint64_t seed, int64_t n)
{
    static const char *const words[64] = {
        "the",   "of",   "and",  "to",   "in",    "is",    "that",  "for",   "it",    "as",
        "was",   "with", "be",   "by",   "on",    "not",   "he",    "his",   "but",   "at",
        "are",   "this", "have", "from", "or",    "had",   "an",    "they",  "which", "one",
        "you",   "were", "her",  "all",  "she",   "there", "would", "their", "we",    "him",
        "been",  "has",  "when", "who",  "will",  "more",  "no",    "if",    "out",   "so",
        "said",  "what", "up",   "its",  "about", "into",  "than",  "them",  "can",   "only",
        "other", "new",  "some", "could"};

    for (int64_t i = 0; i < n; i++) {
        ipw_buf_addc(out, ' ');
        ipw_buf_adds(out, words[draw(&seed) & 63]);
    }
}

void ipw_workload_prompt(struct ipw_buf *out, const struct ipw_workload_turn *turn, uint64_t seed)
{
    int64_t left = turn->input_tokens > 0 ? turn->input_tokens : 1;

    ipw_buf_adds(out, "{\"content\":\"");
    for (size_t i = 0; i < turn->n_blocks && left > 0; i++) {
        int64_t n = left < IPW_WORKLOAD_BLOCK ? left : IPW_WORKLOAD_BLOCK;

        put_words(out, (uint64_t)turn->blocks[i] * 2 + 1, n);
        left -= n;
    }
    put_words(out, ~seed, left);
    ipw_buf_adds(out, "\",\"role\":\"user\"}");
}
