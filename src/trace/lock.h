/* trace/lock.h: ensures that only one process writes a run's folder.
 *
 * The lock is a flock on FOLDER/lock.  The file's text names the owner: "pid 12, start 345, host h,
 * since DATE" (start: field 22 of /proc/PID/stat, which distinguishes processes that had the same
 * number).  The kernel releases the lock when the process ends, in any way; no child inherits the
 * descriptor.  So an unlocked file with a text is stale, and the next process takes it over.  A
 * normal release removes the file. */
#ifndef IPW_TRACE_LOCK_H
#define IPW_TRACE_LOCK_H

#include <stdbool.h>

#include "base/err.h"

struct ipw_lock {
    int fd;          /* -1: not held */
    char stale[160]; /* text of an owner that ended without a release; "": there was none */
};
#define IPW_LOCK_NONE ((struct ipw_lock){.fd = -1})

/* Fails with IPW_EEXISTS at once, naming the owner, if another process holds the lock. */
int ipw_lock_take(struct ipw_lock *lock, const char *folder, struct ipw_err *err);
void ipw_lock_drop(struct ipw_lock *lock, const char *folder, bool remove);
/* Returns 0 while FOLDER leads to the folder that was locked.  If that was removed, moved or
 * replaced, it returns IPW_ENOTFOUND and says how: files written under its name would then be lost
 * or go into another run. */
int ipw_lock_check(const struct ipw_lock *lock, const char *folder, struct ipw_err *err);
/* Returns the same error as ipw_lock_take() if a process holds the lock; else 0. */
int ipw_lock_look(const char *folder, struct ipw_err *err);

#endif
