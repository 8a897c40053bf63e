#include "io/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "io/loop_priv.h"

/* Rounds without a wait after which the hook runs anyway. */
enum { AWAKE_MOST = 8 };

void ipw_loop_hold(struct ipw_loop *loop)
{
    if (loop->holds++ == 0) uv_ref((uv_handle_t *)&loop->prepare);
}

void ipw_loop_unhold(struct ipw_loop *loop)
{
    if (--loop->holds == 0) uv_unref((uv_handle_t *)&loop->prepare);
}

/* Work that a public function deferred, which is allocated. */
static void end_own(struct ipw_defer *defer)
{
    defer->loop->leftovers--;
    free(defer);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* an active idle handle keeps libuv from sleeping; it does nothing else */
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct ipw_loop *loop = prepare->data;

    if (loop->defers.next != &loop->defers) {
        /* Functions deferred from now on wait for the next round; otherwise a chain of them starves
         * the sockets. */
        loop->running.next = loop->defers.next;
        loop->running.prev = loop->defers.prev;
        loop->running.next->prev = &loop->running;
        loop->running.prev->next = &loop->running;
        loop->defers.next = loop->defers.prev = &loop->defers;
        while (loop->running.next != &loop->running) {
            struct ipw_defer *defer = loop->running.next, copy = *defer;

            ipw_defer_disarm(defer);
            if (copy.own) end_own(defer);
            copy.fn(copy.ud);
        }
    }
    /* A round that does not wait leaves this to the next one, except in a long chain of them. */
    if (loop->defers.next == &loop->defers || ++loop->awake == AWAKE_MOST) {
        loop->awake = 0;
        if (loop->before_sleep) loop->before_sleep(loop->before_sleep_ud);
    }
    if (loop->defers.next != &loop->defers) {
        uv_idle_start(&loop->idle, on_idle);
    } else if (uv_is_active((uv_handle_t *)&loop->idle)) {
        uv_idle_stop(&loop->idle);
    }
}

int ipw_loop_new(struct ipw_loop **out, struct ipw_err *err)
{
    struct ipw_loop *loop = ipw_calloc(1, sizeof *loop);
    struct sigaction now;
    int rc = uv_loop_init(&loop->uv);

    if (rc) {
        free(loop);
        return ipw_fail_errno(err, -rc, "cannot create an event loop");
    }
    rc = ipw_timers_init(loop, err);
    if (rc) {
        uv_loop_close(&loop->uv);
        free(loop);
        return rc;
    }
    /* A closed peer must cause EPIPE, not end the program.  Neither OpenSSL nor a write to a
     * child's input can ask for that per call. */
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
    loop->defers.next = loop->defers.prev = &loop->defers;
    loop->running.next = loop->running.prev = &loop->running;
    uv_idle_init(&loop->uv, &loop->idle);
    uv_prepare_init(&loop->uv, &loop->prepare);
    loop->prepare.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_unref((uv_handle_t *)&loop->prepare);
    *out = loop;
    return 0;
}

void ipw_loop_free(struct ipw_loop *loop)
{
    if (!loop) return;
    if (loop->reaper) loop->reaper_free(loop->reaper);
    if (loop->leftovers)
        IPW_BUG("the event loop is freed with %d handles still in use", loop->leftovers);
    uv_close((uv_handle_t *)&loop->clock, NULL);
    uv_close((uv_handle_t *)&loop->idle, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* completes the closing of handles */
    if (uv_loop_close(&loop->uv)) IPW_BUG("the event loop has an open libuv handle");
    ipw_timers_release(loop);
    free(loop->heap);
    free(loop);
}

void ipw_loop_run(struct ipw_loop *loop) { uv_run(&loop->uv, UV_RUN_DEFAULT); }

void ipw_loop_stop(struct ipw_loop *loop) { uv_stop(&loop->uv); }

void *ipw_loop_uv(struct ipw_loop *loop) { return &loop->uv; }

int ipw_loop_leftovers(const struct ipw_loop *loop) { return loop->leftovers; }

void ipw_loop_before_sleep(struct ipw_loop *loop, ipw_loop_fn fn, void *ud)
{
    loop->before_sleep = fn;
    loop->before_sleep_ud = ud;
}

/* --- deferred work --------------------------------------------------------------------------- */

void ipw_defer_arm(struct ipw_defer *defer)
{
    struct ipw_loop *loop = defer->loop;

    if (defer->next) return;
    defer->next = &loop->defers;
    defer->prev = loop->defers.prev;
    defer->prev->next = loop->defers.prev = defer;
    ipw_loop_hold(loop);
}

void ipw_defer_disarm(struct ipw_defer *defer)
{
    if (!defer->next) return;
    defer->prev->next = defer->next;
    defer->next->prev = defer->prev;
    defer->prev = defer->next = NULL;
    ipw_loop_unhold(defer->loop);
}

struct ipw_defer *ipw_defer_start(struct ipw_loop *loop, ipw_loop_fn fn, void *ud)
{
    struct ipw_defer *defer = ipw_calloc(1, sizeof *defer);

    *defer = (struct ipw_defer){.loop = loop, .fn = fn, .ud = ud, .own = true};
    loop->leftovers++;
    ipw_defer_arm(defer);
    return defer;
}

void ipw_defer_cancel(struct ipw_defer *defer)
{
    if (!defer) return;
    ipw_defer_disarm(defer);
    end_own(defer);
}

/* --- signals, wake-ups, descriptors --------------------------------------------------- */

struct ipw_watch {
    union { /* must be first: the close callback frees the whole struct */
        uv_handle_t any;
        uv_signal_t signal;
        uv_async_t async;
        uv_poll_t poll;
    } uv;
    struct ipw_loop *loop;
    ipw_loop_fn fn;
    void *ud;
};

static void free_handle(uv_handle_t *handle) { free(handle); }

static struct ipw_watch *new_watch(struct ipw_loop *loop, ipw_loop_fn fn, void *ud)
{
    struct ipw_watch *watch = ipw_calloc(1, sizeof *watch);

    *watch = (struct ipw_watch){.loop = loop, .fn = fn, .ud = ud};
    loop->leftovers++;
    return watch;
}

void ipw_watch_cancel(struct ipw_watch *watch)
{
    if (!watch) return;
    watch->loop->leftovers--;
    uv_close(&watch->uv.any, free_handle);
}

static void on_signal(uv_signal_t *uv, int signum)
{
    const struct ipw_watch *watch = (struct ipw_watch *)uv;

    (void)signum;
    watch->fn(watch->ud);
}

struct ipw_watch *ipw_signal_start(struct ipw_loop *loop, int signum, ipw_loop_fn fn, void *ud)
{
    struct ipw_watch *watch = new_watch(loop, fn, ud);

    uv_signal_init(&loop->uv, &watch->uv.signal);
    if (uv_signal_start(&watch->uv.signal, on_signal, signum))
        IPW_BUG("signal %d cannot be watched", signum);
    uv_unref(&watch->uv.any);
    return watch;
}

static void on_wakeup(uv_async_t *uv)
{
    const struct ipw_watch *watch = (struct ipw_watch *)uv;

    watch->fn(watch->ud);
}

struct ipw_watch *ipw_wakeup_start(struct ipw_loop *loop, ipw_loop_fn fn, void *ud)
{
    struct ipw_watch *watch = new_watch(loop, fn, ud);

    if (uv_async_init(&loop->uv, &watch->uv.async, on_wakeup)) IPW_BUG("cannot create a wake-up");
    uv_unref(&watch->uv.any);
    return watch;
}

void ipw_wakeup_send(struct ipw_watch *watch) { uv_async_send(&watch->uv.async); }

static void on_readable(uv_poll_t *uv, int status, int events)
{
    const struct ipw_watch *watch = (struct ipw_watch *)uv;

    (void)status, (void)events;
    watch->fn(watch->ud);
}

int ipw_readable_start(struct ipw_watch **out, struct ipw_loop *loop, int fd, ipw_loop_fn fn,
                       void *ud, struct ipw_err *err)
{
    struct ipw_watch *watch = new_watch(loop, fn, ud);
    int flags = fcntl(fd, F_GETFL), rc = uv_poll_init(&loop->uv, &watch->uv.poll, fd);

    /* libuv made it non-blocking, for all who share it: a terminal's other users as well. */
    if (flags >= 0) fcntl(fd, F_SETFL, flags);
    *out = NULL;
    if (rc) {
        loop->leftovers--;
        free(watch);
        return ipw_fail_errno(err, -rc, "descriptor %d cannot be watched", fd);
    }
    uv_poll_start(&watch->uv.poll, UV_READABLE | UV_DISCONNECT, on_readable);
    uv_unref(&watch->uv.any);
    *out = watch;
    return 0;
}
