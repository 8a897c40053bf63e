/* The requests in a saved run's events.jsonl.  The line of a request's start has its content, the
 * line of its end its lengths, and the query's earlier lines its delay. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "json/json.h"
#include "json/write.h"
#include "trace/event.h"
#include "trace/workload_priv.h"

enum { TEXT_MAX = 512 * 1024 * 1024 };

/* ---- the index ---- */

struct waiting {  /* a request that waits for its reply */
    int32_t span; /* of its attempt; 0: it will be sent again */
    uint32_t entry;
};

struct open_query {       /* a query during the reading */
    int32_t index;        /* index in the run */
    uint32_t place, last; /* index of its place; its last entry */
    int64_t end_ns;       /* end of its last reply; before the first reply, of its start */
    struct waiting *waiting;
    size_t n_waiting, cap_waiting;
};

struct indexing {
    struct ipw_workload *w;
    struct open_query *open;
    size_t n, cap;
    struct ipw_table by_index; /* open queries, by `index` */
    struct ipw_table by_name;  /* places, by id and epoch; used from the second session on */
    int64_t base_ns, last_ns;  /* the instant of the run's clock that is time 0 */
    bool begun, resumed;
};

static struct open_query *find(struct indexing *x, int32_t index)
{
    uint32_t at = ipw_table_get(&x->by_index, (uint32_t)index, NULL);

    return at == IPW_TABLE_NONE ? NULL : &x->open[at];
}

static void close_query(struct indexing *x, int32_t index)
{
    struct open_query *q = find(x, index), *last;

    if (!q) return;
    free(q->waiting);
    ipw_table_remove(&x->by_index, (uint32_t)index, NULL);
    last = &x->open[--x->n];
    if (q == last) return;
    *ipw_table_at(&x->by_index, (uint32_t)last->index, NULL) = (uint32_t)(q - x->open);
    *q = *last;
}

struct name {
    const char *id;
    int epoch;
};

static bool has_name(const void *ud, uint32_t number, const void *thing)
{
    const struct ipw_workload *w = ud;
    const struct ipw_workload_start *s = &w->starts[w->places[number].name];
    const struct name *name = thing;

    return s->epoch == name->epoch && strcmp(w->names.data + s->name, name->id) == 0;
}

static uint32_t *by_name(struct indexing *x, const char *id, int epoch)
{
    struct name name = {id, epoch};

    return ipw_table_at(&x->by_name, ipw_table_text_key(id, (uint64_t)epoch), &name);
}

/* Ends all open queries.  If a query is begun again, its last start counts. */
static void on_session(struct indexing *x)
{
    struct ipw_workload *w = x->w;

    while (x->n) close_query(x, x->open[0].index);
    if (x->resumed) return;
    x->resumed = true;
    for (size_t i = 0; i < w->n; i++) {
        const struct ipw_workload_start *s = &w->starts[w->places[i].name];

        *by_name(x, w->names.data + s->name, s->epoch) = (uint32_t)i;
    }
}

static int on_query_start(struct indexing *x, const struct ipw_event *event,
                          const struct ipw_json *data, int64_t offset, int64_t t_ns,
                          struct ipw_err *err)
{
    struct ipw_workload *w = x->w;
    const char *id = event->q.id ? event->q.id : "";
    struct ipw_workload_start start = {.offset = offset,
                                       .epoch = (int)ipw_json_int(ipw_json_get(data, "epoch"), 0)};
    uint32_t at = (uint32_t)w->n, *slot;
    int rc;

    close_query(x, event->query); /* it was interrupted */
    if (ipw_json_bool(ipw_json_get(data, "warmup"), false)) return 0;
    if (w->n >= IPW_WORKLOAD_ROW)
        return ipw_fail(err, IPW_ELIMIT, "more than %u queries", IPW_WORKLOAD_ROW);
    rc = ipw_workload_name(&start.name, w, id, err);
    if (rc) return rc;
    IPW_GROW(w->starts, w->cap_starts, at + (size_t)1);
    w->starts[at] = start;
    *ipw_workload_add(w) =
        (struct ipw_workload_place){.at_ns = t_ns, .first = IPW_WORKLOAD_NONE, .name = at};
    if (x->resumed) {
        slot = by_name(x, id, start.epoch);
        if (*slot != IPW_TABLE_NONE) w->places[*slot].n = 0;
        *slot = at;
    }
    IPW_GROW(x->open, x->cap, x->n + 1);
    x->open[x->n] = (struct open_query){
        .index = event->query, .place = at, .last = IPW_WORKLOAD_NONE, .end_ns = t_ns};
    *ipw_table_at(&x->by_index, (uint32_t)event->query, NULL) = (uint32_t)x->n++;
    return 0;
}

static struct waiting *waiting_for(struct open_query *q, int32_t span)
{
    for (size_t i = 0; i < q->n_waiting; i++)
        if (q->waiting[i].span == span) return &q->waiting[i];
    return NULL;
}

static int on_request(struct indexing *x, const struct ipw_event *event, int64_t offset,
                      int64_t t_ns, struct ipw_err *err)
{
    struct ipw_workload *w = x->w;
    struct open_query *q = find(x, event->query);
    struct waiting *again;
    uint32_t entry;
    int rc;

    if (!q) return 0;
    rc = ipw_workload_entry(&entry, w, offset, q->last, err);
    if (rc) return rc;
    IPW_GROW(w->facts, w->cap_facts, w->n_entries);
    w->facts[entry] = (struct ipw_workload_facts){.at_ns = t_ns,
                                                  .gap_ns = t_ns - q->end_ns,
                                                  .input_tokens = -1,
                                                  .output_tokens = -1,
                                                  .again = event->lm.attempt > 1};
    if (q->last == IPW_WORKLOAD_NONE) w->places[q->place].first = entry;
    q->last = entry;
    if (event->lm.attempt > 1) { /* the same request once more */
        again = waiting_for(q, 0);
        if (again) again->span = event->span;
        return 0;
    }
    w->places[q->place].n++;
    IPW_GROW(q->waiting, q->cap_waiting, q->n_waiting + 1);
    q->waiting[q->n_waiting++] = (struct waiting){event->span, entry};
    return 0;
}

static int32_t tokens(int64_t n) { return n < 0 || n > INT32_MAX ? -1 : (int32_t)n; }

static void on_reply(struct indexing *x, const struct ipw_event *event, int64_t t_ns)
{
    const struct ipw_lm_facts *f = &event->lm;
    struct open_query *q = find(x, event->query);
    struct waiting *of = q ? waiting_for(q, event->span) : NULL;
    struct ipw_workload_facts *facts;

    if (!of) return;
    q->end_ns = t_ns;
    facts = &x->w->facts[of->entry];
    if (f->input_tokens >= 0) facts->input_tokens = tokens(f->input_tokens);
    if (f->output_tokens >= 0) {
        facts->output_tokens = tokens(f->output_tokens);
        facts->tokens_estimated = f->tokens_estimated;
    }
    if (f->will_retry)
        of->span = 0;
    else
        *of = q->waiting[--q->n_waiting];
}

static int on_line(struct indexing *x, const struct ipw_event *e, const struct ipw_json *data,
                   int64_t offset, struct ipw_err *err)
{
    int64_t t_ns;

    /* Each session of a run has its own clock: put the sessions end to end. */
    if (e->kind == IPW_EV_RUN_START || !x->begun) {
        x->base_ns = e->t_ns - (x->begun ? x->last_ns : 0);
        if (x->begun) on_session(x);
        x->begun = true;
    }
    t_ns = e->t_ns - x->base_ns;
    if (t_ns > x->last_ns) x->last_ns = t_ns;
    switch (e->kind) {
    case IPW_EV_QUERY_START: return on_query_start(x, e, data, offset, t_ns, err);
    case IPW_EV_LM_START: return on_request(x, e, offset, t_ns, err);
    case IPW_EV_LM_END: on_reply(x, e, t_ns); return 0;
    case IPW_EV_QUERY_END: close_query(x, e->query); return 0;
    default: return 0;
    }
}

int ipw_workload_index_events(struct ipw_workload *w, struct ipw_err *err)
{
    struct indexing x = {.w = w, .by_name = {.same = has_name, .ud = w}};
    struct ipw_jsonl_line line;
    int rc;

    while ((rc = ipw_jsonl_next(w->reader, &line, err)) > 0 && !line.torn) {
        struct ipw_json *doc = NULL;
        struct ipw_event event;

        rc = ipw_json_parse(&doc, line.text, line.n, NULL, err);
        if (!rc) rc = ipw_event_read(&event, doc, err);
        if (!rc) rc = on_line(&x, &event, ipw_json_get(doc, "data"), line.offset, err);
        ipw_json_free(doc);
        if (rc) {
            ipw_err_prefix(err, "%s:%lld", w->file, (long long)line.number);
            break;
        }
    }
    while (x.n) close_query(&x, x.open[0].index);
    free(x.open);
    ipw_table_release(&x.by_index);
    ipw_table_release(&x.by_name);
    return rc < 0 ? rc : 0;
}

/* ---- reading again ---- */

/* Members that the client sets, not the agent: a replay sets them anew. */
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
    struct ipw_buf out = IPW_BUF(TEXT_MAX), value = IPW_BUF(TEXT_MAX);
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

/* A request stores only the messages that the one before it did not have. */
static void take_messages(struct ipw_workload_turn *turn, const struct ipw_json *data)
{
    int64_t kept = ipw_json_int(ipw_json_get(data, "messages_kept"), 0);
    const struct ipw_json *messages = ipw_json_get(data, "messages");

    while (turn->n_messages > (size_t)(kept < 0 ? 0 : kept))
        free(turn->messages[--turn->n_messages]);
    for (const struct ipw_json *m = ipw_json_first(messages); m; m = ipw_json_next(m)) {
        struct ipw_buf text = IPW_BUF(TEXT_MAX);

        ipw_json_print(&text, m);
        IPW_GROW(turn->messages, turn->cap_messages, turn->n_messages + 1);
        turn->messages[turn->n_messages++] = ipw_buf_take(&text, NULL);
    }
}

static int read_event(struct ipw_json **doc, const struct ipw_jsonl_line *line,
                      enum ipw_event_kind kind, struct ipw_err *err)
{
    struct ipw_event event;
    int rc = ipw_json_parse(doc, line->text, line->n, NULL, err);

    if (!rc) rc = ipw_event_read(&event, *doc, err);
    if (!rc && event.kind != kind)
        rc = ipw_fail(err, IPW_EPARSE, "is no longer a %s", ipw_event_name(kind));
    if (rc) {
        ipw_json_free(*doc);
        *doc = NULL;
    }
    return rc;
}

int ipw_workload_read_event(struct ipw_workload_query *q, const struct ipw_jsonl_line *line,
                            size_t entry, struct ipw_err *err)
{
    const struct ipw_workload_facts *facts = &q->workload->facts[entry];
    struct ipw_workload_turn *turn = &q->turn;
    const struct ipw_json *data;
    struct ipw_json *doc;
    int rc = read_event(&doc, line, IPW_EV_LM_START, err);

    if (rc) return rc;
    data = ipw_json_get(doc, "data");
    take_messages(turn, data);
    free(turn->rest);
    turn->rest = rest_of(ipw_json_get(data, "request"));
    turn->at_ns = facts->at_ns;
    turn->gap_ns = facts->gap_ns;
    turn->input_tokens = facts->input_tokens;
    turn->output_tokens = facts->output_tokens;
    turn->tokens_estimated = facts->tokens_estimated;
    ipw_json_free(doc);
    return 0;
}

int ipw_workload_read_start(struct ipw_workload_query *q, size_t start, struct ipw_err *err)
{
    struct ipw_workload *w = q->workload;
    struct ipw_jsonl_line line;
    struct ipw_json *doc;
    int rc = ipw_jsonl_seek(w->reader, w->starts[start].offset, err);

    if (!rc) rc = ipw_jsonl_next(w->reader, &line, err);
    if (!rc) rc = ipw_fail(err, IPW_EPARSE, "the file became shorter");
    if (rc > 0) rc = read_event(&doc, &line, IPW_EV_QUERY_START, err);
    if (rc)
        return ipw_err_prefix(err, "%s: byte %lld, read again", w->file,
                              (long long)w->starts[start].offset);
    q->prompt = ipw_strdup(ipw_json_str(ipw_json_get(ipw_json_get(doc, "data"), "prompt"), NULL));
    q->epoch = w->starts[start].epoch;
    ipw_json_free(doc);
    return 0;
}
