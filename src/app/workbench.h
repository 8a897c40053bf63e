/* app/workbench.h: runs Lua for the small commands: check, tool, test, repl.
 *
 * Owns a loop, connections, a workspace, and a model if the command needs one: everything that a
 * query of a run has, except sensors and files.  The commands are written in Lua (lua/ipw/cli);
 * their output goes through this unit. */
#ifndef IPW_APP_WORKBENCH_H
#define IPW_APP_WORKBENCH_H

#include "app/options.h"
#include "run/connect.h"
#include "run/find_server.h"
#include "run/judge_options.h"
#include "run/script_options.h"
#include "run/workspaces.h"
#include "script/lua_command.h"

enum ipw_workbench_model {
    IPW_BENCH_NO_MODEL,
    IPW_BENCH_NAMED_MODEL, /* only with --model or --base-url */
    IPW_BENCH_ANY_MODEL,   /* else one that is found, or the demo model */
    IPW_BENCH_FIND_MODEL,  /* ipw_call_server() looks for one, and it may be missing */
};

/* Options that the commands share; the first member of their option structs. */
struct ipw_workbench_options {
    struct ipw_connect_options server; /* model, addresses and key */
    struct ipw_script_options script;
    const char *workspace; /* NULL: a temporary folder */
    int64_t lua_cpu_ns;
    struct ipw_server_options find; /* of a command that only looks at a server */
    struct ipw_judge_options judge;
    bool verbose;
};
/* Sets the defaults before the command line is read. */
void ipw_workbench_defaults(struct ipw_workbench_options *o);

/* Rows of an option table for struct ipw_workbench_options: of the model; of scripts. */
extern const struct ipw_opt ipw_workbench_model_rows[], ipw_workbench_script_rows[];
/* clang-format off */
#define IPW_WORKBENCH_SCRIPTS                                                                      \
    {"Scripts and safety", 0, IPW_OPT_SECTION, 0, NULL, NULL},                                     \
    {"", 0, IPW_OPT_BLOCK, 0, NULL, NULL, .rows = ipw_workbench_script_rows}
/* clang-format on */

struct ipw_workbench {
    struct ipw_workbench_options *o;
    struct ipw_loop *loop;
    struct ipw_connection connection;
    struct ipw_workspaces workspaces;
    struct ipw_host host;
    char *workspace;
    size_t memory_bytes;         /* of a Lua state; 0: as for a query */
    struct ipw_opt_list allowed; /* of ipw_workbench_allow() */
};
int ipw_workbench_open(struct ipw_workbench *bench, struct ipw_workbench_options *o,
                       enum ipw_workbench_model model, struct ipw_err *err);
/* Runs a function of a command's file (app/cmd_lua.h).  `script` is the file that it works on, whose
 * folder is searched first (or NULL).  Handles left on the loop are an error. */
int ipw_workbench_command(struct ipw_workbench *bench, int64_t *status,
                          struct ipw_lua_command *entry, const char *script, struct ipw_err *err);
/* As --web-allow HOST, while the command runs. */
void ipw_workbench_allow(struct ipw_workbench *bench, const char *host);
/* Removes the workspace that it created; also releases the options. */
void ipw_workbench_close(struct ipw_workbench *bench, struct ipw_workbench_options *o);
/* The exit code of an error: 3 if something was not found or does not load, else 1. */
int ipw_workbench_exit(const struct ipw_err *err);

#endif
