/* mcp: serves saved runs to coding assistants, by lua/ipw/cli/mcp_serve.lua. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/commands.h"
#include "app/workbench.h"
#include "base/clock.h"
#include "io/proc.h"

struct mcp_options {
    char *root;
};

/* This program's own file and the folder that is served, absolute and without links. */
static int find_places(char *self, char *folder, size_t size, const char *root, struct ipw_err *err)
{
    int rc = ipw_proc_own_file(self, size, err);

    if (rc) return rc;
    return realpath(root, folder) ? 0 : ipw_fail_errno(err, errno, "%s", root);
}

int ipw_cmd_mcp(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"root", 0, IPW_OPT_STR, offsetof(struct mcp_options, root), "DIR", "folder to read, with all below it (default: .)"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "mcp",
        .usage = "mcp [options]",
        .about = "Serve saved runs to a coding assistant as a Model Context Protocol server on\n"
                 "standard input and output. It only reads, in the current folder and below it.",
        .options = options,
        .more =
            "In an assistant's settings, with the folder of your runs as its folder:\n"
            "  {\"mcpServers\": {\"ipw\": {\"command\": \"ipw-agent\", \"args\": [\"mcp\"]}}}\n\n"
            "Tools: list_runs, show_run, summary, show_query, ledger, compare, analyze,\n"
            "validate.",
        .max_args = 0,
    };
    struct mcp_options own = {.root = NULL};
    struct ipw_workbench_options o;
    struct ipw_workbench bench = {.workspace = NULL};
    struct ipw_err err = {0};
    char self[PATH_MAX], folder[PATH_MAX];
    int64_t status = 0;
    char **args;
    int n, rc;

    ipw_workbench_defaults(&o);
    rc = ipw_options_parse(&command, argc, argv, &own, &args, &n, &err);
    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    /* It starts this program alone, which reads the user's runs: no sandbox would show it them. */
    o.script.unsafe_tools = true;
    o.lua_cpu_ns = 60 * IPW_NS_PER_S;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a client waits for each line */
    rc = find_places(self, folder, sizeof self, own.root ? own.root : ".", &err);
    if (!rc) rc = ipw_workbench_open(&bench, &o, IPW_BENCH_NO_MODEL, &err);
    if (!rc)
        rc = ipw_workbench_run(&bench, &status, "ipw.cli.mcp_serve", NULL,
                               (const char *[]){self, folder, IPW_VERSION, NULL}, &err);
    ipw_workbench_close(&bench, &o);
    return rc ? ipw_exit_with(&err, IPW_EXIT_FAILED) : (int)status;
}
