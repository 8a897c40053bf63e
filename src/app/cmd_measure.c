#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/options.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/measured_run.h"

struct values {
    struct ipw_measure_options measure;
    struct ipw_watch_options watch;
};
#define AT(field) offsetof(struct values, measure.field)

/* clang-format off */
static const struct ipw_opt options[] = {
    {"Where calls go", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"upstream", 'u', IPW_OPT_LIST, AT(upstreams), "[MATCH=]URL", "server; MATCH: a path or a model (gpt-*); repeat it"},
    {"model", 'm', IPW_OPT_STR, AT(run.server.model), "NAME", "model for programs that take one; demo is built in"},
    {"api-key-env", 0, IPW_OPT_LIST, AT(keys), "[MATCH=]VAR", "variable with the key (default: OPENAI_API_KEY)", .holds = IPW_HOLDS_KEY_NAME},
    {"cacert", 0, IPW_OPT_STR, AT(run.server.net.cacert), "FILE", "trust these PEM certificates, not the system's"},
    {"connect-timeout", 0, IPW_OPT_DURATION, AT(run.server.net.connect_ns), "TIME", "to connect to a server (default: 10s)", 1},
    {"Programs and sessions", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"epochs", 0, IPW_OPT_INT, AT(run.data.epochs), "N", "run the program N times (default: 1)", 1, 100000},
    {"exit-scores", 0, IPW_OPT_FLAG, AT(exit_scores), NULL, "exit status 0 is a solved task, any other is not"},
    {"idle", 0, IPW_OPT_DURATION, AT(idle_ns), "TIME", "no command: a silent session is over (default: 5m)", IPW_NS_PER_S},
    {"port", 'p', IPW_OPT_INT, AT(port), "N", "port of the proxy (default: any free one)", 0, 65535},
    {"path", 0, IPW_OPT_LIST, AT(run.script.paths), "DIR", "search here first"},
    {"Limits (default: none)", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"", 0, IPW_OPT_BLOCK, AT(run.limits), NULL, NULL, .rows = ipw_limit_option_rows},
    {"Energy", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"telemetry", 0, IPW_OPT_LIST, AT(run.sensors.telemetry), "LIST", "sensors, as in run"},
    {"gpu", 0, IPW_OPT_STR, AT(run.sensors.gpu), "LIST", "measure only these GPUs, as in run"},
    {"sample-interval", 0, IPW_OPT_DURATION, AT(run.sensors.sample_interval_ns), "TIME", "time between readings (default: 50ms)"},
    {"share", 0, IPW_OPT_STR, AT(run.sensors.share), "RULE", "split energy by: phase (default), equal"},
    {"baseline", 0, IPW_OPT_DURATION, AT(run.sensors.baseline_ns), "TIME", "measure idle power before and after (try 30s)"},
    {"model-host", 0, IPW_OPT_STR, AT(run.sensors.energy), "WHERE", "the model's machine: auto (default), local, remote"},
    {"require-quiet", 0, IPW_OPT_FLAG, AT(run.sensors.require_quiet), NULL, "fail if other programs use the CPU or a GPU"},
    {"no-estimate", 0, IPW_OPT_FLAG, AT(run.sensors.no_estimate), NULL, "do not estimate CPU energy if no sensor reads it"},
    {"Output", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"output", 'o', IPW_OPT_STR, AT(run.output.dir), "DIR", "run folder (default: a new one in runs/)"},
    {"sync", 0, IPW_OPT_STR, AT(run.output.sync), "WHEN", "flush to disk: query (default), run or off"},
    {"", 0, IPW_OPT_BLOCK, offsetof(struct values, watch), NULL, NULL, .rows = ipw_watch_option_rows},
    {"no-content", 0, IPW_OPT_FLAG, AT(run.output.no_content), NULL, "store filler of equal length instead of texts"},
    {"json", 0, IPW_OPT_FLAG, AT(run.output.json), NULL, "print the summary as one JSON object"},
    {"quiet", 'q', IPW_OPT_FLAG, AT(run.output.quiet), NULL, "hide progress and notices"},
    {"verbose", 'v', IPW_OPT_FLAG, AT(run.output.verbose), NULL, "print what happens"},
    IPW_OPT_END,
};
/* clang-format on */

const struct ipw_command ipw_measure_command = {
    .name = "measure",
    .usage = "measure [options] [PROGRAM] [-- COMMAND...]",
    .about = "Measure an agent you already have. Its model calls pass through a recording\n"
             "proxy.",
    .options = options,
    .first =
        " upstream model epochs exit-scores port stop-at prices telemetry baseline output watch ",
    .more = "COMMAND runs with the proxy's address in its environment. At its end the\n"
            "program prints what it cost:\n"
            "  ipw-agent measure -- python my_agent.py\n"
            "  ipw-agent measure claude -- \"fix the test\"\n"
            "PROGRAM is a name of `ipw-agent list programs`, or a file; without it, it\n"
            "follows from COMMAND. Without both, the address is printed for clients of\n"
            "your own. Without --upstream: $OPENAI_BASE_URL, $ANTHROPIC_BASE_URL, local\n"
            "ports, the demo model.\n"
            "Exit status: the program's; 1 failed, 2 wrong usage, 130 interrupted.",
    .min_args = 0,
    .max_args = 1,
};

/* The file that knows the program, by its name: "python3.11" is python. */
static const char *program_of(const char *word)
{
    static const char *const known[] = {"python", "node",  "claude",   "codex",    "mini",
                                        "aider",  "goose", "opencode", "openhands"};
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i]);

        if (strncmp(name, known[i], n) == 0 && !name[n + strspn(name + n, "0123456789.")])
            return known[i];
    }
    return "any";
}

/* The index of the first "--", or argc. */
static int command_at(int argc, char **argv)
{
    int i = 1;

    while (i < argc && strcmp(argv[i], "--") != 0) i++;
    return i;
}

static const char *choose(struct ipw_measure_options *o, int argc, char **argv, int at, char **args,
                          int n_args)
{
    bool command = at + 1 < argc;

    o->named = n_args == 1;
    if (command || o->named) o->argv = (const char *const *)(argv + (at < argc ? at + 1 : argc));
    return o->named ? args[0] : command ? program_of(o->argv[0]) : "any";
}

/* Of --api-key-env, the row without a MATCH: it is the key of every run. */
static void take_general_key(struct ipw_measure_options *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->keys.n; i++) {
        if (strchr(o->keys.items[i], '='))
            o->keys.items[n++] = o->keys.items[i];
        else
            o->run.server.api_key_env = o->keys.items[i];
    }
    o->keys.n = n;
}

int ipw_cmd_measure(int argc, char **argv)
{
    struct values v = {.measure = {.idle_ns = 300 * IPW_NS_PER_S}};
    struct ipw_measure_options *o = &v.measure;
    struct ipw_run_end end = {0};
    struct ipw_follower *follower = NULL;
    struct ipw_err err = {0};
    int at, n_args, exit_code, rc;
    const char *agent = NULL;
    char **args;

    argv = ipw_options_before(&ipw_measure_command, &argc, argv);
    at = command_at(argc, argv);
    ipw_run_options_init(&o->run);
    o->run.grace_ns = 0;
    o->run.server.net.connect_ns = 10 * IPW_NS_PER_S;
    rc = ipw_options_parse(&ipw_measure_command, at, argv, &v, &args, &n_args, &err);
    if (!rc) rc = ipw_limits_check(&o->run.limits, &err);
    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    take_general_key(o);
    agent = choose(o, argc, argv, at, args, n_args);
    if (o->upstreams.n) { /* the sensors and the manifest know the first as the model's server */
        const char *url = o->upstreams.items[0], *scheme = strstr(url, "://"),
                   *equals = strchr(url, '=');

        o->run.server.net.base_urls =
            (struct ipw_opt_list){.items = ipw_calloc(2, sizeof(char *)), .n = 1};
        o->run.server.net.base_urls.items[0] =
            scheme && equals && equals < scheme ? equals + 1 : url;
    }
    if ((rc = ipw_follower_open(&follower, &v.watch, o->run.output.quiet, &err)))
        return ipw_exit_with(&err, rc == IPW_EINVAL ? IPW_EXIT_USAGE : IPW_EXIT_FAILED);
    exit_code =
        ipw_measure(o, agent, ipw_cmd_run_json(&ipw_measure_command, argc, argv), follower, &end);
    ipw_follower_close(follower);
    exit_code = ipw_cmd_run_tell_end(&end, exit_code, o->run.output.verbose);
    free(o->run.server.net.base_urls.items);
    free(o->upstreams.items);
    free(o->keys.items);
    free(o->run.script.paths.items);
    free(o->run.sensors.telemetry.items);
    return exit_code;
}
