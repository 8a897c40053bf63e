#include "run/merge/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/validate.h"
#include "base/mem.h"
#include "base/walk.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "run/merge/join.h"
#include "run/merge/merge_manifest.h"
#include "run/merge/sessions_joined.h"
#include "run/resume/rebuild_files.h"
#include "trace/lock.h"
#include "trace/rundir.h"

struct job {
    struct ipw_merge *m;
    char *folder; /* OUT.merging */
    struct ipw_sessions_joined groups;
    struct ipw_rundir *dir;
    struct ipw_buf sessions; /* of the manifest: an array's elements */
    int64_t n_extra;
    struct ipw_summary summary;     /* the queries so far */
    const struct ipw_shard_run *at; /* after an error: the shard with the file at fault, or NULL */
};

/* ---- folders ---- */

static int remove_folder(const char *path, struct ipw_err *err)
{
    int errnum = ipw_walk_remove(AT_FDCWD, path, NULL);

    return errnum && errnum != ENOENT ? ipw_fail_errno(err, errnum, "%s: cannot be removed", path)
                                      : 0;
}

/* A folder is replaced only if an earlier merge wrote it and nothing was added since. */
static int check_out(const struct ipw_merge *m, struct ipw_err *err)
{
    struct ipw_json *manifest = NULL;
    const struct ipw_json *merge;
    int64_t sessions;
    int rc;

    if (!ipw_rundir_holds_run(m->out)) return 0;
    rc = ipw_lock_look(m->out, err);
    if (!rc) rc = ipw_json_read(&manifest, m->out, "manifest.json", err);
    if (rc) return rc;
    merge = ipw_json_get(manifest, "merge");
    sessions = ipw_json_int(ipw_json_get(merge, "sessions"), -1);
    if (sessions != (int64_t)ipw_json_count(ipw_json_get(manifest, "segments")))
        rc = ipw_fail(err, IPW_EEXISTS,
                      "%s: holds a run that no merge wrote; choose another folder with --output",
                      m->out);
    ipw_json_free(manifest);
    return rc;
}

static int put_in_place(const struct job *job, struct ipw_err *err)
{
    const char *out = job->m->out;
    int rc = ipw_file_sync_folder(out, err);

    if (rc) return rc;
    if (access(out, F_OK) < 0) {
        if (rename(job->folder, out) < 0) rc = ipw_fail_errno(err, errno, "%s: rename", out);
        return rc ? rc : ipw_file_sync_folder(out, err);
    }
    if (renameat2(AT_FDCWD, job->folder, AT_FDCWD, out, RENAME_EXCHANGE) < 0)
        return ipw_fail_errno(err, errno, "%s: cannot be replaced; remove it and merge again", out);
    rc = ipw_file_sync_folder(out, err);
    return rc ? rc : remove_folder(job->folder, err);
}

/* ---- the run ---- */

static void put_manifest(void *ud, const struct ipw_join *j, struct ipw_buf *out)
{
    const struct job *job = ud;
    struct ipw_buf alone = IPW_BUF(256 * IPW_MIB);

    ipw_merge_session_put(&alone, job->m, j, false);
    ipw_merge_manifest_put(out, job->m, ipw_buf_str(&alone));
    ipw_buf_release(&alone);
}

static int join_group(struct job *job, size_t number, struct ipw_err *err)
{
    struct ipw_sessions_joined *g = &job->groups;
    struct ipw_join j = {.runs = &job->m->runs,
                         .members = g->members + g->first[number],
                         .n = g->first[number + 1] - g->first[number],
                         .divided = g->divided[number],
                         .dir = job->dir,
                         .number = (int)number,
                         .put_manifest = put_manifest,
                         .ud = job,
                         .summary = &job->summary,
                         .channels = IPW_BUF(256 * IPW_MIB),
                         .n_extra = &job->n_extra};
    int rc;

    rc = ipw_join_run(&j, err);
    if (rc && j.at < j.n) job->at = j.members[j.at].run;
    if (!rc && job->sessions.len) ipw_buf_addc(&job->sessions, ',');
    if (!rc) ipw_merge_session_put(&job->sessions, job->m, &j, true);
    for (int d = 0; d < IPW_DOMAIN_COUNT && !rc; d++)
        job->m->total_j[d] += ipw_join_books(&j)->balance[d].total.known
                                  ? ipw_join_books(&j)->balance[d].total.j
                                  : NAN;
    ipw_recompute_release(&j.books);
    ipw_buf_release(&j.channels);
    return rc;
}

static int write_manifest(struct job *job, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(256 * IPW_MIB);
    int rc;

    ipw_merge_manifest_put(&text, job->m, ipw_buf_str(&job->sessions));
    ipw_buf_addc(&text, '\n');
    rc = ipw_rundir_write_manifest(job->dir, ipw_buf_str(&text), text.len, err);
    ipw_buf_release(&text);
    return rc;
}

static int write_run(struct job *job, struct ipw_err *err)
{
    struct ipw_merge *m = job->m;
    int rc = ipw_sessions_joined_find(&job->groups, &m->runs, err), closed;

    for (size_t i = 0; i < m->runs.n && !rc; i++) {
        rc = ipw_shard_run_open_lines(&m->runs.all[i], err);
        if (rc) job->at = &m->runs.all[i];
    }
    if (!rc) rc = ipw_rundir_create(&job->dir, job->folder, NULL, err);
    if (rc) return rc;
    m->n_sessions = job->groups.n;
    m->n_joined = job->groups.n_members;
    for (size_t i = 0; i < job->groups.n && !rc; i++) rc = join_group(job, i, err);
    if (!rc) rc = write_manifest(job, err);
    closed = ipw_rundir_close(job->dir, rc ? NULL : err);
    job->dir = NULL;
    if (!rc) rc = closed;
    return rc ? rc : ipw_rebuild_summary(job->folder, &job->summary, err);
}

static void release(struct job *job)
{
    ipw_summary_release(&job->summary);
    ipw_sessions_joined_release(&job->groups);
    ipw_buf_release(&job->sessions);
    free(job->folder);
}

static void add_totals(struct ipw_merge *m)
{
    m->n_queries = 0;
    m->missing = ipw_shard_runs_missing(&m->runs);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) m->total_j[d] = m->added_j[d] = 0;
    for (size_t i = 0; i < m->runs.n; i++) {
        m->n_queries += m->runs.all[i].n_done;
        for (size_t k = 0; k < m->runs.all[i].n_sessions; k++) {
            const struct ipw_shard_session *s = &m->runs.all[i].sessions[k];

            for (int d = 0; d < IPW_DOMAIN_COUNT && s->start_ns; d++)
                m->added_j[d] += ipw_json_get_num(ipw_json_get(ipw_json_get(s->doc, "ledger"),
                                                               ipw_domain_name((enum ipw_domain)d)),
                                                  "total_j");
        }
    }
}

/* What was written, as `validate` checks it; if it does not hold, the shard at fault. */
static int check_valid(struct job *job, struct ipw_err *err)
{
    const struct ipw_shard_runs *runs = &job->m->runs;
    struct ipw_validation v;
    struct ipw_err why;

    if (!ipw_validate_run(&v, job->folder, err)) return 0;
    for (size_t i = 0; i < runs->n; i++) {
        if (!ipw_validate_run(&v, runs->all[i].path, &why)) continue;
        job->at = &runs->all[i];
        *err = why;
        return why.code;
    }
    return ipw_err_prefix(err, "the merged run would not be valid");
}

/* *bad: a shard with a file that cannot be used; NULL: another error. */
static int merge_once(struct ipw_merge *m, const struct ipw_shard_run **bad, struct ipw_err *err)
{
    struct job job = {
        .m = m, .folder = ipw_asprintf("%s.merging", m->out), .sessions = IPW_BUF(256 * IPW_MIB)};
    int rc = ipw_lock_look(job.folder, NULL)
                 ? ipw_fail(err, IPW_EEXISTS, "%s: another merge is writing it", job.folder)
             : ipw_rundir_holds_run(job.folder) ? remove_folder(job.folder, err)
                                                : 0;

    add_totals(m);
    ipw_summary_init(&job.summary);
    if (!rc) {
        rc = write_run(&job, err);
        if (!rc) rc = check_valid(&job, err);
        if (rc) remove_folder(job.folder, NULL);
    }
    if (!rc) rc = put_in_place(&job, err);
    *bad = job.at;
    release(&job);
    return rc;
}

int ipw_merge_run(struct ipw_merge *m, struct ipw_err *err)
{
    const struct ipw_shard_run *bad = NULL;
    int rc = check_out(m, err);

    if (!rc) rc = ipw_shard_runs_read(&m->runs, m->folder, m->partial, err);
    if (rc) return rc;
    while ((rc = merge_once(m, &bad, err)) && bad && m->partial && m->runs.n > 1)
        ipw_shard_runs_leave(&m->runs, (size_t)(bad - m->runs.all), err->text);
    return rc;
}

void ipw_merge_release(struct ipw_merge *m) { ipw_shard_runs_release(&m->runs); }
