#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
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
static void end_defer(struct ipw_defer *defer)
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
            if (copy.own) end_defer(defer);
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

/* ---- timers ----
 *
 * One binary heap of timers behind one timerfd.  The timerfd is exact to the nanosecond, while
 * libuv's own timers count whole milliseconds, so a due request is sent at its instant.  The
 * timerfd is set again only if it would fire too late.  So a deadline that is set and cleared with
 * every request costs two heap steps and no system call, and at worst a wake-up with nothing
 * due. */

static bool before(const struct ipw_timer *a, const struct ipw_timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

static void put(struct ipw_loop *loop, size_t pos, struct ipw_timer *timer)
{
    loop->heap[pos - 1] = timer;
    timer->pos = pos;
}

static void sift_up(struct ipw_loop *loop, size_t pos, struct ipw_timer *timer)
{
    while (pos > 1 && before(timer, loop->heap[pos / 2 - 1])) {
        put(loop, pos, loop->heap[pos / 2 - 1]);
        pos /= 2;
    }
    put(loop, pos, timer);
}

static void sift_down(struct ipw_loop *loop, size_t pos, struct ipw_timer *timer)
{
    for (size_t child; (child = pos * 2) <= loop->n_heap; pos = child) {
        if (child < loop->n_heap && before(loop->heap[child], loop->heap[child - 1])) child++;
        if (!before(loop->heap[child - 1], timer)) break;
        put(loop, pos, loop->heap[child - 1]);
    }
    put(loop, pos, timer);
}

static void arm_clock(struct ipw_loop *loop)
{
    struct itimerspec at = {0};
    int64_t due_ns;

    if (!loop->n_heap) return;
    due_ns = loop->heap[0]->due_ns > 0 ? loop->heap[0]->due_ns : 1; /* 0 would disarm it */
    if (loop->clock_due_ns <= due_ns) return;
    loop->clock_due_ns = due_ns;
    at.it_value.tv_sec = (time_t)(due_ns / IPW_NS_PER_S);
    at.it_value.tv_nsec = (long)(due_ns % IPW_NS_PER_S);
    if (timerfd_settime(loop->clock_fd, TFD_TIMER_ABSTIME, &at, NULL))
        IPW_BUG("the loop's clock cannot be set (%d)", errno);
}

/* A timer of a public function, which is allocated. */
static void end_timer(struct ipw_timer *timer)
{
    ipw_loop_unhold(timer->loop);
    timer->loop->leftovers--;
    free(timer);
}

static void on_clock(uv_poll_t *clock, int status, int events)
{
    struct ipw_loop *loop = clock->data;
    /* Timers armed by these callbacks wait for the next round. */
    uint64_t born_later = loop->next_seq;
    int64_t now = ipw_now_ns();
    uint64_t times;

    (void)status;
    (void)events;
    /* Nothing to read: the timerfd was set again after it had fired. */
    if (read(loop->clock_fd, &times, sizeof times) < 0 && errno == EAGAIN) return;
    loop->clock_due_ns = INT64_MAX;
    while (loop->n_heap && loop->heap[0]->due_ns <= now && loop->heap[0]->seq < born_later) {
        struct ipw_timer *timer = loop->heap[0], copy = *timer;

        ipw_timer_disarm(timer);
        if (copy.own) end_timer(timer);
        copy.fn(copy.ud);
    }
    arm_clock(loop);
}

static int open_clock(struct ipw_loop *loop, struct ipw_err *err)
{
    loop->clock_due_ns = INT64_MAX;
    loop->clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->clock_fd < 0) return ipw_fail_errno(err, errno, "cannot create a timer");
    loop->clock.data = loop;
    if (uv_poll_init(&loop->uv, &loop->clock, loop->clock_fd) ||
        uv_poll_start(&loop->clock, UV_READABLE, on_clock))
        IPW_BUG("a timer cannot be waited for");
    uv_unref((uv_handle_t *)&loop->clock);
    return 0;
}

void ipw_timer_arm(struct ipw_timer *timer, int64_t due_ns)
{
    struct ipw_loop *loop = timer->loop;

    ipw_timer_disarm(timer);
    timer->due_ns = due_ns;
    timer->seq = loop->next_seq++;
    IPW_GROW(loop->heap, loop->cap_heap, loop->n_heap + 1);
    sift_up(loop, ++loop->n_heap, timer);
    arm_clock(loop);
}

void ipw_timer_disarm(struct ipw_timer *timer)
{
    struct ipw_loop *loop = timer->loop;
    size_t pos = timer->pos;
    struct ipw_timer *last;

    if (!pos) return;
    timer->pos = 0;
    last = loop->heap[--loop->n_heap];
    if (last == timer) return;
    if (pos > 1 && before(last, loop->heap[pos / 2 - 1]))
        sift_up(loop, pos, last);
    else
        sift_down(loop, pos, last);
}

struct ipw_timer *ipw_timer_start_at(struct ipw_loop *loop, int64_t due_ns, ipw_loop_fn fn,
                                     void *ud)
{
    struct ipw_timer *timer = ipw_calloc(1, sizeof *timer);

    *timer = (struct ipw_timer){.loop = loop, .fn = fn, .ud = ud, .own = true};
    ipw_loop_hold(loop);
    loop->leftovers++;
    ipw_timer_arm(timer, due_ns);
    return timer;
}

struct ipw_timer *ipw_timer_start(struct ipw_loop *loop, int64_t delay_ns, ipw_loop_fn fn, void *ud)
{
    int64_t now = ipw_now_ns();

    if (delay_ns < 0) delay_ns = 0;
    return ipw_timer_start_at(loop, delay_ns > INT64_MAX - now ? INT64_MAX : now + delay_ns, fn,
                              ud);
}

void ipw_timer_cancel(struct ipw_timer *timer)
{
    if (!timer) return;
    ipw_timer_disarm(timer);
    end_timer(timer);
}

/* ---- making and unmaking ---- */

int ipw_loop_new(struct ipw_loop **out, struct ipw_err *err)
{
    struct ipw_loop *loop = ipw_calloc(1, sizeof *loop);
    struct sigaction now;
    int rc = uv_loop_init(&loop->uv);

    if (rc) {
        free(loop);
        return ipw_fail_errno(err, -rc, "cannot create an event loop");
    }
    rc = open_clock(loop, err);
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
    close(loop->clock_fd);
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
    end_defer(defer);
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
