#include "run/merge/book.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "energy/trust.h"
#include "json/jsonl.h"
#include "run/merge/book_rows.h"
#include "run/merge/planned_run.h"
#include "trace/lock.h"

/* The files that are written anew; the old ones go to before_meter.  Of traces.jsonl and its like
 * the energy changes. */
static const char *const rewritten[] = {
    "attempts.jsonl", "events.jsonl", "manifest.json", "power.jsonl",
    "summary.json",   "traces.jsonl", "warmup.jsonl",  NULL};

struct job {
    char *run, *folder;  /* the run, without links in its path; RUN.booking */
    char *origin, *kept; /* where the files are as they were; where they shall be */
    char *readings;      /* the folder of the readings with those of the meter */
    const struct ipw_metered_run *meter;
    const char *report; /* the text of energy_report.json */
    struct ipw_planned_run p;
};

char *ipw_book_origin(const char *run)
{
    char *kept = ipw_asprintf("%s/" IPW_BOOK_BEFORE, run);
    char *manifest = ipw_asprintf("%s/manifest.json", kept);
    bool booked = access(manifest, F_OK) == 0;

    free(manifest);
    if (booked) return kept;
    free(kept);
    return ipw_strdup(run);
}

/* ---- folders ---- */

static int make_folder(const char *path, struct ipw_err *err)
{
    return mkdir(path, 0700) < 0 ? ipw_fail_errno(err, errno, "%s", path) : 0;
}

/* A second name for the file, so that nothing is copied. */
static int link_file(const char *from, const char *to, struct ipw_err *err)
{
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) == 0) return 0;
    return ipw_fail_errno(err, errno, "%s: no second name (hard link) for it in %s", from, to);
}

static int link_folder(const char *from, const char *to, const char *const *without,
                       struct ipw_err *err);

static int link_entry(const char *from, const char *to, struct ipw_err *err)
{
    struct stat st;
    int rc = 0;

    if (lstat(from, &st) < 0) return ipw_fail_errno(err, errno, "%s", from);
    if (!S_ISDIR(st.st_mode)) return link_file(from, to, err);
    rc = make_folder(to, err);
    return rc ? rc : link_folder(from, to, NULL, err);
}

static bool is_listed(const char *name, const char *const *list)
{
    for (; list && *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

static int link_folder(const char *from, const char *to, const char *const *without,
                       struct ipw_err *err)
{
    DIR *dir = opendir(from);
    struct dirent *entry;
    int rc = dir ? 0 : ipw_fail_errno(err, errno, "%s", from);

    while (!rc && (entry = readdir(dir))) {
        char *a, *b;

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            is_listed(entry->d_name, without))
            continue;
        a = ipw_asprintf("%s/%s", from, entry->d_name);
        b = ipw_asprintf("%s/%s", to, entry->d_name);
        rc = link_entry(a, b, err);
        free(a);
        free(b);
    }
    if (dir) closedir(dir);
    return rc;
}

static int keep_originals(const struct job *job, struct ipw_err *err)
{
    int rc = make_folder(job->kept, err);

    for (const char *const *name = rewritten; !rc && *name; name++) {
        char *from = ipw_asprintf("%s/%s", job->origin, *name);
        char *to = ipw_asprintf("%s/%s", job->kept, *name);

        if (access(from, F_OK) == 0) rc = link_file(from, to, err);
        free(from);
        free(to);
    }
    return rc;
}

static int keep_others(const struct job *job, struct ipw_err *err)
{
    const char *without[16] = {"lock", "energy_report.json", IPW_BOOK_BEFORE};
    size_t n = 3;

    for (const char *const *name = rewritten; *name; name++) without[n++] = *name;
    return link_folder(job->run, job->folder, without, err);
}

/* ---- the run, computed again ---- */

/* A machine's meter that reads less than the machine's own sensors is not its meter, or was cut at
 * the wrong times. */
static int check_parts(void *ud, const struct ipw_recompute_segment *books, struct ipw_err *err)
{
    static const enum ipw_domain parts[] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM, IPW_DOMAIN_GPU};
    const struct job *job = ud;
    const struct ipw_figure *whole = &books->balance[IPW_DOMAIN_MACHINE].total;
    double sum = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts && !books->rules.lm_remote; i++)
        if (books->balance[parts[i]].total.known) sum += books->balance[parts[i]].total.j;
    if (!whole->known || !ipw_trust_is_below(whole->hi_j, sum)) return 0;
    return ipw_fail(
        err, IPW_EINVAL,
        "%s: the meter reads %.4g J (at most %.4g) where the machine's own sensors read "
        "%.4g J: it is not booked",
        job->run, whole->j, whole->hi_j, sum);
}

static int write_report(const struct job *job, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/energy_report.json", job->folder);
    int rc = ipw_file_write_atomic(path, job->report, strlen(job->report), err);

    free(path);
    return rc;
}

static int compute(struct job *job, struct ipw_err *err)
{
    struct ipw_shard_run *saved = job->p.runs.all;
    int rc = make_folder(job->folder, err);

    if (!rc) rc = make_folder(job->readings, err);
    if (!rc) rc = ipw_book_rows_write(job->readings, saved, job->meter, err);
    saved->readings = job->readings;
    job->p.check = check_parts;
    job->p.ud = job;
    if (!rc) rc = ipw_planned_run_write(&job->p, job->folder, err);
    if (!rc) rc = ipw_run_folder_remove(job->readings, err);
    if (!rc) rc = keep_originals(job, err);
    if (!rc) rc = keep_others(job, err);
    return rc ? rc : write_report(job, err);
}

/* The plan was made before the run was locked. */
static int open_plan(struct job *job, const struct ipw_json *plan, struct ipw_err *err)
{
    int rc = ipw_planned_run_open(&job->p, plan, err);

    if (!rc && (job->p.runs.n != 1 || strcmp(job->p.runs.all->path, job->origin) != 0))
        rc = ipw_fail(err, IPW_EINVAL, "%s: a meter was booked meanwhile: try again", job->run);
    return rc;
}

static int put_in_place(const struct job *job, struct ipw_err *err)
{
    int rc = ipw_file_sync_folder(job->run, err);

    if (rc) return rc;
    if (renameat2(AT_FDCWD, job->folder, AT_FDCWD, job->run, RENAME_EXCHANGE) < 0)
        return ipw_fail_errno(err, errno, "%s: cannot be exchanged with %s", job->run, job->folder);
    return ipw_file_sync_folder(job->run, err);
}

int ipw_book_run(const char *run, const struct ipw_json *plan, const struct ipw_metered_run *meter,
                 const char *report, struct ipw_err *err)
{
    struct ipw_lock lock = IPW_LOCK_NONE;
    struct job job = {.run = realpath(run, NULL), .meter = meter, .report = report};
    bool locked, exchanged;
    int rc;

    if (!job.run) return ipw_fail_errno(err, errno, "%s", run);
    job.folder = ipw_asprintf("%s.booking", job.run);
    job.origin = ipw_book_origin(run);
    job.kept = ipw_asprintf("%s/" IPW_BOOK_BEFORE, job.folder);
    job.readings = ipw_asprintf("%s/readings", job.folder);
    rc = ipw_lock_take(&lock, job.run, err);
    locked = !rc;
    if (!rc) rc = ipw_run_folder_remove(job.folder, err);
    if (!rc) rc = open_plan(&job, plan, err);
    if (!rc) rc = compute(&job, err);
    if (!rc) rc = put_in_place(&job, err);
    exchanged = !rc;
    if (locked && !exchanged)
        ipw_run_folder_remove(job.folder, NULL); /* also what a killed booking left */
    ipw_lock_drop(&lock, exchanged ? job.folder : job.run);
    if (exchanged) ipw_run_folder_remove(job.folder, err);
    ipw_planned_run_release(&job.p);
    free(job.run);
    free(job.folder);
    free(job.origin);
    free(job.kept);
    free(job.readings);
    return rc;
}
