/* A command that prints the readings of a meter.
 *
 * `sh -c COMMAND` runs as a child in its own process group as long as the source is open, and
 * prints readings, one on each line, or rows under a heading that names a column of times
 * (energy/meter.h).  sources/meter_feed.h says which times they get, and when a silence is one.
 * Lines that do not parse or have the other kind are counted, and the note quotes the first of
 * them.  The note also reports the end of the command and its last line on stderr.
 *
 * Closing sends SIGTERM to the group, SIGKILL half a second later, and waits for the child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/meter_feed.h"

#define FIRST_LINE_NS (5 * IPW_NS_PER_S)
#define GRACE_NS      (500 * IPW_NS_PER_MS)
#define PIECES_A_READ 64

extern char **environ;

struct exec {
    struct ipw_meter_feed feed;
    char command[200];
    pid_t pid;      /* also its process group; 0: it has ended and was waited for */
    int out, err;   /* our ends of its pipes; -1: closed */
    int status;     /* of waitpid, once pid is 0 */
    char end[160];  /* "was ended by signal 9", with its last words */
    char words[80]; /* the last line of its stderr */
    size_t n_words;
    bool words_done; /* that line has ended: the next byte begins another */
};

static void keep_text(char *out, size_t size, const char *text, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n && k + 1 < size; i++) {
        out[k++] = (unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i];
    }
    out[k] = '\0';
}

static void take_words(struct exec *x, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            x->words_done = true;
            continue;
        }
        if (x->words_done) x->n_words = 0;
        x->words_done = false;
        if (x->n_words + 1 >= sizeof x->words) continue;
        keep_text(x->words + x->n_words++, 2, &bytes[i], 1);
    }
}

/* Takes all bytes of a pipe, at most PIECES_A_READ pieces; closes it at its end. */
static void drain(struct exec *x, int *fd)
{
    char piece[4096];

    for (int i = 0; *fd >= 0 && i < PIECES_A_READ; i++) {
        ssize_t n = read(*fd, piece, sizeof piece);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n > 0 && fd == &x->out) ipw_meter_feed_bytes(&x->feed, piece, (size_t)n);
        if (n > 0 && fd == &x->err) take_words(x, piece, (size_t)n);
        if (n > 0) continue;
        if (fd == &x->out) ipw_meter_feed_end_line(&x->feed);
        close(*fd);
        *fd = -1;
    }
}

/* ---- the child ---- */

static bool has_ended(struct exec *x)
{
    pid_t done;

    if (x->pid == 0) return true;
    do {
        done = waitpid(x->pid, &x->status, WNOHANG);
    } while (done < 0 && errno == EINTR);
    if (done == 0) return false;
    if (done < 0) x->status = -1; /* other code waited for it */
    x->pid = 0;
    return true;
}

static int spawn(struct exec *x, const char *command, struct ipw_err *err)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)command,
                    NULL};
    int out[2] = {-1, -1}, words[2] = {-1, -1}, rc;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;

    if (pipe2(out, O_CLOEXEC) < 0) return ipw_fail_errno(err, errno, "exec=%.200s", command);
    if (pipe2(words, O_CLOEXEC) < 0) {
        rc = errno;
        close(out[0]);
        close(out[1]);
        return ipw_fail_errno(err, rc, "exec=%.200s", command);
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_adddup2(&files, words[1], 2);
    rc = posix_spawn(&x->pid, "/bin/sh", &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    close(out[1]);
    close(words[1]);
    x->out = out[0];
    x->err = words[0];
    if (rc) {
        x->pid = 0;
        return ipw_fail_errno(err, rc, "exec=%.200s", command);
    }
    fcntl(x->out, F_SETFL, O_NONBLOCK);
    fcntl(x->err, F_SETFL, O_NONBLOCK);
    return 0;
}

/* Stops the whole group, with SIGTERM first.  Processes that outlive the group's leader also get
 * the second signal. */
static void stop_child(struct exec *x, pid_t group)
{
    int64_t deadline = ipw_now_ns() + GRACE_NS;

    if (group <= 0) return;
    kill(-group, SIGTERM);
    while (!has_ended(x) && ipw_now_ns() < deadline) poll(NULL, 0, 5);
    kill(-group, SIGKILL);
    while (!has_ended(x)) poll(NULL, 0, 1);
}

static void exec_shut(struct ipw_meter_feed *f)
{
    struct exec *x = (struct exec *)f;

    /* If the leader was waited for, its group's number may belong to other processes: leave it
     * alone. */
    stop_child(x, x->pid);
    if (x->out >= 0) close(x->out);
    if (x->err >= 0) close(x->err);
    free(x);
}

static void exec_pull(struct ipw_meter_feed *f)
{
    struct exec *x = (struct exec *)f;
    const char *how = "ended with status";
    int code;

    drain(x, &x->out);
    drain(x, &x->err);
    if (x->out >= 0 || !has_ended(x)) return;
    f->ended = true; /* rows that came with the end still count */
    code = x->status < 0 ? -1 : WEXITSTATUS(x->status);
    if (x->status >= 0 && WIFSIGNALED(x->status))
        how = "was ended by signal", code = WTERMSIG(x->status);
    snprintf(x->end, sizeof x->end, "%s %d%s%s", how, code, x->words[0] ? ": " : "", x->words);
    ipw_source_set_note(&f->source, "the command %s", x->end);
}

/* ---- opening ---- */

static int wait_for_line(struct exec *x, struct ipw_err *err)
{
    int64_t deadline = ipw_now_ns() + FIRST_LINE_NS;
    struct ipw_meter_feed *f = &x->feed;

    for (ipw_meter_feed_pull(f); !f->begun; ipw_meter_feed_pull(f)) {
        struct pollfd p[2] = {{.fd = x->out, .events = POLLIN}, {.fd = x->err, .events = POLLIN}};
        int64_t left = deadline - ipw_now_ns();

        if (f->ended)
            return ipw_fail(err, IPW_EUNSUPPORTED, "exec=%.120s: no reading; it %s%s%s", x->command,
                            x->end, f->first_bad[0] ? "; " : "", f->first_bad);
        if (left <= 0) {
            return ipw_fail(err, IPW_EUNSUPPORTED,
                            "exec=%.120s: no line like '123.4 W' or '5.2 J' within %lld s%s%s",
                            x->command, (long long)(FIRST_LINE_NS / IPW_NS_PER_S),
                            f->first_bad[0] ? "; " : "", f->first_bad);
        }
        /* If its output is closed, wait only for its end. */
        if (x->out < 0 && left > 10 * IPW_NS_PER_MS) left = 10 * IPW_NS_PER_MS;
        poll(p, 2, (int)(left / IPW_NS_PER_MS) + 1);
    }
    return 0;
}

int ipw_exec_open(struct ipw_source **out, const struct ipw_source_place *place,
                  const char *command, struct ipw_err *err)
{
    struct exec *x = ipw_calloc(1, sizeof *x);
    char prefix[64];
    int rc;

    (void)place;
    *out = NULL;
    x->out = x->err = -1;
    x->feed.pull = exec_pull;
    x->feed.shut = exec_shut;
    x->feed.patient = true;
    ipw_meter_feed_init(&x->feed, "exec");
    keep_text(x->command, sizeof x->command, command, strlen(command));
    rc = spawn(x, command, err);
    if (rc == 0) rc = wait_for_line(x, err);
    if (rc < 0) {
        x->feed.source.close(&x->feed.source);
        return rc;
    }
    snprintf(prefix, sizeof prefix, "exec:%.50s", x->command);
    ipw_meter_feed_describe(&x->feed, prefix, "lines of a command");
    *out = &x->feed.source;
    return 0;
}
