#include "run/resume/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/validate.h"
#include "base/mem.h"
#include "base/secret.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "ledger/recompute.h"
#include "run/results.h"
#include "run/resume/damaged_lines.h"
#include "run/resume/rebuild_files.h"
#include "run/resume/sessions.h"
#include "run/segment.h"
#include "trace/event.h"
#include "trace/saved_clock.h"
#include "trace/schema.h"

enum { TRACES, ATTEMPTS, WARMUP, N_FILES };
static const char *const names[N_FILES] = {"traces.jsonl", "attempts.jsonl", "warmup.jsonl"};

struct line { /* a line of one of these files */
    char *id;
    int64_t index, number, offset;
    size_t n;
    int segment, file;
    bool follows; /* it follows from the events and readings */
};

struct job {
    struct ipw_rebuild *m;
    const char *run;
    struct ipw_json *manifest;
    const char *model;
    size_t n_sessions;
    struct ipw_anchor *clocks; /* of each session */
    struct line *lines;        /* sorted by segment and index before the events are read */
    size_t n, cap;
    struct ipw_buf added[N_FILES]; /* lines for queries without a line */
    int last_cut; /* the last session with a query whose energy was not computed; -1: none */
};

static char *path_of(const struct job *j, const char *name)
{
    return ipw_asprintf("%s/%s", j->run, name);
}

/* ---- reading the files ---- */

/* Syncs a file before anything is concluded from it: a kill leaves files complete in memory that a
 * power cut a moment later loses. */
static int sync_file(const struct job *j, const char *name, struct ipw_err *err)
{
    char *path = path_of(j, name);
    int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    int rc = 0;

    if (fd < 0 && errno != ENOENT)
        rc = ipw_fail_errno(err, errno, "%s", path);
    else if (fd >= 0 && TEMP_FAILURE_RETRY(fdatasync(fd)) < 0 && errno != EINVAL)
        rc = ipw_fail_errno(err, errno, "%s: the disk lost written data", path);
    if (fd >= 0) close(fd);
    free(path);
    return rc;
}

static int sync_files(const struct job *j, struct ipw_err *err)
{
    int rc = sync_file(j, "events.jsonl", err);

    if (!rc) rc = sync_file(j, "power.jsonl", err);
    for (int i = 0; i < N_FILES && !rc; i++) rc = sync_file(j, names[i], err);
    return rc;
}

static int open_manifest(struct job *j, struct ipw_err *err)
{
    const struct ipw_json *segments;
    int rc = ipw_json_read(&j->manifest, j->run, "manifest.json", err);

    if (!rc) rc = ipw_json_need_arr(&segments, j->manifest, "segments", "manifest.json", err);
    if (rc) return rc;
    j->model = ipw_json_str(ipw_json_get(ipw_json_get(j->manifest, "config"), "model"), NULL);
    j->n_sessions = ipw_json_count(segments);
    j->clocks = ipw_calloc(j->n_sessions + 1, sizeof *j->clocks);
    for (size_t i = 0; i < j->n_sessions; i++)
        j->clocks[i] = ipw_saved_clock_read(ipw_json_get(ipw_json_at(segments, i), "clock"));
    return 0;
}

struct file_lines { /* one of the files, as it is read */
    struct job *j;
    int file;
};

static int take_line(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    const struct file_lines *f = ud;
    struct job *j = f->j;
    struct ipw_query_loaded q;
    int rc = ipw_schema_read_query(&q, line->text, line->n, err);

    if (rc) return rc;
    IPW_GROW(j->lines, j->cap, j->n + 1);
    j->lines[j->n++] = (struct line){.id = ipw_strdup(q.trace.id ? q.trace.id : ""),
                                     .index = q.trace.index,
                                     .number = line->number,
                                     .offset = line->offset,
                                     .n = line->n,
                                     .segment = q.details.segment,
                                     .file = f->file};
    ipw_query_loaded_release(&q);
    return 0;
}

static int read_lines(struct job *j, int file, struct ipw_err *err)
{
    struct file_lines f = {j, file};
    char *path = path_of(j, names[file]);
    bool absent = access(path, F_OK) < 0 && errno == ENOENT;
    int rc = absent ? 0 : ipw_jsonl_each(path, IPW_LINE_MAX, take_line, &f, err);

    free(path);
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->segment != y->segment) return x->segment < y->segment ? -1 : 1;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The first line of this query, or of a later one. */
static size_t place_of(const struct job *j, int segment, int64_t index)
{
    size_t low = 0, high = j->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct line *l = &j->lines[mid];

        if (l->segment < segment || (l->segment == segment && l->index < index))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* ---- what follows from events and readings ---- */

/* The line as this version writes it. */
static int is_same(bool *same, const struct job *j, const struct line *l,
                   const struct ipw_recompute_query *q, struct ipw_err *err)
{
    char *path = path_of(j, names[l->file]);
    struct ipw_jsonl_reader *reader = NULL;
    struct ipw_jsonl_line line;
    struct ipw_query_loaded was;
    struct ipw_buf now = IPW_BUF(IPW_LINE_MAX);
    int rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, err);

    if (!rc) rc = ipw_jsonl_seek(reader, l->offset, err);
    if (!rc) rc = ipw_jsonl_next(reader, &line, err);
    if (rc > 0) {
        rc = ipw_schema_read_query(&was, line.text, line.n, err);
        if (!rc) {
            ipw_schema_write_query(&now, q->trace, &was.details, &j->clocks[l->segment]);
            *same = now.len == line.n && !memcmp(now.data, line.text, line.n);
            ipw_query_loaded_release(&was);
        }
    }
    ipw_jsonl_close(reader);
    ipw_buf_release(&now);
    free(path);
    return rc;
}

/* A query that was cut is an earlier attempt, or one of the warm-up, as an earlier session booked
 * it with the readings of that time. */
static int check_line(bool *follows, const struct job *j, const struct line *l,
                      const struct ipw_recompute_query *q, struct ipw_err *err)
{
    *follows =
        strcmp(l->id, q->trace->id ? q->trace->id : "") == 0 && (!q->cut || l->file != TRACES);
    if (!*follows || !q->cut) return 0;
    if (l->segment < 0 || (size_t)l->segment >= j->n_sessions) return 0;
    return is_same(follows, j, l, q, err);
}

/* Writes only after everything was read: if something cannot be read, nothing changes. */
static int add_line(struct job *j, int file, struct ipw_buf *line, struct ipw_err *err)
{
    struct ipw_buf *added = &j->added[file];

    ipw_secret_clean(line, 0);
    ipw_buf_addc(line, '\n');
    ipw_buf_add(added, ipw_buf_str(line), line->len);
    if (!added->failed && !line->failed) return 0;
    return ipw_fail(err, IPW_ELIMIT, "%s/%s: more than %zu MiB of lines are missing", j->run,
                    names[file], added->max / IPW_MIB);
}

static int write_attempt(struct job *j, const struct ipw_recompute_query *q, struct ipw_err *err)
{
    struct ipw_json *start = NULL;
    struct ipw_buf line = IPW_BUF(IPW_LINE_MAX);
    struct ipw_query_details details;
    char *metadata;
    int rc = q->start ? ipw_json_parse(&start, q->start, strlen(q->start), NULL, err) : 0;

    if (rc) return rc;
    metadata = ipw_json_text(ipw_json_get(start, "metadata"));
    details = (struct ipw_query_details){
        .query_text = ipw_json_str(ipw_json_get(start, "prompt"), NULL),
        .is_resolved = -1,
        .unscorable_reason = "cut",
        .metadata = metadata,
        .model = j->model,
        .cost_usd = ipw_query_trace_cost(q->trace),
        .lua_peak_bytes = -1,
        .lua_cpu_ns = -1,
        .epoch = (int)ipw_json_int(ipw_json_get(start, "epoch"), 0),
        .segment = q->segment,
        .superseded = q->warmup ? NULL : "cut",
    };
    ipw_schema_write_query(&line, q->trace, &details, &j->clocks[q->segment]);
    rc = add_line(j, q->warmup ? WARMUP : ATTEMPTS, &line, err);
    ipw_buf_release(&line);
    ipw_json_free(start);
    free(metadata);
    j->m->attempts++;
    return rc;
}

static int take_query(void *ud, const struct ipw_recompute_query *q, struct ipw_err *err)
{
    struct job *j = ud;
    bool has_line = false, it_follows;
    int rc;

    if (q->cut) j->last_cut = q->segment;
    for (size_t i = place_of(j, q->segment, q->trace->index);
         i < j->n && j->lines[i].segment == q->segment && j->lines[i].index == q->trace->index;
         i++) {
        rc = check_line(&it_follows, j, &j->lines[i], q, err);
        if (rc) return rc;
        j->lines[i].follows |= it_follows;
        has_line |= it_follows;
    }
    if (has_line || q->segment < 0 || (size_t)q->segment >= j->n_sessions) return 0;
    return write_attempt(j, q, err);
}

/* Safe on the disk when it returns. */
static int append_lines(const char *path, const struct ipw_buf *lines, struct ipw_err *err)
{
    struct ipw_jsonl_appender *to = NULL;
    int rc = ipw_jsonl_append_open(&to, path, false, err);

    if (!rc) rc = ipw_jsonl_append(to, lines->data, lines->len, err);
    if (!rc && TEMP_FAILURE_RETRY(fsync(ipw_jsonl_append_fd(to))) < 0 && errno != EINVAL)
        rc = ipw_fail_errno(err, errno, "%s: the disk lost written data", path);
    ipw_jsonl_append_close(to, NULL);
    return rc;
}

static int append_added(struct job *j, int file, struct ipw_err *err)
{
    char *path = path_of(j, names[file]);
    int rc = append_lines(path, &j->added[file], err);

    if (!rc) rc = ipw_file_sync_folder(path, err);
    free(path);
    return rc;
}

/* ---- lines that do not follow ---- */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int move_aside(struct job *j, int file, struct ipw_err *err)
{
    int64_t *numbers = ipw_calloc(j->n + 1, sizeof *numbers);
    size_t n = 0;
    char *path = path_of(j, names[file]);
    int rc = 0;

    for (size_t i = 0; i < j->n; i++) {
        if (j->lines[i].file == file && !j->lines[i].follows) numbers[n++] = j->lines[i].number;
    }
    if (n) qsort(numbers, n, sizeof *numbers, by_number);
    if (n) rc = ipw_damaged_lines_take_out(path, numbers, n, err);
    if (n && !rc)
        ipw_rebuild_say(
            j->m, "%s: %zu line%s moved to %s.damaged: the events or samples are not on the disk%s",
            path, n, n == 1 ? " is" : "s are", names[file],
            file == TRACES ? "; ipw-agent resume runs the query again" : "");
    j->m->aside += n;
    free(path);
    free(numbers);
    return rc;
}

/* ---- sessions ---- */

static const struct ipw_recompute_segment *redone(const struct ipw_recompute *redo, size_t number)
{
    for (size_t i = 0; i < redo->n_segments; i++) {
        /* Without a run_start the session is unknown. */
        if (redo->segments[i]->number == (int)number && redo->segments[i]->start_ns)
            return redo->segments[i];
    }
    return NULL;
}

/* The manifest has the balance of a session that ended, and its files are complete. */
static bool is_whole(const struct ipw_json *session, const struct ipw_recompute_segment *r)
{
    const char *end = ipw_json_str(ipw_json_get(session, "end"), "killed");

    return strcmp(end, "killed") != 0 && r && !r->cut;
}

static void put_session(struct job *j, struct ipw_buf *out, const struct ipw_json *session,
                        size_t number, const char *end, const struct ipw_recompute_segment *r)
{
    struct ipw_buf patch = IPW_BUF(IPW_MIB);

    ipw_segment_write_end(&patch, end, r ? r->start_ns : 0, r ? r->end_ns : 0, &j->clocks[number],
                          r ? r->balance : NULL, r ? &r->devices : NULL);
    ipw_json_patch(out, session, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
}

/* For a session that ended by its events, but not in the manifest: the manifest was lost, and
 * rebuilt by us or by a repair that was cut short. */
static const char *end_of(const struct job *j, size_t number)
{
    const struct ipw_json *config = ipw_json_get(j->manifest, "config");
    int64_t planned = ipw_json_int(ipw_json_get(config, "max_queries"), 0) *
                      ipw_json_int(ipw_json_get(config, "epochs"), 1);
    int64_t n = 0;

    for (size_t i = 0; i < j->n; i++) n += j->lines[i].file == TRACES && j->lines[i].follows;
    return number + 1 == j->n_sessions && n >= planned ? "complete" : "interrupted";
}

/* The text of the session's object; if its end and balance are incomplete, they come from the
 * files. */
static char *session_text(struct job *j, const struct ipw_json *session, size_t number,
                          const struct ipw_recompute_segment *r)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);

    bool ended = r && !r->cut && ipw_json_is_null(ipw_json_get(session, "end"));

    if (is_whole(session, r))
        ipw_json_print(&text, session);
    else
        put_session(j, &text, session, number, ended ? end_of(j, number) : "killed", r);
    return ipw_buf_take(&text, NULL);
}

static int close_sessions(struct job *j, const struct ipw_recompute *redo, struct ipw_err *err)
{
    const struct ipw_json *sessions = ipw_json_get(j->manifest, "segments");
    struct ipw_buf all = IPW_BUF(IPW_LINE_MAX);
    size_t n = 0;
    int rc = 0;

    ipw_buf_addc(&all, '[');
    for (size_t i = 0; i < j->n_sessions; i++) {
        const struct ipw_json *session = ipw_json_at(sessions, i);
        char *was = ipw_json_text(session), *now = session_text(j, session, i, redone(redo, i));

        if (i) ipw_buf_addc(&all, ',');
        ipw_buf_adds(&all, now);
        if (strcmp(was, now) != 0) {
            n++;
            if (!ipw_json_is_null(ipw_json_get(session, "end")))
                ipw_rebuild_say(j->m,
                                "%s/manifest.json: session %zu is booked as far as its files go",
                                j->run, i);
        }
        free(was);
        free(now);
    }
    ipw_buf_addc(&all, ']');
    if (n) rc = ipw_rebuild_write_manifest(j->run, j->manifest, ipw_buf_str(&all), err);
    j->m->sessions += n;
    ipw_buf_release(&all);
    return rc;
}

/* ---- the end of the last session ---- */

/* Do the events have all queries of the session?  A file that is cut where no query is in flight
 * shows no gap; but the manifest has the joules of the queries that went with its end. */
static bool has_all_queries(const struct ipw_json *session, const struct ipw_recompute_segment *r)
{
    const struct ipw_json *ledger = ipw_json_get(session, "ledger");

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *now = &r->balance[d].queries;
        double was_j = ipw_json_get_num(ipw_json_get(ledger, ipw_domain_name((enum ipw_domain)d)),
                                        "queries_j");

        if (isnan(was_j) != !now->known || (now->known && fabs(was_j - now->j) > 2e-6))
            return false;
    }
    return true;
}

/* The manifest has the end, every query of the session is booked, and the readings pass the end, so
 * only the line run_end is missing. */
static bool lacks_run_end(const struct job *j, const struct ipw_recompute_segment *r)
{
    const struct ipw_json *last =
        ipw_json_at(ipw_json_get(j->manifest, "segments"), j->n_sessions - 1);
    const char *end = ipw_json_str(ipw_json_get(last, "end"), "killed");
    int64_t end_ns = ipw_json_int(ipw_json_get(last, "end_ns"), 0);

    return r && r->cut && !r->over && strcmp(end, "killed") != 0 && j->last_cut != r->number &&
           ipw_json_int(ipw_json_get(last, "start_ns"), 0) == r->start_ns &&
           end_ns >= r->start_ns && r->read_ns >= end_ns && has_all_queries(last, r);
}

static int write_run_end(struct job *j, struct ipw_recompute_segment *r, struct ipw_err *err)
{
    const struct ipw_json *last =
        ipw_json_at(ipw_json_get(j->manifest, "segments"), j->n_sessions - 1);
    struct ipw_event event = {.kind = IPW_EV_RUN_END,
                              .t_ns = ipw_json_int(ipw_json_get(last, "end_ns"), 0),
                              .query = -1,
                              .rows = r->rows};
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    char *path = path_of(j, "events.jsonl");
    int rc;

    ipw_event_write(&line, &event);
    rc = append_lines(path, &line, err);
    if (!rc) {
        ipw_rebuild_say(j->m, "%s: the run_end of its last session is written again", path);
        r->cut = false;
        j->m->files++;
    }
    ipw_buf_release(&line);
    free(path);
    return rc;
}

/* The summary of a run that ended follows from the other files.  A killed run has the summary of an
 * earlier session, or none. */
static int mend_summary(struct job *j, struct ipw_err *err)
{
    char *path = path_of(j, "summary.json");
    struct ipw_json *doc = NULL;
    bool wrong = false;
    int rc;

    ipw_json_free(j->manifest);
    rc = ipw_json_read(&j->manifest, j->run, "manifest.json", err);
    if (!rc && j->n_sessions) {
        const struct ipw_json *last =
            ipw_json_at(ipw_json_get(j->manifest, "segments"), j->n_sessions - 1);

        if (strcmp(ipw_json_str(ipw_json_get(last, "end"), "killed"), "killed") != 0) {
            rc = ipw_validate_summary(&wrong, j->run, err);
            if (!rc && wrong) rc = ipw_rebuild_summary(j->run, NULL, err);
            if (!rc && wrong)
                ipw_rebuild_say(j->m, "%s: computed again from the other files", path);
        } else if (access(path, F_OK) == 0 && ipw_json_read(&doc, j->run, "summary.json", NULL)) {
            wrong = true;
            rc = ipw_rebuild_set_summary_aside(j->run, err);
            if (!rc) ipw_rebuild_say(j->m, "%s: is damaged, and summary.json.damaged now", path);
        }
    }
    j->m->files += wrong && !rc;
    ipw_json_free(doc);
    free(path);
    return rc;
}

/* ---- all steps ---- */

static int mend(struct job *j, struct ipw_err *err)
{
    struct ipw_recompute_options how = {.query = take_query, .ud = j, .starts = true};
    struct ipw_recompute redo;
    int rc = sync_files(j, err);

    for (int i = 0; i < N_FILES && !rc; i++) rc = read_lines(j, i, err);
    if (rc) return rc;
    if (j->n) qsort(j->lines, j->n, sizeof *j->lines, by_place);
    rc = ipw_recompute_run(&redo, j->run, &how, err);
    if (rc) return rc;
    for (int i = 0; i < N_FILES && !rc; i++)
        if (j->added[i].len) rc = append_added(j, i, err);
    for (int i = 0; i < N_FILES && !rc; i++) rc = move_aside(j, i, err);
    if (!rc && redo.n_segments && lacks_run_end(j, redo.segments[redo.n_segments - 1]) &&
        redo.segments[redo.n_segments - 1]->number + 1 == (int)j->n_sessions)
        rc = write_run_end(j, redo.segments[redo.n_segments - 1], err);
    if (!rc) rc = close_sessions(j, &redo, err);
    ipw_recompute_release(&redo);
    return rc ? rc : mend_summary(j, err);
}

int ipw_rebuild_run(struct ipw_rebuild *m, const char *run, struct ipw_err *err)
{
    struct job j = {.m = m, .run = run, .last_cut = -1};
    struct ipw_err why = {0};
    int rc = open_manifest(&j, &why);

    if (rc == IPW_EPARSE || rc == IPW_ENOTFOUND) {
        rc = ipw_rebuild_manifest(m, run, err);
        m->files += !rc;
        if (!rc) rc = open_manifest(&j, err);
    } else if (rc && err) {
        *err = why;
    }
    for (int i = 0; i < N_FILES; i++) ipw_buf_init(&j.added[i], (size_t)4096 * IPW_MIB);
    if (!rc && !ipw_json_get(j.manifest, "replay")) rc = mend(&j, err);
    for (int i = 0; i < N_FILES; i++) ipw_buf_release(&j.added[i]);
    for (size_t i = 0; i < j.n; i++) free(j.lines[i].id);
    free(j.lines);
    free(j.clocks);
    ipw_json_free(j.manifest);
    return rc;
}
