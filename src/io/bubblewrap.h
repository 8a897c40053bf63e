/* io/bubblewrap.h: isolates a child process with bubblewrap (bwrap(1)).
 *
 * Inside, a program has no network, sees only processes of its own sandbox, and has a read-only
 * system (/usr, /opt and a few files of /etc), an empty /tmp and /dev, and one writable folder: the
 * workspace.  It sees no home folder and no other file of the user, except the paths that it may
 * read.  A list of system calls is refused: keys of the session, io_uring, new user namespaces,
 * sockets to the host of a virtual machine, the kernel's log, bpf, perf and userfaultfd.  Programs
 * of another architecture are ended.  (A kernel without seccomp refuses nothing.)  The sandbox and
 * everything in it end with its first process.
 *
 * Only proc_helper.c calls ipw_bubblewrap_enter(), in the new process; other files only ask whether
 * a sandbox can be made.  proc_helper.c also sets limits, capabilities and Landlock. */
#ifndef IPW_IO_BUBBLEWRAP_H
#define IPW_IO_BUBBLEWRAP_H

#include <stdbool.h>
#include <stddef.h>

/* Size of /tmp and of /dev/shm in a sandbox, each. */
#define IPW_BUBBLEWRAP_TMP_BYTES ((size_t)256 << 20)

/* Is bubblewrap installed? */
bool ipw_bubblewrap_found(void);
/* Can it make a sandbox here?  Often not in a container.  The first call starts it (some ms). */
bool ipw_bubblewrap_works(void);

struct ipw_bubblewrap {
    const char *workspace;    /* absolute; NULL: only /tmp can be written */
    const char *const *reads; /* absolute paths that are visible besides the system */
    size_t n_reads;
    size_t tmp_bytes; /* size of /tmp and of /dev/shm, each */
};

/* Turns this process into `argv` in a sandbox, through our own helper (`__exec inside=1`), which is
 * visible as /ipw-agent there.  Returns an errno if bubblewrap could not be started.  If bubblewrap
 * cannot make the sandbox, the process ends with a line on stderr. */
int ipw_bubblewrap_enter(const struct ipw_bubblewrap *sandbox, char *const *argv);

#endif
