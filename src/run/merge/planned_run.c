#include "run/merge/planned_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/validate.h"
#include "base/mem.h"
#include "base/walk.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "run/resume/rebuild_files.h"
#include "run/segment.h"
#include "trace/lock.h"
#include "trace/saved_clock.h"

#define TEXT_MAX (256 * IPW_MIB)

/* ---- saved runs ---- */

static void read_sessions(struct ipw_shard_run *run)
{
    const struct ipw_json *segments = ipw_json_get(run->manifest, "segments");

    run->sessions = ipw_calloc(ipw_json_count(segments) + 1, sizeof *run->sessions);
    for (const struct ipw_json *s = ipw_json_first(segments); s; s = ipw_json_next(s)) {
        const struct ipw_json *host = ipw_json_get(s, "host");

        run->sessions[run->n_sessions++] =
            (struct ipw_shard_session){.start_ns = ipw_json_int(ipw_json_get(s, "start_ns"), 0),
                                       .end_ns = ipw_json_int(ipw_json_get(s, "end_ns"), 0),
                                       .clock = ipw_saved_clock_read(ipw_json_get(s, "clock")),
                                       .boot_id = ipw_json_str(ipw_json_get(host, "boot_id"), NULL),
                                       .host = ipw_json_str(ipw_json_get(host, "name"), NULL),
                                       .doc = s};
    }
}

static int check_line(void *ud, enum ipw_check_file file, const struct ipw_json *line,
                      int64_t number, size_t repairs, struct ipw_err *err)
{
    int rc = ipw_json_need_no_repair(repairs, err);

    (void)ud;
    (void)number;
    return rc || !line ? rc : ipw_validate_line(file, line, err);
}

/* Its manifest and the lines of its queries, which are checked as `validate` does. */
static int read_run(struct ipw_shard_run *run, const char *path, struct ipw_err *err)
{
    static const struct ipw_check_watch watch = {.line = check_line};
    int rc;

    *run = (struct ipw_shard_run){.path = ipw_strdup(path)};
    rc = ipw_json_read(&run->manifest, path, "manifest.json", err);
    if (rc) return rc;
    read_sessions(run);
    return ipw_check_open(&run->lines, path, &watch, err);
}

static void release_run(struct ipw_shard_run *run)
{
    ipw_check_close(run->lines);
    free(run->sessions);
    ipw_json_free(run->manifest);
    free(run->path);
}

/* ---- sessions ---- */

static const struct ipw_json *planned(const struct ipw_planned_run *p, int number)
{
    return ipw_json_at(ipw_json_get(p->plan, "sessions"), (size_t)number);
}

/* A session's object; `over`: with its end and its balance. */
static void put_session(struct ipw_buf *out, const struct ipw_planned_run *p,
                        const struct ipw_join *j, bool over)
{
    const struct ipw_json *session = ipw_json_get(planned(p, j->number), "session");
    const struct ipw_shard_session *first = ipw_join_session(j, 0);
    const struct ipw_recompute_segment *books = ipw_join_books(j);
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), hardware = IPW_BUF(TEXT_MAX);
    const char *end = over ? ipw_json_str(ipw_json_get(planned(p, j->number), "end"), NULL) : NULL;
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
    const struct ipw_planned_run *p = ud;
    struct ipw_buf alone = IPW_BUF(TEXT_MAX);

    put_session(&alone, p, j, false);
    put_manifest(out, ipw_json_get(planned(p, j->number), "manifest"), ipw_buf_str(&alone));
    ipw_buf_release(&alone);
}

/* The sessions that are joined into one. */
static int read_members(struct ipw_join *j, struct ipw_join_member *out,
                        const struct ipw_planned_run *p, const struct ipw_json *members,
                        struct ipw_err *err)
{
    j->members = out;
    for (const struct ipw_json *m = ipw_json_first(members); m; m = ipw_json_next(m)) {
        int64_t run = ipw_json_int(ipw_json_get(m, "run"), -1);
        int64_t session = ipw_json_int(ipw_json_get(m, "session"), -1);

        if (run < 0 || run >= (int64_t)p->runs.n || session < 0 ||
            session >= (int64_t)p->runs.all[run].n_sessions)
            return ipw_fail(err, IPW_EINVAL, "the plan of a run names no session of a saved run");
        out[j->n++] = (struct ipw_join_member){
            .run = &p->runs.all[run],
            .session = (int)session,
            .ahead_ns = ipw_json_int(ipw_json_get(m, "ahead_ns"), 0),
            .clock_error_ns = ipw_json_int(ipw_json_get(m, "clock_error_ns"), 0)};
    }
    return 0;
}

static int run_session(struct ipw_planned_run *p, struct ipw_join *j, struct ipw_err *err)
{
    int rc;

    ipw_rundir_set_segment(p->dir, j->number);
    rc = ipw_join_run(j, err);
    if (!rc && p->check) rc = p->check(p->ud, ipw_join_books(j), err);
    if (rc && j->at < j->n) p->bad = (size_t)(j->members[j->at].run - p->runs.all);
    if (!rc) put_session(&p->sessions, p, j, true);
    for (int d = 0; d < IPW_DOMAIN_COUNT && !rc; d++) {
        const struct ipw_figure *total = &ipw_join_books(j)->balance[d].total;

        p->total_j[d] += total->known ? total->j : NAN;
    }
    ipw_recompute_release(&j->books);
    return rc;
}

static int join_session(struct ipw_planned_run *p, int number, struct ipw_err *err)
{
    const struct ipw_json *session = planned(p, number);
    const struct ipw_json *members = ipw_json_get(session, "members");
    struct ipw_join_member *all = ipw_calloc(ipw_json_count(members) + 1, sizeof *all);
    struct ipw_join j = {.runs = p->runs.count ? &p->runs : NULL,
                         .divided = ipw_json_bool(ipw_json_get(session, "divided"), false),
                         .dir = p->dir,
                         .number = number,
                         .put_manifest = put_manifest_of,
                         .ud = p,
                         .summary = &p->summary,
                         .channels = IPW_BUF(TEXT_MAX),
                         .n_extra = &p->n_extra};
    int rc = read_members(&j, all, p, members, err);

    if (!rc && p->sessions.len) ipw_buf_addc(&p->sessions, ',');
    if (!rc && j.n) rc = run_session(p, &j, err);
    if (!rc && !j.n) ipw_json_print(&p->sessions, ipw_json_get(session, "session"));
    ipw_buf_release(&j.channels);
    free(all);
    return rc;
}

/* ---- the run ---- */

int ipw_planned_run_open(struct ipw_planned_run *p, const struct ipw_json *plan,
                         struct ipw_err *err)
{
    const struct ipw_json *runs = ipw_json_get(plan, "runs");
    int rc = 0;

    *p = (struct ipw_planned_run){.plan = plan, .sessions = IPW_BUF(TEXT_MAX), .bad = SIZE_MAX};
    ipw_summary_init(&p->summary);
    p->runs =
        (struct ipw_shard_runs){.all = ipw_calloc(ipw_json_count(runs) + 1, sizeof *p->runs.all),
                                .count = ipw_json_int(ipw_json_get(plan, "count"), 0),
                                .selected = ipw_json_int(ipw_json_get(plan, "selected"), 0),
                                .epochs = ipw_json_int(ipw_json_get(plan, "epochs"), 0),
                                .warmup = ipw_json_int(ipw_json_get(plan, "warmup"), 0)};
    for (const struct ipw_json *r = ipw_json_first(runs); r && !rc; r = ipw_json_next(r)) {
        struct ipw_shard_run *run = &p->runs.all[p->runs.n++];

        rc = read_run(run, ipw_json_str(ipw_json_get(r, "path"), ""), err);
        run->index = ipw_json_int(ipw_json_get(r, "index"), 0);
        if (rc) p->bad = p->runs.n - 1;
    }
    return rc;
}

static int write_manifest(struct ipw_planned_run *p, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(TEXT_MAX);
    int rc;

    put_manifest(&text, ipw_json_get(p->plan, "manifest"), ipw_buf_str(&p->sessions));
    ipw_buf_addc(&text, '\n');
    rc = ipw_rundir_write_manifest(p->dir, ipw_buf_str(&text), text.len, err);
    ipw_buf_release(&text);
    return rc;
}

int ipw_planned_run_write(struct ipw_planned_run *p, const char *folder, struct ipw_err *err)
{
    int n = (int)ipw_json_count(ipw_json_get(p->plan, "sessions"));
    int rc = ipw_rundir_create(&p->dir, folder, NULL, err), closed;

    if (rc) return rc;
    for (int i = 0; i < n && !rc; i++) rc = join_session(p, i, err);
    if (!rc) rc = write_manifest(p, err);
    closed = ipw_rundir_close(p->dir, rc ? NULL : err);
    if (!rc) rc = closed;
    return rc ? rc : ipw_rebuild_summary(folder, &p->summary, err);
}

void ipw_planned_run_release(struct ipw_planned_run *p)
{
    ipw_summary_release(&p->summary);
    for (size_t i = 0; i < p->runs.n; i++) release_run(&p->runs.all[i]);
    free(p->runs.all);
    ipw_buf_release(&p->sessions);
}

/* ---- the shards of a run as one run ---- */

/* A folder is replaced only if an earlier merge wrote it and nothing was added since. */
static int check_out(const char *out, struct ipw_err *err)
{
    struct ipw_json *manifest = NULL;
    const struct ipw_json *merge;
    int64_t sessions;
    int rc;

    if (!ipw_rundir_holds_run(out)) return 0;
    rc = ipw_lock_look(out, err);
    if (!rc) rc = ipw_json_read(&manifest, out, "manifest.json", err);
    if (rc) return rc;
    merge = ipw_json_get(manifest, "merge");
    sessions = ipw_json_int(ipw_json_get(merge, "sessions"), -1);
    if (sessions != (int64_t)ipw_json_count(ipw_json_get(manifest, "segments")))
        rc = ipw_fail(err, IPW_EEXISTS,
                      "%s: holds a run that no merge wrote; choose another folder with --output",
                      out);
    ipw_json_free(manifest);
    return rc;
}

static int put_in_place(const char *folder, const char *out, struct ipw_err *err)
{
    int rc = ipw_file_sync_folder(out, err);

    if (rc) return rc;
    if (access(out, F_OK) < 0) {
        if (rename(folder, out) < 0) rc = ipw_fail_errno(err, errno, "%s: rename", out);
        return rc ? rc : ipw_file_sync_folder(out, err);
    }
    if (renameat2(AT_FDCWD, folder, AT_FDCWD, out, RENAME_EXCHANGE) < 0)
        return ipw_fail_errno(err, errno, "%s: cannot be replaced; remove it and merge again", out);
    rc = ipw_file_sync_folder(out, err);
    return rc ? rc : ipw_run_folder_remove(folder, err);
}

int ipw_merge_run(struct ipw_planned_run *p, const char *out, struct ipw_err *err)
{
    char *folder = ipw_asprintf("%s.merging", out);
    int rc = check_out(out, err);

    if (!rc && ipw_lock_look(folder, NULL))
        rc = ipw_fail(err, IPW_EEXISTS, "%s: another merge is writing it", folder);
    if (!rc && ipw_rundir_holds_run(folder)) rc = ipw_run_folder_remove(folder, err);
    if (!rc) {
        rc = ipw_planned_run_write(p, folder, err);
        if (rc) ipw_run_folder_remove(folder, NULL);
    }
    if (!rc) rc = put_in_place(folder, out, err);
    free(folder);
    return rc;
}

int ipw_run_folder_remove(const char *path, struct ipw_err *err)
{
    int errnum = ipw_walk_remove(AT_FDCWD, path, NULL);

    return errnum && errnum != ENOENT ? ipw_fail_errno(err, errnum, "%s: cannot be removed", path)
                                      : 0;
}
