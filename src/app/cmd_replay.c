/* replay RUN: prints a saved run, or runs it again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/ask.h"
#include "app/cmd_lua.h"
#include "app/commands.h"
#include "app/workbench.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "replay/replay_job.h"
#include "replay/workload_run.h"
#include "run/run.h"

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
    {"share", 0, IPW_OPT_STR, AT(run.sensors.share), "RULE", "divides energy (docs/method.md); default: phase"},
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
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "replay",
    .usage = "replay [RUN|FILE.jsonl] [--mode MODE] [--query ID] [options]",
    .about = "Print a saved run, run it again offline, or send its requests to a server.",
    .options = options,
    .first =
        " mode query limit sort follow agent tools dataset schedule speed model base-url output ",
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
    .min_args = 0,
    .max_args = 1,
};

/* ---- show and follow ---- */

/* What they print is written in Lua (lua/ipw/cli/replay.lua). */
static int show(char *run, const struct ipw_replay_options *o)
{
    char limit[24];
    const char *words[16] = {"replay"};
    int n = 1;

    snprintf(limit, sizeof limit, "%lld", (long long)o->limit);
    if (o->follow) words[n++] = "--follow";
    if (o->query) words[n++] = "--query", words[n++] = o->query;
    if (o->sort) words[n++] = "--sort", words[n++] = o->sort;
    if (o->limit) words[n++] = "--limit", words[n++] = limit;
    if (o->run.output.quiet) words[n++] = "--quiet";
    if (o->run.output.verbose) words[n++] = "--verbose";
    words[n++] = "--"; /* a folder's name may begin like an option's */
    words[n++] = run;
    if (o->follow) setvbuf(stdout, NULL, _IOLBF, 0);
    return ipw_cmd_lua(n, (char **)words, true);
}

/* Writes replay.json and says how late the requests were (lua/ipw/cli/lags.lua). */
static int tell_lags(const char *folder, const char *of, const struct ipw_replay_options *o)
{
    char limit[24], most_s[32];
    const char *words[16] = {"lags", "--max-lag-s", most_s};
    int n = 3;

    snprintf(limit, sizeof limit, "%lld", (long long)o->limit);
    snprintf(most_s, sizeof most_s, "%.9g", ipw_ns_to_s(o->max_lag_ns));
    if (o->query) words[n++] = "--query", words[n++] = o->query;
    if (o->limit) words[n++] = "--limit", words[n++] = limit;
    if (o->run.output.json) words[n++] = "--quiet";
    words[n++] = "--";
    words[n++] = folder;
    words[n++] = of;
    return ipw_cmd_lua(n, (char **)words, true);
}

/* ---- run again ---- */

/* What is printed at its end is written in Lua (lua/ipw/cli/replayed.lua). */
static int tell_end(const struct ipw_replay_job *job, const char *folder)
{
    const struct ipw_output_options *o = &job->o->run.output;
    const char *words[8] = {"replayed"};
    int n = 1;

    if (o->json) words[n++] = "--json";
    if (job->network.llm) words[n++] = "--live";
    if (o->quiet) words[n++] = "--quiet";
    return ipw_cmd_run_ending(words, n, o->verbose, folder);
}

static int run_again(const char *run, const struct ipw_replay_options *o)
{
    struct ipw_replay_job job;
    struct ipw_err err = {0};
    char *folder;
    int code, shown, rc = ipw_replay_job_open(&job, o, run, &code, &err);

    if (!rc) {
        code = IPW_EXIT_FAILED;
        rc = ipw_replay_job_make_dir(&job, &err);
    }
    if (!rc) {
        rc = ipw_replay_job_run(&job, &err);
        if (rc == IPW_EPARSE) code = IPW_EXIT_INPUT;
    }
    if (!rc) rc = ipw_replay_finish(&job, &err);
    folder = job.dir ? ipw_strdup(ipw_rundir_path(job.dir)) : NULL;
    if (job.dir && ipw_rundir_close(job.dir, rc ? NULL : &err) && !rc) rc = err.code;
    shown = rc ? IPW_EXIT_OK : tell_end(&job, folder);
    free(folder);
    if (rc)
        ipw_exit_with(&err, code);
    else if (shown != IPW_EXIT_OK)
        code = shown;
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
    } else if (!(code = ipw_ask_runs(&args, &n))) {
        ipw_log_set_level(o.run.output.quiet     ? IPW_LOG_ERROR
                          : o.run.output.verbose ? IPW_LOG_INFO
                                                 : IPW_LOG_WARN);
        signal(SIGPIPE, SIG_IGN);
        if (strcmp(o.mode, "show") == 0) {
            code = show(args[0], &o);
        } else if (strcmp(o.mode, "workload") == 0) {
            struct ipw_run_end end = {0};
            char *folder;

            code = ipw_workload_run(args[0], &o, ipw_cmd_run_json(&command, argc, argv), &end,
                                    &folder);
            if (folder) {
                int told = tell_lags(folder, args[0], &o);

                if (code == IPW_EXIT_OK) code = told;
            }
            free(folder);
            code = ipw_cmd_run_tell_end(&end, code, o.run.output.verbose);
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
