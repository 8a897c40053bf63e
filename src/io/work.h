/* io/work.h: runs a function on a thread of its own pool, so that the loop need not wait for it.
 *
 * `run` is called on libuv's pool and may touch only data that `ud` leads to.  Then `done` is
 * called in the loop's thread.  The work cannot be cancelled: the loop must run until `done` was
 * called.  So the caller keeps `ud` alive until then, and needs its own way to stop `run` early. */
#ifndef IPW_IO_WORK_H
#define IPW_IO_WORK_H

#include "io/loop.h"

void ipw_work_start(struct ipw_loop *loop, void (*run)(void *ud), void (*done)(void *ud), void *ud);

#endif
