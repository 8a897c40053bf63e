/* io/work.h: a function on a thread of its own pool, for what would keep the loop waiting.
 *
 * `run` is called on libuv's pool and may touch nothing but what `ud` leads to; `done` afterwards in the
 * loop's thread.  It cannot be taken back: the loop must run until it has called back, so that whoever
 * starts it keeps `ud` alive until then and has its own way to make `run` hurry. */
#ifndef IPW_IO_WORK_H
#define IPW_IO_WORK_H

#include "io/loop.h"

void ipw_work_start(struct ipw_loop *loop, void (*run)(void *ud), void (*done)(void *ud), void *ud);

#endif
