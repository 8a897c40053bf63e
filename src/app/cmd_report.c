/* report RUN...: saved runs as one page to look at, in the terminal, or as markdown. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/runs_command.h"
#include "base/clock.h"
#include "base/mem.h"

enum { FIXED_ARGS = 4 }; /* of lua/ipw/cli/report.lua; the sections follow them */

#define LUA_CPU_NS (3600 * IPW_NS_PER_S) /* a long run takes long: no endless loop */

struct report_options {
    struct ipw_workbench_options bench;
    const char *output;
    struct ipw_opt_list sections;
    bool with_content, markdown, ascii;
};

/* clang-format off */
#define AT(field) offsetof(struct report_options, field)
static const struct ipw_opt options[] = {
    {"output", 'o', IPW_OPT_STR, AT(output), "FILE", "write the page, such as report.html"},
    {"with-content", 0, IPW_OPT_FLAG, AT(with_content), NULL, "put prompts, replies and errors on the page"},
    {"markdown", 0, IPW_OPT_FLAG, AT(markdown), NULL, "print markdown, for a pull request"},
    {"ascii", 0, IPW_OPT_FLAG, AT(ascii), NULL, "draw with ASCII characters only"},
    {"section", 0, IPW_OPT_LIST, AT(sections), "NAME", "add a section of yours, or its .lua file; repeatable"},
    {"path", 'p', IPW_OPT_LIST, AT(bench.script.paths), "DIR", "search here first for sections"},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "report",
    .usage = "report RUN... [-o FILE.html | --markdown]",
    .about = "Show saved runs: where the energy went, when, in which queries, and how surely.",
    .options = options,
    .more = "With -o the result is one file that loads nothing from anywhere: open it in a\n"
            "browser, send it, attach it. Without, the same is printed in the terminal.\n"
            "Of several runs the first is the one that the others are compared with.\n\n"
            "Texts of tasks, replies and tools are left out unless --with-content is given:\n"
            "look at the page before you share it. docs/report.md explains each part.\n\n"
            "A section is a Lua file: ipw-agent new section NAME writes one to start from.",
    .min_args = 1,
    .max_args = -1,
};

static int run_report(int64_t *status, struct report_options *o, char **runs, int n,
                      struct ipw_err *err)
{
    struct ipw_export_job job = {.runs = runs, .n_runs = n, .output = o->output, .stream = stdout};
    const char **args = ipw_calloc(o->sections.n + FIXED_ARGS + 1, sizeof *args);
    int rc;

    args[0] = o->markdown ? "markdown" : o->output ? "html" : "terminal";
    args[1] = o->with_content ? "content" : "";
    args[2] = o->ascii ? "ascii" : "";
    args[3] = isatty(STDOUT_FILENO) && !getenv("NO_COLOR") ? "colour" : "";
    for (size_t i = 0; i < o->sections.n; i++) args[FIXED_ARGS + i] = o->sections.items[i];
    rc = ipw_runs_command(status, &o->bench, &job, "ipw.cli.report", args, err);
    free(args);
    return rc;
}

int ipw_cmd_report(int argc, char **argv)
{
    struct report_options o = {.output = NULL};
    struct ipw_err err = {0};
    int64_t status = 0;
    char **args;
    int n, rc;

    ipw_workbench_defaults(&o.bench);
    o.bench.lua_cpu_ns = LUA_CPU_NS;
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
    if (!rc && o.markdown && o.output)
        rc = ipw_fail(&err, IPW_EINVAL,
                      "report: --markdown prints: leave out -o, or redirect its output");
    if (rc) {
        ipw_script_options_release(&o.bench.script);
        free(o.sections.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    rc = run_report(&status, &o, args, n, &err);
    free(o.sections.items);
    return rc ? ipw_exit_with(&err, IPW_EXIT_INPUT) : (int)status;
}
