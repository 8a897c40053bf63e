/* io/proc_priv.h: what proc.c (a child), proc_helper.c (its other side) and proc_tree.c (the
 * processes below one) share.  Private to src/io. */
#ifndef IPW_IO_PROC_PRIV_H
#define IPW_IO_PROC_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In the helper: a pipe to us.  It writes the errno of a failed exec here, or a report. */
enum { PROC_STATUS_FD = 3 };

/* What processes used.  `cpu_ns`: user and system time; -1: unknown.  `peak_bytes`: the most memory
 * that one of them had resident; 0: unknown. */
struct ipw_usage {
    int64_t cpu_ns, peak_bytes;
};
struct rusage;
void ipw_usage_add(struct ipw_usage *to, const struct rusage *of);

/* Written by a helper that stays (`measured`), when its program has ended. */
struct ipw_usage_report {
    int mark; /* PROC_REPORT, which is no errno */
    struct ipw_usage usage;
};
enum { PROC_REPORT = -1 };

struct ipw_pids {
    pid_t *list; /* free() it */
    size_t n, cap;
};
void ipw_pids_add_children(struct ipw_pids *to, pid_t pid);

/* Kills the processes below `pid`; whether there was one. */
bool ipw_pids_kill_below(pid_t pid);
/* Do the processes below `pid` together hold more memory than that? */
bool ipw_pids_memory_over(pid_t pid, size_t limit);
/* Bytes of files that were removed, and that the processes below `pid` still hold open, on the file
 * system of the folder. */
uint64_t ipw_pids_removed_bytes(pid_t pid, const char *folder);

#endif
