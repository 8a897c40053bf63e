#include <stdlib.h>

#include "app/commands.h"
#include "app/options.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/run.h"

#define AT(field) offsetof(struct ipw_run_options, field)

static const struct ipw_opt options[] = {
    {"dataset", 'd', IPW_OPT_STR, AT(data.dataset), "NAME|FILE",
     "dataset by name (gaia), or a .jsonl, .csv, .json file"},
    {"model", 'm', IPW_OPT_STR, AT(server.model), "NAME",
     "model; 'demo' is the one that comes along"},
    IPW_NET_OPTIONS(AT(server.net)),
    {"api-key-env", 0, IPW_OPT_STR, AT(server.api_key_env), "NAME",
     "environment variable that holds the key (default: OPENAI_API_KEY)",
     .holds = IPW_HOLDS_KEY_NAME},
    {"limit", 'n', IPW_OPT_STR, AT(data.limit), "N|A-B",
     "only the first N records, or records A to B"},
    {"concurrency", 'c', IPW_OPT_INT, AT(concurrency), "N", "queries in flight (default: 1)", 1,
     100000},
    {"max-turns", 0, IPW_OPT_INT, AT(agent.max_turns), "N",
     "turns of a query (default: the agent's)", 1, 100000},
    {"temperature", 't', IPW_OPT_NUM, AT(agent.temperature), "X",
     "default: the agent's, else the server's"},
    {"seed", 0, IPW_OPT_INT, AT(agent.seed), "N", "sent with every request, and seeds the scripts",
     INT64_MIN + 1, INT64_MAX},
    {"max-tokens", 0, IPW_OPT_INT, AT(agent.max_tokens), "N", "limit of one reply", 1, INT64_MAX},
    {"tools", 0, IPW_OPT_STR, AT(agent.tools), "A,B,...",
     "tools in place of the agent's own: names or files, with commas between"},
    IPW_LIMIT_OPTIONS(AT(limits)),
    {"first-byte-timeout", 0, IPW_OPT_DURATION, AT(server.first_byte_ns), "TIME",
     "wait for the first byte of a reply (default: 600s)"},
    {"max-retries", 0, IPW_OPT_INT, AT(server.max_retries), "N",
     "repeats of a failed request (default: 2)", 0, 1000},
    {"server-failures", 0, IPW_OPT_INT, AT(server.server_failures), "N",
     "requests in a row that meet no server, before the run waits for it (default: 5; 0: never)", 0,
     1000000},
    {"server-wait", 0, IPW_OPT_DURATION, AT(server.server_wait_ns), "TIME",
     "how long a run waits for a server that is away (default: 40s)", 1},
    {"epochs", 0, IPW_OPT_INT, AT(data.epochs), "N", "every record N times (default: 1)", 1,
     100000},
    {"warmup", 0, IPW_OPT_INT, AT(data.warmup), "N", "queries before those that count (default: 0)",
     0, 100000},
    {"share", 0, IPW_OPT_STR, AT(sensors.share), "equal|tokens|phase",
     "how to split the energy of concurrent queries (default: phase)"},
    {"baseline", 0, IPW_OPT_DURATION, AT(sensors.baseline_ns), "TIME",
     "measure the idle machine before and after, for net joules (30s is good)"},
    {"energy", 0, IPW_OPT_STR, AT(sensors.energy), "auto|local|remote",
     "where the model's devices are (default: auto, by its address)"},
    {"lua-cpu", 0, IPW_OPT_DURATION, AT(agent.lua_cpu_ns), "TIME",
     "what a query's own Lua may compute between two waits (default: 2s)", 20 * IPW_NS_PER_MS},
    {"lua-memory", 0, IPW_OPT_BYTES, AT(agent.lua_memory_bytes), "SIZE",
     "heap of a query's own Lua (default: 64M)", 1 << 20, (int64_t)64 << 30},
    {"untrusted", 0, IPW_OPT_FLAG, AT(agent.untrusted), NULL,
     "run the agent's Lua in a confined process of its own, without child processes"},
    {"allow-proc", 0, IPW_OPT_FLAG, AT(agent.allow_proc), NULL,
     "let an --untrusted agent's tools start child processes all the same"},
    {"data-dir", 0, IPW_OPT_STR, AT(data.data_dir), "DIR", "where the dataset's own files are"},
    IPW_SCRIPT_OPTIONS(AT(script)),
    {"telemetry", 0, IPW_OPT_LIST, AT(sensors.telemetry), "auto|none|LIST",
     "sensors to read: auto, none, or names with commas; prometheus=URL, log=FILE, exec=COMMAND"},
    {"undo-mean", 0, IPW_OPT_FLAG, AT(sensors.undo_mean), NULL,
     "work the power out of gauges that show a running mean (tried on simulated ones only)"},
    {"no-estimate", 0, IPW_OPT_FLAG, AT(sensors.no_estimate), NULL,
     "no estimate by a model where no sensor reads the processors"},
    {"gpu", 0, IPW_OPT_STR, AT(sensors.gpu), "UUID|N|BUSID", "only these GPUs (default: all)"},
    {"require-quiet", 0, IPW_OPT_FLAG, AT(sensors.require_quiet), NULL,
     "refuse to start while other programs use processors or GPUs"},
    {"sample-interval", 0, IPW_OPT_DURATION, AT(sensors.sample_interval_ns), "TIME",
     "how often sensors are read (default: 50ms; slow ones by their own period)"},
    {"output", 'o', IPW_OPT_STR, AT(output.dir), "DIR",
     "folder of the run (default: a new one in runs/)"},
    {"resume", 0, IPW_OPT_FLAG, AT(resume.on), NULL,
     "go on with the run in --output where it stopped; begin it if it is not there"},
    {"retry", 0, IPW_OPT_STR, AT(resume.retry), "none|cut|failed|all",
     "with --resume: run again what was cut short (default), or failed too, or hit a limit too"},
    {"force", 0, IPW_OPT_FLAG, AT(resume.force), NULL,
     "with --resume: go on although agent, model, dataset or configuration differ"},
    {"sync", 0, IPW_OPT_STR, AT(output.sync), "query|run|off",
     "when files are made safe: with each query (default), at the end, never"},
    {"grace", 0, IPW_OPT_DURATION, AT(grace_ns), "TIME",
     "after the first Ctrl-C or TERM turns may end for so long (default: 30s)"},
    {"no-content", 0, IPW_OPT_FLAG, AT(output.no_content), NULL,
     "store no text of prompts, replies, tools: words of the same lengths in their place"},
    {"json", 0, IPW_OPT_FLAG, AT(output.json), NULL, "print the summary as one JSON object"},
    {"quiet", 'q', IPW_OPT_FLAG, AT(output.quiet), NULL, "no progress, no remarks"},
    {"verbose", 'v', IPW_OPT_FLAG, AT(output.verbose), NULL, "say what happens"},
    {NULL, 0, IPW_OPT_FLAG, 0, NULL, NULL},
};

const struct ipw_command ipw_run_command = {
    .name = "run",
    .usage = "run AGENT.lua --dataset NAME|FILE [options]",
    .about = "Runs an agent over a dataset and measures what each answer costs.",
    .options = options,
    .more = "Without --model and --base-url the usual local ports are tried (Ollama, llama.cpp,\n"
            "vLLM, SGLang, LM Studio); if nothing answers, the demo model does.\n\n"
            "exit status: 0 done, 1 failed, 2 wrong usage, 3 unreadable input, 130 interrupted\n"
            "(129, 143: by SIGHUP, SIGTERM)",
    .min_args = 1,
    .max_args = 1,
};

void ipw_run_tell_end(struct ipw_run_end *end, int exit_code)
{
    if (end->err.code) ipw_exit_with(&end->err, exit_code);
    if (end->go_on) ipw_say("to go on: %s", end->go_on);
    free(end->go_on);
}

int ipw_cmd_run(int argc, char **argv)
{
    struct ipw_dataset_origin origin;
    struct ipw_run_end end = {0};
    struct ipw_run_options o;
    struct ipw_err err = {0};
    char **args;
    int n_args, exit_code, rc;

    ipw_run_options_init(&o);
    rc = ipw_options_parse(&ipw_run_command, argc, argv, &o, &args, &n_args, &err);
    if (!rc) rc = ipw_limits_check(&o.limits, &err);
    if (rc) {
        exit_code = rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    } else {
        ipw_dataset_origin_init(&origin);
        exit_code = ipw_run_start(&o, args[0], ipw_run_command_json(&ipw_run_command, argc, argv),
                                  &origin.origin, &end);
        ipw_run_tell_end(&end, exit_code);
    }
    ipw_script_options_release(&o.script);
    free(o.server.net.base_urls.items);
    free(o.server.net.headers.items);
    free(o.sensors.telemetry.items);
    return exit_code;
}
