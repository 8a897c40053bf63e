#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd_lua.h"
#include "app/commands.h"
#include "app/options.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/run.h"

struct values {
    struct ipw_run_options run;
    struct ipw_watch_options watch;
};
#define INSTEAD_OF_UNTRUSTED                                                                       \
    "docs/security.md, \"An agent that somebody else wrote\", has the line that runs all of it "   \
    "in a "                                                                                        \
    "sandbox; 'ipw-agent check FILE' looks at the file first"
#define AT(field) offsetof(struct values, run.field)

/* clang-format off */
static const struct ipw_opt_key times[] = {
    {"connect", "connect-timeout"}, {"first-token", "first-token-timeout"}, {"stall", "stall-timeout"},
    {"comment", "comment-timeout"}, {"request", "request-timeout"}, {"judge", "judge-timeout"}, {"mcp", "mcp-timeout"},
    {"server", "server-wait"}, {"grace", "grace"}, {NULL, NULL},
};
static const struct ipw_opt options[] = {
    {"Input", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"dataset", 'd', IPW_OPT_STR, AT(data.dataset), "NAME|FILE", "name (gaia), hf:OWNER/NAME, or a file of rows"},
    {"data-dir", 0, IPW_OPT_STR, AT(data.data_dir), "DIR", "folder of the dataset's own files"},
    {"encoding", 0, IPW_OPT_STR, AT(data.encoding), "NAME", "encoding of the dataset's text, such as latin1"},
    {"limit", 'n', IPW_OPT_STR, AT(data.limit), "N|A-B", "run the first N tasks, or tasks A to B"},
    {"where", 0, IPW_OPT_STR, AT(data.where), "EXPR", "run tasks that match, such as 'level == 2'"},
    {"ids", 0, IPW_OPT_STR, AT(data.ids), "FILE", "run the tasks whose ids the file lists, one per line"},
    {"sample", 0, IPW_OPT_STR, AT(data.sample), "N[:SEED]", "run N tasks drawn by chance (default seed: 0)"},
    {"shard", 0, IPW_OPT_STR, AT(data.shard_text), "I/N|auto", "run part I (from 0) of N; see docs/shards.md"},
    {"epochs", 0, IPW_OPT_INT, AT(data.epochs), "N", "run each task N times (default: 1)", 1, 100000},
    {"warmup", 0, IPW_OPT_INT, AT(data.warmup), "N", "run N queries first, not counted (default: 0)", 0, 100000},
    {"concurrency", 'c', IPW_OPT_INT, AT(concurrency), "N", "queries in flight (default: 1)", 1, 100000},
    {"rate", 0, IPW_OPT_NUM, AT(data.pacing.rate), "N", "start N queries per second, whatever the server does", 1},
    {"arrivals", 0, IPW_OPT_STR, AT(data.pacing.pattern), "PATTERN", "poisson[:SEED] (default), constant; recorded[:SPEED]"},
    {"tools", 0, IPW_OPT_STR, AT(agent.tools), "A,B,...", "tools to use instead of the agent's; +: and those"},
    {"max-turns", 0, IPW_OPT_INT, AT(agent.max_turns), "N", "turns per query (default: the agent's)", 1, 100000},
    {"Model and server", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"model", 'm', IPW_OPT_STR, AT(server.model), "NAME", "model name; demo is built in"},
    {"", 0, IPW_OPT_BLOCK, AT(server.net), NULL, NULL, .rows = ipw_net_option_rows},
    {"api-key-env", 0, IPW_OPT_STR, AT(server.api_key_env), "VAR", "variable with the API key (default: OPENAI_API_KEY)", .holds = IPW_HOLDS_KEY_NAME},
    {"", 0, IPW_OPT_BLOCK, AT(server.sub), NULL, NULL, .rows = ipw_sub_model_option_rows},
    {"temperature", 't', IPW_OPT_NUM, AT(agent.temperature), "X", "temperature (default: the agent's or server's)"},
    {"seed", 0, IPW_OPT_INT, AT(agent.seed), "N", "seed for requests and scripts", INT64_MIN + 1, INT64_MAX},
    {"max-tokens", 0, IPW_OPT_INT, AT(agent.max_tokens), "N", "output tokens per reply", 1, INT64_MAX},
    {"timeout", 0, IPW_OPT_KEYS, 0, "TIMES", "request=5m,first-token=1m,stall=30s, ...", .keys = times},
    {"max-retries", 0, IPW_OPT_INT, AT(server.max_retries), "N", "retries of a failed request (default: 2)", 0, 1000},
    {"server-failures", 0, IPW_OPT_INT, AT(server.server_failures), "N", "wait after N failed connections (default: 5; 0: off)", 0, 1000000},
    {"server-wait", 0, IPW_OPT_DURATION, AT(server.server_wait_ns), "TIME", "longest pause for a lost server (default: 40s)", 1},
    {"Judge", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"", 0, IPW_OPT_BLOCK, AT(judge), NULL, NULL, .rows = ipw_judge_option_rows},
    {"Limits (default: none)", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"", 0, IPW_OPT_BLOCK, AT(limits), NULL, NULL, .rows = ipw_limit_option_rows},
    {"Energy", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"telemetry", 0, IPW_OPT_LIST, AT(sensors.telemetry), "LIST", "sensors: auto (default), none, or a list: see below"},
    {"gpu", 0, IPW_OPT_STR, AT(sensors.gpu), "LIST", "measure only these GPUs: UUID, index or bus id"},
    {"sample-interval", 0, IPW_OPT_DURATION, AT(sensors.sample_interval_ns), "TIME", "time between readings (default: 50ms)"},
    {"share", 0, IPW_OPT_STR, AT(sensors.share), "RULE", "divides energy (docs/method.md); default: phase"},
    {"baseline", 0, IPW_OPT_DURATION, AT(sensors.baseline_ns), "TIME", "measure idle power before and after (try 30s)"},
    {"model-host", 0, IPW_OPT_STR, AT(sensors.energy), "WHERE", "the model's machine: auto (default), local, remote"},
    {"require-quiet", 0, IPW_OPT_FLAG, AT(sensors.require_quiet), NULL, "fail if other programs use the CPU or a GPU"},
    {"no-estimate", 0, IPW_OPT_FLAG, AT(sensors.no_estimate), NULL, "do not estimate CPU energy if no sensor reads it"},
    {"Scripts and safety", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"lua-cpu", 0, IPW_OPT_DURATION, AT(agent.lua_cpu_ns), "TIME", "Lua CPU time between two waits (default: 2s)", 20 * IPW_NS_PER_MS},
    {"lua-memory", 0, IPW_OPT_BYTES, AT(agent.lua_memory_bytes), "SIZE", "Lua memory per query (default: 64M)", 1 << 20, (int64_t)64 << 30},
    {"untrusted", 0, IPW_OPT_GONE, 0, NULL, INSTEAD_OF_UNTRUSTED},
    {"allow-proc", 0, IPW_OPT_GONE, 0, NULL, INSTEAD_OF_UNTRUSTED},
    {"", 0, IPW_OPT_BLOCK, AT(script), NULL, NULL, .rows = ipw_script_option_rows},
    {"Output", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"output", 'o', IPW_OPT_STR, AT(output.dir), "DIR", "run folder (default: a new one in runs/)"},
    {"resume", 0, IPW_OPT_FLAG, AT(resume.on), NULL, "continue the run in --output, or start it"},
    {"rerun", 0, IPW_OPT_STR, AT(resume.retry), "WHICH", "resume: rerun cut (default), failed, all, none"},
    {"force", 0, IPW_OPT_FLAG, AT(resume.force), NULL, "resume: accept a changed configuration"},
    {"sync", 0, IPW_OPT_STR, AT(output.sync), "WHEN", "flush to disk: query (default), run or off"},
    {"grace", 0, IPW_OPT_DURATION, AT(grace_ns), "TIME", "time to finish turns after Ctrl-C (default: 30s)"},
    {"", 0, IPW_OPT_BLOCK, offsetof(struct values, watch), NULL, NULL, .rows = ipw_watch_option_rows},
    {"no-content", 0, IPW_OPT_FLAG, AT(output.no_content), NULL, "store filler of equal length instead of texts"},
    {"json", 0, IPW_OPT_FLAG, AT(output.json), NULL, "print the summary as one JSON object"},
    {"quiet", 'q', IPW_OPT_FLAG, AT(output.quiet), NULL, "hide progress and notices"},
    {"verbose", 'v', IPW_OPT_FLAG, AT(output.verbose), NULL, "print what happens"},
    {"undo-mean", 0, IPW_OPT_GONE, 0, NULL, "a gauge's mean is not undone; leave it out (the bounds include the averaging)"},
    IPW_OPT_END,
};
/* clang-format on */

const struct ipw_command ipw_run_command = {
    .name = "run",
    .usage = "run AGENT DATASET [options]",
    .about = "Run an agent over a dataset; measure tokens, time and energy of each query.",
    .options = options,
    .first = " limit where epochs concurrency tools model base-url temperature judge-model stop-at "
             "prices telemetry baseline output watch ",
    .more = "AGENT and DATASET are names (`ipw-agent list agents`, `list datasets`) or files.\n"
            "A sensor of --telemetry is a name that `ipw-agent list sensors` shows,\n"
            "stream=URL, prometheus=URL, log=FILE or exec=COMMAND. Repeat it or use commas.\n"
            "Without --base-url: $OPENAI_BASE_URL, then local ports, then the demo model.\n"
            "Exit status: 0 done, 1 failed, 2 wrong usage, 3 unreadable input,\n"
            "130 interrupted (129 SIGHUP, 143 SIGTERM).",
    .min_args = 1,
    .max_args = 2,
};

int ipw_cmd_run_ending(const char **words, int n, bool verbose, const char *folder)
{
    struct ipw_err err;
    int status;

    if (verbose) words[n++] = "--verbose";
    words[n++] = "--"; /* a folder's name may begin like an option's */
    words[n++] = folder;
    status = ipw_cmd_lua(n, (char **)words, true);
    if ((fflush(stdout) || ferror(stdout)) && status == IPW_EXIT_OK) {
        ipw_fail_errno(&err, errno, "standard output: the result could not be written");
        return ipw_exit_with(&err, IPW_EXIT_FAILED);
    }
    return status;
}

/* The summary as a screen, which is written in Lua (lua/ipw/cli/ending.lua). */
static int show_summary(const struct ipw_run_end *end, bool verbose)
{
    const char *words[8] = {"ending"};
    int n = 1;

    if (end->note) words[n++] = "--note", words[n++] = end->note;
    if (end->rows) words[n++] = "--rows";
    return ipw_cmd_run_ending(words, n, verbose, end->folder);
}

int ipw_cmd_run_tell_end(struct ipw_run_end *end, int exit_code, bool verbose)
{
    int shown = end->folder ? show_summary(end, verbose) : IPW_EXIT_OK;

    if (end->err.code) ipw_exit_with(&end->err, exit_code);
    if (end->go_on) ipw_say("to continue: %s", end->go_on);
    free(end->go_on);
    free(end->folder);
    free(end->note);
    return exit_code == IPW_EXIT_OK ? shown : exit_code;
}

/* --shard, and the folder of the shard, which the caller frees. */
static int choose_shard(struct ipw_run_options *o, char **folder, struct ipw_err *err)
{
    struct ipw_shard *shard = &o->data.shard;
    int rc = ipw_shard_parse(shard, o->data.shard_text, getenv, err);

    if (rc || !shard->count) return rc;
    if (!o->output.dir)
        return ipw_fail(err, IPW_EINVAL,
                        "--shard: name the run with --output NAME; its shards go to NAME.shards/");
    rc = ipw_shard_folder(folder, shard, o->output.dir, err);
    o->output.dir = *folder;
    if (!rc && shard->taken[0] && !o->output.quiet)
        ipw_say("shard %lld of %lld, counted from 0: %s", (long long)shard->index,
                (long long)shard->count, shard->taken);
    return rc;
}

/* `run AGENT DATASET`, as `run --dataset DATASET AGENT`. */
static int run_dataset(int argc, char **argv, char **args, const char *named)
{
    static char option[] = "--dataset";
    char **words;
    int before = (int)(args - argv), code;
    struct ipw_err err;

    if (named) {
        ipw_fail(&err, IPW_EINVAL, "run: two datasets: %.80s and --dataset %.80s", args[1], named);
        return ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    words = ipw_calloc((size_t)argc + 2, sizeof *words);
    words[0] = argv[0];
    words[1] = option;
    words[2] = args[1];
    memcpy(words + 3, argv + 1, (size_t)(before - 1) * sizeof *words);
    words[before + 2] = args[0];
    code = ipw_cmd_run(argc + 1, words);
    free(words);
    return code;
}

int ipw_cmd_run(int argc, char **argv)
{
    struct ipw_dataset_origin origin;
    struct ipw_run_end end = {0};
    struct values v = {.watch = {.listen = NULL}};
    struct ipw_run_options *o = &v.run;
    struct ipw_follower *follower = NULL;
    struct ipw_err err = {0};
    char **args, *folder = NULL;
    int n_args, exit_code, rc;
    bool two;

    argv = ipw_options_before(&ipw_run_command, &argc, argv);
    ipw_run_options_init(o);
    rc = ipw_options_parse(&ipw_run_command, argc, argv, &v, &args, &n_args, &err);
    two = !rc && n_args == 2;
    if (!rc && !two) rc = ipw_limits_check(&o->limits, &err);
    if (!rc && !two) rc = ipw_script_options_servers(&o->script, &err);
    if (!rc && !two) rc = choose_shard(o, &folder, &err);
    if (two) {
        exit_code = run_dataset(argc, argv, args, o->data.dataset);
    } else if (rc) {
        exit_code = rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    } else if ((rc = ipw_follower_open(&follower, &v.watch, o->output.quiet, &err))) {
        exit_code = ipw_exit_with(&err, rc == IPW_EINVAL ? IPW_EXIT_USAGE : IPW_EXIT_FAILED);
    } else {
        ipw_dataset_origin_init(&origin);
        exit_code = ipw_run_start(o, args[0], ipw_cmd_run_json(&ipw_run_command, argc, argv),
                                  &origin.origin, follower, &end);
        ipw_follower_close(follower);
        exit_code = ipw_cmd_run_tell_end(&end, exit_code, o->output.verbose);
    }
    free(folder);
    ipw_script_options_release(&o->script);
    free(o->server.net.base_urls.items);
    free(o->server.net.headers.items);
    free(o->sensors.telemetry.items);
    return exit_code;
}
