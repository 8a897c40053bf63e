/* test: runs files of Lua test cases inside the real runtime and prints TAP. */
#include <stdio.h>
#include <stdlib.h>

#include "app/commands.h"
#include "app/workbench.h"
#include "base/log.h"

struct test_options {
    struct ipw_workbench_options bench;
    const char *filter;
};

int ipw_cmd_test(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"filter", 'k', IPW_OPT_STR, offsetof(struct test_options, filter), "TEXT", "run only cases with TEXT in their name"},
        {"", 0, IPW_OPT_BLOCK, 0, NULL, NULL, .rows = ipw_workbench_model_rows},
        IPW_WORKBENCH_SCRIPTS,
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "test",
        .usage = "test FILE... [options]",
        .about = "Run Lua tests in the real runtime; print TAP.",
        .options = options,
        .more = "A file describes cases with ipw.test, or returns a list of { name, function }\n"
                "pairs. llm.chat asks a model only when --model or --base-url names one;\n"
                "test.model{...} replaces it.\n\n"
                "Exit status: 0 all passed, 1 some failed, 2 wrong usage, 3 unreadable file.",
        .min_args = 1,
        .max_args = -1,
    };
    struct test_options o = {.filter = NULL};
    struct ipw_workbench bench;
    struct ipw_err err = {0};
    size_t passed = 0, failed = 0;
    char **args;
    int n, rc;

    ipw_workbench_defaults(&o.bench);
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    rc = ipw_workbench_open(&bench, &o.bench, IPW_BENCH_NAMED_MODEL, &err);
    for (int i = 0; !rc && i < n; i++) {
        const char *of_case[] = {args[i], o.filter ? o.filter : "", NULL};
        int64_t status = 0;

        if (ipw_workbench_run(&bench, &status, "ipw.cli.test", args[i], of_case, &err)) {
            fflush(stdout);
            ipw_say("%s", err.text);
            failed++;
        }
        passed += (size_t)(status >> 32);
        failed += (size_t)(status & INT64_C(0xFFFFFFFF));
    }
    ipw_workbench_close(&bench, &o.bench);
    if (rc) return ipw_exit_with(&err, IPW_EXIT_FAILED);
    printf("%zu passed, %zu failed\n", passed, failed);
    if (failed) return IPW_EXIT_FAILED;
    return passed ? IPW_EXIT_OK : IPW_EXIT_INPUT;
}
