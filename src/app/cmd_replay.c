/* replay RUN: prints a saved run, or runs it again. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/commands.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/terminal.h"
#include "base/text.h"
#include "json/jsonl.h"
#include "replay/replay_job.h"
#include "replay/workload_run.h"
#include "report/follow.h"
#include "report/timeline.h"
#include "run/run.h"
#include "trace/lock.h"

#define AT(field) offsetof(struct ipw_replay_options, field)

/* clang-format off */
static const struct ipw_opt options[] = {
    {"What to replay", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"mode", 0, IPW_OPT_STR, AT(mode), "MODE", "show (default), hermetic, tools, workload"},
    {"query", 0, IPW_OPT_STR, AT(query), "ID", "one query: id, start of id, q0003 or index 3"},
    {"limit", 'n', IPW_OPT_INT, AT(limit), "N", "show, workload: only the first N queries", 1, INT64_MAX},
    {"sort", 0, IPW_OPT_STR, AT(sort), "KEY", "show: largest first, by energy, time or tokens"},
    {"follow", 'f', IPW_OPT_FLAG, AT(follow), NULL, "show: follow a run in progress"},
    {"Run the agent again (hermetic, tools)", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"agent", 0, IPW_OPT_STR, AT(agent), "FILE", "the agent's file, unless it is built in"},
    {"tools", 0, IPW_OPT_STR, AT(run.agent.tools), "A,B,...", "tools to use instead of the saved ones"},
    {"dataset", 'd', IPW_OPT_STR, AT(run.data.dataset), "NAME|FILE", "dataset with attachments and reference answers"},
    {"data-dir", 0, IPW_OPT_STR, AT(run.data.data_dir), "DIR", "folder of the dataset's own files"},
    {"encoding", 0, IPW_OPT_STR, AT(run.data.encoding), "NAME", "encoding of the dataset's text, such as latin1"},
    {"from-divergence", 0, IPW_OPT_STR, AT(from_divergence), "fail|live", "hermetic: fail (default), or ask --base-url"},
    {"Send the requests again (workload)", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"schedule", 0, IPW_OPT_STR, AT(schedule), "closed|open", "keep gaps (default of a run) or times (of a file)"},
    {"speed", 0, IPW_OPT_NUM, AT(speed), "X", "divide saved times and gaps by X (default: 1)"},
    {"concurrency", 'c', IPW_OPT_INT, AT(run.concurrency), "N", "closed: queries in flight (default: as saved)", 1, 100000},
    {"no-force", 0, IPW_OPT_FLAG, AT(no_force), NULL, "treat saved reply lengths as limits only"},
    {"max-lag", 0, IPW_OPT_DURATION, AT(max_lag_ns), "TIME", "flag a replay whose p99 send lag is larger (500ms)"},
    {"telemetry", 0, IPW_OPT_LIST, AT(run.sensors.telemetry), "LIST", "sensors, as in run"},
    {"gpu", 0, IPW_OPT_STR, AT(run.sensors.gpu), "LIST", "measure only these GPUs, as in run"},
    {"sample-interval", 0, IPW_OPT_DURATION, AT(run.sensors.sample_interval_ns), "TIME", "time between readings, as in run"},
    {"share", 0, IPW_OPT_STR, AT(run.sensors.share), "RULE", "split energy by: phase (default), equal"},
    {"baseline", 0, IPW_OPT_DURATION, AT(run.sensors.baseline_ns), "TIME", "measure idle power before and after"},
    {"model-host", 0, IPW_OPT_STR, AT(run.sensors.energy), "WHERE", "the model's machine: auto (default), local, remote"},
    {"Model and server", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"model", 'm', IPW_OPT_STR, AT(run.server.model), "NAME", "model name (default: the saved one)"},
    {"api-key-env", 0, IPW_OPT_STR, AT(run.server.api_key_env), "VAR", "variable with the API key (default: OPENAI_API_KEY)", .holds = IPW_HOLDS_KEY_NAME},
    {"", 0, IPW_OPT_BLOCK, AT(run.server.net), NULL, NULL, .rows = ipw_net_option_rows},
    {"Scripts and safety", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"", 0, IPW_OPT_BLOCK, AT(run.script), NULL, NULL, .rows = ipw_script_option_rows},
    {"Output", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"output", 'o', IPW_OPT_STR, AT(run.output.dir), "DIR", "folder of the new run (default: a new one in runs/)"},
    {"json", 0, IPW_OPT_FLAG, AT(run.output.json), NULL, "print the result as one JSON object"},
    {"quiet", 'q', IPW_OPT_FLAG, AT(run.output.quiet), NULL, "hide notices"},
    {"verbose", 'v', IPW_OPT_FLAG, AT(run.output.verbose), NULL, "print what happens"},
    {"energy", 0, IPW_OPT_OLD, 0, "WHERE", "model-host"},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "replay",
    .usage = "replay RUN|FILE.jsonl [--mode MODE] [--query ID] [options]",
    .about = "Print a saved run, run it again offline, or send its requests to a server.",
    .options = options,
    .more = "Modes\n"
            "  show      print the run query by query, turn by turn\n"
            "  hermetic  run its agent again on saved replies, tool results and clock; opens\n"
            "            no socket, starts no program; requests must equal the saved ones\n"
            "            byte for byte\n"
            "  tools     run its agent again on saved replies, with real tools\n"
            "  workload  send its requests (or those of a Mooncake file) to --base-url, as a\n"
            "            new run\n\n"
            "Exit status: 0 as saved, 1 failed, 2 wrong usage, 3 unreadable run, 4 diverged,\n"
            "130 interrupted.",
    .min_args = 1,
    .max_args = 1,
};

/* ---- show ---- */

static int print_text(void *ud, const char *text, size_t n, struct ipw_err *err)
{
    bool *any = ud;

    *any |= n > 0;
    if (fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0) return 0;
    if (errno == EPIPE) return ipw_fail(err, IPW_EIO, "standard output: the reader has closed it");
    return ipw_fail_errno(err, errno, "standard output: the timeline could not be written");
}

static int show(const char *run, const struct ipw_replay_options *o)
{
    struct ipw_timeline_options how = {.width = ipw_terminal_width(STDOUT_FILENO),
                                       .colour = ipw_use_colour(STDOUT_FILENO),
                                       .limit = (size_t)o->limit};
    struct ipw_err err = {0};
    bool any = false;
    int rc = ipw_rank_parse(&how.sort, o->sort, &err);

    if (rc) return ipw_exit_with(&err, IPW_EXIT_USAGE);
    rc = ipw_timeline_run(run, o->query, &how, print_text, &any, &err);

    if (!rc && !any)
        ipw_log(IPW_LOG_WARN, "%s: no query is finished (use --follow to see the events)", run);
    return rc ? ipw_exit_with(&err, rc == IPW_EIO ? IPW_EXIT_FAILED : IPW_EXIT_INPUT) : IPW_EXIT_OK;
}

/* ---- follow ---- */

/* Whether a process writes the run: it holds the lock of the folder. */
static bool is_going_on(const char *run) { return ipw_lock_look(run, NULL) != 0; }

/* Prints the whole lines of the text that was read; the rest waits for the next call.  `over`: the
 * last line ends the run; another session can begin after it. */
static int show_lines(bool *over, struct ipw_follow *follow, struct ipw_buf *read,
                      struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(64 * IPW_MIB);
    size_t at = 0;
    bool any = false;
    int rc;

    for (char *end; at < read->len && (end = memchr(read->data + at, '\n', read->len - at));
         at = (size_t)(end - read->data) + 1)
        *over = ipw_follow_line(follow, &out, read->data + at, (size_t)(end - read->data) - at);
    ipw_buf_drop_front(read, at);
    rc = print_text(&any, ipw_buf_str(&out), out.len, err);
    ipw_buf_release(&out);
    return rc;
}

static int follow_run(const char *run, const struct ipw_replay_options *o)
{
    struct ipw_timeline_options how = {.width = ipw_terminal_width(STDOUT_FILENO),
                                       .colour = ipw_use_colour(STDOUT_FILENO)};
    static const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
    struct ipw_follow *follow = ipw_follow_new(o->query, &how);
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);
    struct ipw_err err = {0};
    char *path = ipw_asprintf("%s/events.jsonl", run);
    int fd = ipw_open_read(path, &err), code = IPW_EXIT_OK;
    bool alive = true, over = false;
    int rc = 0;

    if (fd < 0) code = ipw_exit_with(&err, IPW_EXIT_INPUT);
    while (fd >= 0 && !rc) {
        char *to = ipw_buf_room(&text, 65536);
        ssize_t n = to ? TEMP_FAILURE_RETRY(read(fd, to, 65536)) : 0;

        if (!to) {
            rc = ipw_fail(&err, IPW_ELIMIT, "%s: a line is longer than 512 MiB", path);
        } else if (n < 0) {
            rc = ipw_fail_errno(&err, errno, "%s", path);
        } else if (n > 0) {
            ipw_buf_added(&text, (size_t)n);
            rc = show_lines(&over, follow, &text, &err);
        } else {
            if (over || !alive) break;
            /* Reads once more after the process has ended, because it may have written before its
             * end. */
            alive = is_going_on(run);
            if (alive) nanosleep(&pause, NULL);
        }
    }
    if (rc) code = ipw_exit_with(&err, IPW_EXIT_FAILED);
    if (fd >= 0) close(fd);
    ipw_buf_release(&text);
    ipw_follow_free(follow);
    free(path);
    return code;
}

/* ---- run again ---- */

static int run_again(const char *run, const struct ipw_replay_options *o)
{
    struct ipw_replay_job job;
    struct ipw_err err = {0};
    int code, rc = ipw_replay_job_open(&job, o, run, &code, &err);

    if (!rc) {
        code = IPW_EXIT_FAILED;
        rc = ipw_replay_job_make_dir(&job, &err);
    }
    if (!rc) {
        rc = ipw_replay_job_run(&job, &err);
        if (rc == IPW_EPARSE) code = IPW_EXIT_INPUT;
    }
    if (!rc) rc = ipw_replay_finish(&job, &err);
    if (!rc) rc = ipw_replay_print(&job, &err);
    if (job.dir && ipw_rundir_close(job.dir, rc ? NULL : &err) && !rc) rc = err.code;
    if (rc)
        ipw_exit_with(&err, code);
    else if (job.stop_signal)
        code = 128 + job.stop_signal;
    else
        code = ipw_replay_job_identical(&job) ? IPW_EXIT_OK : IPW_EXIT_DIVERGED;
    ipw_replay_job_release(&job);
    return code;
}

/* ---- which options belong to which mode ---- */

struct misplaced {
    const char *mode;
    const struct ipw_opt *option; /* the first that does not belong to the mode; NULL: none */
    const char *modes;            /* the modes that it belongs to */
};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name)) names++;
    return *names != NULL;
}

static void look_at_option(void *ud, const struct ipw_opt *option, const char *value)
{
    static const char *const of_show[] = {"mode",  "query", "follow",  "sort",
                                          "limit", "quiet", "verbose", NULL};
    static const char *const of_workload[] = {
        "schedule", "speed", "concurrency", "no-force",   "max-lag",         "telemetry",
        "gpu",      "share", "baseline",    "model-host", "sample-interval", NULL};
    struct misplaced *m = ud;
    bool show = strcmp(m->mode, "show") == 0, shown = is_one_of(option->name, of_show);

    (void)value;
    if (m->option) return;
    if (is_one_of(option->name, of_workload) && strcmp(m->mode, "workload") != 0)
        m->modes = "workload";
    else if ((strcmp(option->name, "follow") == 0 || strcmp(option->name, "sort") == 0) && !show)
        m->modes = "show";
    else if (strcmp(option->name, "limit") == 0 && !show && strcmp(m->mode, "workload") != 0)
        m->modes = "show or workload";
    else if (show && !shown)
        m->modes = "hermetic, tools or workload";
    if (m->modes) m->option = option;
}

/* Refuses options of other modes: an ignored option looks as if it had an effect. */
static int check_options(const struct ipw_replay_options *o, int argc, char **argv,
                         struct ipw_err *err)
{
    struct misplaced m = {.mode = o->mode};
    bool whole = o->sort || (o->limit && strcmp(o->mode, "show") == 0);

    if (whole && (o->query || o->follow))
        return ipw_fail(err, IPW_EINVAL, "replay: --%s is of a whole run, --%s is not",
                        o->sort ? "sort" : "limit", o->query ? "query" : "follow");

    ipw_options_each(&command, argc, argv, look_at_option, &m);
    return m.option ? ipw_fail(err, IPW_EINVAL, "replay: --%s goes with --mode %s", m.option->name,
                               m.modes)
                    : 0;
}

int ipw_cmd_replay(int argc, char **argv)
{
    static const char *const modes[] = {"show", "hermetic", "tools", "workload", NULL};
    struct ipw_replay_options o = {.mode = "show", .speed = 1, .max_lag_ns = 500 * IPW_NS_PER_MS};
    struct ipw_err err = {0};
    char **args;
    int n, code, rc;
    bool known = false;

    ipw_run_options_init(&o.run);
    o.run.concurrency = 0; /* as saved */
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    for (size_t i = 0; modes[i]; i++) known |= strcmp(o.mode, modes[i]) == 0;
    if (!rc && !known) {
        const char *near = ipw_nearest(o.mode, modes);

        rc = ipw_fail(&err, IPW_EINVAL, "replay: no mode is called '%.40s'%s%s%s", o.mode,
                      near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (!rc) rc = check_options(&o, argc, argv, &err);
    if (!rc) rc = ipw_script_options_servers(&o.run.script, &err);
    if (rc) {
        code = rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    } else {
        ipw_log_set_level(o.run.output.quiet     ? IPW_LOG_ERROR
                          : o.run.output.verbose ? IPW_LOG_INFO
                                                 : IPW_LOG_WARN);
        signal(SIGPIPE, SIG_IGN);
        if (strcmp(o.mode, "show") == 0) {
            code = o.follow ? follow_run(args[0], &o) : show(args[0], &o);
        } else if (strcmp(o.mode, "workload") == 0) {
            struct ipw_run_end end = {0};

            code = ipw_workload_run(args[0], &o, ipw_cmd_run_json(&command, argc, argv), &end);
            ipw_cmd_run_tell_end(&end, code);
        } else {
            code = run_again(args[0], &o);
        }
    }
    free(o.run.server.net.base_urls.items);
    free(o.run.server.net.headers.items);
    free(o.run.sensors.telemetry.items);
    ipw_script_options_release(&o.run.script);
    return code;
}
