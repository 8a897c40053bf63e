/* run/workspaces.h: the temporary folder of a process's workspaces, and its owner.
 *
 * It is $TMPDIR/ipw-agent-XXXXXX, mode 0700, with a file `.owner` that is locked (flock) as long as
 * its process lives.  The kernel releases the lock however the process ends, and no child inherits
 * it.  If the lock of a folder of this user is free, its process was killed, and the next run
 * removes the folder.  A folder without such a file is none of ours and stays. */
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
/* Removes it with everything in it. */
void ipw_workspaces_remove(struct ipw_workspaces *w);

struct ipw_workspaces_left { /* by killed processes */
    size_t n;
    int64_t bytes;
    bool more; /* and more bytes, in folders that were not counted */
};
/* Counts them; with `sweep` also removes them. */
void ipw_workspaces_left(struct ipw_workspaces_left *out, bool sweep);
/* Their folder: $TMPDIR, or /tmp. */
const char *ipw_workspaces_root(void);

#endif
