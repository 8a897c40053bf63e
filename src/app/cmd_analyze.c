/* analyze RUN...: what the numbers of saved runs say; each analysis is a Lua file. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/commands.h"
#include "app/runs_command.h"
#include "base/mem.h"

struct analyze_options {
    struct ipw_workbench_options bench;
    struct ipw_opt_list analyses;
    const char *output;
    bool json, list;
};

/* clang-format off */
#define AT(field) offsetof(struct analyze_options, field)
static const struct ipw_opt options[] = {
    {"analysis", 0, IPW_OPT_LIST, AT(analyses), "NAME", "analysis or its .lua file; repeatable (default: all)"},
    {"list", 0, IPW_OPT_FLAG, AT(list), NULL, "list the analyses"},
    {"json", 0, IPW_OPT_FLAG, AT(json), NULL, "print one JSON object"},
    {"output", 'o', IPW_OPT_STR, AT(output), "DIR", "write ANALYSIS.json files to this new folder"},
    IPW_WORKBENCH_SCRIPTS,
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "analyze",
    .usage = "analyze RUN... [--analysis NAME] [--json] [-o DIR]",
    .about = "Analyze saved runs: lines through tokens, joules and seconds; joules per prompt\n"
             "token and per generated token; growth with the prompt; how well tokens predict\n"
             "joules; accuracy.",
    .options = options,
    .more = "An analysis is a Lua file: ipw-agent new analysis NAME writes one to start from.\n"
            "Intervals are 95 % intervals. What a run does not know is left out, and each\n"
            "result says how many values it is made of.",
    .min_args = 0,
    .max_args = -1,
};

static int run(int64_t *status, struct analyze_options *o, char **runs, int n, struct ipw_err *err)
{
    const char **args = ipw_calloc(o->analyses.n + 4, sizeof *args);
    char **texts = ipw_calloc(o->analyses.n + 1, sizeof *texts);
    struct ipw_export_job job = {.runs = runs, .n_runs = n, .output = o->output, .stream = stdout};
    size_t k = 0;
    int rc;

    for (size_t i = 0; i < o->analyses.n; i++)
        args[k++] = texts[i] = ipw_asprintf("analysis=%s", o->analyses.items[i]);
    if (o->json) args[k++] = "json";
    if (o->list) args[k++] = "list";
    if (o->output) args[k++] = "output";
    rc = ipw_runs_command(status, &o->bench, &job, "ipw.cli.analyze", args, err);
    for (size_t i = 0; i < o->analyses.n; i++) free(texts[i]);
    free(texts);
    free(args);
    return rc;
}

int ipw_cmd_analyze(int argc, char **argv)
{
    struct analyze_options o = {.output = NULL};
    struct ipw_err err = {0};
    int64_t status = 0;
    char **runs;
    int n, rc;

    ipw_runs_defaults(&o.bench);
    rc = ipw_options_parse(&command, argc, argv, &o, &runs, &n, &err);
    if (!rc && !n && !o.list)
        rc = ipw_fail(&err, IPW_EINVAL,
                      "analyze: an argument is missing: name a run (--list lists the analyses)");
    if (rc) {
        ipw_script_options_release(&o.bench.script);
        free(o.analyses.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    rc = run(&status, &o, runs, n, &err);
    free(o.analyses.items);
    return rc ? ipw_exit_with(&err, IPW_EXIT_INPUT) : (int)status;
}
