#include "run/follower.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/spawn.h"
#include "json/json.h"
#include "json/write.h"

/* The child gives up 10 s after the run (lua/ipw/otlp_http.lua). */
#define PATIENCE_NS (20 * IPW_NS_PER_S)
#define STEP_NS     (10 * IPW_NS_PER_MS)
enum { ANSWER_BYTES = 4096 };

/* clang-format off */
#define AT(field) offsetof(struct ipw_watch_options, field)
const struct ipw_opt ipw_watch_option_rows[] = {
    {"listen", 0, IPW_OPT_STR, AT(listen), "[ADDR:]PORT", "serve Prometheus metrics of the run (at 127.0.0.1)"},
    {"watch", 0, IPW_OPT_FLAG, AT(watch), NULL, "show the run as a page at 127.0.0.1 while it goes on"},
    {"otlp", 0, IPW_OPT_URL, AT(otlp), "[URL]", "send spans and power to an OpenTelemetry collector"},
    IPW_OPT_END,
};
/* clang-format on */

struct ipw_follower {
    pid_t pid;
    int input; /* of the child; -1: closed */
};

/* ---- lines of JSON ---- */

/* false: the child has ended. */
static bool send_line(const struct ipw_follower *f, struct ipw_buf *line)
{
    bool sent;

    ipw_buf_addc(line, '\n');
    sent = ipw_write_all(f->input, ipw_buf_str(line), line->len) == 0;
    ipw_buf_release(line);
    return sent;
}

static bool send_options(const struct ipw_follower *f, const struct ipw_watch_options *o,
                         bool quiet)
{
    struct ipw_buf line = IPW_BUF(64 * IPW_KIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &line);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "listen", o->listen);
    ipw_jw_kstr(&w, "otlp", o->otlp);
    ipw_jw_kbool(&w, "quiet", quiet);
    ipw_jw_kbool(&w, "watch", o->watch);
    ipw_jw_obj_end(&w);
    return send_line(f, &line);
}

/* What the child answers; an empty text if it has ended. */
static void read_answer(char out[ANSWER_BYTES], int fd)
{
    ssize_t n = 1;
    size_t len = 0;

    while (n > 0 && len + 1 < ANSWER_BYTES && !memchr(out, '\n', len)) {
        n = TEMP_FAILURE_RETRY(read(fd, out + len, ANSWER_BYTES - 1 - len));
        if (n > 0) len += (size_t)n;
    }
    out[len] = '\0';
}

/* Prints the address that it names, if the user wants to see it. */
static int take_answer(const char *answer, struct ipw_err *err)
{
    const char *code, *text;
    struct ipw_json *doc = NULL;
    struct ipw_err unread;
    int rc = 0;

    if (ipw_json_parse(&doc, answer, strlen(answer), NULL, &unread))
        return ipw_fail(err, IPW_EIO, "the process beside the run ended before the run began");
    code = ipw_json_get_str(doc, "code");
    text = ipw_json_get_str(doc, "text");
    if (code)
        rc = ipw_fail(err, strcmp(code, "invalid") ? IPW_EIO : IPW_EINVAL, "%s", text ? text : "");
    else if (text)
        ipw_say("%s", text);
    ipw_json_free(doc);
    return rc;
}

/* ---- the child ---- */

static int start(struct ipw_follower *f, int *output, struct ipw_err *err)
{
    static const char *const argv[] = {"ipw-agent", "__follow", NULL};
    char **env = ipw_keyring_environment(); /* the collector's keys are among them */
    int to[2] = {-1, -1}, from[2] = {-1, -1}, errnum = 0;

    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) errnum = errno;
    /* In a group of its own: Ctrl-C ends the run, and not what it still has to send. */
    if (!errnum)
        errnum = ipw_spawn(&f->pid, &(struct ipw_spawn){.file = "/proc/self/exe",
                                                        .argv = argv,
                                                        .env = env,
                                                        .fds = {to[0], from[1], STDERR_FILENO},
                                                        .place = IPW_SPAWN_GROUP});
    free(env);
    if (to[0] >= 0) close(to[0]);
    if (from[1] >= 0) close(from[1]);
    f->input = to[1];
    *output = from[0];
    return errnum ? ipw_fail_errno(err, errnum, "the process beside the run") : 0;
}

int ipw_follower_open(struct ipw_follower **out, const struct ipw_watch_options *o, bool quiet,
                      struct ipw_err *err)
{
    char answer[ANSWER_BYTES] = "";
    struct ipw_follower *f;
    int output = -1, rc;

    *out = NULL;
    if (!o->listen && !o->watch && !o->otlp) return 0;
    signal(SIGPIPE, SIG_IGN); /* a child that has ended is an error of the write */
    f = ipw_calloc(1, sizeof *f);
    rc = start(f, &output, err);
    if (!rc && send_options(f, o, quiet)) read_answer(answer, output);
    if (!rc) rc = take_answer(answer, err);
    if (output >= 0) close(output);
    if (rc) {
        ipw_follower_close(f);
        return rc;
    }
    *out = f;
    return 0;
}

void ipw_follower_begin(struct ipw_follower *f, const struct ipw_followed_run *run)
{
    struct ipw_buf line = IPW_BUF(64 * IPW_KIB);
    struct ipw_jw w;

    if (!f) return;
    ipw_jw_init(&w, &line);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "agent", run->agent);
    ipw_jw_kstr(&w, "dataset", run->dataset);
    ipw_jw_kstr(&w, "folder", run->folder);
    ipw_jw_kstr(&w, "model", run->model);
    ipw_jw_kint(&w, "now_ns", ipw_now_ns());
    ipw_jw_kint(&w, "queries", (int64_t)run->planned);
    ipw_jw_kint(&w, "session", run->session);
    ipw_jw_obj_end(&w);
    send_line(f, &line); /* of a child that has ended the user hears in the end */
}

int64_t ipw_follower_cpu_ns(const struct ipw_follower *f)
{
    struct timespec used;
    clockid_t clock;

    if (!f || clock_getcpuclockid(f->pid, &clock) || clock_gettime(clock, &used)) return 0;
    return used.tv_sec * IPW_NS_PER_S + used.tv_nsec;
}

void ipw_follower_close(struct ipw_follower *f)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    int64_t until_ns = ipw_now_ns() + PATIENCE_NS;
    int status = 0;
    pid_t ended = 0;

    if (!f) return;
    if (f->input >= 0) close(f->input); /* ends it if no run began */
    while (f->pid && !(ended = waitpid(f->pid, &status, WNOHANG)) && ipw_now_ns() < until_ns)
        nanosleep(&step, NULL);
    if (f->pid && !ended) {
        kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
        ipw_say("--otlp: the process that sends did not end and was stopped: something is missing");
    } else if (WIFSIGNALED(status)) {
        ipw_say("--listen, --watch and --otlp ended early: their process was ended by signal %d",
                WTERMSIG(status));
    }
    free(f);
}
