/* tool: calls a tool once. */
#include <stdio.h>
#include <stdlib.h>

#include "app/commands.h"
#include "app/workbench.h"

int ipw_cmd_tool(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"", 0, IPW_OPT_BLOCK, 0, NULL, NULL, .rows = ipw_workbench_model_rows},
        IPW_WORKBENCH_SCRIPTS,
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "tool",
        .usage = "tool NAME|FILE ['{\"json\":\"args\"}'] [options]",
        .about = "Call a tool and print its result as a model would read it.",
        .options = options,
        .more = "  ipw-agent tool calculator '{\"expression\":\"2 ** 10\"}'\n\n"
                "Exit status: 0 success, 1 the tool returned an error, 2 wrong usage, 3 the tool\n"
                "cannot be loaded.",
        .min_args = 1,
        .max_args = 2,
    };
    struct ipw_workbench_options o;
    struct ipw_workbench bench;
    struct ipw_err err = {0};
    int64_t status = 0;
    char **args;
    int n, rc;

    ipw_workbench_defaults(&o);
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    rc = ipw_workbench_open(&bench, &o, IPW_BENCH_NAMED_MODEL, &err);
    if (!rc) {
        const char *of_tool[] = {args[0], n > 1 ? args[1] : "{}", NULL};
        rc = ipw_workbench_run(&bench, &status, "ipw.cli.tool", NULL, of_tool, &err);
    }
    ipw_workbench_close(&bench, &o);
    return rc ? ipw_exit_with(&err, ipw_workbench_exit(&err)) : (int)status;
}
