#include "io/syncer.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/work.h"

struct ipw_syncer {
    struct ipw_loop *loop;
    sem_t synced; /* the pool's thread has done the request in progress */
    int fds[IPW_SYNCER_FDS];
    size_t n;
    int errnum;
    bool busy, freed;
    void (*done)(void *ud, int errnum);
    void *ud;
};

/* Syncs one file; returns 0 or the errno. */
static int sync_one(int fd)
{
    struct stat st;

    if (TEMP_FAILURE_RETRY(fdatasync(fd)) < 0 && errno != EINVAL)
        return errno; /* EINVAL: a pipe or a device */
    return fstat(fd, &st) == 0 && st.st_nlink == 0 ? ENOENT : 0;
}

static void sync_all(void *ud)
{
    struct ipw_syncer *s = ud;

    s->errnum = 0;
    for (size_t i = 0; i < s->n && !s->errnum; i++) s->errnum = sync_one(s->fds[i]);
    sem_post(&s->synced);
}

static void release(struct ipw_syncer *s)
{
    sem_destroy(&s->synced);
    free(s);
}

static void on_done(void *ud)
{
    struct ipw_syncer *s = ud;

    if (s->freed) {
        release(s);
        return;
    }
    sem_wait(&s->synced);
    s->busy = false;
    s->done(s->ud, s->errnum); /* may start the next request, or free the syncer */
}

struct ipw_syncer *ipw_syncer_new(struct ipw_loop *loop)
{
    struct ipw_syncer *s = ipw_calloc(1, sizeof *s);

    s->loop = loop;
    sem_init(&s->synced, 0, 0);
    return s;
}

void ipw_syncer_free(struct ipw_syncer *s)
{
    if (!s) return;
    s->freed = true;
    if (!s->busy)
        release(s);
    else /* the loop still tells of its end */
        while (sem_wait(&s->synced) && errno == EINTR) continue;
}

void ipw_syncer_start(struct ipw_syncer *s, const int *fds, size_t n,
                      void (*done)(void *ud, int errnum), void *ud)
{
    if (n > IPW_SYNCER_FDS) IPW_BUG("%zu files to sync at once", n);
    if (s->busy) IPW_BUG("a sync is under way");
    s->busy = true;
    s->done = done;
    s->ud = ud;
    s->n = n;
    memcpy(s->fds, fds, n * sizeof *fds);
    ipw_work_start(s->loop, sync_all, on_done, s);
}
