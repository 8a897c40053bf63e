#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <unistd.h>

/* A program of a shell ends at these two, and not with an error that it must understand; this
 * program ignores them. */
static void set_signals(posix_spawnattr_t *attr, enum ipw_spawn_place place)
{
    short flags = POSIX_SPAWN_SETSIGDEF;
    sigset_t set;

    sigemptyset(&set);
    if (place != IPW_SPAWN_BESIDE) {
        posix_spawnattr_setsigmask(attr, &set);
        flags |= POSIX_SPAWN_SETSIGMASK;
        flags |= place == IPW_SPAWN_SESSION ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
        sigfillset(&set);
    } else {
        sigaddset(&set, SIGPIPE);
        sigaddset(&set, SIGXFSZ);
    }
    posix_spawnattr_setsigdefault(attr, &set);
    posix_spawnattr_setflags(attr, flags);
}

int ipw_spawn(pid_t *pid, const struct ipw_spawn *spawn)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int errnum;

    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    set_signals(&attr, spawn->place);
    if (spawn->folder) posix_spawn_file_actions_addchdir_np(&files, spawn->folder);
    for (int i = 0; i < IPW_SPAWN_FDS; i++) {
        if (spawn->fds[i] == IPW_FD_NULL)
            posix_spawn_file_actions_addopen(&files, i, "/dev/null", O_RDWR, 0);
        else if (i < 3 || spawn->fds[i])
            posix_spawn_file_actions_adddup2(&files, spawn->fds[i], i);
    }
    errnum = posix_spawnp(pid, spawn->file, &files, &attr, (char *const *)(uintptr_t)spawn->argv,
                          spawn->env ? spawn->env : environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return errnum;
}
