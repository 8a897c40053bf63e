/* A source whose readings are the output lines of a command. */
#include "energy/sources/exec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/powerlog_feed.h"
#include "json/json.h"

#define PERIOD_NS     (20 * IPW_NS_PER_MS)
#define FIRST_LINE_NS (5 * IPW_NS_PER_S)
#define GRACE_NS      (500 * IPW_NS_PER_MS)
#define MAX_W         30000
#define PIECES_A_READ 64

extern char **environ;

struct exec {
    struct ipw_source source;
    struct ipw_channel channel;
    char command[200];
    pid_t pid;    /* also its process group; 0: it has ended and was waited for */
    int out, err; /* our ends of its pipes; -1: closed */
    int status;   /* of waitpid, once pid is 0 */
    bool ended;   /* the note says so */
    enum ipw_meter_kind kind;
    struct ipw_powerlog_lines lines;
    struct ipw_powerlog_held held;
    int64_t now_ns;
    size_t bad;
    char first_bad[80], last_words[80];
    size_t n_words;
};

/* ---- lines ---- */

static bool read_json(const char *line, size_t n, double *value, enum ipw_meter_kind *kind)
{
    struct ipw_json *root = NULL;
    bool ok = false;

    if (ipw_json_parse(&root, line, n, NULL, NULL) < 0) return false;
    for (const struct ipw_json *m = ipw_json_first(root); m && !ok; m = ipw_json_next(m)) {
        const char *key = ipw_json_key(m);
        enum ipw_json_kind is = ipw_json_kind(m);

        if (!key || (is != IPW_JSON_INT && is != IPW_JSON_NUM)) continue;
        *value = ipw_json_num(m, -1);
        *kind = !strcmp(key, "watts")    ? IPW_METER_WATTS
                : !strcmp(key, "joules") ? IPW_METER_JOULES
                                         : IPW_METER_NONE;
        ok = *kind != IPW_METER_NONE;
    }
    ipw_json_free(root);
    return ok;
}

static bool read_line(const struct exec *x, const char *line, size_t n, double *value)
{
    enum ipw_meter_kind kind;

    while (n && isspace((unsigned char)*line)) line++, n--;
    if (n && *line == '{') {
        if (!read_json(line, n, value, &kind)) return false;
    } else if (!ipw_meter_quantity(line, n, false, value, &kind)) {
        return false;
    } else if (kind == IPW_METER_NONE) {
        /* A bare number is watts; later ones have the kind of the first line. */
        kind = x->kind == IPW_METER_NONE ? IPW_METER_WATTS : x->kind;
    }
    return *value >= 0 && *value < 1e12 && (x->kind == IPW_METER_NONE || kind == x->kind);
}

/* The first line that is a reading decides the kind. */
static enum ipw_meter_kind kind_of(const char *line, size_t n)
{
    enum ipw_meter_kind kind = IPW_METER_NONE;
    double value;

    while (n && isspace((unsigned char)*line)) line++, n--;
    if (n && *line == '{') {
        read_json(line, n, &value, &kind);
    } else {
        ipw_meter_quantity(line, n, false, &value, &kind);
    }
    return kind == IPW_METER_NONE ? IPW_METER_WATTS : kind;
}

static void keep_text(char *out, size_t size, const char *text, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n && k + 1 < size; i++) {
        out[k++] = (unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i];
    }
    out[k] = '\0';
}

static void take_line(void *ud, const char *line, size_t n, int64_t number)
{
    struct exec *x = ud;
    double value;
    size_t blank = 0;

    (void)number;
    while (blank < n && isspace((unsigned char)line[blank])) blank++;
    if (blank == n) return;
    if (!read_line(x, line, n, &value)) {
        if (x->bad++ == 0) keep_text(x->first_bad, sizeof x->first_bad, line, n);
        return;
    }
    if (x->kind == IPW_METER_NONE) x->kind = kind_of(line, n);
    ipw_powerlog_held_push(&x->held, value, x->now_ns);
}

/* Takes all bytes of the pipe; closes it at its end. */
static void drain_out(struct exec *x)
{
    char piece[4096];

    x->now_ns = x->source.now();
    for (int i = 0; x->out >= 0 && i < PIECES_A_READ; i++) {
        ssize_t n = read(x->out, piece, sizeof piece);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n > 0) {
            ipw_powerlog_lines_push(&x->lines, piece, (size_t)n, take_line, x);
            continue;
        }
        ipw_powerlog_lines_end(&x->lines, take_line, x);
        close(x->out);
        x->out = -1;
    }
}

/* Keeps the newest line of its stderr. */
static void take_words(void *ud, const char *line, size_t n, int64_t number)
{
    struct exec *x = ud;

    (void)number;
    if (n) keep_text(x->last_words, sizeof x->last_words, line, n);
}

static void drain_err(struct exec *x)
{
    struct ipw_powerlog_lines lines = {0};
    char piece[4096];

    for (int i = 0; x->err >= 0 && i < PIECES_A_READ; i++) {
        ssize_t n = read(x->err, piece, sizeof piece);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            close(x->err);
            x->err = -1;
        } else {
            ipw_powerlog_lines_push(&lines, piece, (size_t)n, take_words, x);
        }
    }
    ipw_powerlog_lines_end(&lines, take_words, x);
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

static void describe_end(const struct exec *x, char *out, size_t size)
{
    if (x->status == -1) {
        snprintf(out, size, "ended");
    } else if (WIFSIGNALED(x->status)) {
        snprintf(out, size, "was ended by signal %d", WTERMSIG(x->status));
    } else {
        snprintf(out, size, "ended with status %d", WEXITSTATUS(x->status));
    }
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

static void sleep_ms(int64_t ms)
{
    struct timespec ts = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};

    nanosleep(&ts, NULL);
}

/* Stops the whole group, with SIGTERM first.  Processes that outlive the group's leader also get
 * the second signal. */
static void stop_child(struct exec *x, pid_t group)
{
    int64_t deadline = ipw_now_ns() + GRACE_NS;

    if (group <= 0) return;
    kill(-group, SIGTERM);
    while (!has_ended(x) && ipw_now_ns() < deadline) sleep_ms(5);
    kill(-group, SIGKILL);
    while (!has_ended(x)) sleep_ms(1);
}

static void exec_close(struct ipw_source *self)
{
    struct exec *x = (struct exec *)self;

    /* If the leader was waited for, its group's number may belong to other processes: leave it
     * alone. */
    stop_child(x, x->pid);
    if (x->out >= 0) close(x->out);
    if (x->err >= 0) close(x->err);
    free(x);
}

static void write_note(struct exec *x)
{
    char end[48] = "";

    if (x->ended) {
        describe_end(x, end, sizeof end);
        ipw_source_set_note(&x->source, "the command %s%s%.60s", end, x->last_words[0] ? ": " : "",
                            x->last_words);
    } else if (x->bad) {
        ipw_source_set_note(&x->source, "%zu line%s not readable, the first: '%.60s'", x->bad,
                            x->bad == 1 ? " is" : "s are", x->first_bad);
    }
}

static void exec_read(struct ipw_source *self, int64_t *values)
{
    struct exec *x = (struct exec *)self;
    size_t bad = x->bad;

    drain_out(x);
    drain_err(x);
    values[0] = ipw_powerlog_held_take(&x->held, x->kind, x->now_ns);
    if (x->out < 0 && !x->ended && has_ended(x)) x->ended = true, bad = SIZE_MAX;
    /* Joules that came with the end still count; afterwards there is no value. */
    if (x->ended && bad != SIZE_MAX) values[0] = IPW_NO_VALUE;
    if (bad != x->bad) write_note(x);
}

/* ---- opening ---- */

static int wait_for_line(struct exec *x, struct ipw_err *err)
{
    int64_t deadline = ipw_now_ns() + FIRST_LINE_NS;
    char end[48];

    while (x->kind == IPW_METER_NONE) {
        struct pollfd p[2] = {{.fd = x->out, .events = POLLIN}, {.fd = x->err, .events = POLLIN}};
        int64_t left = deadline - ipw_now_ns();

        if (x->out < 0 && has_ended(x)) {
            drain_err(x);
            describe_end(x, end, sizeof end);
            return ipw_fail(err, IPW_EUNSUPPORTED, "exec=%.120s: %s without a reading%s%s%s%s",
                            x->command, end, x->last_words[0] ? ": " : "", x->last_words,
                            x->first_bad[0] ? "; it printed: " : "", x->first_bad);
        }
        if (left <= 0) {
            return ipw_fail(err, IPW_EUNSUPPORTED,
                            "exec=%.120s: no line like '123.4 W' or '5.2 J' within %lld s%s%s",
                            x->command, (long long)(FIRST_LINE_NS / IPW_NS_PER_S),
                            x->first_bad[0] ? "; it printed: " : "", x->first_bad);
        }
        /* If its output is closed, wait only for its end. */
        if (x->out < 0 && left > 10 * IPW_NS_PER_MS) left = 10 * IPW_NS_PER_MS;
        poll(p, 2, (int)(left / IPW_NS_PER_MS) + 1);
        drain_out(x);
        drain_err(x);
    }
    return 0;
}

int ipw_exec_open(struct ipw_source **out, const char *command, struct ipw_err *err)
{
    struct exec *x = ipw_calloc(1, sizeof *x);
    struct ipw_channel *c = &x->channel;
    int rc;

    *out = NULL;
    x->out = x->err = -1;
    x->source.now = ipw_now_ns;
    keep_text(x->command, sizeof x->command, command, strlen(command));
    rc = spawn(x, command, err);
    if (rc == 0) rc = wait_for_line(x, err);
    if (rc < 0) {
        exec_close(&x->source);
        return rc;
    }
    c->domain = IPW_DOMAIN_MACHINE;
    c->scope = IPW_SCOPE_MACHINE;
    c->kind = x->kind == IPW_METER_WATTS ? IPW_CHANNEL_GAUGE : IPW_CHANNEL_COUNTER;
    c->max_w = MAX_W;
    c->in_sum = true;
    c->own_zero = c->kind == IPW_CHANNEL_COUNTER; /* each process starts the command anew */
    snprintf(c->name, sizeof c->name, "exec:%.50s", x->command);
    snprintf(c->device, sizeof c->device, "%.60s", x->command);
    snprintf(c->unit, sizeof c->unit, "%s", c->kind == IPW_CHANNEL_GAUGE ? "mW" : "uJ");
    snprintf(c->method, sizeof c->method, "lines of a command");
    x->source.name = "exec";
    x->source.read = exec_read;
    x->source.close = exec_close;
    x->source.channels = c;
    x->source.n_channels = 1;
    x->source.period_ns = PERIOD_NS;
    write_note(x);
    *out = &x->source;
    return 0;
}
