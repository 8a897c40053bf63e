/* repl: runs the Lua API line by line, with a model. */
#include <stdio.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/workbench.h"
#include "base/log.h"

int ipw_cmd_repl(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"", 0, IPW_OPT_BLOCK, 0, NULL, NULL, .rows = ipw_workbench_model_rows},
        IPW_WORKBENCH_SCRIPTS,
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "repl",
        .usage = "repl [options]",
        .about = "Try the Lua API line by line, with a model.",
        .options = options,
        .more = "  > llm.chat { messages = { llm.user \"Hello\" } }.text\n"
                "  > ? What is 12 * 12\n"
                "  > help\n\n"
                "Without --base-url: $OPENAI_BASE_URL, then local ports, then the demo model.",
        .max_args = 0,
    };
    struct ipw_workbench_options o;
    struct ipw_workbench bench;
    struct ipw_err err = {0};
    char **args;
    int n, rc;

    ipw_workbench_defaults(&o);
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    rc = ipw_workbench_open(&bench, &o, IPW_BENCH_ANY_MODEL, &err);
    while (!rc) {
        const char *of_repl[] = {bench.connection.model ? bench.connection.model : "",
                                 isatty(STDIN_FILENO) ? "tty" : "", NULL};
        int64_t status = 0;

        rc = ipw_workbench_run(&bench, &status, "ipw.cli.repl", NULL, of_repl, &err);
        if (rc == 0) break;
        /* A state that passed a limit is lost; the next line gets a new one. */
        fflush(stdout);
        if (rc != IPW_ELIMIT) break;
        ipw_say("%s: restarted the Lua state; all variables are lost", err.text);
        rc = 0;
    }
    ipw_workbench_close(&bench, &o);
    return rc ? ipw_exit_with(&err, ipw_workbench_exit(&err)) : IPW_EXIT_OK;
}
