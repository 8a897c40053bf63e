/* app/workbench.h: the place where the small commands try Lua out: check, tool, test, repl.
 *
 * Owns a loop, connections, a workspace, and a model when one is wanted: what a query has of a run,
 * without sensors and without a record.  The work itself is written in Lua (lua/ipw/cli) and printed
 * through here. */
#ifndef IPW_APP_WORKBENCH_H
#define IPW_APP_WORKBENCH_H

#include "app/options.h"
#include "run/connect.h"
#include "run/script_options.h"
#include "run/workspaces.h"
#include "script/lua_command.h"

enum ipw_workbench_model {
    IPW_BENCH_NO_MODEL,
    IPW_BENCH_NAMED_MODEL, /* when --model or --base-url names one */
    IPW_BENCH_ANY_MODEL,   /* or else one that is found, or the demo model */
};

/* What the commands have in common; the first member of their option structs. */
struct ipw_workbench_options {
    struct ipw_connect_options server; /* of which model, addresses and key count */
    struct ipw_script_options script;
    const char *workspace; /* NULL: a temporary folder */
    int64_t lua_cpu_ns;
    bool verbose;
};
/* Before the command line is read. */
void ipw_workbench_defaults(struct ipw_workbench_options *o);

/* Rows of an option table, for a struct ipw_workbench_options: the model's; the scripts'. */
extern const struct ipw_opt ipw_workbench_model_rows[], ipw_workbench_script_rows[];
/* clang-format off */
#define IPW_WORKBENCH_SCRIPTS                                                                      \
    {"Scripts and safety", 0, IPW_OPT_SECTION, 0, NULL, NULL},                                     \
    {"", 0, IPW_OPT_BLOCK, 0, NULL, NULL, .rows = ipw_workbench_script_rows}
/* clang-format on */

struct ipw_workbench {
    const struct ipw_workbench_options *o;
    struct ipw_loop *loop;
    struct ipw_connection connection;
    struct ipw_workspaces workspaces;
    struct ipw_host host;
    char *workspace;
    size_t memory_bytes; /* of a Lua state; 0: as for a query */
};
int ipw_workbench_open(struct ipw_workbench *bench, struct ipw_workbench_options *o,
                       enum ipw_workbench_model model, struct ipw_err *err);
/* Runs a module of lua/ipw/cli; `script` names the file it is about, whose folder is searched first
 * (or NULL).  Handles that were left over on the loop are an error. */
int ipw_workbench_run(struct ipw_workbench *bench, int64_t *status, const char *module,
                      const char *script, const char *const *args, struct ipw_err *err);
/* Removes the workspace that it made; releases the options too. */
void ipw_workbench_close(struct ipw_workbench *bench, struct ipw_workbench_options *o);
/* An error's exit code: 3 for what cannot be found or does not load, 1 for the rest. */
int ipw_workbench_exit(const struct ipw_err *err);

#endif
