/* io/syncer.h: a thread that waits for the disk, so that nobody else has to.
 *
 * fdatasync takes a tenth of a millisecond or two seconds; the loop, whose callbacks stamp tokens,
 * must notice neither.  One request is under way at a time; its descriptors are synced in order,
 * and `done` is called in the loop's thread with 0 or the errno of the first that failed.  ENOENT
 * says that a file was removed while it was open: what is written to it is lost with it.  A failed
 * sync must not be tried again: the kernel may have dropped the pages, and the next success says
 * nothing (LWN, "PostgreSQL's fsync() surprise", 2018).  The thread takes no signals. */
#ifndef IPW_IO_SYNCER_H
#define IPW_IO_SYNCER_H

#include <stddef.h>

#include "io/loop.h"

enum { IPW_SYNCER_FDS = 8 };

struct ipw_syncer;

int ipw_syncer_new(struct ipw_syncer **out, struct ipw_loop *loop, struct ipw_err *err);
/* Waits for a request under way; its `done` is not called any more.  NULL is fine. */
void ipw_syncer_free(struct ipw_syncer *s);
/* At most IPW_SYNCER_FDS descriptors, which must stay open until `done`, which keeps the loop
 * running. */
void ipw_syncer_start(struct ipw_syncer *s, const int *fds, size_t n,
                      void (*done)(void *ud, int errnum), void *ud);

#endif
