/* io/sandbox.h: the wall around a child process, made by bubblewrap (bwrap(1)).
 *
 * Inside, a program has no network, processes of its own sandbox only, a read-only system (/usr, /opt
 * and a few files of /etc), an empty /tmp and /dev, and one folder that it may write: the workspace.
 * It sees no home folder and no other file of the user, apart from the paths that it is given to
 * read.  The sandbox ends with its first process, and all that is in it.
 *
 * Only proc_helper.c calls ipw_sandbox_enter(), in the new process; others ask whether there is a
 * bubblewrap.  Limits, capabilities and Landlock are proc_helper.c's. */
#ifndef IPW_IO_SANDBOX_H
#define IPW_IO_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Is bubblewrap installed?  Whether it works here, ipw_proc_start() finds out. */
bool ipw_sandbox_found(void);

struct ipw_sandbox {
    const char *workspace;    /* absolute; NULL: nothing may be written but /tmp */
    const char *const *reads; /* absolute paths that are visible beside the system */
    size_t n_reads;
    size_t tmp_bytes; /* of /tmp and of /dev/shm each */
};

/* Turns this process into `argv` in a sandbox, by way of our own helper (`__exec inside=1`), which is
 * visible as /ipw-agent there.  Returns an errno if bubblewrap could not be started; a sandbox that
 * bubblewrap cannot make ends the process with a line on stderr. */
int ipw_sandbox_enter(const struct ipw_sandbox *sandbox, char *const *argv);

#endif
