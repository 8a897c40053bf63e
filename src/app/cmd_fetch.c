/* fetch: downloads a dataset into the Hugging Face cache, by lua/ipw/cli/fetch.lua. */
#include <signal.h>

#include "app/commands.h"
#include "app/workbench.h"
#include "base/buf.h"
#include "base/clock.h"

int ipw_cmd_fetch(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"path", 'p', IPW_OPT_LIST, offsetof(struct ipw_workbench_options, script.paths), "DIR", "search here first for datasets"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "fetch",
        .usage = "fetch NAME|hf:OWNER/NAME[:CONFIG][@REVISION][/SPLIT]",
        .about = "Download a dataset into the Hugging Face cache, where other programs find it\n"
                 "too. If the download breaks off, run the same command again.",
        .options = options,
        .more = "  ipw-agent fetch gsm8k\n\n"
                "Variables: HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE.\n"
                "The token is sent to the endpoint only, never to a host that it redirects to.\n"
                "Exit status: 0 done, 1 failed, 2 wrong usage.",
        .min_args = 1,
        .max_args = 1,
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
    signal(SIGXFSZ, SIG_IGN); /* a limit of the file's size is an error, and tidied up */
    o.lua_cpu_ns = 24 * 3600 * IPW_NS_PER_S; /* hashing a large file is work, not a hang */
    rc = ipw_workbench_open(&bench, &o, IPW_BENCH_NO_MODEL, &err);
    if (!rc) {
        const char *of_fetch[] = {args[0], NULL};

        bench.host.grants.may_download = true;
        bench.memory_bytes = 256 * IPW_MIB; /* for a list of 100,000 files */
        rc = ipw_workbench_run(&bench, &status, "ipw.cli.fetch", NULL, of_fetch, &err);
    }
    ipw_workbench_close(&bench, &o);
    return rc ? ipw_exit_with(&err, IPW_EXIT_FAILED) : (int)status;
}
