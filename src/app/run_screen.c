#include "app/run_screen.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/workbench.h"
#include "base/clock.h"
#include "base/mem.h"
#include "script/export_job.h"

#define LUA_BYTES ((size_t)4096 * IPW_MIB) /* a query's line may have 512 MiB */

int ipw_run_screen(const char *module, const char *run, const char *const *texts, bool verbose,
                   struct ipw_err *err)
{
    struct ipw_workbench_options o;
    struct ipw_workbench bench = {.workspace = NULL};
    char *runs[] = {ipw_strdup(run)};
    struct ipw_export_job job = {.runs = runs, .n_runs = 1, .stream = stdout};
    struct ipw_lua_command entry = {.module = module, .texts = texts};
    int64_t status = 0;
    int rc;

    ipw_workbench_defaults(&o);
    o.lua_cpu_ns = 60 * IPW_NS_PER_S;
    o.verbose = verbose;
    rc = ipw_workbench_open(&bench, &o, IPW_BENCH_NO_MODEL, err);
    if (!rc) {
        bench.host.export_job = &job;
        bench.memory_bytes = LUA_BYTES;
        rc = ipw_workbench_command(&bench, &status, &entry, run, err);
    }
    ipw_workbench_close(&bench, &o);
    free(runs[0]);
    return rc ? rc : (int)status;
}
