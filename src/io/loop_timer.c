/* One binary heap of timers behind one timerfd.  The timerfd is exact to the nanosecond, while
 * libuv's own timers count whole milliseconds, so a due request is sent at its instant.  The
 * timerfd is set again only if it would fire too late.  So a deadline that is set and cleared with
 * every request costs two heap steps and no system call, and at worst a wake-up with nothing
 * due. */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/loop_priv.h"

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
static void end_own(struct ipw_timer *timer)
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
        if (copy.own) end_own(timer);
        copy.fn(copy.ud);
    }
    arm_clock(loop);
}

int ipw_timers_init(struct ipw_loop *loop, struct ipw_err *err)
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

void ipw_timers_release(struct ipw_loop *loop) { close(loop->clock_fd); }

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
    end_own(timer);
}
