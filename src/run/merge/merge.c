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
#include "run/resume/rebuild_files.h"
#include "run/segment.h"
#include "trace/lock.h"
#include "trace/rundir.h"

#define TEXT_MAX (256 * IPW_MIB)

struct job {
    struct ipw_merge *m;
    char *folder; /* OUT.merging */
    struct ipw_shard_runs runs;
    struct ipw_rundir *dir;
    struct ipw_buf sessions; /* of the manifest: an array's elements */
    int64_t n_extra;
    struct ipw_summary summary; /* the queries so far */
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

/* ---- sessions ---- */

static const struct ipw_json *planned(const struct job *job, int number)
{
    return ipw_json_at(ipw_json_get(job->m->plan, "sessions"), (size_t)number);
}

/* A session's object; `over`: with its end and its balance. */
static void put_session(struct ipw_buf *out, const struct job *job, const struct ipw_join *j,
                        bool over)
{
    const struct ipw_json *session = ipw_json_get(planned(job, j->number), "session");
    const struct ipw_shard_session *first = ipw_join_session(j, 0);
    const struct ipw_recompute_segment *books = ipw_join_books(j);
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), hardware = IPW_BUF(TEXT_MAX);
    const char *end = over ? ipw_json_str(ipw_json_get(job->m->plan, "end"), NULL) : NULL;
    struct ipw_jw w;

    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    ipw_segment_put_end(&w, end, over ? books->end_ns : 0, &first->clock);
    if (j->channels.len) {
        char *channels = ipw_asprintf("{\"channels\":%s}", ipw_buf_str(&j->channels));

        ipw_json_patch(&hardware, ipw_json_get(session, "hardware"), channels);
        ipw_jw_kraw(&w, "hardware", ipw_buf_str(&hardware), hardware.len);
        free(channels);
    }
    ipw_segment_put_balances(&w, over ? books->balance : NULL, over ? &books->devices : NULL);
    ipw_segment_put_time(&w, "start_ns", over ? books->start_ns : first->start_ns);
    ipw_jw_obj_end(&w);
    ipw_json_patch(out, session, ipw_buf_str(&patch));
    ipw_buf_release(&hardware);
    ipw_buf_release(&patch);
}

/* `sessions`: the elements of its array, as text. */
static void put_manifest(struct ipw_buf *out, const struct ipw_json *manifest, const char *sessions)
{
    char *patch = ipw_asprintf("{\"segments\":[%s]}", sessions);

    ipw_json_patch(out, manifest, patch);
    free(patch);
}

static void put_manifest_of(void *ud, const struct ipw_join *j, struct ipw_buf *out)
{
    const struct job *job = ud;
    struct ipw_buf alone = IPW_BUF(TEXT_MAX);

    put_session(&alone, job, j, false);
    put_manifest(out, ipw_json_get(planned(job, j->number), "manifest"), ipw_buf_str(&alone));
    ipw_buf_release(&alone);
}

/* The sessions that are joined into one. */
static int read_members(struct ipw_join *j, struct ipw_join_member *out, const struct job *job,
                        const struct ipw_json *members, struct ipw_err *err)
{
    j->members = out;
    for (const struct ipw_json *m = ipw_json_first(members); m; m = ipw_json_next(m)) {
        int64_t run = ipw_json_int(ipw_json_get(m, "run"), -1);
        int64_t session = ipw_json_int(ipw_json_get(m, "session"), -1);

        if (run < 0 || run >= (int64_t)job->runs.n || session < 0 ||
            session >= (int64_t)job->runs.all[run].n_sessions)
            return ipw_fail(err, IPW_EINVAL, "the plan of the merge names no session of a shard");
        out[j->n++] = (struct ipw_join_member){
            .run = &job->runs.all[run],
            .session = (int)session,
            .ahead_ns = ipw_json_int(ipw_json_get(m, "ahead_ns"), 0),
            .clock_error_ns = ipw_json_int(ipw_json_get(m, "clock_error_ns"), 0)};
    }
    return j->n ? 0 : ipw_fail(err, IPW_EINVAL, "the plan of the merge has an empty session");
}

static int run_session(struct job *job, struct ipw_join *j, struct ipw_err *err)
{
    int rc = ipw_join_run(j, err);

    if (rc && j->at < j->n) job->m->bad = (size_t)(j->members[j->at].run - job->runs.all);
    if (!rc && job->sessions.len) ipw_buf_addc(&job->sessions, ',');
    if (!rc) put_session(&job->sessions, job, j, true);
    for (int d = 0; d < IPW_DOMAIN_COUNT && !rc; d++) {
        const struct ipw_figure *total = &ipw_join_books(j)->balance[d].total;

        job->m->total_j[d] += total->known ? total->j : NAN;
    }
    ipw_recompute_release(&j->books);
    return rc;
}

static int join_session(struct job *job, int number, struct ipw_err *err)
{
    const struct ipw_json *session = planned(job, number);
    const struct ipw_json *members = ipw_json_get(session, "members");
    struct ipw_join_member *all = ipw_calloc(ipw_json_count(members) + 1, sizeof *all);
    struct ipw_join j = {.runs = &job->runs,
                         .divided = ipw_json_bool(ipw_json_get(session, "divided"), false),
                         .dir = job->dir,
                         .number = number,
                         .put_manifest = put_manifest_of,
                         .ud = job,
                         .summary = &job->summary,
                         .channels = IPW_BUF(TEXT_MAX),
                         .n_extra = &job->n_extra};
    int rc = read_members(&j, all, job, members, err);

    if (!rc) rc = run_session(job, &j, err);
    ipw_buf_release(&j.channels);
    free(all);
    return rc;
}

/* ---- the run ---- */

static int read_runs(struct job *job, struct ipw_err *err)
{
    const struct ipw_json *plan = job->m->plan, *runs = ipw_json_get(plan, "runs");
    int rc = 0;

    job->runs =
        (struct ipw_shard_runs){.all = ipw_calloc(ipw_json_count(runs) + 1, sizeof *job->runs.all),
                                .count = ipw_json_int(ipw_json_get(plan, "count"), 0),
                                .selected = ipw_json_int(ipw_json_get(plan, "selected"), 0),
                                .epochs = ipw_json_int(ipw_json_get(plan, "epochs"), 0),
                                .warmup = ipw_json_int(ipw_json_get(plan, "warmup"), 0)};
    for (const struct ipw_json *r = ipw_json_first(runs); r && !rc; r = ipw_json_next(r)) {
        struct ipw_shard_run *run = &job->runs.all[job->runs.n++];

        rc = ipw_shard_run_read(run, ipw_json_str(ipw_json_get(r, "path"), ""), err);
        run->index = ipw_json_int(ipw_json_get(r, "index"), 0);
        if (rc) job->m->bad = job->runs.n - 1;
    }
    return rc;
}

static int write_manifest(struct job *job, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(TEXT_MAX);
    int rc;

    put_manifest(&text, ipw_json_get(job->m->plan, "manifest"), ipw_buf_str(&job->sessions));
    ipw_buf_addc(&text, '\n');
    rc = ipw_rundir_write_manifest(job->dir, ipw_buf_str(&text), text.len, err);
    ipw_buf_release(&text);
    return rc;
}

static int write_run(struct job *job, struct ipw_err *err)
{
    int n = (int)ipw_json_count(ipw_json_get(job->m->plan, "sessions"));
    int rc = read_runs(job, err), closed;

    if (!rc) rc = ipw_rundir_create(&job->dir, job->folder, NULL, err);
    if (rc) return rc;
    for (int i = 0; i < n && !rc; i++) rc = join_session(job, i, err);
    if (!rc) rc = write_manifest(job, err);
    closed = ipw_rundir_close(job->dir, rc ? NULL : err);
    if (!rc) rc = closed;
    return rc ? rc : ipw_rebuild_summary(job->folder, &job->summary, err);
}

/* What was written, as `validate` checks it; if it does not hold, the shard at fault. */
static int check_valid(struct job *job, struct ipw_err *err)
{
    struct ipw_validation v;
    struct ipw_err why;

    if (!ipw_validate_run(&v, job->folder, err)) return 0;
    for (size_t i = 0; i < job->runs.n; i++) {
        if (!ipw_validate_run(&v, job->runs.all[i].path, &why)) continue;
        job->m->bad = i;
        *err = why;
        return why.code;
    }
    return ipw_err_prefix(err, "the merged run would not be valid");
}

static void release(struct job *job)
{
    ipw_summary_release(&job->summary);
    for (size_t i = 0; i < job->runs.n; i++) ipw_shard_run_release(&job->runs.all[i]);
    free(job->runs.all);
    ipw_buf_release(&job->sessions);
    free(job->folder);
}

int ipw_merge_run(struct ipw_merge *m, struct ipw_err *err)
{
    struct job job = {
        .m = m, .folder = ipw_asprintf("%s.merging", m->out), .sessions = IPW_BUF(TEXT_MAX)};
    int rc = check_out(m, err);

    m->bad = SIZE_MAX;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) m->total_j[d] = 0;
    ipw_summary_init(&job.summary);
    if (!rc && ipw_lock_look(job.folder, NULL))
        rc = ipw_fail(err, IPW_EEXISTS, "%s: another merge is writing it", job.folder);
    if (!rc && ipw_rundir_holds_run(job.folder)) rc = remove_folder(job.folder, err);
    if (!rc) {
        rc = write_run(&job, err);
        if (!rc) rc = check_valid(&job, err);
        if (rc) remove_folder(job.folder, NULL);
    }
    if (!rc) rc = put_in_place(&job, err);
    release(&job);
    return rc;
}
