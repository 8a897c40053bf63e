/* One binary heap of timers behind one libuv timer.  The libuv timer is re-armed only when it would
 * fire too late: a deadline that is set and cleared with every request costs two heap steps and no
 * libuv call, and at worst one wake-up that finds nothing due. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/loop_internal.h"

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

static void on_clock(uv_timer_t *clock);

/* libuv counts in whole milliseconds of the same monotonic clock: the next one after the
 * instant is never early by its reckoning, and on_clock() looks again. */
static void arm_clock(struct ipw_loop *loop)
{
    int64_t due_ms, now_ms;

    if (!loop->n_heap) return;
    due_ms = loop->heap[0]->due_ns / IPW_NS_PER_MS + 1;
    if (loop->clock_due_ms <= due_ms) return;
    now_ms = (int64_t)uv_now(&loop->uv);
    loop->clock_due_ms = due_ms;
    uv_timer_start(&loop->clock, on_clock, due_ms > now_ms ? (uint64_t)(due_ms - now_ms) : 0, 0);
}

static void on_clock(uv_timer_t *clock)
{
    struct ipw_loop *loop = clock->data;
    uint64_t born_later = loop->next_seq; /* timers armed by these callbacks wait for a round */
    int64_t now = ipw_now_ns();

    loop->clock_due_ms = INT64_MAX;
    while (loop->n_heap && loop->heap[0]->due_ns <= now && loop->heap[0]->seq < born_later) {
        struct ipw_timer *timer = loop->heap[0];
        ipw_timer_disarm(timer);
        timer->fn(timer->ud);
    }
    arm_clock(loop);
}

void ipw_timers_init(struct ipw_loop *loop)
{
    loop->clock_due_ms = INT64_MAX;
    loop->clock.data = loop;
    uv_timer_init(&loop->uv, &loop->clock);
    uv_unref((uv_handle_t *)&loop->clock);
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

/* The public, allocated kind. */
struct timer_box {
    struct ipw_timer timer; /* first: the handle is a pointer to it */
    ipw_loop_fn fn;
    void *ud;
};

static void end_box(struct timer_box *box)
{
    ipw_loop_unhold(box->timer.loop);
    box->timer.loop->leftovers--;
    free(box);
}

static void fire_box(void *ud)
{
    struct timer_box *box = ud;
    ipw_loop_fn fn = box->fn;
    void *fn_ud = box->ud;

    end_box(box);
    fn(fn_ud);
}

struct ipw_timer *ipw_timer_start(struct ipw_loop *loop, int64_t delay_ns, ipw_loop_fn fn, void *ud)
{
    struct timer_box *box = ipw_calloc(1, sizeof *box);
    int64_t now = ipw_now_ns();

    if (delay_ns < 0) delay_ns = 0;
    box->timer = (struct ipw_timer){.loop = loop, .fn = fire_box, .ud = box};
    box->fn = fn;
    box->ud = ud;
    ipw_loop_hold(loop);
    loop->leftovers++;
    ipw_timer_arm(&box->timer, delay_ns > INT64_MAX - now ? INT64_MAX : now + delay_ns);
    return &box->timer;
}

void ipw_timer_cancel(struct ipw_timer *timer)
{
    if (!timer) return;
    ipw_timer_disarm(timer);
    end_box((struct timer_box *)timer);
}
