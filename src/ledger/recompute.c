#include "ledger/recompute.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/upto.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "ledger/doubts.h"

struct ipw_recompute_job {
    struct ipw_recompute *redone;
    struct ipw_recompute_options options;
    struct ipw_power_reader power; /* unused if the caller has the readings */
    struct ipw_channel *channels;  /* of the session: the reader's, or the caller's */
    size_t n_channels;
    struct ipw_recompute_segment *segment; /* the session being read; NULL before the first event */
    struct ipw_ledger *ledger;
    struct ipw_feed *feed;
    /* The queries of the session from their start until their figures are filled, by index. */
    struct query {
        int64_t index;
        struct ipw_turn_builder *builder;
        int64_t end_ns; /* 0: not ended */
        char *start;    /* the data of its query_start, if the caller asked for it */
        bool warmup;
    } * queries;
    size_t n, cap;
    int64_t *over; /* indices of ended queries, in order; live are [first_over, n_over) */
    size_t first_over, n_over, cap_over;
    int64_t last_ns;
    struct ipw_doubts doubts; /* of all sessions, as far as they are known beforehand */
    int64_t *cut_ns; /* by position: a killed session ends there; INT64_MAX: it was not killed */
    size_t n_cut;
};

/* The place behind the query, or where it belongs. */
static size_t upto(const struct ipw_recompute_job *j, int64_t index)
{
    return j->n ? ipw_upto(&j->queries->index, j->n, sizeof *j->queries, index) : 0;
}

static struct query *find(const struct ipw_recompute_job *j, int64_t index)
{
    size_t i = upto(j, index);

    return i && j->queries[i - 1].index == index ? &j->queries[i - 1] : NULL;
}

static int finish_query(struct ipw_recompute_job *j, struct query *q, bool cut, struct ipw_err *err)
{
    struct ipw_query_trace trace;
    char *start = q->start;
    struct ipw_recompute_query out = {&trace, j->segment->number, q->warmup, cut, start};
    int rc;

    ipw_turn_builder_finish(q->builder, &trace);
    memmove(q, q + 1, (size_t)(j->queries + --j->n - q) * sizeof *q);
    ipw_feed_finish(j->feed, &trace);
    rc = j->options.query(j->options.ud, &out, err);
    ipw_query_trace_release(&trace);
    free(start);
    return rc;
}

/* The first query that ended and has no figures yet, or NULL. */
static struct query *first_over(struct ipw_recompute_job *j)
{
    while (j->first_over < j->n_over) {
        struct query *q = find(j, j->over[j->first_over]);

        if (q && q->end_ns) return q;
        j->first_over++;
    }
    j->first_over = j->n_over = 0;
    return NULL;
}

/* Do the stored "booked" notes not apply?  Not under another sharing rule than the run's, and not
 * if the caller makes a run of several. */
static bool hands_over_early(const struct ipw_recompute_job *j)
{
    return j->options.share || j->options.covered;
}

static int finish_covered(struct ipw_recompute_job *j, struct ipw_err *err)
{
    struct query *q;
    int rc = 0;

    if (!hands_over_early(j)) return 0;
    while (!rc && (q = first_over(j)) &&
           q->end_ns <=
               ipw_ledger_query_covered_ns(j->ledger, ipw_feed_ordinal(j->feed, (int32_t)q->index)))
        rc = finish_query(j, q, false, err);
    return rc;
}

int ipw_recompute_row(struct ipw_recompute_job *j, size_t first, size_t n, int64_t t_ns,
                      const int64_t *values, struct ipw_err *err)
{
    j->segment->rows++;
    ipw_feed_row(j->feed, first, n, t_ns, values);
    return finish_covered(j, err);
}

static int rows_upto(struct ipw_recompute_job *j, int64_t rows, struct ipw_err *err)
{
    struct ipw_power_reader *p = &j->power;

    while (p->reader && p->rows < rows) {
        int rc = ipw_power_reader_next(p, err);

        if (rc <= 0) return rc;
        rc = ipw_recompute_row(j, p->sources[p->source].first, p->sources[p->source].n, p->t_ns,
                               p->values, err);
        if (rc) return rc;
    }
    return 0;
}

/* ---- sessions ---- */

/* Queries that the killed run had not finished end with its samples. */
static int cut_queries(struct ipw_recompute_job *j, struct ipw_err *err)
{
    struct ipw_recompute_segment *s = j->segment;
    int rc = 0;

    s->end_ns = s->read_ns == INT64_MAX || s->read_ns == INT64_MIN ? j->last_ns : s->read_ns;
    if (s->end_ns < s->start_ns) s->end_ns = s->start_ns;
    for (size_t i = 0; i < j->n; i++) ipw_turn_builder_cut(j->queries[i].builder, s->end_ns);
    ipw_feed_cut(j->feed, s->end_ns);
    while (j->n && !rc) rc = finish_query(j, j->queries, true, err);
    return rc;
}

/* Queries that have ended and have no figures yet get them: no reading comes any more.  With books
 * that are not closed they would get equal slices of the rest, each rounded by itself. */
static int book_rest(struct ipw_recompute_job *j, struct ipw_err *err)
{
    struct query *q;
    int rc = 0;

    if (first_over(j)) ipw_ledger_close(j->ledger, j->segment->end_ns);
    while (!rc && (q = first_over(j))) rc = finish_query(j, q, false, err);
    return rc;
}

static void forget_segment(struct ipw_recompute_job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        ipw_turn_builder_free(j->queries[i].builder);
        free(j->queries[i].start);
    }
    j->n = j->first_over = j->n_over = 0;
    ipw_feed_free(j->feed);
    ipw_ledger_free(j->ledger);
    j->feed = NULL;
    j->ledger = NULL;
    j->segment = NULL;
}

static int end_segment(struct ipw_recompute_job *j, struct ipw_err *err)
{
    struct ipw_recompute_segment *s = j->segment;
    int rc;

    if (!s) return 0;
    rc = rows_upto(j, INT64_MAX, err);
    s->read_ns = ipw_ledger_read_ns(j->ledger);
    if (!rc) rc = s->end_ns ? book_rest(j, err) : cut_queries(j, err);
    if (!rc) {
        ipw_balance_fill(s->balance, j->ledger, s->start_ns, s->end_ns);
        ipw_device_list_fill(&s->devices, j->ledger, s->start_ns, s->end_ns);
    }
    forget_segment(j);
    return rc;
}

/* Uses the rules that the run stored at its start. */
static int open_segment(struct ipw_recompute_job *j, const struct ipw_event *e,
                        const struct ipw_json *data, struct ipw_err *err)
{
    struct ipw_recompute *r = j->redone;
    struct ipw_recompute_segment *s;
    bool starts = e && e->kind == IPW_EV_RUN_START;
    int64_t number = starts ? e->segment : (int64_t)r->n_segments;
    int rc = end_segment(j, err);

    if (rc) return rc;
    if (number < 0 || number > 1000000)
        return ipw_fail(err, IPW_EPARSE, "segment: %lld is not the number of a session",
                        (long long)number);
    if (j->power.path) {
        rc = ipw_power_reader_segment(&j->power, (int)number, err);
        if (rc) return rc;
        j->channels = j->power.channels;
        j->n_channels = j->power.n_channels;
    }
    if (!starts) data = NULL;
    s = ipw_calloc(1, sizeof *s);
    IPW_GROW(r->segments, r->cap_segments, r->n_segments + 1);
    r->segments[r->n_segments++] = s;
    s->number = (int)number;
    s->start_ns = e ? e->t_ns : 0;
    s->started = starts;
    s->cut = r->n_segments > j->doubts.n_sessions || !j->doubts.sessions[r->n_segments - 1].ended;
    j->last_ns = s->start_ns;
    j->segment = s;
    ipw_ledger_rules_read(&s->rules, data);
    s->own_share = s->rules.share;
    if (j->options.share) s->rules.share = *j->options.share;
    j->ledger = ipw_ledger_rules_open(&s->rules, j->channels, j->n_channels);
    j->feed = ipw_feed_new(j->ledger);
    ipw_ledger_scopes_read(j->ledger, j->channels, j->n_channels, data);
    ipw_feed_describe(j->feed, j->channels, j->n_channels, &s->rules);
    for (size_t i = 0; i < j->doubts.n; i++)
        if (j->doubts.notes[i].session + 1 == r->n_segments)
            ipw_feed_doubt(j->feed, j->doubts.notes[i].channel, j->doubts.notes[i].reason);
    return 0;
}

/* ---- events ---- */

static struct query *add_query(struct ipw_recompute_job *j, int64_t index)
{
    size_t i = upto(j, index);

    IPW_GROW(j->queries, j->cap, j->n + 1);
    memmove(j->queries + i + 1, j->queries + i, (j->n++ - i) * sizeof *j->queries);
    j->queries[i] = (struct query){.index = index, .builder = ipw_turn_builder_new()};
    return &j->queries[i];
}

/* Were rows before this event lost?  Then the run's figures cannot be computed again. */
static bool lacks_rows(const struct ipw_recompute_job *j, const struct ipw_event *e)
{
    return j->segment->rows < e->rows;
}

static void keep_start(struct query *q, const struct ipw_json *data)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);

    ipw_json_print(&text, data);
    q->start = ipw_buf_take(&text, NULL);
}

static int take_query_event(struct ipw_recompute_job *j, const struct ipw_event *e,
                            const struct ipw_json *data, struct ipw_err *err)
{
    struct query *q = find(j, e->query);

    if (e->kind == IPW_EV_NOTE && e->tool.name && !strcmp(e->tool.name, IPW_NOTE_BOOKED)) {
        if (!q || !q->end_ns || hands_over_early(j) || lacks_rows(j, e)) return 0;
        return finish_query(j, q, false, err);
    }
    if (!q) {
        if (e->kind != IPW_EV_QUERY_START) return 0; /* events after its end */
        q = add_query(j, e->query);
        q->warmup = ipw_json_bool(ipw_json_get(data, "warmup"), false);
        if (j->options.starts && data) keep_start(q, data);
    }
    if (e->kind == IPW_EV_QUERY_END && !q->end_ns) {
        q->end_ns = ipw_event_end_ns(e);
        IPW_GROW(j->over, j->cap_over, j->n_over + 1);
        j->over[j->n_over++] = e->query;
    }
    ipw_turn_builder_add(q->builder, e);
    ipw_feed_event(j->feed, e);
    return finish_covered(j, err);
}

/* A killed session ends with its newest readings: what it tells of later counts as of that end. */
static void cut_event(const struct ipw_recompute_job *j, struct ipw_event *e)
{
    size_t i = j->redone->n_segments;

    if (i && i <= j->n_cut && j->cut_ns[i - 1] != INT64_MAX) ipw_event_move(e, 0, j->cut_ns[i - 1]);
}

void ipw_recompute_channels(struct ipw_recompute_job *j, struct ipw_channel *channels, size_t n)
{
    j->channels = channels;
    j->n_channels = n;
}

void ipw_recompute_doubt(struct ipw_recompute_job *j, const char *channel, const char *reason)
{
    ipw_feed_doubt(j->feed, channel, reason);
}

int ipw_recompute_event(struct ipw_recompute_job *j, const struct ipw_event *event,
                        const struct ipw_json *data, struct ipw_err *err)
{
    const char *channel = ipw_json_str(ipw_json_get(data, "channel"), "");
    struct ipw_event e = *event;
    int rc = 0;

    if (e.kind == IPW_EV_RUN_START || !j->segment) rc = open_segment(j, &e, data, err);
    if (rc) return rc;
    cut_event(j, &e);
    if (e.t_ns > j->last_ns) j->last_ns = e.t_ns;
    rc = rows_upto(j, e.rows, err);
    if (rc) return rc;
    if (e.kind == IPW_EV_RUN_END) j->segment->over = true;
    if (e.kind == IPW_EV_RUN_END && lacks_rows(j, &e))
        j->segment->cut = true;
    else if (e.kind == IPW_EV_RUN_END)
        j->segment->end_ns = e.t_ns;
    if (e.query >= 0) return j->options.query ? take_query_event(j, &e, data, err) : 0;
    if (e.kind == IPW_EV_NOTE && e.tool.name && !strcmp(e.tool.name, IPW_NOTE_LOST))
        ipw_feed_device_lost(j->feed, channel);
    if (ipw_doubts_reason(&e, data)) ipw_feed_doubt(j->feed, channel, ipw_doubts_reason(&e, data));
    ipw_feed_event(j->feed, &e);
    return 0;
}

int ipw_recompute_line(struct ipw_recompute_job *j, const struct ipw_json *line,
                       struct ipw_err *err)
{
    struct ipw_event e;
    int rc = ipw_event_read(&e, line, err);

    return rc ? rc : ipw_recompute_event(j, &e, ipw_json_get(line, "data"), err);
}

static int open_job(struct ipw_recompute_job **out, struct ipw_recompute *redone, const char *run,
                    const char *ends, const struct ipw_recompute_options *options,
                    struct ipw_err *err)
{
    struct ipw_recompute_job *j = ipw_calloc(1, sizeof *j);
    int rc;

    *redone = (struct ipw_recompute){0};
    j->redone = redone;
    j->options = *options;
    rc = run ? ipw_power_reader_open(&j->power, run, err) : 0;
    if (!rc && ends) rc = ipw_doubts_read(&j->doubts, ends, err);
    if (rc) {
        ipw_recompute_close(j);
        return rc;
    }
    *out = j;
    return 0;
}

int ipw_recompute_end(struct ipw_recompute_job *j, struct ipw_err *err)
{
    int rc = 0;

    if (!j->segment && !j->redone->n_segments) rc = open_segment(j, NULL, NULL, err);
    return rc ? rc : end_segment(j, err);
}

void ipw_recompute_close(struct ipw_recompute_job *j)
{
    if (!j) return;
    if (j->segment) forget_segment(j);
    free(j->queries);
    free(j->over);
    free(j->cut_ns);
    ipw_doubts_release(&j->doubts);
    ipw_power_reader_close(&j->power);
    free(j);
}

static int take_line(struct ipw_recompute_job *j, const struct ipw_jsonl_line *line,
                     struct ipw_err *err)
{
    struct ipw_json *doc;
    size_t repairs;
    int rc = ipw_event_parse(&doc, line->text, line->n, &repairs, err);

    if (rc) return rc;
    if (j->options.event) rc = j->options.event(j->options.ud, doc, repairs, err);
    if (!rc) rc = ipw_recompute_line(j, doc, err);
    ipw_json_free(doc);
    return rc;
}

static int take_events(struct ipw_recompute_job *j, const char *path, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, err);

    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0 && !line.torn) {
        rc = take_line(j, &line, err);
        if (rc) {
            if (rc < 0) ipw_err_prefix(err, "%s:%lld", path, (long long)line.number);
            break;
        }
    }
    j->redone->torn = rc > 0 && line.torn;
    ipw_jsonl_close(reader);
    return rc < 0 ? rc : 0;
}

/* Where killed sessions end is known only when all of their readings and losses are: these are gone
 * through beforehand, without the queries. */
static int find_cuts(struct ipw_recompute_job *j, const char *run, const char *events,
                     struct ipw_err *err)
{
    struct ipw_recompute_options how = {.query = NULL};
    struct ipw_recompute redone;
    struct ipw_recompute_job *before = NULL;
    bool killed = false;
    int rc;

    for (size_t i = 0; i < j->doubts.n_sessions; i++) killed |= !j->doubts.sessions[i].ended;
    if (!killed) return 0;
    rc = open_job(&before, &redone, run, events, &how, err);
    if (!rc) rc = take_events(before, events, err);
    if (!rc) rc = ipw_recompute_end(before, err);
    if (!rc) {
        j->n_cut = redone.n_segments;
        j->cut_ns = ipw_calloc(j->n_cut, sizeof *j->cut_ns);
        for (size_t i = 0; i < j->n_cut; i++)
            j->cut_ns[i] = redone.segments[i]->cut ? redone.segments[i]->end_ns : INT64_MAX;
    }
    ipw_recompute_close(before);
    ipw_recompute_release(&redone);
    return rc;
}

int ipw_recompute_open(struct ipw_recompute_job **out, struct ipw_recompute *redone,
                       const char *run, const char *ends,
                       const struct ipw_recompute_options *options, struct ipw_err *err)
{
    int rc = open_job(out, redone, run, ends, options, err);

    return rc || !ends ? rc : find_cuts(*out, run, ends, err);
}

int ipw_recompute_run(struct ipw_recompute *redone, const char *run,
                      const struct ipw_recompute_options *options, struct ipw_err *err)
{
    struct ipw_recompute_job *j = NULL;
    char *path = ipw_asprintf("%s/events.jsonl", run);
    int rc = ipw_recompute_open(&j, redone, run, path, options, err);

    if (!rc) rc = take_events(j, path, err);
    if (!rc) rc = ipw_recompute_end(j, err);
    ipw_recompute_close(j);
    free(path);
    if (rc) ipw_recompute_release(redone);
    return rc;
}

void ipw_recompute_release(struct ipw_recompute *redone)
{
    for (size_t i = 0; i < redone->n_segments; i++) {
        ipw_device_list_release(&redone->segments[i]->devices);
        free(redone->segments[i]);
    }
    free(redone->segments);
    *redone = (struct ipw_recompute){0};
}
