#include "run/merge/shard_runs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "run/resume/same_run.h"
#include "trace/lock.h"
#include "trace/saved_clock.h"
#include "trace/spec.h"

static int64_t whole(const struct ipw_json *object, const char *key)
{
    return ipw_json_int(ipw_json_get(object, key), 0);
}

/* ---- a folder ---- */

static void read_devices(struct ipw_shard_session *s)
{
    const struct ipw_json *channels = ipw_json_get(ipw_json_get(s->doc, "hardware"), "channels");

    for (const struct ipw_json *c = ipw_json_first(channels); c; c = ipw_json_next(c)) {
        if (!ipw_json_bool(ipw_json_get(c, "in_sum"), false)) continue;
        IPW_GROW(s->devices, s->cap_devices, s->n_devices + 1);
        s->devices[s->n_devices++] =
            (struct ipw_shard_device){.domain = ipw_json_str(ipw_json_get(c, "domain"), ""),
                                      .name = ipw_json_str(ipw_json_get(c, "name"), ""),
                                      .device = ipw_json_str(ipw_json_get(c, "device"), ""),
                                      .remote = ipw_json_bool(ipw_json_get(c, "remote"), false)};
    }
}

static void read_sessions(struct ipw_shard_run *run)
{
    const struct ipw_json *segments = ipw_json_get(run->manifest, "segments");

    run->sessions = ipw_calloc(ipw_json_count(segments) + 1, sizeof *run->sessions);
    for (const struct ipw_json *s = ipw_json_first(segments); s; s = ipw_json_next(s)) {
        struct ipw_shard_session *session = &run->sessions[run->n_sessions++];
        const struct ipw_json *host = ipw_json_get(s, "host");

        *session = (struct ipw_shard_session){
            .start_ns = whole(s, "start_ns"),
            .end_ns = whole(s, "end_ns"),
            .clock = ipw_saved_clock_read(ipw_json_get(s, "clock")),
            .boot_id = ipw_json_str(ipw_json_get(host, "boot_id"), NULL),
            .host = ipw_json_str(ipw_json_get(host, "name"), NULL),
            .clock_error_ns = ipw_json_int(ipw_json_get(host, "clock_error_ns"), -1),
            .doc = s};
        read_devices(session);
    }
}

static int count_line(void *run, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    (void)line, (void)err;
    ((struct ipw_shard_run *)run)->n_done++;
    return 0;
}

static int count_lines(struct ipw_shard_run *run, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/traces.jsonl", run->path);
    int rc = ipw_jsonl_each(path, IPW_LINE_MAX, count_line, run, err);

    free(path);
    return rc;
}

int ipw_shard_run_open_lines(struct ipw_shard_run *run, struct ipw_err *err)
{
    ipw_check_close(run->lines);
    run->lines = NULL;
    return ipw_check_open(&run->lines, run->path, NULL, err);
}

/* Why the shard cannot be merged, as an error. */
static int check_state(const struct ipw_shard_run *run, struct ipw_err *err)
{
    const struct ipw_json *segments = ipw_json_get(run->manifest, "segments");
    const struct ipw_json *last = ipw_json_at(segments, run->n_sessions ? run->n_sessions - 1 : 0);
    const char *end = ipw_json_str(ipw_json_get(last, "end"), "killed");
    const char *version = ipw_json_get_str(ipw_json_get(run->manifest, "program"), "version");

    if (whole(run->manifest, "schema_version") != IPW_SCHEMA_VERSION || !version ||
        strcmp(version, IPW_VERSION) != 0)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "was written by ipw-agent %.40s; this program is " IPW_VERSION,
                        version ? version : "?");
    if (ipw_json_get(run->manifest, "replay") || ipw_json_get(run->manifest, "redacted"))
        return ipw_fail(err, IPW_EINVAL, "is a replay or a redacted copy, not a run");
    if (ipw_json_is_null(ipw_json_get(run->config, "shard")))
        return ipw_fail(err, IPW_EINVAL, "is not a shard (run --shard)");
    if (!strcmp(end, "killed"))
        return ipw_fail(err, IPW_EINVAL, "was killed: continue it with `ipw-agent resume`");
    return 0;
}

static int read_manifest(struct ipw_shard_run *run, struct ipw_err *err)
{
    int rc = ipw_json_read(&run->manifest, run->path, "manifest.json", err);

    if (rc) return rc;
    run->config = ipw_json_get(run->manifest, "config");
    run->n_tasks = whole(run->config, "max_queries");
    read_sessions(run);
    return 0;
}

static int open_run(struct ipw_shard_run *run, struct ipw_err *err)
{
    struct ipw_err held;
    int rc;

    if (ipw_lock_look(run->path, &held)) return ipw_fail(err, IPW_EINVAL, "is still running");
    rc = read_manifest(run, err);
    if (rc) return rc;
    run->index = whole(ipw_json_get(run->config, "shard"), "index");
    rc = check_state(run, err);
    return rc ? rc : count_lines(run, err);
}

int ipw_shard_run_read(struct ipw_shard_run *run, const char *path, struct ipw_err *err)
{
    int rc;

    *run = (struct ipw_shard_run){.path = ipw_strdup(path), .name = ipw_strdup("")};
    rc = read_manifest(run, err);
    return rc ? rc : ipw_shard_run_open_lines(run, err);
}

void ipw_shard_run_release(struct ipw_shard_run *run)
{
    for (size_t i = 0; i < run->n_sessions; i++) free(run->sessions[i].devices);
    ipw_check_close(run->lines);
    free(run->sessions);
    ipw_json_free(run->manifest);
    free(run->path);
    free(run->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ipw_shard_left *)a)->name,
                  ((const struct ipw_shard_left *)b)->name);
}

/* Sorted: the order in which a folder lists its entries must not show in the manifest. */
static void note_left(struct ipw_shard_runs *r, const char *name, const char *why)
{
    IPW_GROW(r->left, r->cap_left, r->n_left + 1);
    r->left[r->n_left++] = (struct ipw_shard_left){ipw_strdup(name), ipw_strdup(why)};
    qsort(r->left, r->n_left, sizeof *r->left, by_name);
}

void ipw_shard_runs_leave(struct ipw_shard_runs *r, size_t i, const char *why)
{
    note_left(r, r->all[i].name, why);
    ipw_shard_run_release(&r->all[i]);
    memmove(r->all + i, r->all + i + 1, (--r->n - i) * sizeof *r->all);
}

/* ---- all folders ---- */

static int add_run(struct ipw_shard_runs *r, const char *name, bool partial, struct ipw_err *err)
{
    struct ipw_shard_run run = {.path = ipw_asprintf("%s/%s", r->folder, name),
                                .name = ipw_strdup(name)};
    struct ipw_err why = {0};
    int rc = open_run(&run, &why);

    if (!rc) {
        IPW_GROW(r->all, r->cap, r->n + 1);
        r->all[r->n++] = run;
        return 0;
    }
    note_left(r, name, why.text);
    if (!partial) rc = ipw_fail(err, rc, "%s: %s; --partial leaves it out", run.path, why.text);
    ipw_shard_run_release(&run);
    return partial ? 0 : rc;
}

static int by_index(const void *a, const void *b)
{
    const struct ipw_shard_run *x = a, *y = b;

    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int add_all(struct ipw_shard_runs *r, bool partial, struct ipw_err *err)
{
    DIR *dir = opendir(r->folder);
    struct dirent *entry;
    int rc = dir ? 0 : ipw_fail_errno(err, errno, "%s", r->folder);

    while (!rc && (entry = readdir(dir))) {
        char *manifest = ipw_asprintf("%s/%s/events.jsonl", r->folder, entry->d_name);

        if (entry->d_name[0] != '.' && access(manifest, F_OK) == 0)
            rc = add_run(r, entry->d_name, partial, err);
        free(manifest);
    }
    if (dir) closedir(dir);
    if (r->n) qsort(r->all, r->n, sizeof *r->all, by_index);
    if (!rc && !r->n)
        rc = r->n_left ? ipw_fail(err, IPW_ENOTFOUND, "%s: no shard can be merged; %s: %s",
                                  r->folder, r->left[0].name, r->left[0].why)
                       : ipw_fail(err, IPW_ENOTFOUND,
                                  "%s: no shard of a run in it (I-of-N, written by run --shard)",
                                  r->folder);
    return rc;
}

/* ---- are they of one run? ---- */

static const char *selection_of(const struct ipw_shard_run *run)
{
    return ipw_json_str(ipw_json_get(ipw_json_get(run->config, "shard"), "selection_sha256"), "");
}

/* The configuration of the uncut run, as far as it is compared. */
static struct ipw_json *uncut(const struct ipw_shard_run *run)
{
    char *patch = ipw_asprintf("{\"selection_sha256\":\"%s\"}", selection_of(run));
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);
    struct ipw_json *doc = NULL;

    ipw_json_patch(&text, run->config, patch);
    if (ipw_json_parse(&doc, ipw_buf_str(&text), text.len, NULL, NULL)) doc = NULL;
    ipw_buf_release(&text);
    free(patch);
    return doc;
}

static const char *script_hash(const struct ipw_json *config, const char *path)
{
    const struct ipw_json *scripts = ipw_json_get(config, "scripts");

    for (const struct ipw_json *s = ipw_json_first(scripts); s; s = ipw_json_next(s))
        if (!strcmp(ipw_json_str(ipw_json_get(s, "path"), ""), path))
            return ipw_json_str(ipw_json_get(s, "sha256"), "");
    return NULL;
}

static int check_scripts(const struct ipw_shard_run *a, const struct ipw_shard_run *b,
                         struct ipw_err *err)
{
    const struct ipw_json *scripts = ipw_json_get(a->config, "scripts");

    for (const struct ipw_json *s = ipw_json_first(scripts); s; s = ipw_json_next(s)) {
        const char *path = ipw_json_str(ipw_json_get(s, "path"), "");
        const char *other = script_hash(b->config, path);

        if (other && strcmp(other, ipw_json_str(ipw_json_get(s, "sha256"), "")) != 0)
            return ipw_fail(err, IPW_EINVAL, "%s and %s are not of one run: the file %s differs",
                            a->path, b->path, path);
    }
    return 0;
}

static int check_same(const struct ipw_shard_run *a, const struct ipw_shard_run *b,
                      struct ipw_err *err)
{
    const struct ipw_json *x = ipw_json_get(a->config, "shard");
    const struct ipw_json *y = ipw_json_get(b->config, "shard");
    struct ipw_json *one = uncut(a), *other = uncut(b);
    const char *part = "", *key = "";
    int rc = 0;

    if (ipw_same_run_difference(&part, &key, one, other))
        rc = ipw_fail(err, IPW_EINVAL, "%s and %s are not of one run: the %s differs (%s)", a->path,
                      b->path, part, key);
    else if (whole(x, "count") != whole(y, "count"))
        rc = ipw_fail(err, IPW_EINVAL,
                      "%s and %s are not of one run: one was cut into %lld shards, one into %lld",
                      a->path, b->path, (long long)whole(x, "count"), (long long)whole(y, "count"));
    ipw_json_free(one);
    ipw_json_free(other);
    return rc ? rc : check_scripts(a, b, err);
}

int64_t ipw_shard_runs_missing(const struct ipw_shard_runs *r)
{
    int64_t n = r->selected * r->epochs;

    for (size_t i = 0; i < r->n; i++) n -= r->all[i].n_done;
    return n;
}

bool ipw_shard_runs_lacks(const struct ipw_shard_runs *r, int64_t index)
{
    char name[64];

    snprintf(name, sizeof name, "%lld-of-%lld", (long long)index, (long long)r->count);
    for (size_t i = 0; i < r->n; i++)
        if (r->all[i].index == index) return false;
    for (size_t i = 0; i < r->n_left; i++)
        if (!strcmp(r->left[i].name, name)) return false;
    return true;
}

/* Names the first gap. */
static int check_gaps(const struct ipw_shard_runs *r, struct ipw_err *err)
{
    int64_t tasks = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct ipw_shard_run *run = &r->all[i];

        tasks += run->n_tasks;
        if (run->n_done < run->n_tasks * r->epochs)
            return ipw_fail(err, IPW_EINVAL,
                            "%s: %lld of its %lld queries are done: continue it with "
                            "`ipw-agent resume`; --partial merges it as it is",
                            run->path, (long long)run->n_done,
                            (long long)(run->n_tasks * r->epochs));
    }
    if (tasks == r->selected) return 0;
    return ipw_fail(err, IPW_EINVAL,
                    "%s: %zu of %lld shards are there, with %lld of %lld tasks; --partial merges "
                    "these",
                    r->folder, r->n, (long long)r->count, (long long)tasks, (long long)r->selected);
}

int ipw_shard_runs_read(struct ipw_shard_runs *r, const char *folder, bool partial,
                        struct ipw_err *err)
{
    const struct ipw_json *shard;
    int rc;

    *r = (struct ipw_shard_runs){.folder = folder};
    rc = add_all(r, partial, err);
    if (rc) return rc;
    shard = ipw_json_get(r->all[0].config, "shard");
    r->count = whole(shard, "count");
    r->selected = whole(shard, "selected");
    r->epochs = whole(r->all[0].config, "epochs");
    r->warmup = whole(r->all[0].config, "warmup");
    for (size_t i = 1; i < r->n && !rc; i++) {
        rc = check_same(&r->all[0], &r->all[i], err);
        if (!rc && r->all[i].index == r->all[i - 1].index)
            rc = ipw_fail(err, IPW_EINVAL, "%s and %s: both are the shard %s, with its queries",
                          r->all[i - 1].path, r->all[i].path, r->all[i - 1].name);
    }
    return rc || partial ? rc : check_gaps(r, err);
}

void ipw_shard_runs_release(struct ipw_shard_runs *r)
{
    for (size_t i = 0; i < r->n; i++) ipw_shard_run_release(&r->all[i]);
    for (size_t i = 0; i < r->n_left; i++) {
        free(r->left[i].name);
        free(r->left[i].why);
    }
    free(r->all);
    free(r->left);
    *r = (struct ipw_shard_runs){0};
}
