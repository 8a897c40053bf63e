/* ipw-agent serve: a model written in Lua behind an OpenAI-compatible server on loopback. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/options.h"
#include "app/serve.h"

struct serve_values {
    const char *host, *model;
    int64_t port, parent_pid, ttft_ns, itl_ns;
    bool with_parent;
    struct ipw_opt_list paths;
};

static const struct ipw_opt options[] = {
    {"port", 'p', IPW_OPT_INT, offsetof(struct serve_values, port), "N",
     "port to listen on (default 8765; 0: any free one)", 0, 65535},
    {"host", 0, IPW_OPT_STR, offsetof(struct serve_values, host), "ADDRESS",
     "loopback address to listen on (default 127.0.0.1)", 0, 0},
    {"model", 'm', IPW_OPT_STR, offsetof(struct serve_values, model), "NAME|FILE",
     "a bundled model or a Lua file (default demo)", 0, 0},
    {"ttft", 0, IPW_OPT_DURATION, offsetof(struct serve_values, ttft_ns), "TIME",
     "wait before the first token, for example 200ms", 0, 0},
    {"itl", 0, IPW_OPT_DURATION, offsetof(struct serve_values, itl_ns), "TIME",
     "wait between tokens, for example 10ms", 0, 0},
    {"path", 0, IPW_OPT_LIST, offsetof(struct serve_values, paths), "FOLDER",
     "look for Lua files here as well", 0, 0},
    {"exit-with-parent", 0, IPW_OPT_FLAG, offsetof(struct serve_values, with_parent), NULL,
     "stop when the process that started it ends", 0, 0},
    {"parent-pid", 0, IPW_OPT_INT, offsetof(struct serve_values, parent_pid), "PID",
     "with --exit-with-parent: who that process is", 1, INT32_MAX},
    {0},
};

static const struct ipw_command command = {
    .name = "serve",
    .usage = "serve [options]",
    .about = "Serves a model written in Lua over the OpenAI chat-completions protocol.",
    .options = options,
    .more = "The first line on stdout is \"listening URL\".  A token is a piece of at most four "
            "bytes;\nusage counts the reply's tokens, and the bytes of messages and tools by four.",
    .max_args = 0,
};

/* The kernel sends SIGTERM when the parent ends.  It may have ended before that was asked for: then
 * somebody else is the parent by now. */
static int follow_parent(int64_t parent_pid, struct ipw_err *err)
{
    pid_t before = getppid();

    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return ipw_fail_errno(err, errno, "prctl");
    if (getppid() != before || (parent_pid && getppid() != (pid_t)parent_pid))
        return ipw_fail(err, IPW_ECANCELLED, "serve: the process that started it is gone");
    return 0;
}

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* fewer connections are the worst of it */
}

static int stop_signals(struct ipw_err *err)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) return ipw_fail_errno(err, errno, "sigprocmask");
    signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? ipw_fail_errno(err, errno, "signalfd") : fd;
}

static int exit_code_of(int rc)
{
    if (rc == IPW_EINVAL) return IPW_EXIT_USAGE;
    return rc == IPW_ENOTFOUND || rc == IPW_ELUA ? IPW_EXIT_INPUT : IPW_EXIT_FAILED;
}

int ipw_cmd_serve(int argc, char **argv)
{
    struct serve_values values = {.port = 8765};
    struct ipw_serve_options serve_options = {0};
    struct ipw_serve *serve = NULL;
    struct ipw_err err = {0};
    char **args;
    int n_args, stop_fd = -1;
    int rc = ipw_options_parse(&command, argc, argv, &values, &args, &n_args, &err);

    if (rc) {
        free(values.paths.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    serve_options.host = values.host;
    serve_options.port = (int)values.port;
    serve_options.model = values.model;
    serve_options.paths = values.paths.items;
    serve_options.ttft_ns = values.ttft_ns;
    serve_options.itl_ns = values.itl_ns;

    raise_file_limit();
    stop_fd = stop_signals(&err);
    if (stop_fd < 0) rc = stop_fd;
    if (!rc && values.with_parent) rc = follow_parent(values.parent_pid, &err);
    if (!rc) rc = ipw_serve_open(&serve, &serve_options, &err);
    if (!rc) {
        printf("listening %s\n", ipw_serve_url(serve));
        fflush(stdout);
        rc = ipw_serve_run(serve, stop_fd, &err);
    }
    ipw_serve_close(serve);
    if (stop_fd >= 0) close(stop_fd);
    free(values.paths.items);
    return rc ? ipw_exit_with(&err, exit_code_of(rc)) : IPW_EXIT_OK;
}
