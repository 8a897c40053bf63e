/* serve: a model written in Lua, or a saved run, as an OpenAI-compatible server on loopback. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "app/ask.h"
#include "app/commands.h"
#include "app/options.h"
#include "base/text.h"
#include "io/loop.h"
#include "serve/model_server.h"

struct serve_values {
    const char *host, *model, *replay, *speed;
    int64_t port, parent_pid, ttft_ns, itl_ns;
    bool with_parent, with_failures, filler;
    struct ipw_opt_list paths, allow_hosts;
};

/* clang-format off */
static const struct ipw_opt options[] = {
    {"Server", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"port", 0, IPW_OPT_INT, offsetof(struct serve_values, port), "N", "port (default: 8765; 0: any free port)", 0, 65535},
    {"host", 0, IPW_OPT_STR, offsetof(struct serve_values, host), "ADDRESS", "loopback address (default: 127.0.0.1)"},
    {"allow-host", 0, IPW_OPT_LIST, offsetof(struct serve_values, allow_hosts), "NAME", "also accept this Host header (default: loopback)"},
    {"A Lua model", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"model", 'm', IPW_OPT_STR, offsetof(struct serve_values, model), "NAME|FILE", "built-in model or Lua file (default: demo)"},
    {"path", 'p', IPW_OPT_LIST, offsetof(struct serve_values, paths), "DIR", "search here first for Lua files"},
    {"ttft", 0, IPW_OPT_DURATION, offsetof(struct serve_values, ttft_ns), "TIME", "delay before the first token, such as 200ms"},
    {"itl", 0, IPW_OPT_DURATION, offsetof(struct serve_values, itl_ns), "TIME", "delay between tokens, such as 10ms"},
    {"A saved run", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"replay", 0, IPW_OPT_STR, offsetof(struct serve_values, replay), "RUN", "answer each request with the reply saved for it"},
    {"speed", 0, IPW_OPT_STR, offsetof(struct serve_values, speed), "X|max", "divide saved times by X; max: send at once"},
    {"with-failures", 0, IPW_OPT_FLAG, offsetof(struct serve_values, with_failures), NULL, "also serve failed attempts (429, 5xx, cut off)"},
    {"filler", 0, IPW_OPT_FLAG, offsetof(struct serve_values, filler), NULL, "accept a run without its texts (--no-content)"},
    {"exit-with-parent", 0, IPW_OPT_FLAG, offsetof(struct serve_values, with_parent), NULL, "stop when the process that started it ends"},
    {"parent-pid", 0, IPW_OPT_INT, offsetof(struct serve_values, parent_pid), "PID", "with --exit-with-parent: the process to watch", 1, INT32_MAX},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "serve",
    .usage = "serve [options]",
    .about = "Serve a Lua model or a saved run as an OpenAI-compatible server.",
    .options = options,
    .more = "The first line on stdout is \"listening URL\".\n\n"
            "A Lua model counts tokens by size: a reply token is up to four bytes of text;\n"
            "prompt tokens are bytes / 4.\n\n"
            "With --replay, a request gets the reply of the first of these that exists:\n"
            "  1. the same request\n"
            "  2. a request with the same messages\n"
            "Otherwise the answer is 404 with the most similar request. Repeated requests\n"
            "get their replies in saved order, then the last one again.",
    .max_args = 0,
};

/* The kernel sends SIGTERM when the parent ends.  If the parent ended before this call, another
 * process is the parent now. */
static int follow_parent(int64_t parent_pid, struct ipw_err *err)
{
    pid_t before = getppid();

    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return ipw_fail_errno(err, errno, "prctl");
    if (getppid() != before || (parent_pid && getppid() != (pid_t)parent_pid))
        return ipw_fail(err, IPW_ECANCELLED, "serve: the process that started it has ended");
    return 0;
}

static void stop(void *loop) { ipw_loop_stop(loop); }

static int exit_code_of(int rc)
{
    if (rc == IPW_EINVAL) return IPW_EXIT_USAGE;
    return rc == IPW_ENOTFOUND || rc == IPW_ELUA || rc == IPW_EPARSE ? IPW_EXIT_INPUT
                                                                     : IPW_EXIT_FAILED;
}

static int read_speed(double *out, const char *text, struct ipw_err *err)
{
    struct ipw_err why;

    *out = 1;
    if (!text) return 0;
    *out = 0;
    if (strcmp(text, "max") == 0) return 0;
    if (ipw_parse_double(out, text, &why) || *out < 0)
        return ipw_fail(err, IPW_EINVAL,
                        "serve: --speed %.40s: expected a number (2: twice as fast), or max", text);
    return 0;
}

/* Each option belongs to one of the two things that can be served. */
static int check_options(const struct serve_values *v, struct ipw_err *err)
{
    const struct {
        const char *name;
        bool given, with_replay;
    } given[] = {{"model", v->model != NULL, false}, {"ttft", v->ttft_ns != 0, false},
                 {"itl", v->itl_ns != 0, false},     {"path", v->paths.n != 0, false},
                 {"speed", v->speed != NULL, true},  {"with-failures", v->with_failures, true},
                 {"filler", v->filler, true}};

    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].given && given[i].with_replay != (v->replay != NULL))
            return ipw_fail(err, IPW_EINVAL, "serve: --%s goes %s --replay", given[i].name,
                            given[i].with_replay ? "with" : "not with");
    return 0;
}

static void say_counts(struct ipw_served_counts n)
{
    fprintf(stderr,
            "ipw-agent: %lld requests were equal to a saved one, %lld in their messages only, %lld "
            "are not in the saved run\n",
            (long long)n.by_request, (long long)n.by_messages, (long long)n.not_found);
}

static int serve(const struct serve_values *values, double speed, struct ipw_err *err)
{
    struct ipw_serve_options how = {.host = values->host,
                                    .port = (int)values->port,
                                    .model = {.name = values->model,
                                              .paths = values->paths.items,
                                              .ttft_ns = values->ttft_ns,
                                              .itl_ns = values->itl_ns,
                                              .run = values->replay,
                                              .speed = speed,
                                              .with_failures = values->with_failures,
                                              .filler = values->filler},
                                    .allow_hosts = values->allow_hosts.items};
    struct ipw_watch *interrupted, *ended;
    struct ipw_serve *serve = NULL;
    struct ipw_loop *loop;
    int rc = ipw_loop_new(&loop, err);

    if (rc) return rc;
    interrupted = ipw_signal_start(loop, SIGINT, stop, loop);
    ended = ipw_signal_start(loop, SIGTERM, stop, loop);
    if (values->with_parent) rc = follow_parent(values->parent_pid, err);
    if (!rc) rc = ipw_serve_open(&serve, &how, loop, err);
    if (!rc) {
        printf("listening %s\n", ipw_serve_url(serve));
        fflush(stdout);
        ipw_loop_run(loop);
    }
    if (values->replay && !rc) say_counts(ipw_serve_counts(serve));
    ipw_serve_close(serve);
    ipw_watch_cancel(interrupted);
    ipw_watch_cancel(ended);
    ipw_loop_free(loop);
    return rc;
}

int ipw_cmd_serve(int argc, char **argv)
{
    struct serve_values values = {.port = 8765};
    struct ipw_err err = {0};
    double speed = 1;
    char **args, *run = NULL;
    int n_args, code = IPW_EXIT_OK;
    int rc = ipw_options_parse(&command, argc, argv, &values, &args, &n_args, &err);

    if (!rc) rc = check_options(&values, &err);
    if (!rc) rc = read_speed(&speed, values.speed, &err);
    if (!rc && values.replay) {
        code = ipw_ask_run(&run, values.replay);
        values.replay = run;
    }
    if (rc < 0)
        code = ipw_exit_with(&err, IPW_EXIT_USAGE);
    else if (!rc && code == IPW_EXIT_OK && (rc = serve(&values, speed, &err)))
        code = ipw_exit_with(&err, exit_code_of(rc));
    free(run);
    free(values.paths.items);
    free(values.allow_hosts.items);
    return code;
}
