/* io/loop_priv.h: the inside of the loop, for the other files of io/.
 *
 * Timers and defers that live inside another struct (a start needs no allocation), the loop's two
 * counts, and the slot for the reaper of child processes.  A `hold` keeps ipw_loop_run() running; a
 * `leftover` is counted by ipw_loop_leftovers().  libuv's handles are unreferenced throughout, so
 * idle sockets and spurious timers do not keep a finished program alive.  Private to src/io. */
#ifndef IPW_IO_LOOP_PRIV_H
#define IPW_IO_LOOP_PRIV_H

#include <stddef.h>
#include <uv.h>

#include "io/loop.h"

struct ipw_timer {
    struct ipw_loop *loop;
    int64_t due_ns;
    uint64_t seq; /* timers of equal instants fire in the order in which they were armed */
    size_t pos;   /* position in the heap, from 1; 0: not armed */
    ipw_loop_fn fn;
    void *ud;
    bool own; /* allocated by ipw_timer_start(), and freed when it fires */
};

struct ipw_defer {
    struct ipw_defer *prev, *next; /* NULL: not armed */
    struct ipw_loop *loop;
    ipw_loop_fn fn;
    void *ud;
    bool own; /* allocated by ipw_defer_start(), likewise */
};

struct ipw_loop {
    uv_loop_t uv;
    uv_prepare_t prepare; /* runs the defers and the hook; referenced while holds > 0 */
    /* Active only while a defer waits, because the loop must not sleep then. */
    uv_idle_t idle;
    uv_poll_t clock;      /* on clock_fd, a timerfd: armed for the heap's first timer, or earlier */
    int64_t clock_due_ns; /* when it fires; INT64_MAX: not armed */
    int clock_fd;
    struct ipw_timer **heap;
    size_t n_heap, cap_heap;
    uint64_t next_seq;
    struct ipw_defer defers, running; /* list heads */
    ipw_loop_fn before_sleep;
    void *before_sleep_ud;
    int awake; /* rounds without a wait since the hook ran */
    int holds, leftovers;
    void *reaper; /* set by proc.c; freed with the loop */
    void (*reaper_free)(void *reaper);
};

void ipw_loop_hold(struct ipw_loop *loop);
void ipw_loop_unhold(struct ipw_loop *loop);

/* Embedded timers: fill loop, fn and ud once.  Arming an armed timer moves it.  They neither hold
 * the loop nor count as leftovers; their owner does. */
void ipw_timer_arm(struct ipw_timer *timer, int64_t due_ns);
void ipw_timer_disarm(struct ipw_timer *timer);

void ipw_defer_arm(struct ipw_defer *defer); /* no effect if armed; holds the loop */
void ipw_defer_disarm(struct ipw_defer *defer);

#endif
