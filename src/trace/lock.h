/* trace/lock.h: one writer for a run's folder.
 *
 * A flock on FOLDER/lock, whose text says whose it is: "pid 12, start 345, host h, since DATE"
 * (start: field 22 of /proc/PID/stat, which tells two processes of one number apart).  The kernel
 * gives it back with the process, however that ends, and no child inherits the descriptor; so a
 * file with a text that nobody locks is stale, and is taken over.  It is removed when it is given
 * back in order. */
#ifndef IPW_TRACE_LOCK_H
#define IPW_TRACE_LOCK_H

#include <stdbool.h>

#include "base/err.h"

struct ipw_lock {
    int fd;          /* -1: not held */
    char stale[160]; /* of the owner that went without giving it back; "": there was none */
};
#define IPW_LOCK_NONE ((struct ipw_lock){.fd = -1})

/* IPW_EEXISTS at once, naming the owner, when another process holds it. */
int ipw_lock_take(struct ipw_lock *lock, const char *folder, struct ipw_err *err);
void ipw_lock_drop(struct ipw_lock *lock, const char *folder, bool remove);
/* 0 while FOLDER leads to where the lock was taken; IPW_ENOTFOUND, and how, when it was removed, moved or
 * replaced meanwhile: what is written by its name then goes astray, or into another run. */
int ipw_lock_check(const struct ipw_lock *lock, const char *folder, struct ipw_err *err);
/* The same error when somebody holds it; else 0. */
int ipw_lock_look(const char *folder, struct ipw_err *err);

#endif
