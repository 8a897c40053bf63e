#include "run/resume/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/ledger_check.h"
#include "audit/validate.h"
#include "base/mem.h"
#include "base/secret.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "ledger/recompute.h"
#include "run/results.h"
#include "run/resume/line_changes.h"
#include "run/resume/rebuild_files.h"
#include "run/resume/sessions.h"
#include "run/segment.h"
#include "trace/event.h"
#include "trace/saved_clock.h"
#include "trace/schema.h"

struct job {
    struct ipw_rebuild *m;
    const char *run;
    struct ipw_json *manifest;
    const char *model;
    size_t n_sessions;
    struct ipw_anchor *clocks; /* of each session */
    struct ipw_recompute redo;
    struct ipw_check *check; /* NULL: there is no line */
    /* By file: its changes, and lines for queries without a line. */
    struct ipw_line_changes changes[IPW_CHECK_FILES];
    struct ipw_buf added[IPW_CHECK_FILES];
    size_t n_done; /* lines of traces.jsonl that stay */
    struct cut {   /* queries whose energy was not computed */
        int segment;
        int32_t index;
    } * cut;
    size_t n_cut, cap_cut;
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
    for (int i = 0; i < IPW_CHECK_FILES && !rc; i++) rc = sync_file(j, ipw_check_names[i], err);
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

/* ---- queries without a line ---- */

/* Writes only after everything was read: if something cannot be read, nothing changes. */
static int add_line(struct job *j, int file, struct ipw_buf *line, struct ipw_err *err)
{
    struct ipw_buf *added = &j->added[file];

    ipw_secret_clean(line, 0);
    ipw_buf_addc(line, '\n');
    ipw_buf_add(added, ipw_buf_str(line), line->len);
    if (!added->failed && !line->failed) return 0;
    return ipw_fail(err, IPW_ELIMIT, "%s/%s: more than %zu MiB of lines are missing", j->run,
                    ipw_check_names[file], added->max / IPW_MIB);
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
    rc = add_line(j, q->warmup ? IPW_CHECK_WARMUP : IPW_CHECK_ATTEMPTS, &line, err);
    ipw_buf_release(&line);
    ipw_json_free(start);
    free(metadata);
    j->m->attempts++;
    return rc;
}

/* ---- lines ---- */

/* May the line of a query stay?  One that was cut is an earlier attempt, or one of the warm-up, as
 * an earlier session booked it with the readings of that time. */
static bool may_stay(const struct ipw_recompute_query *q, const struct ipw_check_line *line,
                     bool same, const struct ipw_query_loaded *was)
{
    const char *id = was->trace.id ? was->trace.id : "";

    if (strcmp(id, q->trace->id ? q->trace->id : "") != 0) return false;
    return q->cut ? same && line->file != IPW_CHECK_TRACES : same || !line->other_course;
}

static int take_query(void *ud, const struct ipw_recompute_query *q, struct ipw_err *err)
{
    struct job *j = ud;
    const struct ipw_recompute_segment *segment = j->redo.segments[j->redo.n_segments - 1];
    struct ipw_buf now = IPW_BUF(IPW_LINE_MAX);
    enum ipw_check_verdict verdict = IPW_CHECK_MISSING;
    struct ipw_query_loaded was = {0};
    bool stays = false;
    int rc = 0;

    if (q->cut) {
        IPW_GROW(j->cut, j->cap_cut, j->n_cut + 1);
        j->cut[j->n_cut++] = (struct cut){q->segment, q->trace->index};
    }
    if (j->check) rc = ipw_check_query(j->check, segment, q, &verdict, &was, NULL, &now, err);
    if (!rc && (verdict == IPW_CHECK_SAME || verdict == IPW_CHECK_DIFFERS)) {
        struct ipw_check_line line = ipw_check_found(j->check);

        stays = may_stay(q, &line, verdict == IPW_CHECK_SAME, &was);
        if (!stays || (verdict == IPW_CHECK_DIFFERS && segment->started))
            ipw_line_changes_add(&j->changes[line.file],
                                 (struct ipw_line_change){
                                     line.number, stays ? ipw_buf_take(&now, NULL) : NULL, false});
        j->n_done += stays && line.file == IPW_CHECK_TRACES;
    }
    ipw_query_loaded_release(&was);
    ipw_buf_release(&now);
    if (rc || stays || q->segment < 0 || (size_t)q->segment >= j->n_sessions) return rc;
    return write_attempt(j, q, err);
}

/* A line that no event stands behind, or one more of a query.  What a resume was moving when it was
 * killed is in two files, and stays: the next one ends that. */
static void take_left(void *ud, const struct ipw_check_line *line, bool twin)
{
    struct job *j = ud;
    bool stays = twin && line->file == IPW_CHECK_TRACES;

    for (size_t i = 0; i < j->n_cut && stays; i++)
        stays = j->cut[i].segment != line->segment || j->cut[i].index != line->index;
    if (!stays)
        ipw_line_changes_add(&j->changes[line->file],
                             (struct ipw_line_change){.number = line->number});
}

/* A damaged byte in a text is a damaged line, as for validate: nothing rests on what stands in its
 * place. */
static int take_event(void *ud, const struct ipw_json *event, size_t repairs, struct ipw_err *err)
{
    (void)ud;
    (void)event;
    return ipw_json_need_no_repair(repairs, err);
}

static int read_all(struct job *j, struct ipw_err *err)
{
    struct ipw_recompute_options how = {
        .event = take_event, .query = take_query, .ud = j, .starts = true};
    size_t left;
    int rc = ipw_check_open(&j->check, j->run, NULL, err);

    if (!rc) rc = ipw_recompute_run(&j->redo, j->run, &how, err);
    if (!rc && j->check) rc = ipw_check_left(j->check, &left, err);
    if (!rc && j->check) rc = ipw_check_each_left(j->check, take_left, j, err);
    ipw_check_close(j->check);
    return rc;
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
    char *path = path_of(j, ipw_check_names[file]);
    int rc = append_lines(path, &j->added[file], err);

    if (!rc) rc = ipw_file_sync_folder(path, err);
    free(path);
    return rc;
}

static int change_lines(struct job *j, int file, struct ipw_err *err)
{
    struct ipw_line_changes *c = &j->changes[file];
    size_t out = c->n_out, again = c->n - out;
    char *path = path_of(j, ipw_check_names[file]);
    int rc = c->n ? ipw_line_changes_write(c, path, err) : 0;

    if (out && !rc)
        ipw_rebuild_say(
            j->m, "%s: %zu line%s moved to %s.damaged: the events or samples are not on the disk%s",
            path, out, out == 1 ? " is" : "s are", ipw_check_names[file],
            file == IPW_CHECK_TRACES ? "; ipw-agent resume runs the query again" : "");
    if (again && !rc)
        ipw_rebuild_say(j->m, "%s: %zu line%s the joules now that follow from events and samples",
                        path, again, again == 1 ? " has" : "s have");
    j->m->aside += out;
    j->m->again += again;
    free(path);
    return rc;
}

/* ---- sessions ---- */

static const struct ipw_recompute_segment *redone(const struct job *j, size_t number)
{
    for (size_t i = 0; i < j->redo.n_segments; i++) {
        /* Without a run_start the session is unknown. */
        if (j->redo.segments[i]->number == (int)number && j->redo.segments[i]->start_ns)
            return j->redo.segments[i];
    }
    return NULL;
}

/* The joules of the session's queries in the manifest and by the files: by at most how much do they
 * differ in a domain?  INFINITY: one of them is not known. */
static double differ_j(const struct ipw_json *session, const struct ipw_recompute_segment *r)
{
    const struct ipw_json *ledger = ipw_json_get(session, "ledger");
    double most_j = 0;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *now = &r->balance[d].queries;
        double was_j = ipw_json_get_num(ipw_json_get(ledger, ipw_domain_name((enum ipw_domain)d)),
                                        "queries_j");

        if (isnan(was_j) != !now->known) return INFINITY;
        if (now->known) most_j = fmax(most_j, fabs(was_j - now->j));
    }
    return most_j;
}

/* Do the events have all queries of the session?  A file that is cut where no query is in flight
 * shows no gap; but the manifest has the joules of the queries that went with its end.  A lost
 * event may move a cut between two cells, and with it the rounding of their energy. */
static bool has_all_queries(const struct ipw_json *session, const struct ipw_recompute_segment *r)
{
    return differ_j(session, r) <= 2e-6;
}

/* The manifest has the balance of a session that ended, and its files are complete. */
static bool is_whole(const struct ipw_json *session, const struct ipw_recompute_segment *r)
{
    const char *end = ipw_json_str(ipw_json_get(session, "end"), "killed");

    if (!strcmp(end, "killed") || !r || r->cut) return false;
    return !r->started || has_all_queries(session, r);
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

/* How a session with its run_end ended.  The manifest lacks that if it was lost, and rebuilt by us
 * or by a repair that was cut short. */
static const char *end_of(const struct job *j, const struct ipw_json *session, size_t number)
{
    const struct ipw_json *config = ipw_json_get(j->manifest, "config");
    int64_t planned = ipw_json_int(ipw_json_get(config, "max_queries"), 0) *
                      ipw_json_int(ipw_json_get(config, "epochs"), 1);
    const char *end = ipw_json_str(ipw_json_get(session, "end"), NULL);

    if (end) return end;
    return number + 1 == j->n_sessions && (int64_t)j->n_done >= planned ? "complete"
                                                                        : "interrupted";
}

/* The text of the session's object; if its end and balance are incomplete, they come from the
 * files.  So does a balance that is no longer that of its lines to the microjoule. */
static char *session_text(struct job *j, const struct ipw_json *session, size_t number,
                          const struct ipw_recompute_segment *r)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);

    if (is_whole(session, r) && (!r->started || differ_j(session, r) < 5e-7))
        ipw_json_print(&text, session);
    else
        put_session(j, &text, session, number, r && !r->cut ? end_of(j, session, number) : "killed",
                    r);
    return ipw_buf_take(&text, NULL);
}

static int close_sessions(struct job *j, struct ipw_err *err)
{
    const struct ipw_json *sessions = ipw_json_get(j->manifest, "segments");
    struct ipw_buf all = IPW_BUF(IPW_LINE_MAX);
    size_t n = 0;
    int rc = 0;

    ipw_buf_addc(&all, '[');
    for (size_t i = 0; i < j->n_sessions; i++) {
        const struct ipw_json *session = ipw_json_at(sessions, i);
        char *was = ipw_json_text(session), *now = session_text(j, session, i, redone(j, i));

        if (i) ipw_buf_addc(&all, ',');
        ipw_buf_adds(&all, now);
        if (strcmp(was, now) != 0) {
            n++;
            if (!ipw_json_is_null(ipw_json_get(session, "end")))
                ipw_rebuild_say(
                    j->m,
                    is_whole(session, redone(j, i))
                        ? "%s/manifest.json: session %zu has the joules of its lines now"
                        : "%s/manifest.json: session %zu is booked as far as its files "
                          "go",
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

/* The manifest has the end, every query of the session is booked, and the readings pass the end, so
 * only the line run_end is missing. */
static bool lacks_run_end(const struct job *j, const struct ipw_recompute_segment *r)
{
    const struct ipw_json *last =
        ipw_json_at(ipw_json_get(j->manifest, "segments"), j->n_sessions - 1);
    const char *end = ipw_json_str(ipw_json_get(last, "end"), "killed");
    int64_t end_ns = ipw_json_int(ipw_json_get(last, "end_ns"), 0);

    return r && r->cut && !r->over && strcmp(end, "killed") != 0 &&
           (!j->n_cut || j->cut[j->n_cut - 1].segment != r->number) &&
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
            /* A microjoule is no fault, but its parts shall sum to the whole. */
            wrong |= j->m->again || j->m->sessions;
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
    struct ipw_recompute_segment *last;
    int rc = sync_files(j, err);

    if (!rc) rc = read_all(j, err);
    if (rc) return rc;
    last = j->redo.n_segments ? j->redo.segments[j->redo.n_segments - 1] : NULL;
    for (int i = 0; i < IPW_CHECK_FILES && !rc; i++)
        if (j->added[i].len) rc = append_added(j, i, err);
    for (int i = 0; i < IPW_CHECK_FILES && !rc; i++) rc = change_lines(j, i, err);
    if (!rc && lacks_run_end(j, last) && last->number + 1 == (int)j->n_sessions)
        rc = write_run_end(j, last, err);
    if (!rc) rc = close_sessions(j, err);
    return rc ? rc : mend_summary(j, err);
}

int ipw_rebuild_run(struct ipw_rebuild *m, const char *run, struct ipw_err *err)
{
    struct job j = {.m = m, .run = run};
    struct ipw_err why = {0};
    int rc = open_manifest(&j, &why);

    if (rc == IPW_EPARSE || rc == IPW_ENOTFOUND) {
        rc = ipw_rebuild_manifest(m, run, err);
        m->files += !rc;
        if (!rc) rc = open_manifest(&j, err);
    } else if (rc && err) {
        *err = why;
    }
    for (int i = 0; i < IPW_CHECK_FILES; i++) ipw_buf_init(&j.added[i], (size_t)4096 * IPW_MIB);
    if (!rc && !ipw_json_get(j.manifest, "replay")) rc = mend(&j, err);
    for (int i = 0; i < IPW_CHECK_FILES; i++) {
        ipw_buf_release(&j.added[i]);
        ipw_line_changes_release(&j.changes[i]);
    }
    ipw_recompute_release(&j.redo);
    free(j.cut);
    free(j.clocks);
    ipw_json_free(j.manifest);
    return rc;
}
