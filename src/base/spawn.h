/* base/spawn.h: starts a process, the one place that does.
 *
 * What belongs to a child besides (limits, a sandbox, pipes, its end) is the business of io/proc.h.
 * This is for both floors that may start one, `io` and `energy`.
 *
 *   pid_t pid;
 *   int errnum = ipw_spawn(&pid, &(struct ipw_spawn){.file = "/bin/sh", .argv = argv,
 *                                                    .fds = {IPW_FD_NULL, out, 2}});
 *
 * The caller owns the descriptors and waits for the process. */
#ifndef IPW_BASE_SPAWN_H
#define IPW_BASE_SPAWN_H

#include <sys/types.h>

enum { IPW_FD_NULL = -2, IPW_SPAWN_FDS = 4 };

enum ipw_spawn_place {
    IPW_SPAWN_BESIDE,  /* in our process group: what ends us ends it; with our signals */
    IPW_SPAWN_GROUP,   /* in a group of its own, with the signals as at the start of a program */
    IPW_SPAWN_SESSION, /* in a session of its own, likewise */
};

struct ipw_spawn {
    const char *file; /* a path, or a name that is looked up in PATH */
    const char *const *argv;
    char *const *env;       /* NULL: ours */
    const char *folder;     /* NULL: ours */
    int fds[IPW_SPAWN_FDS]; /* its 0, 1, 2, and 3 if not 0; IPW_FD_NULL: /dev/null */
    enum ipw_spawn_place place;
};

/* 0, or the errno. */
int ipw_spawn(pid_t *pid, const struct ipw_spawn *spawn);

#endif
