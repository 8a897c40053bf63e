#include "app/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/jsonl.h"

extern char **environ;

enum { MAX_COMPLAINT = 64 * 1024, SHOWN = 160 };

/* The last line that gnuplot wrote says what it did not understand. */
static int fail_by(const char *complaints, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(MAX_COMPLAINT), line = IPW_BUF(MAX_COMPLAINT);
    struct ipw_err unread;
    const char *last;
    int rc;

    if (!ipw_file_read(&text, complaints, &unread)) {
        while (text.len && strchr("\n ", text.data[text.len - 1]))
            ipw_buf_truncate(&text, text.len - 1);
    }
    last = text.len ? strrchr(ipw_buf_str(&text), '\n') : NULL;
    last = last ? last + 1 : text.len ? ipw_buf_str(&text) : "no reason given";
    ipw_text_printable(&line, last, strlen(last), SHOWN);
    rc = ipw_fail(err, IPW_EIO, "gnuplot failed: %s", ipw_buf_str(&line));
    ipw_buf_release(&text);
    ipw_buf_release(&line);
    return rc;
}

int ipw_gnuplot_run(const char *folder, struct ipw_err *err)
{
    static char *const argv[] = {"gnuplot", "-d", "figure.gp", NULL};
    char *complaints = ipw_asprintf("%s/complaints", folder);
    posix_spawn_file_actions_t files;
    pid_t pid = 0;
    int failed, status = 0, rc = 0;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, complaints, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addchdir_np(&files, folder);
    failed = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed == ENOENT)
        rc = ipw_fail(err, IPW_EUNSUPPORTED,
                      "gnuplot is not installed (Debian: apt-get install gnuplot-nox); -o FIG.gp "
                      "writes script and data without it");
    else if (failed)
        rc = ipw_fail_errno(err, failed, "gnuplot cannot be started");
    else if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) != pid || status != 0)
        rc = fail_by(complaints, err);
    free(complaints);
    return rc;
}
