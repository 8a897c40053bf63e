#include "audit/meter_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "ledger/recompute.h"
#include "trace/rundir.h"
#include "trace/saved_clock.h"
#include "trace/schema.h"

#define ROW_BYTES (64 * IPW_KIB)
#define DAY_S     86400.0
#define MARGIN_S  60.0 /* rows this far around the run are fed to the ledger */
#define MOST_W    1000000

/* ---- the run ---- */

struct reading {
    struct ipw_metered_run *r;
    struct ipw_anchor anchor; /* wall_ns 0: not known */
    struct ipw_metered_run_busy *all;
    size_t n_all, cap_all;
};

static bool started_at(const char *text, double *t_s)
{
    struct tm tm = {0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    if (!rest) return false;
    *t_s = (double)timegm(&tm) + (*rest == '.' ? strtod(rest, NULL) : 0);
    return true;
}

/* The manifest's clock is exact; a query of another boot (a resumed run) has its own date, in
 * milliseconds. */
static bool start_of(const struct reading *g, const struct ipw_query_loaded *q, double *t_s)
{
    bool dated = started_at(q->started_at, t_s);
    double by_anchor = ipw_ns_to_s(ipw_anchor_wall_ns(&g->anchor, q->trace.start_ns));

    if (g->anchor.wall_ns && (!dated || fabs(by_anchor - *t_s) < 0.01)) {
        *t_s = by_anchor;
        return true;
    }
    return dated;
}

static void add_busy(struct ipw_metered_run_busy **list, size_t *n, size_t *cap, double t0_s,
                     double t1_s)
{
    IPW_GROW(*list, *cap, *n + 1);
    (*list)[(*n)++] = (struct ipw_metered_run_busy){t0_s, t1_s};
}

static int take_query(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct reading *g = ud;
    struct ipw_metered_run *r = g->r;
    struct ipw_metered_run_query *out;
    double t0_s;

    if (!start_of(g, q, &t0_s)) {
        return ipw_fail(err, IPW_EPARSE,
                        "query %s has no date, so the log cannot be aligned with the run",
                        q->trace.id);
    }
    IPW_GROW(r->queries, r->cap_queries, r->n_queries + 1);
    out = &r->queries[r->n_queries++];
    *out = (struct ipw_metered_run_query){.id = ipw_strdup(q->trace.id),
                                          .epoch = q->details.epoch,
                                          .t0_s = t0_s,
                                          .t1_s = t0_s +
                                                  ipw_ns_to_s(q->trace.end_ns - q->trace.start_ns)};
    add_busy(&g->all, &g->n_all, &g->cap_all, out->t0_s, out->t1_s);
    for (size_t i = 0; i < q->trace.n_turns; i++) {
        const struct ipw_turn *turn = &q->trace.turns[i];
        for (size_t k = 0; k < turn->n_spans; k++) {
            const struct ipw_span *span = &turn->spans[k];
            if (span->kind != IPW_SPAN_LM) continue;
            add_busy(&r->busy, &r->n_busy, &r->cap_busy,
                     t0_s + ipw_ns_to_s(span->start_ns - q->trace.start_ns),
                     t0_s + ipw_ns_to_s(span->end_ns - q->trace.start_ns));
        }
    }
    return 0;
}

static int read_run(struct ipw_metered_run *r, const char *run, struct ipw_err *err)
{
    struct reading g = {.r = r};
    struct ipw_json *manifest;
    int rc;

    /* Without a manifest, queries are placed by their dates. */
    ipw_json_read(&manifest, run, "manifest.json", NULL);
    g.anchor = ipw_saved_clock_read(ipw_json_get(manifest, "clock"));
    ipw_json_free(manifest);
    rc = ipw_rundir_each_query(run, take_query, &g, NULL, err);
    if (rc == 0 && r->n_queries == 0) {
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "%s: no finished query", run);
    }
    if (rc == 0 && r->n_busy == 0) {
        r->busy = g.all;
        r->n_busy = g.n_all;
        g.all = NULL;
    }
    free(g.all);
    r->t0_s = INFINITY;
    r->t1_s = -INFINITY;
    for (size_t i = 0; i < r->n_queries; i++) {
        r->t0_s = fmin(r->t0_s, r->queries[i].t0_s);
        r->t1_s = fmax(r->t1_s, r->queries[i].t1_s);
    }
    return rc;
}

/* ---- the logs ---- */

static int read_log(struct ipw_metered_run_input *in, const char *column, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, in->path, ROW_BYTES, err);

    if (rc < 0) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) != 0) {
        if (rc == IPW_ELIMIT) { /* a line too long for any row */
            if (in->log.bad_rows++ == 0) {
                snprintf(in->log.first_bad, sizeof in->log.first_bad, "a line over %zu KiB",
                         ROW_BYTES / IPW_KIB);
            }
            continue;
        }
        if (rc < 0 || line.torn) break; /* a torn row may be half a number */
        rc = ipw_meter_log_line(&in->log, line.text, line.n, line.number, column, err);
        if (rc < 0) {
            ipw_err_prefix(err, "%s:%lld", in->path, (long long)line.number);
            break;
        }
    }
    ipw_jsonl_close(reader);
    if (rc >= 0) {
        rc = ipw_meter_log_end(&in->log, err);
        if (rc < 0) ipw_err_prefix(err, "%s", in->path);
    }
    return rc < 0 ? rc : 0;
}

/* HH:MM:SS is counted from the midnight (UTC) before the run. */
static void place_days(struct ipw_metered_run_input *in, double run_s)
{
    double midnight_s = floor(run_s / DAY_S) * DAY_S;

    if (in->log.format.clock != IPW_METER_CLOCK_DAY) return;
    for (size_t c = 0; c < in->log.format.n_columns; c++) {
        for (size_t i = 0; i < in->log.columns[c].n; i++) {
            in->log.columns[c].at[i].t_s += midnight_s;
        }
    }
}

/* ---- the books: the run's queries, and the logs' rows as its only readings ---- */

/* What the books are told, in the order of time. */
struct told {
    int64_t t_ns;
    /* Ends first: back to back is not concurrent. */
    enum { QUERY_ENDS, READING, QUERY_BEGINS } what;
    size_t of; /* a query, or a channel */
    int64_t reading;
};

struct told_list {
    struct told *all;
    size_t n, cap;
};

static void add_told(struct told_list *list, struct told told)
{
    IPW_GROW(list->all, list->cap, list->n + 1);
    list->all[list->n++] = told;
}

static int by_time(const void *a, const void *b)
{
    const struct told *x = a, *y = b;

    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    return (x->of > y->of) - (x->of < y->of);
}

/* The ledger's time: nanoseconds since the run's start, moved away from 0. */
static int64_t ledger_ns(const struct ipw_metered_run *r, double t_s)
{
    return 1000 * IPW_NS_PER_S + ipw_s_to_ns(t_s - r->t0_s);
}

/* A query of no length is left out: it was never in flight and has no energy. */
static void add_queries(struct told_list *list, struct ipw_metered_run *r)
{
    for (size_t i = 0; i < r->n_queries; i++) {
        int64_t t0_ns = ledger_ns(r, r->queries[i].t0_s), t1_ns = ledger_ns(r, r->queries[i].t1_s);

        r->queries[i].energy = (struct ipw_figure){.known = true, .coverage = 1};
        if (t1_ns <= t0_ns) continue;
        add_told(list, (struct told){t0_ns, QUERY_BEGINS, i, 0});
        add_told(list, (struct told){t1_ns, QUERY_ENDS, i, 0});
    }
}

/* A column's rows around the run. */
static void add_rows(struct told_list *list, size_t channel, const struct ipw_metered_run *r,
                     const struct ipw_json *column)
{
    const char *rows = ipw_json_str(ipw_json_get(column, "rows"), "");

    while (*rows) {
        char *at;
        double t_s = strtod(rows, &at);
        int64_t reading = strtoll(at, &at, 10);

        if (t_s > r->t1_s + MARGIN_S) break;
        if (t_s >= r->t0_s - MARGIN_S)
            add_told(list, (struct told){ledger_ns(r, t_s), READING, channel, reading});
        rows = at + (*at == '\n');
    }
}

/* The columns of the logs, and all that is told. */
static struct ipw_channel *gather(struct told_list *list, struct ipw_metered_run *r,
                                  const struct ipw_json *columns, size_t *n)
{
    struct ipw_channel *channels = ipw_calloc(ipw_json_count(columns) + 1, sizeof *channels);

    *n = 0;
    add_queries(list, r);
    for (const struct ipw_json *c = ipw_json_first(columns); c; c = ipw_json_next(c)) {
        bool watts = !strcmp(ipw_json_str(ipw_json_get(c, "kind"), ""), "watts");

        add_rows(list, *n, r, c);
        channels[(*n)++] =
            (struct ipw_channel){.domain = IPW_DOMAIN_MACHINE,
                                 .scope = IPW_SCOPE_MACHINE,
                                 .kind = watts ? IPW_CHANNEL_GAUGE : IPW_CHANNEL_COUNTER,
                                 .max_w = MOST_W,
                                 .in_sum = true};
    }
    if (list->n) qsort(list->all, list->n, sizeof *list->all, by_time);
    return channels;
}

static int take_energy(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    struct ipw_metered_run *r = ud;

    (void)err;
    r->queries[query->trace->index].energy = query->trace->energy[IPW_DOMAIN_MACHINE];
    return 0;
}

static int tell_event(struct ipw_recompute_job *books, enum ipw_event_kind kind, int64_t t_ns,
                      size_t query, const char *id, struct ipw_err *err)
{
    struct ipw_event event = {.kind = kind, .t_ns = t_ns, .query = (int32_t)query, .q.id = id};

    if (!id) event.query = -1;
    return ipw_recompute_event(books, &event, NULL, err);
}

static int tell_all(struct ipw_recompute_job *books, const struct told_list *list,
                    const struct ipw_metered_run *r, struct ipw_err *err)
{
    int rc = tell_event(books, IPW_EV_RUN_START, ledger_ns(r, r->t0_s), 0, NULL, err);

    for (size_t i = 0; i < list->n && !rc; i++) {
        const struct told *t = &list->all[i];

        if (t->what == READING)
            rc = ipw_recompute_row(books, t->of, 1, t->t_ns, &t->reading, err);
        else
            rc = tell_event(books, t->what == QUERY_BEGINS ? IPW_EV_QUERY_START : IPW_EV_QUERY_END,
                            t->t_ns, t->of, r->queries[t->of].id, err);
    }
    if (!rc) rc = tell_event(books, IPW_EV_RUN_END, ledger_ns(r, r->t1_s), 0, NULL, err);
    return rc ? rc : ipw_recompute_end(books, err);
}

static int book(struct ipw_metered_run *r, const struct ipw_json *columns, struct ipw_err *err)
{
    const struct ipw_recompute_options how = {.query = take_energy, .ud = r, .covered = true};
    struct told_list list = {0};
    size_t n;
    struct ipw_channel *channels = gather(&list, r, columns, &n);
    struct ipw_recompute_job *books = NULL;
    struct ipw_recompute booked;
    int rc = ipw_recompute_open(&books, &booked, NULL, NULL, &how, err);

    if (!rc) ipw_recompute_channels(books, channels, n);
    if (!rc) rc = tell_all(books, &list, r, err);
    if (!rc) {
        r->total = booked.segments[0]->balance[IPW_DOMAIN_MACHINE].total;
        r->idle = booked.segments[0]->balance[IPW_DOMAIN_MACHINE].idle;
    }
    ipw_recompute_close(books);
    ipw_recompute_release(&booked);
    free(channels);
    free(list.all);
    if (!rc && !r->total.known)
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "%s: the log does not cover the run's energy (%s)",
                      ipw_json_str(ipw_json_get(ipw_json_first(columns), "file"), ""),
                      r->total.reason);
    return rc;
}

int ipw_metered_run_read(struct ipw_metered_run *r, const char *run, const char *const *logs,
                         size_t n_logs, const char *column, struct ipw_err *err)
{
    int rc;

    *r = (struct ipw_metered_run){.run = run};
    r->logs = ipw_calloc(n_logs + 1, sizeof *r->logs);
    r->n_logs = n_logs;
    for (size_t i = 0; i < n_logs; i++) {
        r->logs[i].path = ipw_strdup(logs[i]);
        ipw_meter_log_init(&r->logs[i].log);
    }
    rc = read_run(r, run, err);
    for (size_t i = 0; i < n_logs && rc == 0; i++) {
        rc = read_log(&r->logs[i], column, err);
        if (rc == 0) place_days(&r->logs[i], r->t0_s);
    }
    return rc;
}

int ipw_metered_run_book(struct ipw_metered_run *r, const char *columns, struct ipw_err *err)
{
    struct ipw_json *list;
    int rc = ipw_json_parse(&list, columns, strlen(columns), NULL, err);

    if (!rc) rc = book(r, list, err);
    ipw_json_free(list);
    return rc;
}

void ipw_metered_run_release(struct ipw_metered_run *r)
{
    for (size_t i = 0; i < r->n_queries; i++) free(r->queries[i].id);
    for (size_t i = 0; i < r->n_logs; i++) {
        ipw_meter_log_release(&r->logs[i].log);
        free(r->logs[i].path);
    }
    free(r->queries);
    free(r->busy);
    free(r->logs);
    *r = (struct ipw_metered_run){0};
}

/* ---- the facts ---- */

static void put_energy(struct ipw_jw *w, const char *key, const struct ipw_figure *f)
{
    ipw_jw_knum(w, key, f->known ? f->j : (double)NAN);
}

static void put_column(struct ipw_jw *w, const struct ipw_metered_run_input *in, size_t i)
{
    const struct ipw_meter_column *c = &in->log.format.columns[i];
    const struct ipw_meter_points *p = &in->log.columns[i];

    ipw_jw_obj(w);
    ipw_jw_kbool(w, "in_sum", c->in_sum);
    ipw_jw_kstr(w, "kind", c->kind == IPW_METER_WATTS ? "watts" : "joules");
    ipw_jw_kstr(w, "name", c->name);
    for (int v = 0; v < 2; v++) {
        ipw_jw_key(w, v ? "v" : "t");
        ipw_jw_arr(w);
        for (size_t k = 0; c->in_sum && k < p->n; k++)
            ipw_jw_num(w, v ? p->at[k].value : p->at[k].t_s);
        ipw_jw_arr_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_log(struct ipw_jw *w, const struct ipw_metered_run_input *in)
{
    static const char *const clocks[] = {"none", "epoch", "zoned", "local", "day"};

    ipw_jw_obj(w);
    ipw_jw_kint(w, "bad_rows", (int64_t)in->log.bad_rows);
    ipw_jw_kstr(w, "clock", clocks[in->log.format.clock]);
    ipw_jw_key(w, "columns");
    ipw_jw_arr(w);
    for (size_t i = 0; i < in->log.format.n_columns; i++) put_column(w, in, i);
    ipw_jw_arr_end(w);
    ipw_jw_kstr(w, "file", in->path);
    ipw_jw_kstr(w, "first_bad_row", in->log.first_bad[0] ? in->log.first_bad : NULL);
    ipw_jw_kint(w, "rows", (int64_t)in->log.rows);
    ipw_jw_obj_end(w);
}

void ipw_metered_run_logs(struct ipw_buf *out, const struct ipw_metered_run *r)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "busy");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < r->n_busy; i++) {
        ipw_jw_arr(&w);
        ipw_jw_num(&w, r->busy[i].t0_s);
        ipw_jw_num(&w, r->busy[i].t1_s);
        ipw_jw_arr_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_key(&w, "logs");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < r->n_logs; i++) put_log(&w, &r->logs[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_knum(&w, "t0_s", r->t0_s);
    ipw_jw_knum(&w, "t1_s", r->t1_s);
    ipw_jw_obj_end(&w);
}

static void put_query(struct ipw_jw *w, const struct ipw_metered_run_query *q)
{
    ipw_jw_obj(w);
    ipw_jw_knum(w, "coverage", q->energy.coverage);
    ipw_jw_kint(w, "epoch", q->epoch);
    put_energy(w, "joules", &q->energy);
    ipw_jw_kstr(w, "provenance", ipw_provenance_name(q->energy.provenance));
    ipw_jw_kstr(w, "query_id", q->id);
    ipw_jw_kstr(w, "reason", q->energy.reason);
    ipw_jw_knum(w, "t0_s", q->t0_s);
    ipw_jw_knum(w, "t1_s", q->t1_s);
    ipw_jw_obj_end(w);
}

void ipw_metered_run_facts(struct ipw_buf *out, const struct ipw_metered_run *r)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_knum(&w, "coverage", r->total.coverage);
    put_energy(&w, "idle_joules", &r->idle);
    put_energy(&w, "joules", &r->total);
    ipw_jw_kstr(&w, "provenance", ipw_provenance_name(r->total.provenance));
    ipw_jw_key(&w, "queries");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < r->n_queries; i++) put_query(&w, &r->queries[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_knum(&w, "t0_s", r->t0_s);
    ipw_jw_knum(&w, "t1_s", r->t1_s);
    ipw_jw_obj_end(&w);
}
