/* io.call("start", FOLDER, STREAMS, PROGRAM, WORD...): a child, until it ends. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/calls.h"
#include "base/keyring.h"
#include "base/spawn.h"
#include "base/text.h"
#include "json/write.h"

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

/* Which of the child's streams are ours: "all", "errors" (not stdout), or "none" (the last line of
 * stderr is the result's `complaint`). */
static int plan_streams(int fds[3], const char *streams, struct ipw_err *err)
{
    if (strcmp(streams, "all") == 0) return 0;
    fds[1] = IPW_FD_NULL;
    if (strcmp(streams, "errors") == 0) return 0;
    fds[0] = IPW_FD_NULL;
    fds[2] = memfd_create("complaints", MFD_CLOEXEC);
    return fds[2] < 0 ? ipw_fail_errno(err, errno, "the child's complaints cannot be kept") : 0;
}

/* PROGRAM "ipw-agent": this one, which gets our keys, too. */
static int spawn_and_wait(int *status, const int fds[3], const char *folder,
                          const char *const *argv, struct ipw_err *err)
{
    bool is_ours = strcmp(argv[0], "ipw-agent") == 0;
    struct ipw_spawn spawn = {.file = is_ours ? "/proc/self/exe" : argv[0],
                              .argv = argv,
                              .env = is_ours ? ipw_keyring_environment() : NULL,
                              .folder = *folder ? folder : NULL,
                              .fds = {fds[0], fds[1], fds[2]}};
    pid_t pid = 0;
    int failed;

    fflush(stdout); /* what was said before stands before what the child says */
    failed = ipw_spawn(&pid, &spawn);
    free((void *)spawn.env);
    if (failed) return ipw_fail_errno(err, failed, "%s cannot be started", spawn.file);
    if (TEMP_FAILURE_RETRY(waitpid(pid, status, 0)) != pid)
        return ipw_fail_errno(err, errno, "%s cannot be waited for", spawn.file);
    return 0;
}

/* FOLDER "": ours.  Gives {complaint, status}; a status above 128 is a signal's. */
int ipw_call_start(const struct ipw_call *c, struct ipw_err *err)
{
    int fds[3] = {0, 1, 2}, status = 0, rc;
    struct ipw_jw w;

    if (c->n < 3) return ipw_fail(err, IPW_EINVAL, "start: no program is named");
    rc = plan_streams(fds, c->args[1], err);
    if (!rc) rc = spawn_and_wait(&status, fds, c->args[0], c->args + 2, err);
    if (!rc) {
        ipw_jw_init(&w, c->out);
        ipw_jw_obj(&w);
        if (fds[2] != 2) put_complaint(&w, fds[2]);
        ipw_jw_kint(&w, "status", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        ipw_jw_obj_end(&w);
    }
    if (fds[2] > 2) close(fds[2]);
    return rc;
}
