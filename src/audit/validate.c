#include "audit/validate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/ledger_check.h"
#include "audit/validate_events.h"
#include "audit/validate_power.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "ledger/recompute.h"
#include "trace/lock.h"
#include "trace/schema.h"
#include "trace/spec.h"

struct name { /* of a query: exactly once in the run */
    char *id;
    int64_t epoch, segment;
    int64_t line;
};

struct job {
    struct ipw_validation *v;
    const char *run;
    struct ipw_check *lines;
    struct ipw_recompute redone;
    struct ipw_json *manifest, *summary;
    struct ipw_event_check events;
    struct name *names;
    size_t n_names, cap_names;
    struct ipw_still_list still;
    double total_j[IPW_DOMAIN_COUNT]; /* of all sessions; NAN: not known */
};

static bool is_there(const struct job *j, const char *file)
{
    char *path = ipw_asprintf("%s/%s", j->run, file);
    bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

/* ---- whole files ---- */

static int read_document(struct ipw_json **out, const struct job *j, const char *file,
                         const struct ipw_spec *table, struct ipw_err *err)
{
    int rc = ipw_json_read(out, j->run, file, err);

    if (rc) return rc;
    rc = ipw_spec_check(*out, table, err);
    if (!rc && !ipw_spec_knows(ipw_json_int(ipw_json_get(*out, "schema_version"), 0)))
        rc = ipw_fail(err, IPW_EPARSE, "schema_version: this program knows %d", IPW_SCHEMA_VERSION);
    return rc ? ipw_err_prefix(err, "%s/%s", j->run, file) : 0;
}

static int check_sessions(struct job *j, struct ipw_err *err)
{
    const struct ipw_json *segments = ipw_json_get(j->manifest, "segments");

    for (const struct ipw_json *s = ipw_json_first(segments); s; s = ipw_json_next(s)) {
        const struct ipw_json *balances = ipw_json_get(s, "ledger");
        bool last = ipw_json_next(s) == NULL;
        const char *end = ipw_json_str(ipw_json_get(s, "end"), NULL);

        if (ipw_json_int(ipw_json_get(s, "segment"), -1) != j->v->sessions)
            return ipw_fail(err, IPW_EPARSE, "%s/manifest.json: segments[%d].segment: is not %d",
                            j->run, j->v->sessions, j->v->sessions);
        if (!end && !last)
            return ipw_fail(err, IPW_EPARSE,
                            "%s/manifest.json: segments[%d].end: is null, and a session follows",
                            j->run, j->v->sessions);
        if (last) j->v->finished = end && strcmp(end, "killed") != 0;
        /* A session that was killed before its start has no energy. */
        for (int d = 0; d < IPW_DOMAIN_COUNT && ipw_json_int(ipw_json_get(s, "start_ns"), 0); d++)
            j->total_j[d] += ipw_json_num(
                ipw_json_get(ipw_json_get(balances, ipw_domain_name((enum ipw_domain)d)),
                             "total_j"),
                NAN);
        j->v->sessions++;
    }
    return 0;
}

/* ---- power.jsonl ---- */

static int take_power_header(struct job *j, const struct ipw_power_reader *p, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc = ipw_json_parse(&doc, p->header_text, strlen(p->header_text), NULL, err);

    if (!rc) rc = ipw_spec_check(doc, ipw_spec_power_header, err);
    if (rc) ipw_err_prefix(err, "%s/power.jsonl: the header of session %d", j->run, p->segment);
    ipw_json_free(doc);
    return rc;
}

static int check_rows(struct job *j, struct ipw_power_reader *p, struct ipw_err *err)
{
    int rc;

    ipw_still_begin(&j->still, p);
    while ((rc = ipw_power_reader_next(p, err)) > 0) {
        j->v->rows++;
        ipw_still_row(&j->still, p);
    }
    if (!rc) ipw_still_end(&j->still, p);
    return rc;
}

static int check_power(struct job *j, struct ipw_err *err)
{
    struct ipw_power_reader p = {0};
    char *path = ipw_asprintf("%s/power.jsonl", j->run);
    bool torn = false;
    int rc = ipw_power_reader_has_header(path, &torn, err);

    j->v->torn += torn;
    if (rc <= 0) {
        free(path);
        return rc;
    }
    rc = ipw_power_reader_open_file(&p, path, err);
    while (!rc) {
        rc = take_power_header(j, &p, err);
        if (!rc) rc = check_rows(j, &p, err);
        if (rc) break;
        rc = ipw_power_reader_next_segment(&p, err);
        if (rc <= 0) break;
        rc = 0;
    }
    ipw_power_reader_close(&p);
    free(path);
    return rc;
}

/* ---- files of lines ---- */

static int take_event(void *ud, const struct ipw_json *event, size_t repairs, struct ipw_err *err)
{
    struct job *j = ud;
    int rc = ipw_json_need_no_repair(repairs, err);

    j->v->events++;
    return rc ? rc : ipw_event_check_line(&j->events, event, err);
}

static int add_name(struct job *j, const struct ipw_json *doc, int64_t line, struct ipw_err *err)
{
    int64_t segment = ipw_json_int(ipw_json_get(doc, "segment"), 0);

    if (segment >= j->v->sessions && j->v->sessions > 0)
        return ipw_fail(err, IPW_EPARSE, "segment: %lld; the manifest has %d", (long long)segment,
                        j->v->sessions);
    IPW_GROW(j->names, j->cap_names, j->n_names + 1);
    j->names[j->n_names++] = (struct name){
        .id = ipw_strdup(ipw_json_str(ipw_json_get(doc, "query_id"), "")),
        .epoch = ipw_json_int(ipw_json_get(doc, "epoch"), 0),
        .segment = segment,
        .line = line,
    };
    return 0;
}

int ipw_validate_line(enum ipw_check_file file, const struct ipw_json *line, struct ipw_err *err)
{
    int rc = ipw_spec_check(line, ipw_spec_trace, err);

    if (!rc && file == IPW_CHECK_ATTEMPTS) rc = ipw_spec_check(line, ipw_spec_attempt, err);
    return rc ? rc : ipw_spec_check_query(line, err);
}

static int take_query(struct job *j, const struct ipw_json *doc, int64_t line, struct ipw_err *err)
{
    const struct ipw_json *energy = ipw_json_get(doc, "energy");

    if (ipw_validate_line(IPW_CHECK_TRACES, doc, err) < 0 || add_name(j, doc, line, err) < 0 ||
        ipw_still_check(&j->still, doc, err) < 0)
        return err->code;
    j->v->queries++;
    j->v->turns += ipw_json_int(ipw_json_get(doc, "num_turns"), 0);
    j->v->tool_calls += ipw_json_int(ipw_json_get(doc, "tool_call_count"), 0);
    j->v->resolved += ipw_json_bool(ipw_json_get(doc, "is_resolved"), false);
    j->v->completed += ipw_json_bool(ipw_json_get(doc, "completed"), false);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        j->v->joules[d] += ipw_json_num(
            ipw_json_get(ipw_json_get(energy, ipw_domain_name((enum ipw_domain)d)), "joules"), NAN);
    return 0;
}

static int take_line(void *ud, enum ipw_check_file file, const struct ipw_json *doc, int64_t line,
                     size_t repairs, struct ipw_err *err)
{
    struct job *j = ud;
    int rc = ipw_json_need_no_repair(repairs, err);

    j->v->torn += !doc;
    if (rc || !doc) return rc;
    if (file == IPW_CHECK_TRACES) return take_query(j, doc, line, err);
    j->v->attempts += file == IPW_CHECK_ATTEMPTS;
    return ipw_validate_line(file, doc, err);
}

/* Each line is checked when it is read: those that no query asks for by ipw_check_left(). */
static int open_lines(struct job *j, struct ipw_check_watch *watch, struct ipw_err *err)
{
    *watch = (struct ipw_check_watch){take_line, j};
    if (!is_there(j, "traces.jsonl"))
        return ipw_fail(err, IPW_ENOTFOUND, "%s: no traces.jsonl", j->run);
    return ipw_check_open(&j->lines, j->run, watch, err);
}

static int by_name(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->id, y->id);

    if (order) return order;
    if (x->epoch != y->epoch) return x->epoch < y->epoch ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int check_once(struct job *j, struct ipw_err *err)
{
    if (j->n_names) qsort(j->names, j->n_names, sizeof *j->names, by_name);
    for (size_t i = 1; i < j->n_names; i++) {
        const struct name *a = &j->names[i - 1], *b = &j->names[i];

        if (a->epoch == b->epoch && strcmp(a->id, b->id) == 0)
            return ipw_fail(err, IPW_EPARSE,
                            "%s/traces.jsonl:%lld: query_id: '%.80s' is also in line %lld", j->run,
                            (long long)b->line, b->id, (long long)a->line);
    }
    return 0;
}

/* ---- the summary against the queries ---- */

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b) + 1e-6; }

static int check_total(const struct job *j, const char *group, const char *key, double want,
                       struct ipw_err *err)
{
    double got = ipw_json_num(ipw_json_get(ipw_json_get(j->summary, group), key), NAN);

    if (isnan(got) ? isnan(want) : near(got, want)) return 0;
    return ipw_fail(err, IPW_EPARSE,
                    "%s/summary.json: %s.%s: %.12g; the files of the run say %.12g", j->run, group,
                    key, got, want);
}

static int check_balance(const struct job *j, int d, struct ipw_err *err)
{
    const char *domain = ipw_domain_name((enum ipw_domain)d);
    const struct ipw_json *item = ipw_json_get(ipw_json_get(j->summary, "ledger"), domain);
    double total = ipw_json_num(ipw_json_get(item, "total_j"), NAN);
    double sum = ipw_json_num(ipw_json_get(item, "queries_j"), NAN) +
                 ipw_json_num(ipw_json_get(item, "idle_j"), NAN) +
                 ipw_json_num(ipw_json_get(item, "warmup_j"), 0) +
                 ipw_json_num(ipw_json_get(item, "wasted_j"), 0);
    double slack = 1e-9 * fabs(total) + 1e-6 * (double)(j->v->queries + 2);

    if (!isnan(total) && !isnan(j->total_j[d]) && !near(total, j->total_j[d]))
        return ipw_fail(err, IPW_EPARSE,
                        "%s/summary.json: ledger.%s.total_j: %.12g; the sessions sum to %.12g",
                        j->run, domain, total, j->total_j[d]);
    if (isnan(total) || isnan(sum) || fabs(total - sum) <= slack) return 0;
    return ipw_fail(err, IPW_EPARSE,
                    "%s/summary.json: ledger.%s: does not balance: %.12g J of %.12g J are missing",
                    j->run, domain, total - sum, total);
}

/* The value whose bounds stand under `key`; a part and a tool have one for each domain. */
static double bounded_value(const struct ipw_json *object, const char *key)
{
    const struct ipw_json *value = ipw_json_get(object, key);

    if (!value) value = ipw_json_get(ipw_json_get(object, "joules"), key);
    return ipw_json_num(value, NAN);
}

/* Everywhere in the summary: lo <= value <= hi. */
static int check_bounds(const struct job *j, const struct ipw_json *node, const char *where,
                        struct ipw_err *err)
{
    const struct ipw_json *bounds =
        ipw_json_kind(node) == IPW_JSON_OBJ ? ipw_json_get(node, "bounds") : NULL;
    int rc = 0;

    for (const struct ipw_json *b = ipw_json_first(bounds); b; b = ipw_json_next(b)) {
        double value = bounded_value(node, ipw_json_key(b));
        double lo = ipw_json_get_num(b, "lo"), hi = ipw_json_get_num(b, "hi");
        double slack = 1e-6 + 1e-9 * fabs(value);

        if (lo <= value + slack && hi >= value - slack && !(ipw_json_get_num(b, "u") < 0)) continue;
        return ipw_fail(err, IPW_EPARSE, "%s/summary.json: %s: %s: %.12g is not in [%.12g, %.12g]",
                        j->run, where, ipw_json_key(b), value, lo, hi);
    }
    for (const struct ipw_json *m = ipw_json_first(node); m && !rc; m = ipw_json_next(m))
        if (m != bounds) rc = check_bounds(j, m, ipw_json_key(m) ? ipw_json_key(m) : where, err);
    return rc;
}

/* A replay has one session, also of a run with several. */
static bool is_replay(const struct job *j) { return ipw_json_get(j->manifest, "replay") != NULL; }

static int check_summary(struct job *j, struct ipw_err *err)
{
    static const char *const keys[IPW_DOMAIN_COUNT] = {
        [IPW_DOMAIN_CPU] = "cpu_energy_joules",
        [IPW_DOMAIN_DRAM] = "dram_energy_joules",
        [IPW_DOMAIN_GPU] = "gpu_energy_joules",
        [IPW_DOMAIN_MACHINE] = "machine_energy_joules",
    };
    const struct ipw_validation *v = j->v;

    if (check_total(j, "totals", "queries", (double)v->queries, err) < 0 ||
        check_total(j, "totals", "turns", (double)v->turns, err) < 0 ||
        check_total(j, "totals", "tool_calls", (double)v->tool_calls, err) < 0 ||
        check_total(j, "totals", "resolved", (double)v->resolved, err) < 0 ||
        check_total(j, "totals", "completed", (double)v->completed, err) < 0 ||
        check_total(j, "run", "earlier_attempts", (double)v->attempts, err) < 0 ||
        (!is_replay(j) && check_total(j, "run", "sessions", v->sessions, err) < 0))
        return err->code;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double want = v->queries ? v->joules[d] : NAN;

        if (check_total(j, "totals", keys[d], want, err) < 0 || check_balance(j, d, err) < 0)
            return err->code;
    }
    return check_bounds(j, j->summary, "summary", err);
}

/* ---- the ledger ---- */

static int compare_query(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    struct job *j = ud;
    const struct ipw_recompute_segment *segment = j->redone.segments[j->redone.n_segments - 1];
    struct ipw_query_loaded was = {0};
    struct ipw_buf what = IPW_BUF(4096);
    enum ipw_check_verdict verdict = IPW_CHECK_SAME;
    int rc = ipw_check_query(j->lines, segment, query, &verdict, &was, &what, NULL, err);

    if (!rc && verdict == IPW_CHECK_DIFFERS)
        rc = ipw_fail(err, IPW_EPARSE,
                      "query %s: its line does not follow from the events and samples: %s",
                      query->trace->id, ipw_buf_str(&what));
    if (!rc && verdict == IPW_CHECK_MISSING)
        rc =
            ipw_fail(err, IPW_EPARSE,
                     "query %s: has ended, but has no line. Use `ipw-agent resume` to run it again",
                     query->trace->id);
    ipw_query_loaded_release(&was);
    ipw_buf_release(&what);
    return rc;
}

/* Each line is read once: it is checked, and what follows from it is computed again, unless the run
 * is in progress. */
static int recompute(struct job *j, struct ipw_err *err)
{
    bool over = !j->v->going_on;
    struct ipw_recompute_options how = {
        .event = take_event, .query = over ? compare_query : NULL, .ud = j};
    struct ipw_check_watch watch;
    size_t left = 0;
    int rc = open_lines(j, &watch, err);

    if (!rc) rc = ipw_recompute_run(&j->redone, j->run, &how, err);
    if (!rc) rc = ipw_check_left(j->lines, &left, err);
    if (!rc) rc = check_once(j, err);
    if (!rc && left && over)
        rc = ipw_fail(err, IPW_EPARSE, "traces.jsonl: %zu of its lines have no events", left);
    if (rc && strncmp(err->text, j->run, strlen(j->run)) != 0) ipw_err_prefix(err, "%s", j->run);
    j->v->torn += j->redone.torn;
    j->v->recomputed = !rc && over;
    return rc;
}

/* ---- */

/* The end of the run, and its totals. */
static int check_end(struct job *j, struct ipw_err *err)
{
    const struct ipw_validation *v = j->v;
    int rc;

    if (v->finished && !j->events.over)
        return ipw_fail(err, IPW_EPARSE, "%s/events.jsonl: ends without the run_end of session %d",
                        j->run, j->events.segment);
    if (!is_there(j, "summary.json"))
        return v->finished
                   ? ipw_fail(err, IPW_EPARSE,
                              "%s/summary.json: missing, although the run ended normally", j->run)
                   : 0;
    rc = read_document(&j->summary, j, "summary.json", ipw_spec_summary, err);
    /* A killed session leaves the summary of the one before. */
    return rc || !v->finished ? rc : check_summary(j, err);
}

static int check_all(struct job *j, struct ipw_err *err)
{
    int rc = is_there(j, "power.jsonl") ? check_power(j, err) : 0;

    if (!rc) rc = recompute(j, err);
    return rc || j->v->going_on ? rc : check_end(j, err);
}

static void release(struct job *j)
{
    ipw_check_close(j->lines);
    ipw_recompute_release(&j->redone);
    ipw_json_free(j->manifest);
    ipw_json_free(j->summary);
    ipw_event_check_release(&j->events);
    for (size_t i = 0; i < j->n_names; i++) free(j->names[i].id);
    free(j->names);
    ipw_still_release(&j->still);
}

int ipw_validate_summary(bool *wrong, const char *run, struct ipw_err *err)
{
    struct ipw_validation v = {0};
    struct job j = {.v = &v, .run = run, .events = IPW_EVENT_CHECK};
    struct ipw_check_watch watch;
    struct ipw_err why;
    size_t left;
    int rc = read_document(&j.manifest, &j, "manifest.json", ipw_spec_manifest, err);

    if (!rc) rc = check_sessions(&j, err);
    if (!rc) rc = open_lines(&j, &watch, err);
    if (!rc) rc = ipw_check_left(j.lines, &left, err);
    if (!rc)
        *wrong = !is_there(&j, "summary.json") ||
                 read_document(&j.summary, &j, "summary.json", ipw_spec_summary, &why) ||
                 check_summary(&j, &why);
    release(&j);
    return rc;
}

int ipw_validate_run(struct ipw_validation *v, const char *run, struct ipw_err *err)
{
    struct job j = {.v = v, .run = run, .events = IPW_EVENT_CHECK};
    struct stat st;
    int rc;

    *v = (struct ipw_validation){0};
    if (stat(run, &st) < 0) return ipw_fail_errno(err, errno, "%s: no such run", run);
    if (!S_ISDIR(st.st_mode)) return ipw_fail(err, IPW_EINVAL, "%s: not a run folder", run);
    v->going_on = ipw_lock_look(run, NULL) != 0;
    rc = read_document(&j.manifest, &j, "manifest.json", ipw_spec_manifest, err);
    if (!rc) rc = check_sessions(&j, err);
    if (!rc) rc = check_all(&j, err);
    release(&j);
    return rc;
}
