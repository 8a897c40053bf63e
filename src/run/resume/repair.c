#include "run/resume/repair.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/validate_events.h"
#include "base/mem.h"
#include "base/text.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "ledger/power_reader.h"
#include "run/resume/line_changes.h"
#include "run/resume/rebuild.h"
#include "run/resume/rebuild_files.h"
#include "trace/event.h"
#include "trace/lock.h"
#include "trace/schema.h"
#include "trace/spec.h"

struct file {
    struct ipw_repair *r;
    char *path;
    int (*read)(const char *text, size_t n, struct ipw_err *err); /* a line; NULL: of power.jsonl */
    struct ipw_line_changes bad;
};

static IPW_PRINTF(2, 3) void tell(const struct ipw_repair *r, const char *fmt, ...)
{
    va_list ap;
    char text[2048];

    if (!r->say) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->say(r->ud, text);
}

static void mark(struct file *f, int64_t line, const struct ipw_err *why)
{
    tell(f->r, "%s", why->text);
    ipw_line_changes_add(&f->bad, (struct ipw_line_change){.number = line});
}

/* ---- finding the damage ---- */

static int read_event(const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    size_t repairs = 0;
    int rc = ipw_json_parse(&doc, text, n, &repairs, err);
    const char *name = rc ? NULL : ipw_json_str(ipw_json_get(doc, "event"), NULL);
    const struct ipw_spec *table = name ? ipw_spec_event(name) : NULL;

    if (!rc) rc = ipw_json_need_no_repair(repairs, err);
    if (!rc && !table)
        rc = ipw_fail(err, IPW_EPARSE, "event: %s", name ? "no event is called so" : "missing");
    if (!rc) rc = ipw_spec_check(doc, table, err);
    ipw_json_free(doc);
    return rc;
}

static int read_query(const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_query_loaded query;
    struct ipw_json *doc = NULL;
    size_t repairs = 0;
    int rc = ipw_json_parse(&doc, text, n, &repairs, err);

    if (rc) return rc;
    rc = ipw_json_need_no_repair(repairs, err);
    if (rc)
        ipw_json_free(doc);
    else if ((rc = ipw_schema_read_parsed(&query, doc, true, err)) == 0)
        ipw_query_loaded_release(&query);
    return rc;
}

static int look_at(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    struct file *f = ud;
    struct ipw_err why = {0};

    (void)err;
    if (f->read(line->text, line->n, &why) == 0) return 0;
    ipw_err_prefix(&why, "%s:%lld", f->path, (long long)line->number);
    mark(f, line->number, &why);
    return 0;
}

static int find_bad_rows(struct file *f, struct ipw_err *err)
{
    struct ipw_power_reader p = {0};
    bool torn;
    int rc = ipw_power_reader_has_header(f->path, &torn, err);

    if (rc <= 0) return rc;
    rc = ipw_power_reader_open_file(&p, f->path, err);
    if (rc) return ipw_err_prefix(err, "without its first header nothing in it can be read");
    do {
        struct ipw_err why = {0};

        while ((rc = ipw_power_reader_next(&p, &why)) != 0) {
            if (rc > 0) continue;
            if (why.code != IPW_EPARSE) break;
            mark(f, p.line, &why);
        }
        if (rc < 0) {
            *err = why;
            break;
        }
        rc = ipw_power_reader_next_segment(&p, err);
    } while (rc > 0);
    ipw_power_reader_close(&p);
    return rc;
}

static int repair_file(struct ipw_repair *r, const char *run, const char *name,
                       int (*read)(const char *text, size_t n, struct ipw_err *err),
                       struct ipw_err *err)
{
    struct file f = {.r = r, .path = ipw_asprintf("%s/%s", run, name), .read = read};
    struct ipw_jsonl_cut cut = {0};
    int rc = 0;

    if (access(f.path, F_OK) < 0 && errno == ENOENT) {
        free(f.path);
        return 0;
    }
    rc = ipw_jsonl_cut_tail(&cut, f.path, err);
    if (!rc && cut.bytes) {
        tell(r, "%s: %lld bytes behind its last whole line are in %s.torn now", f.path,
             (long long)cut.bytes, name);
        r->torn++;
        if (read == read_query) r->queries++;
    }
    if (!rc)
        rc = read ? ipw_jsonl_each(f.path, IPW_LINE_MAX, look_at, &f, err) : find_bad_rows(&f, err);
    if (!rc && f.bad.n) rc = ipw_line_changes_write(&f.bad, f.path, err);
    if (!rc && f.bad.n) {
        tell(r, "%s: %zu damaged line%s taken out, kept in %s.damaged", f.path, f.bad.n,
             f.bad.n == 1 ? "" : "s", name);
        r->dropped += f.bad.n;
        if (read == read_query) r->queries += f.bad.n;
    }
    ipw_line_changes_release(&f.bad);
    free(f.path);
    return rc;
}

/* ---- events that stood on a damaged line ---- */

struct mended_query { /* of the session */
    int32_t index;
    char *id;
    bool ended;
    int64_t line, t_ns, rows; /* of its last event that is no note */
};

struct mending {
    size_t out, ended; /* events that were taken out; queries that were ended */
    struct ipw_event_check order;
    struct ipw_line_changes changes;
    struct mended_query *queries;
    size_t n, cap;
    struct ipw_table by_index; /* places in `queries` */
};

/* `over`: it has a run_end.  Else it was killed: the queries in flight end with its readings. */
static void end_session(struct mending *j, bool over)
{
    for (size_t i = 0; i < j->n; i++) {
        struct mended_query *q = &j->queries[i];
        struct ipw_event end = {.kind = IPW_EV_QUERY_END,
                                .t_ns = q->t_ns,
                                .query = q->index,
                                .rows = q->rows,
                                .q = {.id = q->id, .outcome = "unfinished"}};
        struct ipw_buf text = IPW_BUF(IPW_MIB);

        if (!q->ended && over) {
            ipw_event_write(&text, &end);
            ipw_buf_truncate(&text, text.len - 1); /* its newline */
            ipw_line_changes_add(
                &j->changes, (struct ipw_line_change){q->line, ipw_buf_take(&text, NULL), true});
            j->ended++;
        }
        ipw_buf_release(&text);
        free(q->id);
    }
    j->n = 0;
    ipw_table_release(&j->by_index);
}

/* An event of a query that has started, for the order was checked. */
static void follow(struct mending *j, const struct ipw_event *e, int64_t line)
{
    uint32_t *at;
    struct mended_query *q;

    if (e->query < 0) return;
    at = ipw_table_at(&j->by_index, (uint32_t)e->query, NULL);
    if (*at == IPW_TABLE_NONE) {
        *at = (uint32_t)j->n;
        IPW_GROW(j->queries, j->cap, j->n + 1);
        j->queries[j->n++] =
            (struct mended_query){.index = e->query, .id = ipw_strdup(e->q.id ? e->q.id : "")};
    }
    q = &j->queries[*at];
    q->ended |= e->kind == IPW_EV_QUERY_END;
    if (e->kind == IPW_EV_NOTE) return;
    q->line = line;
    q->t_ns = e->t_ns;
    q->rows = e->rows;
}

static int mend_line(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    struct mending *j = ud;
    bool over = j->order.over;
    struct ipw_err why = {0};
    struct ipw_json *doc;
    struct ipw_event event;
    int rc = ipw_event_parse(&doc, line->text, line->n, NULL, err);

    if (rc) return rc;
    rc = ipw_event_read(&event, doc, err);
    if (!rc && ipw_event_check_line(&j->order, doc, &why) == 0) {
        if (event.kind == IPW_EV_RUN_START) end_session(j, over);
        follow(j, &event, line->number);
    } else if (!rc && j->order.segment >= 0) { /* without any run_start nothing follows */
        ipw_line_changes_add(&j->changes, (struct ipw_line_change){.number = line->number});
        j->out++;
    }
    ipw_json_free(doc);
    return rc;
}

/* An event that cannot stand without a lost line is taken out too: the end of a span that did not
 * start, or everything of a query that did not start.  A query whose end is lost ends with its last
 * event, with outcome "unfinished".  So each query of a session that ended has an end again, and
 * the session's joules are in the books once (run/resume/rebuild.h decides what becomes of the
 * query's line).  A file without such damage is not written. */
static int mend_events(struct ipw_repair *r, const char *run, struct ipw_err *err)
{
    struct mending j = {.order = IPW_EVENT_CHECK};
    char *path = ipw_asprintf("%s/events.jsonl", run);
    int rc = ipw_jsonl_each(path, IPW_LINE_MAX, mend_line, &j, err);

    end_session(&j, j.order.over);
    if (!rc && j.changes.n) rc = ipw_line_changes_write(&j.changes, path, err);
    if (!rc && j.out)
        tell(r,
             "%s: %zu event%s cannot stand without the lines that are lost, and %s kept in "
             "events.jsonl.damaged",
             path, j.out, j.out == 1 ? "" : "s", j.out == 1 ? "is" : "are");
    if (!rc && j.ended)
        tell(r,
             "%s: %zu quer%s without an end end%s with the last event now: what %s drew later is "
             "in the books of the others and of idle",
             path, j.ended, j.ended == 1 ? "y" : "ies", j.ended == 1 ? "s" : "",
             j.ended == 1 ? "it" : "they");
    if (!rc) r->dropped += j.out;
    ipw_line_changes_release(&j.changes);
    ipw_event_check_release(&j.order);
    free(j.queries);
    free(path);
    return rc;
}

/* ---- all steps ---- */

bool ipw_repair_has_manifest(const char *run)
{
    struct ipw_json *manifest = NULL;
    int rc = ipw_json_read(&manifest, run, "manifest.json", NULL);

    ipw_json_free(manifest);
    return !rc;
}

/* Writes nothing: without events the lines of traces.jsonl are all that is left of these
 * queries. */
static int tell_events_gone(const char *run, struct ipw_err *err)
{
    int errnum = errno;
    struct ipw_buf word = IPW_BUF(64 * IPW_KIB);

    if (errnum != ENOENT) return ipw_fail_errno(err, errnum, "%s/events.jsonl", run);
    ipw_text_shell_word(&word, run);
    ipw_fail(err, IPW_ENOTFOUND,
             "%s/events.jsonl is missing, and with it each request, reply and tool result. The run "
             "cannot be repaired, rerun from its replies, or computed again. traces.jsonl still "
             "has the answers, times, tokens and joules: replay, score, compare and export read "
             "it. `ipw-agent resume %s` moves its lines to traces.jsonl.damaged and runs those "
             "queries again",
             run, ipw_buf_str(&word));
    ipw_buf_release(&word);
    return IPW_ENOTFOUND;
}

int ipw_repair_run(struct ipw_repair *r, const char *run, struct ipw_err *err)
{
    static const struct {
        const char *name;
        int (*read)(const char *text, size_t n, struct ipw_err *err);
    } files[] = {{"events.jsonl", read_event},
                 {"power.jsonl", NULL},
                 {"traces.jsonl", read_query},
                 {"attempts.jsonl", read_query},
                 {"warmup.jsonl", read_query}};
    struct ipw_lock lock = IPW_LOCK_NONE;
    struct stat st;
    struct ipw_rebuild rebuild = {.say = r->say, .ud = r->ud};
    char *events = ipw_asprintf("%s/events.jsonl", run);
    char *manifest = ipw_asprintf("%s/manifest.json", run);
    int rc = 0;

    if (stat(run, &st) < 0)
        rc = ipw_fail_errno(err, errno, "%s: no such run", run);
    else if (stat(manifest, &st) < 0 && stat(events, &st) < 0)
        rc = ipw_fail_errno(err, errno, "%s: cannot be read as a run", manifest);
    else if (stat(events, &st) < 0)
        rc = tell_events_gone(run, err);
    free(events);
    free(manifest);
    if (rc) return rc;
    rc = ipw_lock_take(&lock, run, err);
    if (rc) return rc;
    for (size_t i = 0; i < sizeof files / sizeof *files && !rc; i++)
        rc = repair_file(r, run, files[i].name, files[i].read, err);
    if (!rc) rc = mend_events(r, run, err);
    if (!rc) rc = ipw_rebuild_run(&rebuild, run, err);
    r->mended = rebuild.aside + rebuild.again + rebuild.attempts + rebuild.sessions + rebuild.files;
    r->queries += rebuild.aside + rebuild.attempts;
    ipw_lock_drop(&lock, run);
    return rc;
}
