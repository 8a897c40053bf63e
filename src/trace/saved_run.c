#include "trace/saved_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "trace/lock.h"
#include "trace/power.h"
#include "trace/rundir.h"
#include "trace/schema.h"

enum { MAX_CHANNELS = 4096, MAX_QUERIES = 100 * 1000 * 1000 };

struct place { /* of a query's events in events.jsonl, in its last session */
    int64_t first, last;
    int64_t session; /* from 1; 0: no event was seen */
};

struct ipw_saved_run {
    char *path, *traces_path; /* path NULL: a file of traces, which has no other files beside it */
    const struct ipw_redactor *redactor;
    struct ipw_jsonl_reader *traces, *events, *power;
    struct ipw_query_loaded query;
    struct ipw_json *doc; /* of the line that was given out last */
    struct ipw_buf text;
    bool torn;
    struct place *places; /* by query index */
    size_t n_places, cap_places;
    bool indexed, sought;             /* sought: events are not read from their first line on */
    int64_t query_index, last_offset; /* of the events that are being given out */
    int64_t since;                    /* the first session that is wanted */
    bool events_reached, power_reached;
    int64_t values[MAX_CHANNELS];
};

static void drop_line(struct ipw_saved_run *run)
{
    ipw_query_loaded_release(&run->query);
    memset(&run->query, 0, sizeof run->query);
    ipw_json_free(run->doc);
    run->doc = NULL;
    ipw_buf_release(&run->text);
}

/* A run has events before its first query is finished. */
static bool has_events(const struct ipw_saved_run *run)
{
    char *path = run->path ? ipw_asprintf("%s/events.jsonl", run->path) : NULL;
    int before = errno;
    bool yes = path && access(path, F_OK) == 0;

    errno = before;
    free(path);
    return yes;
}

int ipw_saved_run_open(struct ipw_saved_run **out, const char *path,
                       const struct ipw_redactor *redactor, struct ipw_err *err)
{
    struct ipw_saved_run *run;
    size_t n = strlen(path);
    struct stat st;
    int rc;

    if (stat(path, &st) < 0) return ipw_fail_errno(err, errno, "%s: no such run", path);
    run = ipw_calloc(1, sizeof *run);
    run->redactor = redactor;
    run->text = IPW_BUF(IPW_LINE_MAX);
    if (S_ISDIR(st.st_mode)) {
        run->path = ipw_asprintf("%.*s", n > 1 && path[n - 1] == '/' ? (int)n - 1 : (int)n, path);
        run->traces_path = ipw_asprintf("%s/traces.jsonl", run->path);
    } else {
        run->traces_path = ipw_strdup(path);
    }
    rc = access(run->traces_path, F_OK) == 0
             ? ipw_jsonl_open(&run->traces, run->traces_path, IPW_LINE_MAX, err)
         : has_events(run) ? 0
                           : ipw_rundir_no_run(run->path ? run->path : path, errno, err);
    if (rc)
        ipw_saved_run_close(run);
    else
        *out = run;
    return rc;
}

void ipw_saved_run_close(struct ipw_saved_run *run)
{
    if (!run) return;
    drop_line(run);
    if (run->traces) ipw_jsonl_close(run->traces);
    if (run->events) ipw_jsonl_close(run->events);
    if (run->power) ipw_jsonl_close(run->power);
    free(run->places);
    free(run->path);
    free(run->traces_path);
    free(run);
}

/* Replaces the line's document by its redacted one. */
static int redact(struct ipw_saved_run *run, struct ipw_saved_line *line,
                  void (*fn)(struct ipw_buf *, const struct ipw_redactor *,
                             const struct ipw_json *),
                  struct ipw_err *err)
{
    struct ipw_json *clean = NULL;
    int rc;

    if (!run->redactor) return 0;
    ipw_buf_clear(&run->text);
    fn(&run->text, run->redactor, line->doc);
    if (run->text.failed) return ipw_fail(err, IPW_ELIMIT, "a line that is too long");
    rc = ipw_json_parse(&clean, ipw_buf_str(&run->text), run->text.len, NULL, err);
    if (rc) return rc;
    ipw_json_free(run->doc);
    run->doc = clean;
    *line = (struct ipw_saved_line){clean, ipw_buf_str(&run->text), run->text.len};
    return 0;
}

int ipw_saved_run_document(struct ipw_json **out, const struct ipw_saved_run *run, const char *name,
                           struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX), clean = IPW_BUF(IPW_LINE_MAX);
    char *path = run->path ? ipw_asprintf("%s/%s", run->path, name) : NULL;
    int rc = 0;

    *out = NULL;
    if (path && access(path, F_OK) == 0) {
        rc = ipw_file_read(&text, path, err);
        if (!rc && (rc = ipw_json_parse(out, ipw_buf_str(&text), text.len, NULL, err)))
            ipw_err_prefix(err, "%s", path);
    }
    if (!rc && *out && run->redactor) {
        ipw_redact_document(&clean, run->redactor, *out);
        ipw_json_free(*out);
        rc = ipw_json_parse(out, ipw_buf_str(&clean), clean.len, NULL, err);
    }
    ipw_buf_release(&text);
    ipw_buf_release(&clean);
    free(path);
    return rc;
}

/* A line without a version is one of the upstream project: its keys are read by name, in Lua. */
static int read_query(struct ipw_saved_run *run, const struct ipw_jsonl_line *line,
                      struct ipw_err *err)
{
    const char *id;
    struct ipw_json *doc;
    int rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);

    memset(&run->query, 0, sizeof run->query);
    if (rc) return rc;
    if (ipw_json_get(doc, "schema_version"))
        return ipw_schema_read_parsed(&run->query, doc, true, err);
    rc = ipw_json_kind(doc) == IPW_JSON_OBJ ? ipw_json_need_str(&id, doc, "query_id", "", err) : 0;
    if (!rc) rc = ipw_spec_check_foreign(doc, ipw_spec_trace, err);
    if (rc)
        ipw_json_free(doc);
    else
        run->query.doc = doc;
    return rc;
}

int ipw_saved_run_query(struct ipw_saved_line *out, struct ipw_saved_run *run, struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    int rc;

    drop_line(run);
    if (!run->traces && access(run->traces_path, F_OK) < 0)
        return ipw_rundir_no_run(run->path, errno, err);
    rc = run->traces ? 0 : ipw_jsonl_open(&run->traces, run->traces_path, IPW_LINE_MAX, err);
    if (!rc) rc = ipw_jsonl_next(run->traces, &line, err);
    if (rc < 0) return rc;
    run->torn = rc && line.torn;
    if (!rc || line.torn) {
        ipw_jsonl_more(run->traces);
        return 0;
    }
    rc = read_query(run, &line, err);
    if (rc) {
        return ipw_err_prefix(err, "%s:%lld", run->traces_path, (long long)line.number);
    }
    *out = (struct ipw_saved_line){run->query.doc, line.text, line.n};
    rc = redact(run, out, ipw_redact_trace, err);
    return rc ? rc : 1;
}

int ipw_saved_run_attempts(struct ipw_saved_run *run, struct ipw_err *err)
{
    char *path = run->path ? ipw_asprintf("%s/attempts.jsonl", run->path) : NULL;
    struct ipw_jsonl_reader *attempts = NULL;
    int rc =
        path && access(path, F_OK) == 0 ? ipw_jsonl_open(&attempts, path, IPW_LINE_MAX, err) : 0;

    drop_line(run);
    if (rc || !attempts) {
        free(path);
        return rc;
    }
    if (run->traces) ipw_jsonl_close(run->traces);
    run->traces = attempts;
    free(run->traces_path);
    run->traces_path = path;
    return 1;
}

bool ipw_saved_run_torn(const struct ipw_saved_run *run) { return run->torn; }

bool ipw_saved_run_goes_on(const struct ipw_saved_run *run)
{
    return run->path && ipw_lock_look(run->path, NULL) == IPW_EEXISTS;
}

/* ---- events ---- */

/* The line's own "query".  Keys are sorted, and no object comes behind it: the last one is
 * meant. */
static int64_t query_of(const struct ipw_jsonl_line *line)
{
    static const char key[] = "\"query\":";
    const char *at = line->text, *last = NULL, *end = line->text + line->n;

    while ((at = memmem(at, (size_t)(end - at), key, sizeof key - 1))) {
        at += sizeof key - 1;
        last = at;
    }
    return last ? strtoll(last, NULL, 10) : -1;
}

static void note_place(struct ipw_saved_run *run, int64_t query, int64_t session, int64_t offset)
{
    size_t at = (size_t)query;

    while (run->n_places <= at) {
        IPW_GROW(run->places, run->cap_places, run->n_places + 1);
        run->places[run->n_places++] = (struct place){0};
    }
    if (run->places[at].session != session)
        run->places[at] = (struct place){.first = offset, .session = session};
    run->places[at].last = offset;
}

static int open_beside(struct ipw_jsonl_reader **out, const struct ipw_saved_run *run,
                       const char *name, struct ipw_err *err)
{
    char *path = run->path ? ipw_asprintf("%s/%s", run->path, name) : NULL;
    int rc = path && access(path, F_OK) == 0 ? ipw_jsonl_open(out, path, IPW_LINE_MAX, err) : 0;

    free(path);
    return rc;
}

static const char run_start[] = "\"event\":\"run_start\"";

static int index_events(struct ipw_saved_run *run, struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    int64_t session = 1;
    int rc = open_beside(&run->events, run, "events.jsonl", err);

    run->indexed = true;
    while (!rc && run->events && (rc = ipw_jsonl_next(run->events, &line, err)) > 0) {
        int64_t query = line.torn ? -1 : query_of(&line);

        rc = 0;
        if (query >= 0 && query < MAX_QUERIES)
            note_place(run, query, session, line.offset);
        else if (!line.torn && memmem(line.text, line.n, run_start, sizeof run_start - 1))
            session++;
    }
    return rc;
}

int ipw_saved_run_events(struct ipw_saved_run *run, int64_t query_index, struct ipw_err *err)
{
    int rc = run->indexed ? 0 : index_events(run, err);

    if (rc) return rc;
    if (query_index < 0 || (size_t)query_index >= run->n_places ||
        !run->places[query_index].session)
        return 0;
    run->query_index = query_index;
    run->last_offset = run->places[query_index].last;
    run->sought = true;
    rc = ipw_jsonl_seek(run->events, run->places[query_index].first, err);
    return rc ? rc : 1;
}

/* The event of a line that was read. */
static int give_event(struct ipw_saved_line *out, struct ipw_saved_run *run,
                      const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    int rc = ipw_json_parse(&run->doc, line->text, line->n, NULL, err);

    if (rc && run->sought) /* lines are counted from there */
        return ipw_err_prefix(err, "%s/events.jsonl: line at byte %lld", run->path,
                              (long long)line->offset);
    if (rc) return ipw_err_prefix(err, "%s/events.jsonl:%lld", run->path, (long long)line->number);
    *out = (struct ipw_saved_line){run->doc, line->text, line->n};
    rc = redact(run, out, ipw_redact_event, err);
    return rc ? rc : 1;
}

int ipw_saved_run_event(struct ipw_saved_line *out, struct ipw_saved_run *run, struct ipw_err *err)
{
    struct ipw_jsonl_line line = {.offset = -1};
    int rc = 1;

    drop_line(run);
    while (line.offset < run->last_offset) {
        rc = ipw_jsonl_next(run->events, &line, err);
        if (rc <= 0) return rc;
        if (line.offset > run->last_offset || query_of(&line) != run->query_index) continue;
        if (line.offset == run->last_offset) run->last_offset = -1;
        return give_event(out, run, &line, err);
    }
    return 0;
}

void ipw_saved_run_since(struct ipw_saved_run *run, int64_t session) { run->since = session; }

/* Whether the session that is wanted has begun: with this line, which may begin a session, or
 * before it. */
static bool is_reached(bool *reached, const struct ipw_saved_run *run,
                       const struct ipw_jsonl_line *line, bool begins)
{
    struct ipw_json *doc = NULL;

    if (run->since == 0) *reached = true;
    if (!*reached && begins && !ipw_json_parse(&doc, line->text, line->n, NULL, NULL))
        *reached = ipw_json_int(ipw_json_get(doc, "segment"), 0) >= run->since;
    ipw_json_free(doc);
    return *reached;
}

int ipw_saved_run_each_event(struct ipw_saved_line *out, int64_t *offset, struct ipw_saved_run *run,
                             struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    int rc = run->events ? 0 : open_beside(&run->events, run, "events.jsonl", err);

    drop_line(run);
    if (rc || !run->events) return rc;
    do {
        rc = ipw_jsonl_next(run->events, &line, err);
        if (rc < 0) return rc;
        if (!rc || line.torn) {
            ipw_jsonl_more(run->events);
            return 0;
        }
    } while (!is_reached(&run->events_reached, run, &line,
                         memmem(line.text, line.n, run_start, sizeof run_start - 1)));
    *offset = line.offset;
    return give_event(out, run, &line, err);
}

int ipw_saved_run_event_at(struct ipw_saved_line *out, struct ipw_saved_run *run, int64_t offset,
                           struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    int rc = run->events ? ipw_jsonl_seek(run->events, offset, err) : 0;

    drop_line(run);
    run->sought = true;
    if (!rc && run->events) rc = ipw_jsonl_next(run->events, &line, err);
    if (rc < 0) return rc;
    if (rc == 0 || line.torn)
        return ipw_fail(err, IPW_EIO, "%s/events.jsonl: is shorter than it was", run->path);
    return give_event(out, run, &line, err);
}

/* ---- power ---- */

int ipw_saved_run_power(struct ipw_saved_line *out, struct ipw_sampler_row *row,
                        struct ipw_saved_run *run, struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    int rc = run->power ? 0 : open_beside(&run->power, run, "power.jsonl", err);

    drop_line(run);
    if (rc || !run->power) return rc;
    do {
        rc = ipw_jsonl_next(run->power, &line, err);
        if (rc < 0) return rc;
        if (!rc || line.torn) {
            ipw_jsonl_more(run->power);
            return 0;
        }
    } while (!is_reached(&run->power_reached, run, &line, line.text[0] != '['));
    *out = (struct ipw_saved_line){NULL, line.text, line.n};
    if (line.text[0] == '[') {
        if (ipw_power_row_read(line.text, row, run->values, MAX_CHANNELS)) return 1;
        return ipw_fail(err, IPW_EPARSE, "%s/power.jsonl:%lld: is no row of readings", run->path,
                        (long long)line.number);
    }
    rc = ipw_json_parse(&run->doc, line.text, line.n, NULL, err);
    if (rc) return ipw_err_prefix(err, "%s/power.jsonl:%lld", run->path, (long long)line.number);
    out->doc = run->doc;
    rc = redact(run, out, ipw_redact_document, err);
    return rc ? rc : 1;
}
