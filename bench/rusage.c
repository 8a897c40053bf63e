/* bench/rusage.c: runs a command and tells what it cost, as the kernel counted it.
 *
 *   rusage [-o FILE] COMMAND ARGS...
 *
 * Prints "user_s sys_s maxrss_kb wall_s exit_code" on stdout, from wait4(): the command and the
 * children it waited for.  The command's own stdout goes to FILE (else /dev/null), its stderr to
 * where ours goes. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

int main(int argc, char **argv)
{
    const char *out = "/dev/null";
    int first = 1;
    if (argc > 3 && !strcmp(argv[1], "-o")) {
        out = argv[2];
        first = 3;
    }
    if (argc <= first) {
        fputs("usage: rusage [-o FILE] COMMAND ARGS...\n", stderr);
        return 2;
    }
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    pid_t pid;
    int failed = posix_spawnp(&pid, argv[first], &actions, NULL, argv + first, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        fprintf(stderr, "rusage: %s: %s\n", argv[first], strerror(failed));
        return 127;
    }
    int status;
    struct rusage u;
    while (wait4(pid, &status, 0, &u) < 0)
        if (errno != EINTR) return 1;
    clock_gettime(CLOCK_MONOTONIC, &b);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    printf("%.6f %.6f %ld %.6f %d\n", seconds(u.ru_utime), seconds(u.ru_stime), u.ru_maxrss,
           (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9, code);
    return 0;
}
