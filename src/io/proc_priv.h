/* io/proc_priv.h: shared by proc.c, child.c and proc_helper.c.
 *
 * A `struct ipw_child` is a process that we started through the helper.  child.c keeps the list of
 * them, handles SIGCHLD, and looks after their orphaned processes, which become our children
 * because the runner is a child subreaper.  A leader that has ended stays a zombie until
 * ipw_child_end().  So its process group's number cannot be reused while we may still send signals
 * to it.  Private to src/io. */
#ifndef IPW_IO_PROC_PRIV_H
#define IPW_IO_PROC_PRIV_H

#include <sys/types.h>

#include "io/loop_priv.h"
#include "io/proc.h"

enum {
    PROC_STATUS_FD = 3, /* in the helper: it writes the errno of a failed exec here */
    PROC_LINGER_MS = 200,
    PROC_GRACE_S = 2, /* time between TERM and KILL */
};

#define PROC_MARKER "IPW_TOOL_ID" /* in a tool's environment: names the runner and the call */
#define PROC_PATH   "/usr/local/bin:/usr/bin:/bin"

/* What processes used.  `cpu_ns`: user and system time; -1: unknown.  `peak_bytes`: the most memory
 * that one of them had resident; 0: unknown. */
struct ipw_child_usage {
    int64_t cpu_ns, peak_bytes;
};
struct rusage;
void ipw_child_usage_add(struct ipw_child_usage *to, const struct rusage *of);
/* Kills the processes below `pid`; whether there was one. */
bool ipw_child_kill_below(pid_t pid);
/* Do the processes below `pid` together hold more memory than that? */
bool ipw_child_memory_over(pid_t pid, size_t limit);
/* Bytes of files that were removed, and that the processes below `pid` still hold open, on the file
 * system of the folder. */
uint64_t ipw_child_removed_bytes(pid_t pid, const char *folder);

/* Written to the status pipe by a helper that stays (`measured`), when its program has ended. */
struct ipw_child_report {
    int mark; /* PROC_REPORT, which is no errno */
    struct ipw_child_usage usage;
};
enum { PROC_REPORT = -1 };

struct ipw_child {
    struct ipw_child *next; /* next in the list of all children of this process */
    struct ipw_loop *loop;
    pid_t pid; /* also its process group and session; 0: none */
    unsigned long id;
    int status_fd;
    char *cgroup;                 /* its control group's folder (cgroup.h), or NULL */
    struct ipw_child_usage usage; /* as far as it is known */
    bool in_sandbox, measured;
    bool exited;                              /* it is a zombie now */
    void (*on_exit)(struct ipw_child *child); /* called once, when the leader has ended */
    /* The loop is being freed: end and free the child. */
    void (*on_loop_free)(struct ipw_child *child);
};

struct ipw_child_end {
    int exec_errno, exit_code, term_signal;
    bool no_sandbox; /* a sandbox was requested, and bubblewrap could not make it */
    struct ipw_child_usage usage;
};

/* Limits of 0 are not set.  The three descriptors become 0, 1, 2 of the child; the caller still
 * owns them.  `inherit_env`: pass our whole environment (it holds no keys: base/keyring.h);
 * otherwise only the allow-list and `env`. */
struct ipw_child_spec {
    const char *const *argv;
    const char *cwd;
    const char *const *env;
    bool inherit_env;
    /* The folder that a program in a sandbox may write, or "" for none; NULL: no sandbox.  `reads`:
     * other visible paths, NULL-terminated, or NULL. */
    const char *sandbox;
    const char *const *reads;
    bool own;   /* the user's own program: its umask, its privileges, its core files stay */
    bool apart; /* it runs foreign code: no capabilities, no access to processes but its own */
    /* The helper stays and measures the program, its child.  Else the program is our own child:
     * what the kernel then says of its memory begins at ours, because posix_spawn shares it. */
    bool measured;
    int64_t cpu_s;
    size_t memory_bytes, file_bytes, open_files;
    int fds[3];
};

int ipw_child_start(struct ipw_child *child, struct ipw_loop *loop,
                    const struct ipw_child_spec *spec, struct ipw_err *err);
void ipw_child_signal(struct ipw_child *child, int signum); /* to its group */
/* Kills the rest of the group, reaps the leader (if it has exited) and removes the child from the
 * list.  Then kills orphans without a running owner. */
void ipw_child_end(struct ipw_child *child, struct ipw_child_end *end);

/* Makes a pipe; both ends are close-on-exec and above 9, so that neither collides with the child's
 * 0..3.  Our end (`ours` is 0 or 1) does not block. */
int ipw_child_pipe(int ends[2], int ours, struct ipw_err *err);
int ipw_child_null(struct ipw_err *err); /* /dev/null, above 9; or a negative code */

/* One end of a pipe, watched. */
struct ipw_pipe {
    uv_poll_t uv; /* must be first: the close callback frees the whole struct */
    int fd;
    void (*on_ready)(void *ud);
    void *ud;
};

struct ipw_pipe *ipw_pipe_watch(struct ipw_loop *loop, int fd, int uv_events,
                                void (*on_ready)(void *ud), void *ud);
void ipw_pipe_rest(struct ipw_pipe *pipe); /* on_ready is not called until ipw_pipe_go_on() */
void ipw_pipe_go_on(struct ipw_pipe *pipe, int uv_events);
void ipw_pipe_close(struct ipw_pipe **pipe); /* closes the descriptor too; NULL is fine */

#endif
