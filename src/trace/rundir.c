#include "trace/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/text.h"
#include "trace/rundir_priv.h"

#define NAME_MAX_BYTES 80 /* limit for agent, model and dataset in a folder's name */
#define TRIES_MAX      1000
#define EVENTS_MAX     (512 * IPW_MIB)
#define POWER_MAX      (64 * IPW_MIB)

/* A folder with one of these files contains a run. */
static const char *const run_files[] = {"manifest.json", "events.jsonl", "power.jsonl",
                                        "traces.jsonl", "summary.json"};

char *ipw_rundir_join(const char *folder, const char *name)
{
    size_t n = strlen(folder);

    return ipw_asprintf("%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
}

char *ipw_rundir_file(const struct ipw_rundir *dir, const char *name)
{
    return ipw_rundir_join(dir->path, name);
}

bool ipw_rundir_holds_run(const char *path)
{
    bool found = false;

    for (size_t i = 0; i < sizeof run_files / sizeof *run_files && !found; i++) {
        char *file = ipw_rundir_join(path, run_files[i]);
        struct stat st;

        found = lstat(file, &st) == 0;
        free(file);
    }
    return found;
}

/* Fails because the folder contains a run; says so if that run is still in progress. */
static int fail_taken(const char *path, struct ipw_err *err)
{
    int rc = ipw_lock_look(path, err);

    if (rc < 0) return rc;
    return ipw_fail(err, IPW_EEXISTS,
                    "%s: already contains a run; use --resume to continue it, or --output to "
                    "choose another folder",
                    path);
}

/* 0: made, or it exists; IPW_EEXISTS only with `fresh`. */
static int make_folder(const char *path, bool fresh, struct ipw_err *err)
{
    struct stat st;

    if (TEMP_FAILURE_RETRY(mkdir(path, 0700)) == 0) return 0;
    if (errno != EEXIST) {
        return ipw_fail_errno(err, errno, "%s: the run's folder cannot be created", path);
    }
    if (fresh) return IPW_EEXISTS;
    if (stat(path, &st) < 0) return ipw_fail_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode)) {
        return ipw_fail(err, IPW_EEXISTS, "%s: not a folder. Use --output to choose another name",
                        path);
    }
    return 0;
}

int ipw_rundir_append_open(struct ipw_rundir *dir, struct ipw_jsonl_appender **out,
                           const char *name, struct ipw_err *err)
{
    char *file;
    bool created = false;
    int rc;

    if (*out) return 0;
    rc = ipw_lock_check(&dir->lock, dir->path, err);
    if (rc) return rc;
    file = ipw_rundir_file(dir, name);
    created = access(file, F_OK) < 0;
    rc = ipw_jsonl_append_open(out, file, false, err);
    if (!rc && created && !dir->no_sync) rc = ipw_file_sync_folder(file, err);
    free(file);
    return rc;
}

/* Locks the folder and opens the files of a new run. */
static int settle(struct ipw_rundir *dir, struct ipw_err *err)
{
    int rc;

    if (ipw_rundir_holds_run(dir->path)) return fail_taken(dir->path, err);
    rc = ipw_lock_take(&dir->lock, dir->path, err);
    if (rc < 0) return rc;
    /* Another process wrote here between the check and the lock. */
    if (ipw_rundir_holds_run(dir->path)) {
        ipw_lock_drop(&dir->lock, dir->path);
        return fail_taken(dir->path, err);
    }
    rc = ipw_rundir_append_open(dir, &dir->events, "events.jsonl", err);
    if (rc == 0) rc = ipw_rundir_append_open(dir, &dir->traces, "traces.jsonl", err);
    return rc;
}

static struct ipw_rundir *new_rundir(char *path)
{
    struct ipw_rundir *dir = ipw_calloc(1, sizeof *dir);

    dir->path = path;
    dir->lock = IPW_LOCK_NONE;
    dir->spare_fd = (int)TEMP_FAILURE_RETRY(open("/dev/null", O_RDONLY | O_CLOEXEC));
    ipw_buf_init(&dir->events_text, EVENTS_MAX);
    ipw_buf_init(&dir->power_text, POWER_MAX);
    return dir;
}

static void free_rundir(struct ipw_rundir *dir)
{
    ipw_lock_drop(&dir->lock, dir->path);
    if (dir->spare_fd >= 0) close(dir->spare_fd);
    ipw_buf_release(&dir->events_text);
    ipw_buf_release(&dir->power_text);
    free(dir->path);
    free(dir);
}

/* Appends a part of a folder's name: no separators, no control characters, no leading dot, at most
 * NAME_MAX_BYTES (cut between characters). */
static void add_part(struct ipw_buf *out, const char *text, bool slug)
{
    struct ipw_buf part = IPW_BUF(4096);
    size_t n;

    if (slug) {
        ipw_slug(&part, text);
    } else {
        ipw_utf8_clean(&part, text, strlen(text) < 4000 ? strlen(text) : 4000);
        for (size_t i = 0; i < part.len; i++) {
            unsigned char c = (unsigned char)part.data[i];

            if (c <= ' ' || c == 0x7F || c == '/' || (c == '.' && i == 0)) part.data[i] = '_';
        }
    }
    n = part.len;
    if (n > NAME_MAX_BYTES) {
        n = NAME_MAX_BYTES;
        while (n > 0 && ((unsigned char)part.data[n] & 0xC0) == 0x80) n--;
    }
    ipw_buf_add(out, ipw_buf_str(&part), n);
    ipw_buf_release(&part);
}

static char *default_path(const struct ipw_rundir_names *names)
{
    struct ipw_buf path = IPW_BUF(4096);
    char compact[32];

    ipw_buf_adds(&path, "runs/");
    add_part(&path, names->agent ? names->agent : "agent", false);
    ipw_buf_addc(&path, '_');
    add_part(&path, names->model ? names->model : "", true);
    ipw_buf_addc(&path, '_');
    add_part(&path, names->dataset ? names->dataset : "dataset", false);
    ipw_buf_addf(&path, "_%s", ipw_clock_compact(compact, sizeof compact, names->wall_ns));
    return ipw_buf_take(&path, NULL);
}

/* Makes the folder; stores its path in *path_out. */
static int make_path(char **path_out, const char *path, const struct ipw_rundir_names *names,
                     struct ipw_err *err)
{
    char *base = path ? ipw_strdup(path) : default_path(names);
    int rc = ipw_make_parents(base, err);

    if (rc == 0 && path) rc = make_folder(base, false, err);
    if (rc == 0 && !path) {
        char *name = ipw_strdup(base);

        rc = make_folder(name, true, err);
        for (int again = 2; rc == IPW_EEXISTS && again <= TRIES_MAX; again++) {
            free(name);
            name = ipw_asprintf("%s-%d", base, again);
            rc = make_folder(name, true, err);
        }
        if (rc == IPW_EEXISTS)
            ipw_fail(err, rc, "%s: already exists, and so do the next names", base);
        free(base);
        base = name;
    }
    if (rc < 0) {
        free(base);
        return rc;
    }
    *path_out = base;
    return 0;
}

static int open_with(struct ipw_rundir **out, const char *path,
                     const struct ipw_rundir_names *names,
                     int (*begin)(struct ipw_rundir *dir, struct ipw_err *err), struct ipw_err *err)
{
    struct ipw_rundir *dir;
    char *made = NULL;
    int rc;

    if (path && !*path) return ipw_fail(err, IPW_EINVAL, "the output folder's name is empty");
    rc = make_path(&made, path, names, err);
    if (rc < 0) return rc;
    dir = new_rundir(made);
    rc = begin(dir, err);
    if (rc < 0) {
        ipw_jsonl_append_close(dir->events, NULL);
        ipw_jsonl_append_close(dir->traces, NULL);
        free_rundir(dir);
        return rc;
    }
    *out = dir;
    return 0;
}

int ipw_rundir_create(struct ipw_rundir **out, const char *path,
                      const struct ipw_rundir_names *names, struct ipw_err *err)
{
    return open_with(out, path, names, settle, err);
}

int ipw_rundir_open(struct ipw_rundir **out, const char *path, struct ipw_err *err)
{
    return open_with(out, path, NULL, ipw_rundir_begin_again, err);
}

const char *ipw_rundir_path(const struct ipw_rundir *dir) { return dir->path; }

static void close_appender(struct ipw_rundir *dir, struct ipw_jsonl_appender *a)
{
    struct ipw_err err;

    if (!a) return;
    /* After a failure the kernel may have dropped the pages, so a later successful sync proves
     * nothing.  Do not try again. */
    if (!dir->no_sync && !dir->first.code &&
        TEMP_FAILURE_RETRY(fdatasync(ipw_jsonl_append_fd(a))) < 0 && errno != EINVAL) {
        ipw_fail_errno(&dir->first, errno, "%s: the run's files cannot be synced", dir->path);
    }
    if (ipw_jsonl_append_close(a, &err) < 0 && !dir->first.code) dir->first = err;
}

int ipw_rundir_close(struct ipw_rundir *dir, struct ipw_err *err)
{
    int rc;

    ipw_rundir_flush(dir, NULL); /* keeps a failure in dir->first */
    close_appender(dir, dir->events);
    close_appender(dir, dir->power);
    close_appender(dir, dir->attempts);
    close_appender(dir, dir->warmup);
    close_appender(dir, dir->traces);
    rc = dir->first.code;
    if (rc && err) *err = dir->first;
    free_rundir(dir);
    return rc;
}
