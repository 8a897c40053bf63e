#include "app/runs_command.h"

#include "base/clock.h"

#define LUA_BYTES ((size_t)4096 * IPW_MIB) /* a query's line may have 512 MiB */

void ipw_runs_defaults(struct ipw_workbench_options *o)
{
    ipw_workbench_defaults(o);
    o->lua_cpu_ns = 60 * IPW_NS_PER_S;
}

int ipw_runs_command(int64_t *status, struct ipw_workbench_options *o,
                     const struct ipw_export_job *job, const char *module, const char *const *args,
                     struct ipw_err *err)
{
    struct ipw_workbench bench = {.workspace = NULL};
    int rc = ipw_workbench_open(&bench, o, IPW_BENCH_NO_MODEL, err);

    if (!rc) {
        bench.host.export_job = job;
        bench.memory_bytes = LUA_BYTES;
        rc =
            ipw_workbench_run(&bench, status, module, job->n_runs ? job->runs[0] : NULL, args, err);
    }
    ipw_workbench_close(&bench, o);
    return rc;
}
