#include "run/merge/join.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/validate_events.h"
#include "base/clock.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "ledger/doubts.h"
#include "run/merge/join_rows.h"
#include "run/merge/join_scopes.h"
#include "run/query_events.h"
#include "trace/event.h"
#include "trace/schema.h"

/* Events tell of instants before their own: of a first token, for example, when it has been read.
 * A run gets its readings some milliseconds late.  The readings of several sessions, and those of a
 * meter, wait here as long: else steps would be closed before all of their phases are known, or
 * when too much is.  One session's own readings have the place that its record gives them. */
#define ROWS_WAIT_NS (5 * IPW_NS_PER_MS)

/* The events of one of the sessions, from its run_start to the line before the next one, on the
 * clock of the joined session.  A session that was killed has no run_end.  It ends with its newest
 * reading, as its own books do (ledger/recompute.h): nothing was measured later, so that its
 * queries could have no joules there, but a total that ends a little later would have those of
 * before. */
struct member {
    const struct ipw_shard_run *run;
    int session;
    int64_t ahead_ns; /* is added to each instant, which then is `latest_ns` at most */
    int64_t latest_ns;
    struct ipw_jsonl_reader *events;
    struct ipw_jsonl_line line; /* the next event */
    struct ipw_json *doc;       /* NULL: there is none */
    struct ipw_event event;
    struct ipw_event_check order; /* each line is checked, as `validate` does */
    bool ended, cut;  /* it has a run_end; it was killed, and its queries have been ended */
    int64_t now_ns;   /* the time of its last event */
    int64_t *numbers; /* by its own number the query's number in the joined session; -1: none */
    size_t n, cap;
};

struct query { /* by its number in the merged run */
    bool started, ended;
    size_t member;
    int32_t own;              /* its index there */
    enum ipw_check_file file; /* with its line */
    char *id;                 /* until it has ended */
};

struct job {
    struct ipw_join *j;
    struct member *members;
    struct ipw_join_rows *rows;
    struct ipw_recompute_job *books;
    struct ipw_ledger_rules rules;   /* of the joined session */
    struct ipw_ledger_scope *scopes; /* of the members; NULL: they are alike */
    int64_t n_rows, now_ns;          /* rows and the time of the last event that were written */
    bool ended;                      /* the run_end was written */
    struct query *queries;
    size_t n, cap;
    struct ipw_err failed; /* of a callback; code 0: none */
};

/* ---- the events of a member ---- */

static bool begins(const struct ipw_jsonl_line *line)
{
    static const char mark[] = "\"event\":\"run_start\"";

    return memmem(line->text, line->n, mark, sizeof mark - 1) != NULL;
}

/* The next event, or none.  `inside`: the run_start was read. */
static int next_event(struct member *m, bool inside, struct ipw_err *err)
{
    struct ipw_jsonl_line *line = &m->line;
    size_t repairs = 0;
    int rc = 0;

    ipw_json_free(m->doc);
    m->doc = NULL;
    while (!m->doc && (rc = ipw_jsonl_next(m->events, line, err)) > 0) {
        if (line->torn)
            return ipw_fail(err, IPW_EPARSE, "%s/events.jsonl: its last line is torn",
                            m->run->path);
        if (!inside && !begins(line)) continue;
        rc = ipw_event_parse(&m->doc, line->text, line->n, &repairs, err);
        if (!rc) rc = ipw_json_need_no_repair(repairs, err);
        if (!rc) rc = ipw_event_check_line(&m->order, m->doc, err);
        if (!rc) rc = ipw_event_read(&m->event, m->doc, err);
        if (rc)
            return ipw_err_prefix(err, "%s/events.jsonl:%lld", m->run->path,
                                  (long long)line->number);
        ipw_event_move(&m->event, m->ahead_ns, m->latest_ns);
        if (m->event.kind == IPW_EV_RUN_START && (inside || m->event.segment != m->session)) {
            ipw_json_free(m->doc);
            m->doc = NULL;
            if (inside) return 0;
        }
    }
    return rc < 0 ? rc : 0;
}

/* INT64_MAX: it was not killed, or was not resumed since. */
static int64_t killed_ns(const struct ipw_shard_session *s)
{
    bool killed = !strcmp(ipw_json_str(ipw_json_get(s->doc, "end"), ""), "killed");

    return killed && s->end_ns ? s->end_ns : INT64_MAX;
}

/* Goes to the session's run_start. */
static int open_member(struct member *m, const struct ipw_shard_run *run, int session,
                       int64_t ahead_ns, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/events.jsonl", run->path);
    int64_t end_ns = killed_ns(&run->sessions[session]);
    int rc;

    if (end_ns < INT64_MAX) end_ns += ahead_ns;
    *m = (struct member){.run = run,
                         .session = session,
                         .ahead_ns = ahead_ns,
                         .latest_ns = end_ns,
                         .order = IPW_EVENT_CHECK};
    rc = ipw_jsonl_open(&m->events, path, IPW_LINE_MAX, err);
    if (!rc) rc = next_event(m, false, err);
    if (!rc && !m->doc)
        rc = ipw_fail(err, IPW_EPARSE, "%s: no run_start of session %d", path, m->session);
    free(path);
    return rc;
}

static void close_member(struct member *m)
{
    ipw_jsonl_close(m->events);
    ipw_event_check_release(&m->order);
    ipw_json_free(m->doc);
    free(m->numbers);
}

/* It has no further event and no run_end: its queries in flight end, and when. */
static bool is_cut(const struct member *m) { return !m->doc && !m->ended && !m->cut; }

static int64_t cut_ns(const struct member *m)
{
    return m->latest_ns < INT64_MAX && m->latest_ns > m->now_ns ? m->latest_ns : m->now_ns;
}

/* Is the next event a note of the run, not of a query? */
static bool at_note(const struct member *m)
{
    return m->event.query < 0 && m->event.kind == IPW_EV_NOTE;
}

/* When its next event is due, or its cut: a note of the run is due at once. */
static int64_t due_ns(const struct member *m)
{
    if (!m->doc) return cut_ns(m);
    return at_note(m) || m->event.t_ns < m->now_ns ? m->now_ns : m->event.t_ns;
}

/* ---- the numbers of queries ---- */

/* Another session of this shard is joined too, and may have the same query. */
static bool is_repeated(const struct job *job, const struct member *m)
{
    for (size_t i = 0; i < job->j->n; i++)
        if (job->members[i].run == m->run && job->members[i].session != m->session) return true;
    return false;
}

/* The number in the uncut run, after the warm-up of all shards.  An earlier attempt that is in one
 * joined session with a later one gets a number after those of all queries. */
static int64_t number_of(struct job *job, const struct member *m, enum ipw_check_file file)
{
    const struct ipw_shard_runs *r = job->j->runs;
    const struct ipw_json *data = ipw_json_get(m->doc, "data");
    int64_t warmups;

    if (!r) return m->event.query;
    warmups = r->warmup * r->count;
    if (ipw_json_bool(ipw_json_get(data, "warmup"), false))
        return m->run->index * r->warmup + m->event.query;
    if (file == IPW_CHECK_ATTEMPTS && is_repeated(job, m))
        return warmups + r->epochs * r->selected + (*job->j->n_extra)++;
    return warmups + ipw_json_int(ipw_json_get(data, "epoch"), 0) * r->selected +
           ipw_json_int(ipw_json_get(data, "place"), 0) - 1;
}

static int begin_query(struct job *job, size_t at, struct ipw_err *err)
{
    struct member *m = &job->members[at];
    size_t own = (size_t)m->event.query;
    struct query q = {.started = true, .member = at, .own = m->event.query};
    struct ipw_check_line line;
    int64_t number;
    int rc = ipw_check_find(&line, m->run->lines, m->session, q.own, err);

    if (rc < 0) return rc;
    if (!rc)
        return ipw_fail(err, IPW_EPARSE,
                        "%s: query %d of session %d has no line; `ipw-agent resume` mends it",
                        m->run->path, q.own, m->session);
    q.file = line.file;
    number = number_of(job, m, q.file);
    if (number < 0 || number > 10 * 1000 * 1000)
        return ipw_fail(err, IPW_ELIMIT, "%s: query %d has no place in the run", m->run->path,
                        q.own);
    IPW_GROW(m->numbers, m->cap, own + 1);
    while (m->n <= own) m->numbers[m->n++] = -1;
    m->numbers[own] = number;
    if ((size_t)number >= job->n) {
        IPW_GROW(job->queries, job->cap, (size_t)number + 1);
        memset(job->queries + job->n, 0, ((size_t)number + 1 - job->n) * sizeof *job->queries);
        job->n = (size_t)number + 1;
    }
    if (job->queries[number].started) {
        job->j->at = SIZE_MAX; /* none of them alone is at fault */
        return ipw_fail(err, IPW_EINVAL, "%s and %s: both have the query '%.80s'",
                        job->members[job->queries[number].member].run->path, m->run->path,
                        m->event.q.id);
    }
    q.id = ipw_strdup(m->event.q.id ? m->event.q.id : "");
    job->queries[number] = q;
    return 0;
}

static void end_query(struct query *q)
{
    q->ended = true;
    free(q->id);
    q->id = NULL;
}

/* ---- booking ---- */

/* The judge read answers behind the end of its own session, maybe while another of the joined ones
 * went on: then its joules are in the books of that one's queries. */
static void forget_judge_joules(struct ipw_judgement *judge)
{
    judge->gpu_j = judge->cpu_j = judge->gpu_w = judge->cpu_w = NAN;
}

/* Its figures are known: where that is so, and its line. */
static int book(void *ud, const struct ipw_recompute_query *booked, struct ipw_err *err)
{
    struct job *job = ud;
    const struct query *q = &job->queries[booked->trace->index];
    const struct member *m = &job->members[q->member];
    const struct ipw_event note = {.kind = IPW_EV_NOTE,
                                   .t_ns = job->now_ns,
                                   .query = booked->trace->index,
                                   .rows = job->n_rows,
                                   .tool.name = IPW_NOTE_BOOKED};
    struct ipw_query_loaded was;
    int rc;

    /* After the run_end the end of the session books it, whenever it is computed again. */
    if (!job->ended) ipw_rundir_event(job->j->dir, &note);
    rc = ipw_check_take(&was, m->run->lines, m->session, q->own, err);
    if (rc) {
        ipw_err_prefix(err, "%s: query %d of session %d", m->run->path, q->own, m->session);
        job->j->at = q->member;
        return rc;
    }
    was.details.segment = job->j->number;
    if (job->j->n > 1 && was.judge) forget_judge_joules(was.judge);
    if (q->file == IPW_CHECK_TRACES) ipw_summary_add(job->j->summary, booked->trace, &was.details);
    rc = ipw_query_write_line(job->j->dir, booked->trace, &was.details, &job->rules.clock,
                              q->file == IPW_CHECK_WARMUP, err);
    ipw_query_loaded_release(&was);
    return rc;
}

/* ---- writing ---- */

/* The member's event, with its own data or with `data`, and the number of rows before it; it is
 * written, and goes to the books. */
static int take(struct job *job, struct member *m, const struct ipw_buf *data, struct ipw_err *err)
{
    struct ipw_event *e = &m->event;
    struct ipw_json *doc = NULL;
    int rc = 0;

    e->rows = job->n_rows;
    if (data->len) {
        e->payload = data->data;
        e->payload_len = data->len;
        rc = ipw_json_parse(&doc, data->data, data->len, NULL, err);
    } else {
        ipw_event_take_payload(e, m->line.text, m->line.n);
    }
    if (rc) return rc;
    ipw_rundir_event(job->j->dir, e);
    rc = ipw_recompute_event(job->books, e, doc ? doc : ipw_json_get(m->doc, "data"), err);
    ipw_json_free(doc);
    return rc;
}

static int take_query_event(struct job *job, size_t at, struct ipw_err *err)
{
    /* A place in the selection is a shard's word; the uncut run has none. */
    static const char *const place[] = {"place", NULL};
    struct member *m = &job->members[at];
    struct ipw_event *e = &m->event;
    struct ipw_buf data = IPW_BUF(IPW_LINE_MAX);
    struct query *q;
    int rc = e->kind == IPW_EV_QUERY_START ? begin_query(job, at, err) : 0;

    if (rc) return rc;
    if ((size_t)e->query >= m->n || m->numbers[e->query] < 0)
        return ipw_fail(err, IPW_EPARSE, "%s: an event of query %d before its start", m->run->path,
                        e->query);
    e->query = (int32_t)m->numbers[e->query];
    e->q.scope = e->kind == IPW_EV_QUERY_START && job->j->divided ? (int64_t)at + 1 : 0;
    q = &job->queries[e->query];
    if (e->kind == IPW_EV_NOTE && e->tool.name && !strcmp(e->tool.name, IPW_NOTE_BOOKED)) return 0;
    if (e->kind == IPW_EV_QUERY_START && job->j->runs)
        ipw_json_merge_patch(&data, ipw_json_get(m->doc, "data"), "{}", place);
    if (e->kind == IPW_EV_QUERY_END) end_query(q);
    rc = take(job, m, &data, err);
    ipw_buf_release(&data);
    return rc;
}

static const char *channel_of(const struct member *m)
{
    return ipw_json_str(ipw_json_get(ipw_json_get(m->doc, "data"), "channel"), "");
}

/* Of several members that have a device, its leader tells of it. */
static bool is_led(const struct job *job, size_t at, const char *name)
{
    size_t channel = ipw_join_rows_joined(job->rows, at, name);

    return channel != SIZE_MAX && ipw_join_rows_leads(job->rows, at, channel);
}

static int take_run_event(struct job *job, size_t at, struct ipw_err *err)
{
    struct member *m = &job->members[at];
    const struct ipw_event *e = &m->event;
    bool is_lost = e->tool.name && !strcmp(e->tool.name, IPW_NOTE_LOST);
    struct ipw_buf data = IPW_BUF(IPW_LINE_MAX);
    int rc;

    if (e->kind == IPW_EV_RUN_END) m->ended = true;
    if (e->kind != IPW_EV_NOTE || (is_lost && !is_led(job, at, channel_of(m)))) return 0;
    ipw_join_scopes_note(&data, job->rows, at, ipw_json_get(m->doc, "data"), m->ahead_ns);
    rc = take(job, m, &data, err);
    ipw_buf_release(&data);
    return rc;
}

static int cut_member(struct job *job, size_t at, struct ipw_err *err)
{
    struct member *m = &job->members[at];
    int rc = 0;

    m->now_ns = cut_ns(m);
    if (m->now_ns > job->now_ns) job->now_ns = m->now_ns;
    m->cut = true;
    for (size_t i = 0; i < m->n && !rc; i++) {
        struct ipw_event end = {.kind = IPW_EV_QUERY_END,
                                .t_ns = m->now_ns,
                                .rows = job->n_rows,
                                .q.outcome = "unfinished"};
        struct query *q = m->numbers[i] >= 0 ? &job->queries[m->numbers[i]] : NULL;

        if (!q || !q->started || q->ended || q->member != at) continue;
        end.query = (int32_t)m->numbers[i];
        end.q.id = q->id;
        ipw_rundir_event(job->j->dir, &end);
        rc = ipw_recompute_event(job->books, &end, NULL, err);
        end_query(q);
    }
    return rc;
}

static int take_event(struct job *job, size_t at, struct ipw_err *err)
{
    struct member *m = &job->members[at];
    int rc;

    job->j->at = at;
    if (!m->doc) return cut_member(job, at, err);
    if (!at_note(m) && m->event.t_ns > m->now_ns) m->now_ns = m->event.t_ns;
    if (m->now_ns > job->now_ns) job->now_ns = m->now_ns;
    rc = m->event.query >= 0 ? take_query_event(job, at, err) : take_run_event(job, at, err);
    if (rc) return rc;
    job->j->at = at;
    return next_event(m, true, err);
}

/* ---- both, as they came ---- */

static void take_row(void *ud, const struct ipw_join_row *row)
{
    struct job *job = ud;
    const struct ipw_sampler_row line = {
        .source = row->source, .n = row->n, .t_ns = row->t_ns, .values = row->values};

    ipw_rundir_power_row(job->j->dir, &line);
    job->n_rows++;
    if (!job->failed.code)
        ipw_recompute_row(job->books, row->first, row->n, row->t_ns, row->values, &job->failed);
}

/* Does the reading come before the event?  A session's own come as it got them, so that its books
 * stay as they were; a session that was killed got them all.  Others come by their times.  A note
 * of the run can be that of a lost device, whose readings came before it. */
static bool is_row_due(const struct job *job, const struct member *m, int64_t row_ns)
{
    bool at_once = !m->doc || at_note(m);

    if (job->j->n == 1 && ipw_join_rows_next_is_own(job->rows, 0))
        return !m->doc || ipw_join_rows_own_taken(job->rows, 0) < m->event.rows;
    return row_ns <= due_ns(m) - (at_once ? 0 : ROWS_WAIT_NS);
}

static size_t first_due(const struct job *job)
{
    size_t at = SIZE_MAX;

    for (size_t i = 0; i < job->j->n; i++) {
        if (!job->members[i].doc && !is_cut(&job->members[i])) continue;
        if (at == SIZE_MAX || due_ns(&job->members[i]) < due_ns(&job->members[at])) at = i;
    }
    return at;
}

static int take_all(struct job *job, struct ipw_err *err)
{
    int rc = 0;

    while (!rc && !job->failed.code) {
        int64_t row_ns = ipw_join_rows_next_ns(job->rows);
        size_t at = first_due(job);

        if (at == SIZE_MAX && row_ns == INT64_MAX) break;
        if (at == SIZE_MAX || is_row_due(job, &job->members[at], row_ns))
            rc = ipw_join_rows_take(job->rows, take_row, job, &job->j->at, err);
        else
            rc = take_event(job, at, err);
    }
    if (!rc && job->failed.code) *err = job->failed;
    if (!rc) rc = job->failed.code;
    return rc;
}

/* ---- the start ---- */

/* The data of the run_start: that of the first member, with the rules of all. */
static void put_start_data(struct job *job, struct ipw_buf *out)
{
    static const char *const machine[] = {"machine", NULL};
    const struct ipw_json *data = ipw_json_get(job->members[0].doc, "data");
    struct ipw_buf patch = IPW_BUF(256 * IPW_MIB);
    struct ipw_join *j = job->j;
    size_t n;
    const struct ipw_channel *channels = ipw_join_rows_channels(job->rows, &n);

    if (j->divided) {
        ipw_ledger_rules_write(&patch, &job->rules);
        patch.len--; /* the closing bracket */
        ipw_buf_adds(&patch, ",\"scopes\":");
        ipw_ledger_scopes_write(&patch, job->scopes, j->n, channels, n);
        ipw_buf_addc(&patch, ',');
    } else {
        ipw_buf_addc(&patch, '{');
    }
    ipw_buf_adds(&patch, "\"manifest\":");
    j->put_manifest(j->ud, j, &patch);
    if (!j->runs && ipw_json_get(data, "reasons")) { /* the machine has a sensor now */
        ipw_buf_adds(&patch, ",\"reasons\":");
        ipw_json_merge_patch(&patch, ipw_json_get(data, "reasons"), "{}", machine);
    }
    ipw_buf_addc(&patch, '}');
    ipw_json_patch(out, data, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
}

static int write_run_start(struct job *job, struct ipw_err *err)
{
    struct ipw_buf data = IPW_BUF(256 * IPW_MIB);
    int rc;

    put_start_data(job, &data);
    job->members[0].event.segment = job->j->number;
    rc = take(job, &job->members[0], &data, err);
    ipw_buf_release(&data);
    return rc;
}

/* ---- the session ---- */

static int open_rows(struct job *job, struct ipw_err *err)
{
    struct ipw_join *j = job->j;
    struct ipw_join_from *from = ipw_calloc(j->n, sizeof *from);
    int rc;

    for (size_t i = 0; i < j->n; i++) {
        const struct ipw_shard_session *s = ipw_join_session(j, i);
        const char *readings = j->members[i].run->readings;

        from[i] = (struct ipw_join_from){.run = readings ? readings : j->members[i].run->path,
                                         .session = j->members[i].session,
                                         .end_ns = s->end_ns + j->members[i].ahead_ns,
                                         .ahead_ns = j->members[i].ahead_ns,
                                         .n_added = j->members[i].run->n_added,
                                         .host = s->boot_id,
                                         .host_name = s->host ? s->host : s->boot_id};
    }
    rc = ipw_join_rows_open(&job->rows, from, j->n, j->divided, &j->at, err);
    free(from);
    return rc;
}

/* Each query is booked on the devices of its session. */
static void divide(struct job *job, const struct ipw_channel *channels, size_t n)
{
    struct ipw_join *j = job->j;
    const struct ipw_json **starts = ipw_calloc(j->n, sizeof *starts);
    const struct ipw_join_scopes s = {j, job->rows, starts};

    for (size_t i = 0; i < j->n; i++) starts[i] = ipw_json_get(job->members[i].doc, "data");
    ipw_join_scopes_baselines(&job->rules, &s, channels, n);
    job->scopes = ipw_join_scopes_make(&s, n);
    ipw_join_scopes_describe(&j->channels, &s, channels, n);
    free(starts);
}

static int open_all(struct job *job, struct ipw_err *err)
{
    const struct ipw_recompute_options how = {.query = book, .ud = job, .covered = true};
    struct ipw_join *j = job->j;
    struct ipw_buf header = IPW_BUF(256 * IPW_MIB);
    struct ipw_channel *channels;
    size_t n;
    int rc = 0;

    for (size_t i = 0; i < j->n && !rc; i++) {
        j->at = i;
        rc = open_member(&job->members[i], j->members[i].run, j->members[i].session,
                         j->members[i].ahead_ns, err);
    }
    if (!rc && !j->runs && ipw_json_get(ipw_json_get(job->members[0].doc, "data"), "scopes"))
        rc = ipw_fail(err, IPW_EUNSUPPORTED,
                      "%s: it was merged from shards with different devices, and no meter can be "
                      "booked into it: read the meter during the run (--telemetry log=FILE)",
                      j->members[0].run->path);
    if (!rc) rc = open_rows(job, err);
    if (rc) return rc;
    ipw_join_rows_header(job->rows, j->number, &header);
    if (header.len) ipw_rundir_power_line(j->dir, ipw_buf_str(&header), header.len);
    ipw_buf_release(&header);
    channels = ipw_join_rows_channels(job->rows, &n);
    ipw_ledger_rules_read(&job->rules, ipw_json_get(job->members[0].doc, "data"));
    ipw_ledger_rules_sums(&job->rules, channels, n);
    if (j->divided) divide(job, channels, n);
    rc = ipw_recompute_open(&job->books, &j->books, NULL, NULL, &how, err);
    if (rc) return rc;
    ipw_recompute_channels(job->books, channels, n);
    return write_run_start(job, err);
}

/* What a member does not believe it never believed, and its readings may be those that count: it is
 * known before the first query. */
static int take_doubts(struct job *job, struct ipw_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < job->j->n && !rc; i++) {
        struct ipw_doubts doubts = {.n = 0};
        char *path = ipw_asprintf("%s/events.jsonl", job->members[i].run->path);

        rc = ipw_doubts_read(&doubts, path, err);
        for (size_t k = 0; k < doubts.n && !rc; k++) {
            const struct ipw_doubt_note *note = &doubts.notes[k];
            size_t n, channel = ipw_join_rows_joined(job->rows, i, note->channel);
            const struct ipw_channel *channels = ipw_join_rows_channels(job->rows, &n);

            if (note->segment == job->members[i].session && channel < n)
                ipw_recompute_doubt(job->books, channels[channel].name, note->reason);
        }
        ipw_doubts_release(&doubts);
        free(path);
    }
    return rc;
}

static int write_run_end(struct job *job, struct ipw_err *err)
{
    struct ipw_join *j = job->j;
    struct ipw_event end = {.kind = IPW_EV_RUN_END,
                            .t_ns = job->now_ns,
                            .query = -1,
                            .rows = job->n_rows,
                            .segment = j->number};
    int rc;

    for (size_t i = 0; i < j->n; i++) {
        int64_t end_ns = ipw_join_session(j, i)->end_ns + j->members[i].ahead_ns;

        if (end_ns > end.t_ns) end.t_ns = end_ns;
    }
    ipw_rundir_event(j->dir, &end);
    job->ended = true;
    rc = ipw_recompute_event(job->books, &end, NULL, err);
    if (!rc) rc = ipw_recompute_end(job->books, err);
    return rc ? rc : ipw_rundir_flush(j->dir, err);
}

int ipw_join_run(struct ipw_join *j, struct ipw_err *err)
{
    struct job job = {.j = j, .members = ipw_calloc(j->n, sizeof *job.members)};
    int rc = open_all(&job, err);

    if (!rc) rc = take_doubts(&job, err);
    if (!rc) rc = take_all(&job, err);
    if (!rc) rc = write_run_end(&job, err);
    ipw_recompute_close(job.books);
    for (size_t i = 0; i < j->n; i++) close_member(&job.members[i]);
    ipw_join_rows_close(job.rows);
    ipw_join_scopes_free(job.scopes, j->n);
    for (size_t i = 0; i < job.n; i++) free(job.queries[i].id);
    free(job.members);
    free(job.queries);
    return rc;
}
