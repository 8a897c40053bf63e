/* When what a run has written counts as done: the policy of --sync. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/query_state.h"

/* While more queries are on their way, a sync waits until this long after the one before began: what
 * ends meanwhile goes along with it, and is counted no sooner than it is on disk. */
static const int64_t SYNC_EVERY_NS = 20 * IPW_NS_PER_MS;

static const char *const names[] = {
    [IPW_SYNC_QUERY] = "query", [IPW_SYNC_RUN] = "run", [IPW_SYNC_OFF] = "off"};

const char *ipw_sync_name(enum ipw_sync sync) { return names[sync]; }

int ipw_sync_parse(enum ipw_sync *out, const char *name, struct ipw_err *err)
{
    for (int i = 0; i <= IPW_SYNC_OFF; i++) {
        if (strcmp(names[i], name)) continue;
        *out = (enum ipw_sync)i;
        return 0;
    }
    return ipw_fail(err, IPW_EINVAL, "--sync %.40s: expected query, run or off", name);
}

/* "done ID" to whoever waits for it, for what is safe now. */
static void announce(struct ipw_run *run, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ipw_log(IPW_LOG_INFO, "done %s", run->waiting[i]);
        free(run->waiting[i]);
    }
    run->n_waiting -= n;
    memmove(run->waiting, run->waiting + n, run->n_waiting * sizeof *run->waiting);
    run->n_done += n;
    ipw_progress_done(run->progress, run->n_done);
}

static void sync_failed(struct ipw_run *run, int errnum)
{
    struct ipw_err err;

    if (errnum == ENOENT)
        ipw_fail(&err, IPW_EIO, "%s: was removed while the run was writing to it",
                 ipw_rundir_path(run->dir));
    else
        ipw_fail_errno(&err, errnum, "%s: the disk did not keep what was written",
                       ipw_rundir_path(run->dir));
    ipw_rundir_failed(run->dir, &err);
    ipw_run_fail(run, &err);
    ipw_run_step_soon(run);
}

static void sync_soon(struct ipw_run *run);

static void synced(void *ud, int errnum)
{
    struct ipw_run *run = ud;

    run->syncing = false;
    if (errnum) {
        sync_failed(run, errnum);
        return;
    }
    announce(run, run->n_syncing);
    if (run->n_waiting) sync_soon(run);
    ipw_run_step_soon(run);
}

static void sync_due(void *ud)
{
    struct ipw_run *run = ud;
    int fds[IPW_RUNDIR_FDS];
    size_t n = ipw_rundir_fds(run->dir, fds);

    run->sync_began_ns = ipw_now_ns();
    run->n_syncing = run->n_waiting;
    ipw_syncer_start(run->syncer, fds, n, synced, run);
}

/* One at a time; what is written meanwhile is covered by the next. */
static void sync_soon(struct ipw_run *run)
{
    int64_t wait_ns = run->sync_began_ns + SYNC_EVERY_NS - ipw_now_ns();

    run->syncing = true;
    if (run->sync_began_ns && wait_ns > 0 && (run->n_active || ipw_run_more(run)) &&
        !run->interrupted && !run->err.code)
        ipw_timer_start(run->loop, wait_ns, sync_due, run);
    else
        sync_due(run);
}

void ipw_run_wrote(struct ipw_run *run, const char *id)
{
    struct ipw_buf shown = IPW_BUF(4096);

    ipw_text_printable(&shown, id, strlen(id), 200);
    IPW_GROW(run->waiting, run->cap_waiting, run->n_waiting + 1);
    run->waiting[run->n_waiting++] = ipw_buf_take(&shown, NULL);
}

void ipw_run_sync(struct ipw_run *run)
{
    if (run->err.code || !run->n_waiting) return;
    if (run->sync != IPW_SYNC_QUERY)
        announce(run, run->n_waiting);
    else if (!run->syncing)
        sync_soon(run);
}

void ipw_run_sync_close(struct ipw_run *run)
{
    ipw_syncer_free(run->syncer);
    run->syncer = NULL;
    for (size_t i = 0; i < run->n_waiting; i++) free(run->waiting[i]);
    free(run->waiting);
    run->waiting = NULL;
    run->n_waiting = run->cap_waiting = 0;
}
