/* run/workspaces.h: the temporary folder that holds a process's workspaces, and whose it is.
 *
 * $TMPDIR/ipw-agent-XXXXXX, mode 0700, with a file `.owner` that is locked (flock) as long as its
 * process lives: the kernel gives the lock back however the process ends, and no child inherits it.
 * A folder of this user whose lock is free was left by a process that was killed; the next run
 * sweeps it.  A folder without such a file may belong to an older version, running or not: it is never
 * removed, and counted apart when nothing in it changed for a week.  Removing goes by descriptors,
 * follows no link and does not leave the folder's file system. */
#ifndef IPW_RUN_WORKSPACES_H
#define IPW_RUN_WORKSPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_workspaces {
    char *path; /* NULL: there is none */
    int owner;  /* descriptor of its lock */
};
#define IPW_WORKSPACES_NONE ((struct ipw_workspaces){.owner = -1})

int ipw_workspaces_make(struct ipw_workspaces *w, struct ipw_err *err);
/* With what is left in it. */
void ipw_workspaces_remove(struct ipw_workspaces *w);

enum { IPW_WORKSPACES_OLD_DAYS = 7 };

struct ipw_workspaces_left { /* by processes that were killed */
    size_t n;
    int64_t bytes;
    size_t n_old; /* without an owner's mark, for a week */
};
/* Counts them; `sweep`: and removes them. */
void ipw_workspaces_left(struct ipw_workspaces_left *out, bool sweep);
/* Where they are: $TMPDIR, or /tmp. */
const char *ipw_workspaces_root(void);

#endif
