/* app/runs_command.h: commands over saved runs that are written in Lua: compare, export, analyze,
 * plot.
 *
 * The script reads the runs of the job and writes its output (script/lib_export.c), and can do no
 * more than other scripts.  Owns nothing after the call. */
#ifndef IPW_APP_RUNS_COMMAND_H
#define IPW_APP_RUNS_COMMAND_H

#include "app/workbench.h"
#include "script/export_job.h"

/* Before the command line is read: the workbench's defaults, but with CPU time for many queries. */
void ipw_runs_defaults(struct ipw_workbench_options *bench);
/* Runs a module of lua/ipw/cli; *status: what it returned.  Releases the options. */
int ipw_runs_command(int64_t *status, struct ipw_workbench_options *bench,
                     const struct ipw_export_job *job, const char *module, const char *const *args,
                     struct ipw_err *err);

#endif
