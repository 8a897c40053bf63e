/* io/proc.h: child processes.
 *
 * A child is started through this binary's hidden helper mode (`ipw-agent __exec ...`, see
 * ipw_proc_helper_main).  The helper puts it into its own session and process group, resets
 * signals, closes every descriptor above 2, sets limits and then executes the program.  If that
 * fails, the exact errno comes back.  Output is collected up to a limit: the beginning and the end
 * are kept, and the bytes in between are counted.  Collecting stops 200 ms after the leader has
 * exited.  It does not wait for end-of-file, which an escaped process could delay for ever.  At the
 * wall limit, or on cancel, the group gets TERM, and KILL 2 s later.  on_done is called exactly
 * once, unless cancelled.
 *
 * The runner makes itself the reaper of orphans: a process that left its tool's group and session
 * is killed when the tool call ends.  IPW_TOOL_ID in a tool's environment names the call that the
 * process belongs to.  SIGCHLD and every child in another session than ours belong to this
 * module. */
#ifndef IPW_IO_PROC_H
#define IPW_IO_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "io/loop.h"

struct ipw_proc_request {
    /* NULL-terminated; argv[0] is looked up in /usr/local/bin, /usr/bin and /bin unless it contains
     * a slash. */
    const char *const *argv;
    const char *cwd;        /* NULL: the caller's folder */
    const char *const *env; /* extra "NAME=value" beside PATH, HOME, LANG, TZ, TMPDIR; or NULL */
    const char *input;      /* written to its standard input, which is then closed */
    size_t input_len;
    int64_t wall_ns;         /* 0: 60 s */
    int64_t cpu_s;           /* 0: 60 */
    size_t memory_bytes;     /* of each process (RLIMIT_AS), and of all together; 0: 2 GiB */
    size_t file_bytes;       /* RLIMIT_FSIZE; 0: 1 GiB */
    size_t output_max_bytes; /* per stream; 0: 1 MiB */
    /* In a sandbox (io/bubblewrap.h) the program can write only `cwd`.  It sees only the system's
     * files and the paths in `reads` (absolute, NULL-terminated, or NULL). */
    bool sandbox;
    const char *const *reads;
    /* Whose program it is.  OURS has our whole environment (which holds no keys: base/keyring.h),
     * our standard error, and no limits of any kind.  USERS is the user's own, started in the
     * user's place: it has our terminal and our environment, with `env` on top, the user's umask
     * and no limits; argv[0] without a slash is looked up in $PATH (IPW_ENOTFOUND). */
    enum { IPW_PROC_TOOL, IPW_PROC_OURS, IPW_PROC_USERS } whose;
    /* Not NULL: the child stays and is talked to.  Its standard output goes here as it comes and is
     * not kept; its standard input takes what ipw_proc_write() sends.  The callback may cancel the
     * child. */
    void (*on_output)(void *ud, const char *bytes, size_t n);
};

struct ipw_proc_result {
    int exec_errno;  /* not 0: the program was not started */
    bool no_sandbox; /* also not started: its sandbox could not be made; `err` may say why */
    int exit_code;   /* -1 if a signal ended it */
    int term_signal; /* 0 if it exited */
    bool timed_out;
    const char *out, *err; /* borrowed for the callback */
    size_t out_len, err_len;
    /* Bytes left out between the first and the last half of the limit; a line in the text says
     * so. */
    size_t out_dropped, err_dropped;
    int64_t start_ns, end_ns;
    /* User and system time of the child and its descendants, and the most memory that one of these
     * processes had resident.  Unknown (-1, 0): it was killed, or its sandbox was ended in time. */
    int64_t cpu_ns, peak_bytes;
};

struct ipw_proc;
typedef void (*ipw_proc_fn)(void *ud, const struct ipw_proc_result *result);

int ipw_proc_start(struct ipw_proc **out, struct ipw_loop *loop,
                   const struct ipw_proc_request *request, ipw_proc_fn on_done, void *ud,
                   struct ipw_err *err);
/* For a child that stays.  The bytes wait until the child reads them, IPW_PROC_UNREAD_BYTES at
 * most; a child that has closed its input gets nothing. */
#define IPW_PROC_UNREAD_BYTES ((size_t)16 << 20)
int ipw_proc_write(struct ipw_proc *proc, const char *bytes, size_t n, struct ipw_err *err);
/* Its output is not read while it rests, so that a child that says too much waits. */
void ipw_proc_rest_output(struct ipw_proc *proc, bool rests);
/* Other work keeps the loop running, not this child, until it is cancelled. */
void ipw_proc_background(struct ipw_proc *proc);
/* Bytes of removed files, on the file system of the folder, that a child that runs holds open. */
uint64_t ipw_proc_removed_bytes(const struct ipw_proc *proc, const char *folder);
void ipw_proc_signal(struct ipw_proc *proc, int signum); /* to its whole group */
/* Ends the child's group; no callback follows.  The loop still reaps the child. */
void ipw_proc_cancel(struct ipw_proc *proc);

/* The path of a program in $PATH, malloc'ed; NULL: there is none. */
char *ipw_proc_find(const char *name);
/* The path of this program's own file, with a 0 at its end. */
int ipw_proc_own_file(char *out, size_t size, struct ipw_err *err);
/* Sets the helper executable.  Without one, or if the path now leads to another file, the helper is
 * the running program as the kernel has it. */
void ipw_proc_set_helper(const char *path);
/* main() calls this if argv[1] is "__exec".  It does not return on success; otherwise it returns an
 * exit status. */
int ipw_proc_helper_main(int argc, char **argv);

#endif
