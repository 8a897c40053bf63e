/* A run's folder that is written again: remains of a crash, and traces that no longer count. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "trace/rundir_priv.h"
#include "trace/schema.h"

static bool is_there(const struct ipw_rundir *dir, const char *name, bool with_content)
{
    char *file = ipw_rundir_file(dir, name);
    struct stat st;
    bool yes = lstat(file, &st) == 0 && (!with_content || st.st_size > 0);

    free(file);
    return yes;
}

bool ipw_rundir_has_manifest(const struct ipw_rundir *dir)
{
    return is_there(dir, "manifest.json", false);
}

static int cut_tail(struct ipw_rundir *dir, const char *name, struct ipw_err *err)
{
    char *file = ipw_rundir_file(dir, name);
    struct ipw_jsonl_cut cut;
    int rc = ipw_jsonl_cut_tail(&cut, file, err);

    if (!rc && cut.bytes) dir->torn[dir->n_torn++] = (struct ipw_rundir_torn){name, cut};
    free(file);
    return rc;
}

int ipw_rundir_begin_again(struct ipw_rundir *dir, struct ipw_err *err)
{
    static const char *const appended[] = {"events.jsonl", "power.jsonl", "warmup.jsonl",
                                           "attempts.jsonl", "traces.jsonl"};
    size_t n = sizeof appended / sizeof *appended;
    int rc = ipw_lock_take(&dir->lock, dir->path, err);

    _Static_assert(sizeof appended / sizeof *appended <= IPW_RUNDIR_MAX_TORN, "room for all");
    for (size_t i = 0; !rc && i < n && !ipw_rundir_has_manifest(dir); i++) {
        if (is_there(dir, appended[i], true))
            rc = ipw_fail(err, IPW_EINVAL,
                          "%s: has %s but no manifest.json, so its configuration is unknown "
                          "(ipw-agent repair rebuilds it)",
                          dir->path, appended[i]);
    }
    for (size_t i = 0; !rc && i < n; i++) rc = cut_tail(dir, appended[i], err);
    if (!rc) rc = ipw_rundir_append_open(dir, &dir->events, "events.jsonl", err);
    if (!rc) rc = ipw_rundir_append_open(dir, &dir->traces, "traces.jsonl", err);
    return rc;
}

/* Nothing can be written without the file, so a failure becomes the run's first error. */
static int reopen(struct ipw_rundir *dir, struct ipw_jsonl_appender **file, const char *name,
                  struct ipw_err *err)
{
    struct ipw_err why;
    int rc;

    ipw_jsonl_append_close(*file, NULL);
    *file = NULL;
    rc = ipw_rundir_append_open(dir, file, name, &why);
    if (rc) dir->first = why;
    if (rc && err) *err = why;
    return rc;
}

int ipw_rundir_reopen(struct ipw_rundir *dir, struct ipw_err *err)
{
    int rc = reopen(dir, &dir->events, "events.jsonl", err);

    return rc ? rc : reopen(dir, &dir->traces, "traces.jsonl", err);
}

size_t ipw_rundir_torn(const struct ipw_rundir *dir, const struct ipw_rundir_torn **out)
{
    *out = dir->torn;
    return dir->n_torn;
}

const char *ipw_rundir_stale_owner(const struct ipw_rundir *dir) { return dir->lock.stale; }

void ipw_rundir_set_segment(struct ipw_rundir *dir, int segment) { dir->segment = segment; }

void ipw_rundir_set_sync(struct ipw_rundir *dir, bool sync) { dir->no_sync = !sync; }

int ipw_rundir_sync(struct ipw_rundir *dir, struct ipw_err *err)
{
    const struct ipw_jsonl_appender *files[] = {dir->events, dir->power, dir->attempts, dir->warmup,
                                                dir->traces};

    ipw_rundir_flush(dir, NULL); /* keeps a failure in dir->first */
    for (size_t i = 0; i < sizeof files / sizeof *files && !dir->first.code && !dir->no_sync; i++) {
        if (files[i] && TEMP_FAILURE_RETRY(fdatasync(ipw_jsonl_append_fd(files[i]))) < 0 &&
            errno != EINVAL)
            ipw_fail_errno(&dir->first, errno, "%s: the disk lost written data", dir->path);
    }
    if (dir->first.code && err) *err = dir->first;
    return dir->first.code;
}

/* ---- rewriting traces.jsonl ---- */

static int edit_lines(struct ipw_jsonl_reader *reader, const char *path,
                      struct ipw_jsonl_appender *to, ipw_rundir_edit_fn *edit, void *ud,
                      struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX + 1);
    int rc;

    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0 && !line.torn) {
        ipw_buf_clear(&text);
        rc = edit(ud, line.text, line.n, &text, err);
        if (rc < 0) {
            ipw_err_prefix(err, "%s:%lld", path, (long long)line.number);
            break;
        }
        if (!rc) continue;
        ipw_buf_addc(&text, '\n');
        if (text.failed) {
            rc = ipw_fail(err, IPW_ELIMIT, "%s:%lld: the line becomes too long", path,
                          (long long)line.number);
            break;
        }
        rc = ipw_jsonl_append(to, text.data, text.len, err);
        if (rc) break;
    }
    ipw_buf_release(&text);
    return rc < 0 ? rc : 0;
}

/* Puts the complete new file in the old one's place. */
static int put_in_place(const struct ipw_rundir *dir, struct ipw_jsonl_appender *written,
                        const char *tmp, const char *file, struct ipw_err *err)
{
    if (!dir->no_sync && TEMP_FAILURE_RETRY(fsync(ipw_jsonl_append_fd(written))) < 0 &&
        errno != EINVAL)
        return ipw_fail_errno(err, errno, "%s: sync", tmp);
    if (TEMP_FAILURE_RETRY(rename(tmp, file)) < 0)
        return ipw_fail_errno(err, errno, "%s: rename", file);
    return ipw_file_sync_folder(file, err);
}

static int edit_file(struct ipw_rundir *dir, struct ipw_jsonl_appender **appender, const char *name,
                     ipw_rundir_edit_fn *edit, void *ud, struct ipw_err *err)
{
    char *file = ipw_rundir_file(dir, name), *tmp = ipw_asprintf("%s.tmp", file);
    struct ipw_jsonl_reader *reader = NULL;
    struct ipw_jsonl_appender *written = NULL;
    struct ipw_err why = {0};
    int rc = dir->first.code;

    if (rc) why = dir->first;
    unlink(tmp); /* remains of a session that was killed here */
    if (!rc) rc = ipw_jsonl_open(&reader, file, IPW_LINE_MAX, &why);
    if (!rc) rc = ipw_jsonl_append_open(&written, tmp, true, &why);
    if (!rc) rc = edit_lines(reader, file, written, edit, ud, &why);
    if (!rc) rc = put_in_place(dir, written, tmp, file, &why);
    ipw_jsonl_close(reader);
    ipw_jsonl_append_close(written, NULL);
    if (rc) {
        unlink(tmp);
    } else { /* further appends go to the new file */
        rc = reopen(dir, appender, name, &why);
    }
    free(tmp);
    free(file);
    if (rc && err) *err = why;
    return rc;
}

int ipw_rundir_edit_traces(struct ipw_rundir *dir, ipw_rundir_edit_fn *edit, void *ud,
                           struct ipw_err *err)
{
    return edit_file(dir, &dir->traces, "traces.jsonl", edit, ud, err);
}
