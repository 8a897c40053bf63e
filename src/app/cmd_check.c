/* check: loads scripts and prints their mistakes, with file, line and suggestion. */
#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/workbench.h"
#include "base/text.h"

struct check_options {
    struct ipw_workbench_options bench;
    const char *kind;
};

static int check_kind(const char *kind, struct ipw_err *err)
{
    static const char *const kinds[] = {"tool",     "agent", "dataset", "model", "export",
                                        "analysis", "plot",  "section", NULL};
    const char *near;

    for (size_t i = 0; kinds[i]; i++)
        if (!kind || strcmp(kind, kinds[i]) == 0) return 0;
    near = ipw_nearest(kind, kinds);
    return ipw_fail(err, IPW_EINVAL,
                    "--kind: tool, agent, dataset, model, export, analysis, plot or section, not "
                    "'%s'%s%s%s",
                    kind, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

int ipw_cmd_check(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"kind", 0, IPW_OPT_STR, offsetof(struct check_options, kind), "KIND", "kind of file: tool, agent, ... (default: by content)"},
        {"verbose", 'v', IPW_OPT_FLAG, offsetof(struct check_options, bench.verbose), NULL, "print what happens"},
        IPW_WORKBENCH_SCRIPTS,
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "check",
        .usage = "check FILE... [options]",
        .about = "Load tools, agents, datasets, export formats, analyses, plots and sections of\n"
                 "reports, and report their mistakes.",
        .options = options,
        .more = "For a dataset, the command also checks every task.\n\n"
                "Exit status: 0 no mistake, 2 wrong usage, 3 mistakes were found.",
        .min_args = 1,
        .max_args = -1,
    };
    struct check_options o = {.kind = NULL};
    struct ipw_workbench bench = {.workspace = NULL};
    struct ipw_err err = {0};
    int n, rc, exit_code = IPW_EXIT_OK;
    char **args;

    ipw_workbench_defaults(&o.bench);
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
    if (rc > 0) return IPW_EXIT_OK;
    if (!rc) rc = check_kind(o.kind, &err);
    if (rc) {
        ipw_workbench_close(&bench, &o.bench);
        return ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    rc = ipw_workbench_open(&bench, &o.bench, IPW_BENCH_NO_MODEL, &err);
    if (rc) exit_code = ipw_exit_with(&err, IPW_EXIT_FAILED);
    for (int i = 0; !rc && i < n; i++) {
        const char *of_file[] = {args[i], o.kind ? o.kind : "", NULL};
        int64_t status = 0;

        if (ipw_workbench_run(&bench, &status, "ipw.cli.check", args[i], of_file, &err)) {
            fflush(stdout);
            exit_code = ipw_exit_with(&err, ipw_workbench_exit(&err));
        } else if (status) {
            exit_code = (int)status;
        }
    }
    ipw_workbench_close(&bench, &o.bench);
    return exit_code;
}
