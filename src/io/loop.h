/* io/loop.h: the event loop.
 *
 * A thin layer over one libuv loop: one-shot timers, work deferred to the next round, signals, a
 * wake-up from other threads, descriptors that can be read, and a hook that runs just before the
 * loop may sleep.  Exactly one thread runs a loop; only ipw_wakeup_send() may be called from other
 * threads.  Callbacks never run inside the call that registers them.  The loop owns registrations
 * only.  Each `start` returns a handle that its caller ends with the matching `cancel`.  A one-shot
 * handle may be cancelled until its callback has been entered.  Making a loop sets SIGPIPE to be
 * ignored, unless the program already chose otherwise. */
#ifndef IPW_IO_LOOP_H
#define IPW_IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_loop;
struct ipw_timer;
struct ipw_defer;
struct ipw_watch; /* of a signal, a wake-up, or a descriptor */

typedef void (*ipw_loop_fn)(void *ud);

int ipw_loop_new(struct ipw_loop **out, struct ipw_err *err);
void ipw_loop_free(struct ipw_loop *loop); /* every handle must have been cancelled or have fired */
/* Runs until ipw_loop_stop(), or until no handle is left that could call back. */
void ipw_loop_run(struct ipw_loop *loop);
void ipw_loop_stop(struct ipw_loop *loop);
void *ipw_loop_uv(struct ipw_loop *loop); /* the uv_loop_t, for io/ only */
/* Handles that their owners still have to cancel; tests end with 0. */
int ipw_loop_leftovers(const struct ipw_loop *loop);

/* Calls fn once, after `delay_ns` or at an instant of ipw_now_ns().  It is never early, and as
 * little late as the machine and the other callbacks allow. */
struct ipw_timer *ipw_timer_start(struct ipw_loop *loop, int64_t delay_ns, ipw_loop_fn fn,
                                  void *ud);
struct ipw_timer *ipw_timer_start_at(struct ipw_loop *loop, int64_t due_ns, ipw_loop_fn fn,
                                     void *ud);
void ipw_timer_cancel(struct ipw_timer *timer); /* NULL is fine */

/* Calls fn once in the next round, before the loop sleeps again, in order of deferral. */
struct ipw_defer *ipw_defer_start(struct ipw_loop *loop, ipw_loop_fn fn, void *ud);
void ipw_defer_cancel(struct ipw_defer *defer); /* NULL is fine */

/* None of the three keeps the loop alive.  fn is called in the loop thread,
 * - each time the signal arrives,
 * - after ipw_wakeup_send(), which any thread may call (several sends may become one call),
 * - each time there is something to read at fd, or its end.  IPW_EIO: the kernel cannot watch it (a
 *   file). */
struct ipw_watch *ipw_signal_start(struct ipw_loop *loop, int signum, ipw_loop_fn fn, void *ud);
struct ipw_watch *ipw_wakeup_start(struct ipw_loop *loop, ipw_loop_fn fn, void *ud);
void ipw_wakeup_send(struct ipw_watch *wakeup);
int ipw_readable_start(struct ipw_watch **out, struct ipw_loop *loop, int fd, ipw_loop_fn fn,
                       void *ud, struct ipw_err *err);
void ipw_watch_cancel(struct ipw_watch *watch); /* NULL is fine */

/* Sets one hook that is called just before the loop may sleep (to flush buffers), and in every
 * eighth round of a loop that does not sleep because a callback is deferred. */
void ipw_loop_before_sleep(struct ipw_loop *loop, ipw_loop_fn fn, void *ud);

#endif
