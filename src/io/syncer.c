#include "io/syncer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/loop_priv.h"

struct ipw_syncer {
    struct ipw_loop *loop;
    struct ipw_wakeup *wakeup;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the members from here to `over` */
    pthread_cond_t work;
    int fds[IPW_SYNCER_FDS];
    size_t n;
    bool asked, over, stop;
    int errnum;
    /* used by the loop only */
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

static void *work(void *arg)
{
    struct ipw_syncer *s = arg;

    pthread_mutex_lock(&s->mutex);
    for (;;) {
        int fds[IPW_SYNCER_FDS], errnum = 0;
        size_t n;

        while (!s->asked && !s->stop) pthread_cond_wait(&s->work, &s->mutex);
        if (!s->asked) break;
        s->asked = false;
        n = s->n;
        memcpy(fds, s->fds, sizeof fds);
        pthread_mutex_unlock(&s->mutex);
        for (size_t i = 0; i < n && !errnum; i++) errnum = sync_one(fds[i]);
        pthread_mutex_lock(&s->mutex);
        s->errnum = errnum;
        s->over = true;
        ipw_wakeup_send(s->wakeup);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void on_wakeup(void *ud)
{
    struct ipw_syncer *s = ud;
    bool over;
    int errnum;

    pthread_mutex_lock(&s->mutex);
    over = s->over;
    errnum = s->errnum;
    s->over = false;
    pthread_mutex_unlock(&s->mutex);
    if (!over) return;
    ipw_loop_unhold(s->loop);
    s->done(s->ud, errnum); /* may start the next request, or free the syncer */
}

int ipw_syncer_new(struct ipw_syncer **out, struct ipw_loop *loop, struct ipw_err *err)
{
    struct ipw_syncer *s = ipw_calloc(1, sizeof *s);
    sigset_t all, before;
    int rc;

    s->loop = loop;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->work, NULL);
    s->wakeup = ipw_wakeup_start(loop, on_wakeup, s);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&s->thread, NULL, work, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        ipw_wakeup_cancel(s->wakeup);
        pthread_cond_destroy(&s->work);
        pthread_mutex_destroy(&s->mutex);
        free(s);
        return ipw_fail_errno(err, rc, "cannot start the thread that syncs files");
    }
    *out = s;
    return 0;
}

void ipw_syncer_free(struct ipw_syncer *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    if (s->over) ipw_loop_unhold(s->loop);
    ipw_wakeup_cancel(s->wakeup);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void ipw_syncer_start(struct ipw_syncer *s, const int *fds, size_t n,
                      void (*done)(void *ud, int errnum), void *ud)
{
    if (n > IPW_SYNCER_FDS) IPW_BUG("%zu files to sync at once", n);
    s->done = done;
    s->ud = ud;
    ipw_loop_hold(s->loop);
    pthread_mutex_lock(&s->mutex);
    if (s->asked || s->over) IPW_BUG("a sync is under way");
    memcpy(s->fds, fds, n * sizeof *fds);
    s->n = n;
    s->asked = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->mutex);
}
