/* io/cgroup.h: a control group (cgroups(7), version 2) for the processes of a sandbox.
 *
 * RLIMIT_NPROC does not count the processes of root, and RLIMIT_AS limits each process alone.  A
 * group limits all processes of one child together: their number, and their memory with the files
 * that they write to /tmp.  Groups are made where one is delegated to us: in the nearest group
 * around ours whose folder we may write and that shares out `memory` and `pids`, as below systemd's
 * user@.service, or for root.  Where there is none, children have no group.
 *
 * The caller makes a group, tells its folder to the new process, which enters it, and ends the
 * group after the child.  IPW_CGROUP_ROOT is used in place of the system's tree. */
#ifndef IPW_IO_CGROUP_H
#define IPW_IO_CGROUP_H

#include <stddef.h>

#include "base/err.h"

/* The folder in which groups are made; NULL: none is delegated.  Found by the first call. */
const char *ipw_cgroup_parent(void);
/* Makes a group with limits; *out: its folder, owned by the caller; NULL: none is delegated. */
int ipw_cgroup_make(char **out, size_t memory_bytes, struct ipw_err *err);
/* The calling process enters it.  Returns an errno, or 0. */
int ipw_cgroup_enter(const char *folder);
/* Kills what is left in it and removes it, now or (while a process still ends) by a later call.
 * Frees the text.  NULL: only removes those that are left. */
void ipw_cgroup_end(char *folder);
/* Waits a little for those that are left. */
void ipw_cgroup_end_all(void);

#endif
