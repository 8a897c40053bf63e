/* io.call("start", FOLDER, STREAMS, PROGRAM, WORD...): a child, until it ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/calls.h"
#include "base/keyring.h"
#include "base/text.h"
#include "json/write.h"

extern char **environ;

enum { MAX_COMPLAINT = 64 * 1024, SHOWN = 160 };

/* What is left of the text that the child wrote to stderr: its last line says why it failed. */
static void put_complaint(struct ipw_jw *w, int fd)
{
    struct ipw_buf line = IPW_BUF(MAX_COMPLAINT);
    char text[MAX_COMPLAINT];
    off_t size = lseek(fd, 0, SEEK_END), from = size > MAX_COMPLAINT ? size - MAX_COMPLAINT : 0;
    ssize_t n = TEMP_FAILURE_RETRY(pread(fd, text, sizeof text, from));
    ssize_t begin;

    while (n > 0 && strchr("\n ", text[n - 1])) n--;
    for (begin = n; begin > 0 && text[begin - 1] != '\n';) begin--;
    if (n > 0) ipw_text_printable(&line, text + begin, (size_t)(n - begin), SHOWN);
    if (n > 0) ipw_jw_kstr(w, "complaint", ipw_buf_str(&line));
    ipw_buf_release(&line);
}

/* A program that a shell starts ends at these, and not with an error that it must understand. */
static void default_signals(posix_spawnattr_t *attributes)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    posix_spawnattr_setsigdefault(attributes, &set);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF);
}

/* Which of the child's streams are ours: "all", "errors" (not stdout), or "none" (the last line of
 * stderr is the result's `complaint`). */
static int plan_streams(posix_spawn_file_actions_t *files, int *kept, const char *streams,
                        struct ipw_err *err)
{
    *kept = -1;
    if (strcmp(streams, "all") == 0) return 0;
    posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
    if (strcmp(streams, "errors") == 0) return 0;
    *kept = memfd_create("complaints", MFD_CLOEXEC);
    if (*kept < 0) return ipw_fail_errno(err, errno, "the child's complaints cannot be kept");
    posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(files, *kept, 2);
    return 0;
}

/* PROGRAM "ipw-agent": this one, which gets our keys, too. */
static int spawn_and_wait(int *status, const posix_spawn_file_actions_t *files,
                          const char *const *argv, struct ipw_err *err)
{
    bool is_ours = strcmp(argv[0], "ipw-agent") == 0;
    const char *name = is_ours ? "/proc/self/exe" : argv[0];
    char **keys = is_ours ? ipw_keyring_environment() : NULL;
    posix_spawnattr_t attributes;
    pid_t pid = 0;
    int failed;

    posix_spawnattr_init(&attributes);
    default_signals(&attributes);
    fflush(stdout); /* what was said before stands before what the child says */
    failed =
        posix_spawnp(&pid, name, files, &attributes, (char *const *)argv, keys ? keys : environ);
    posix_spawnattr_destroy(&attributes);
    free(keys);
    if (failed) return ipw_fail_errno(err, failed, "%s cannot be started", name);
    if (TEMP_FAILURE_RETRY(waitpid(pid, status, 0)) != pid)
        return ipw_fail_errno(err, errno, "%s cannot be waited for", name);
    return 0;
}

/* FOLDER "": ours.  Gives {complaint, status}; a status above 128 is a signal's. */
int ipw_call_start(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                   struct ipw_err *err)
{
    posix_spawn_file_actions_t files;
    int kept, status = 0, rc;
    struct ipw_jw w;

    (void)ud;
    if (n < 3) return ipw_fail(err, IPW_EINVAL, "start: no program is named");
    posix_spawn_file_actions_init(&files);
    rc = plan_streams(&files, &kept, args[1], err);
    if (*args[0]) posix_spawn_file_actions_addchdir_np(&files, args[0]);
    if (!rc) rc = spawn_and_wait(&status, &files, args + 2, err);
    posix_spawn_file_actions_destroy(&files);
    if (!rc) {
        ipw_jw_init(&w, out);
        ipw_jw_obj(&w);
        if (kept >= 0) put_complaint(&w, kept);
        ipw_jw_kint(&w, "status", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        ipw_jw_obj_end(&w);
    }
    if (kept >= 0) close(kept);
    return rc;
}
