/* io/syncer.h: a thread of the pool (io/work.h) waits for the disk instead of the loop.
 *
 * fdatasync may take a tenth of a millisecond or two seconds.  The loop's callbacks stamp tokens,
 * so they must not wait.  One request is in progress at a time.  Its descriptors are synced in
 * order, and `done` is called in the loop's thread with 0 or the errno of the first failure.
 * ENOENT means that a file was removed while it was open: data written to it is lost.  Do not
 * repeat a failed sync: the kernel may have dropped the pages, and the next success would prove
 * nothing (LWN, "PostgreSQL's fsync() surprise", 2018). */
#ifndef IPW_IO_SYNCER_H
#define IPW_IO_SYNCER_H

#include <stddef.h>

#include "io/loop.h"

enum { IPW_SYNCER_FDS = 8 };

struct ipw_syncer;

struct ipw_syncer *ipw_syncer_new(struct ipw_loop *loop);
/* Waits for a request in progress; its `done` is not called.  The loop must run once more before it
 * is freed.  NULL is fine. */
void ipw_syncer_free(struct ipw_syncer *s);
/* At most IPW_SYNCER_FDS descriptors; they must stay open until `done`.  The request keeps the loop
 * running. */
void ipw_syncer_start(struct ipw_syncer *s, const int *fds, size_t n,
                      void (*done)(void *ud, int errnum), void *ud);

#endif
