#include "run/durable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

/* While more queries will follow, a sync waits until this long after the start of the one before.
 * Queries that end meanwhile are synced with it, and do not count as done before. */
static const int64_t SYNC_EVERY_NS = 100 * IPW_NS_PER_MS;

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

/* Prints "done ID" for the lines that are safe now. */
static void announce(struct ipw_durable *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ipw_log(IPW_LOG_INFO, "done %s", d->waiting[i]);
        free(d->waiting[i]);
    }
    d->n_waiting -= n;
    memmove(d->waiting, d->waiting + n, d->n_waiting * sizeof *d->waiting);
    d->n_done += n;
    d->done(d->ud);
}

static void sync_failed(struct ipw_durable *d, int errnum)
{
    struct ipw_err err;

    if (errnum == ENOENT)
        ipw_fail(&err, IPW_EIO, "%s: was removed while the run was writing to it",
                 ipw_rundir_path(d->dir));
    else
        ipw_fail_errno(&err, errnum, "%s: the disk lost written data", ipw_rundir_path(d->dir));
    ipw_rundir_failed(d->dir, &err);
    d->failed(d->ud, &err);
}

static void sync_soon(struct ipw_durable *d);

static void synced(void *ud, int errnum)
{
    struct ipw_durable *d = ud;

    d->syncing = false;
    if (errnum) {
        sync_failed(d, errnum);
        return;
    }
    announce(d, d->n_syncing);
    if (d->n_waiting) sync_soon(d);
}

static void sync_due(void *ud)
{
    struct ipw_durable *d = ud;
    int fds[IPW_RUNDIR_FDS];
    size_t n = ipw_rundir_fds(d->dir, fds);

    d->began_ns = ipw_now_ns();
    d->n_syncing = d->n_waiting;
    ipw_syncer_start(d->syncer, fds, n, synced, d);
}

static void sync_soon(struct ipw_durable *d)
{
    int64_t wait_ns = d->began_ns + SYNC_EVERY_NS - ipw_now_ns();

    d->syncing = true;
    if (d->began_ns && wait_ns > 0 && d->more(d->ud))
        ipw_timer_start(d->loop, wait_ns, sync_due, d);
    else
        sync_due(d);
}

void ipw_durable_open(struct ipw_durable *d)
{
    if (d->policy == IPW_SYNC_QUERY) d->syncer = ipw_syncer_new(d->loop);
}

void ipw_durable_wrote(struct ipw_durable *d, const char *id)
{
    struct ipw_buf shown = IPW_BUF(4096);

    ipw_text_printable(&shown, id, strlen(id), 200);
    IPW_GROW(d->waiting, d->cap_waiting, d->n_waiting + 1);
    d->waiting[d->n_waiting++] = ipw_buf_take(&shown, NULL);
}

void ipw_durable_sync(struct ipw_durable *d)
{
    if (!d->n_waiting) return;
    if (d->policy != IPW_SYNC_QUERY)
        announce(d, d->n_waiting);
    else if (!d->syncing)
        sync_soon(d);
}

void ipw_durable_close(struct ipw_durable *d)
{
    ipw_syncer_free(d->syncer);
    d->syncer = NULL;
    for (size_t i = 0; i < d->n_waiting; i++) free(d->waiting[i]);
    free(d->waiting);
    d->waiting = NULL;
    d->n_waiting = d->cap_waiting = 0;
}
