/* io/proc_priv.h: what proc.c, service.c, child.c and proc_helper.c share.
 *
 * A `struct ipw_child` is one process that we started through the helper: child.c keeps the list of
 * them, hears SIGCHLD, and looks after the processes that were orphaned below them, which come to
 * us because the runner is a child subreaper.  A leader that has ended stays a zombie until
 * ipw_child_end(), so that its process group's number cannot be given to anyone else while we may
 * still send signals to it.  Not for other floors. */
#ifndef IPW_IO_PROC_PRIV_H
#define IPW_IO_PROC_PRIV_H

#include <sys/types.h>

#include "io/loop_priv.h"
#include "io/proc.h"

enum {
    PROC_STATUS_FD = 3, /* in the helper: where it writes the errno of a failed exec */
    PROC_LINGER_MS = 200,
    PROC_GRACE_S = 2, /* between TERM and KILL */
};

#define PROC_MARKER "IPW_TOOL_ID" /* in a tool's environment: names the runner and the call */
#define PROC_PATH   "/usr/local/bin:/usr/bin:/bin"

struct ipw_child {
    struct ipw_child *next; /* in the list of all children of this process */
    struct ipw_loop *loop;
    pid_t pid; /* also its process group and session; 0: none */
    unsigned long id;
    int status_fd;
    bool in_sandbox;
    bool exited;                                   /* a zombie now */
    void (*on_exit)(struct ipw_child *child);      /* once, when the leader has ended */
    void (*on_loop_free)(struct ipw_child *child); /* the loop goes away under it: end and free */
};

struct ipw_child_end {
    int exec_errno, exit_code, term_signal;
    bool no_sandbox; /* one was asked for, and bubblewrap could not make it */
    int64_t cpu_ns;
};

/* Limits of 0 are not set.  The three descriptors become 0, 1, 2 of the child; they stay the
 * caller's.  `inherit_env`: the whole of ours (which holds no keys: base/keyring.h), else the
 * allow-list and `env`. */
struct ipw_child_spec {
    const char *const *argv;
    const char *cwd;
    const char *const *env;
    bool inherit_env;
    /* The folder that a program in a sandbox may write, or "" for none; NULL: no sandbox.  `reads`:
     * other paths that it sees; NULL-terminated, or NULL. */
    const char *sandbox;
    const char *const *reads;
    bool apart; /* it runs what others wrote: no capabilities, no look at processes but its own */
    int64_t cpu_s;
    size_t memory_bytes, file_bytes, open_files;
    int fds[3];
};

int ipw_child_start(struct ipw_child *child, struct ipw_loop *loop,
                    const struct ipw_child_spec *spec, struct ipw_err *err);
void ipw_child_signal(struct ipw_child *child, int signum); /* to its group */
/* Kills what is left of the group, reaps the leader (if it has exited) and takes the child out of
 * the list; then kills orphans that have no running owner. */
void ipw_child_end(struct ipw_child *child, struct ipw_child_end *end);

/* Both ends close-on-exec and above 9, so that none of them can be in the way of the child's 0..3;
 * the one for us (`ours` is 0 or 1) does not block. */
int ipw_child_pipe(int ends[2], int ours, struct ipw_err *err);
/* A pair of connected sockets, the same way; the first is ours and does not block. */
int ipw_child_socket(int ends[2], struct ipw_err *err);
int ipw_child_null(struct ipw_err *err); /* /dev/null, above 9; or a negative code */

/* One end of a pipe, watched. */
struct ipw_pipe {
    uv_poll_t uv; /* first: the close callback frees the whole */
    int fd;
    void (*on_ready)(void *ud);
    void *ud;
};

struct ipw_pipe *ipw_pipe_watch(struct ipw_loop *loop, int fd, int uv_events,
                                void (*on_ready)(void *ud), void *ud);
void ipw_pipe_close(struct ipw_pipe **pipe); /* closes the descriptor too; NULL is fine */

#endif
