#include "run/merge/book.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/walk.h"
#include "data/sha256.h"
#include "energy/trust.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "run/merge/book_rows.h"
#include "run/merge/join.h"
#include "run/resume/rebuild_files.h"
#include "run/segment.h"
#include "trace/lock.h"
#include "trace/rundir.h"
#include "trace/spec.h"

#define TEXT_MAX (256 * IPW_MIB)

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
    struct ipw_shard_run saved;
    struct ipw_rundir *dir;
    struct ipw_buf sessions; /* of the manifest: an array's elements */
    struct ipw_summary summary;
    char *log_hash; /* of the logs and how they are read */
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

static int remove_all(const char *path, struct ipw_err *err)
{
    int errnum = ipw_walk_remove(AT_FDCWD, path, NULL);

    return errnum && errnum != ENOENT ? ipw_fail_errno(err, errnum, "%s: cannot be removed", path)
                                      : 0;
}

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

static void put_session(struct ipw_buf *out, const struct job *job, const struct ipw_join *j,
                        bool over)
{
    const struct ipw_shard_session *s = &job->saved.sessions[j->number];
    const struct ipw_recompute_segment *books = ipw_join_books(j);
    const char *end = ipw_json_str(ipw_json_get(s->doc, "end"), "interrupted");
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), hardware = IPW_BUF(TEXT_MAX);
    struct ipw_jw w;

    ipw_book_hardware_put(&hardware, ipw_json_get(s->doc, "hardware"), job->meter);
    if (!strcmp(end, "killed")) end = "interrupted"; /* its end is known now */
    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    ipw_segment_put_end(&w, over ? end : NULL, over ? books->end_ns : 0, &s->clock);
    ipw_jw_kraw(&w, "hardware", ipw_buf_str(&hardware), hardware.len);
    ipw_segment_put_balances(&w, over ? books->balance : NULL, over ? &books->devices : NULL);
    ipw_jw_obj_end(&w);
    ipw_json_patch(out, s->doc, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
    ipw_buf_release(&hardware);
}

static void put_logs(struct ipw_jw *w, const struct ipw_metered_run *meter)
{
    ipw_jw_arr(w);
    for (size_t i = 0; i < meter->n_logs; i++) {
        const struct ipw_metered_run_input *in = &meter->logs[i];
        const char *slash = strrchr(in->path, '/');

        ipw_jw_obj(w);
        ipw_jw_kstr(w, "file", slash ? slash + 1 : in->path);
        ipw_jw_knum(w, "offset_plus_minus_s", in->clock.plus_minus_s);
        ipw_jw_knum(w, "offset_s", in->clock.offset_s);
        ipw_jw_knum(w, "row_interval_s", ipw_book_row_s(in));
        ipw_jw_kint(w, "rows", (int64_t)in->log.rows);
        ipw_jw_kstr(w, "rows_are", in->clock.averages ? "means" : "instants");
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_manifest(struct ipw_buf *out, const struct job *job, const char *sessions)
{
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), hardware = IPW_BUF(TEXT_MAX);
    struct ipw_jw w;

    ipw_book_hardware_put(&hardware, ipw_json_get(job->saved.manifest, "hardware"), job->meter);
    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    ipw_jw_kraw(&w, "hardware", ipw_buf_str(&hardware), hardware.len);
    ipw_jw_key(&w, "meter");
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "logs");
    put_logs(&w, job->meter);
    ipw_jw_kstr(&w, "sha256", job->log_hash);
    ipw_jw_obj_end(&w);
    ipw_jw_key(&w, "segments");
    ipw_jw_raw(&w, "[", 1);
    ipw_buf_adds(&patch, sessions);
    ipw_buf_adds(&patch, "]}");
    ipw_json_patch(out, job->saved.manifest, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
    ipw_buf_release(&hardware);
}

static void add_session(struct job *job, const char *text, size_t n)
{
    if (job->sessions.len) ipw_buf_addc(&job->sessions, ',');
    ipw_buf_add(&job->sessions, text, n);
}

/* A session that was killed before it began has no events and no joules. */
static void keep_session(struct job *job, size_t number)
{
    char *text = ipw_json_text(job->saved.sessions[number].doc);

    add_session(job, text, strlen(text));
    free(text);
}

/* For the run_start of a session. */
static void put_manifest_of(void *ud, const struct ipw_join *j, struct ipw_buf *out)
{
    struct ipw_buf alone = IPW_BUF(TEXT_MAX);

    put_session(&alone, ud, j, false);
    put_manifest(out, ud, ipw_buf_str(&alone));
    ipw_buf_release(&alone);
}

/* A machine's meter that reads less than the machine's own sensors is not its meter, or was cut at
 * the wrong times. */
static int check_parts(const struct job *job, const struct ipw_join *j, struct ipw_err *err)
{
    static const enum ipw_domain parts[] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM, IPW_DOMAIN_GPU};
    const struct ipw_recompute_segment *books = ipw_join_books(j);
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

static int compute_session(struct job *job, size_t number, struct ipw_err *err)
{
    struct ipw_join_member member = {.run = &job->saved, .session = (int)number};
    struct ipw_join j = {.members = &member,
                         .n = 1,
                         .dir = job->dir,
                         .summary = &job->summary,
                         .number = (int)number,
                         .put_manifest = put_manifest_of,
                         .ud = job,
                         .channels = IPW_BUF(TEXT_MAX)};
    struct ipw_buf session = IPW_BUF(TEXT_MAX);
    int rc;

    ipw_rundir_set_segment(job->dir, (int)number);
    rc = ipw_join_run(&j, err);
    if (!rc) rc = check_parts(job, &j, err);
    if (!rc) put_session(&session, job, &j, true);
    if (!rc) add_session(job, ipw_buf_str(&session), session.len);
    ipw_recompute_release(&j.books);
    ipw_buf_release(&j.channels);
    ipw_buf_release(&session);
    return rc;
}

static int write_manifest(struct job *job, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(TEXT_MAX);
    int rc;

    put_manifest(&text, job, ipw_buf_str(&job->sessions));
    ipw_buf_addc(&text, '\n');
    rc = ipw_rundir_write_manifest(job->dir, ipw_buf_str(&text), text.len, err);
    ipw_buf_release(&text);
    return rc;
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
    int rc = ipw_rundir_create(&job->dir, job->folder, NULL, err), closed;

    if (rc) return rc;
    rc = make_folder(job->readings, err);
    if (!rc) rc = ipw_book_rows_write(job->readings, &job->saved, job->meter, err);
    job->saved.readings = job->readings;
    for (size_t i = 0; i < job->saved.n_sessions && !rc; i++) {
        if (job->saved.sessions[i].start_ns)
            rc = compute_session(job, i, err);
        else
            keep_session(job, i);
    }
    if (!rc) rc = write_manifest(job, err);
    closed = ipw_rundir_close(job->dir, rc ? NULL : err);
    if (!rc) rc = closed;
    if (!rc) rc = remove_all(job->readings, err);
    if (!rc) rc = keep_originals(job, err);
    if (!rc) rc = keep_others(job, err);
    if (!rc) rc = ipw_rebuild_summary(job->folder, &job->summary, err);
    return rc ? rc : write_report(job, err);
}

/* ---- may it be booked? ---- */

static char *hash_of(const struct ipw_metered_run *meter)
{
    struct ipw_buf text = IPW_BUF(TEXT_MAX);
    char hash[65];

    for (size_t l = 0; l < meter->n_logs; l++) {
        const struct ipw_metered_run_input *in = &meter->logs[l];

        ipw_buf_addf(&text, "%.9g\n", in->clock.offset_s);
        for (size_t c = 0; c < in->log.format.n_columns; c++) {
            const struct ipw_meter_points *p = &in->log.columns[c];

            if (!in->log.format.columns[c].in_sum) continue;
            ipw_buf_addf(&text, "%s %zu\n", in->log.format.columns[c].name, p->n);
            for (size_t i = 0; i < p->n; i++)
                ipw_buf_addf(&text, "%.17g %.17g\n", p->at[i].t_s, p->at[i].value);
        }
    }
    ipw_sha256_hex(hash, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
    return ipw_strdup(hash);
}

/* How many sessions the run has, and how many its files had before a meter was booked. */
static bool was_resumed(const struct job *job, const struct ipw_json *manifest)
{
    struct ipw_json *before = NULL;
    bool resumed;

    if (!strcmp(job->origin, job->run) ||
        ipw_json_read(&before, job->origin, "manifest.json", NULL))
        return false;
    resumed = ipw_json_count(ipw_json_get(before, "segments")) !=
              ipw_json_count(ipw_json_get(manifest, "segments"));
    ipw_json_free(before);
    return resumed;
}

/* 1: these logs are booked already. */
static int check(const struct job *job, bool replace, struct ipw_err *err)
{
    struct ipw_json *manifest = NULL;
    const struct ipw_json *booked;
    int rc = ipw_json_read(&manifest, job->run, "manifest.json", err);

    if (rc) return rc;
    booked = ipw_json_get(manifest, "meter");
    if (booked && !strcmp(ipw_json_str(ipw_json_get(booked, "sha256"), ""), job->log_hash))
        rc = 1;
    else if (booked && !replace)
        rc = ipw_fail(err, IPW_EEXISTS,
                      "%s: another log is in its books; --replace puts this one in its place",
                      job->run);
    else if (was_resumed(job, manifest))
        rc = ipw_fail(err, IPW_EUNSUPPORTED,
                      "%s: it was resumed after a meter was booked, and " IPW_BOOK_BEFORE
                      " lacks what came later: its meter cannot be replaced",
                      job->run);
    ipw_json_free(manifest);
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

int ipw_book_run(const char *run, const struct ipw_metered_run *meter, const char *report,
                 bool replace, struct ipw_err *err)
{
    struct ipw_lock lock = IPW_LOCK_NONE;
    struct job job = {.run = realpath(run, NULL),
                      .meter = meter,
                      .report = report,
                      .sessions = IPW_BUF(TEXT_MAX)};
    bool locked, exchanged;
    int rc;

    if (!job.run) return ipw_fail_errno(err, errno, "%s", run);
    job.folder = ipw_asprintf("%s.booking", job.run);
    job.origin = ipw_book_origin(job.run);
    job.kept = ipw_asprintf("%s/" IPW_BOOK_BEFORE, job.folder);
    job.readings = ipw_asprintf("%s/readings", job.folder);
    job.log_hash = hash_of(meter);
    ipw_summary_init(&job.summary);
    rc = ipw_lock_take(&lock, job.run, err);
    locked = !rc;
    if (!rc) rc = check(&job, replace, err);
    if (!rc) rc = remove_all(job.folder, err);
    if (!rc) rc = ipw_shard_run_read(&job.saved, job.origin, err);
    if (!rc) rc = compute(&job, err);
    if (!rc) rc = put_in_place(&job, err);
    exchanged = !rc;
    if (locked && !exchanged) remove_all(job.folder, NULL); /* also what a killed booking left */
    ipw_lock_drop(&lock, exchanged ? job.folder : job.run);
    if (exchanged) remove_all(job.folder, err);
    ipw_shard_run_release(&job.saved);
    ipw_buf_release(&job.sessions);
    ipw_summary_release(&job.summary);
    free(job.run);
    free(job.folder);
    free(job.origin);
    free(job.kept);
    free(job.readings);
    free(job.log_hash);
    return rc;
}
