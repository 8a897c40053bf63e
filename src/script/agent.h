/* script/agent.h: one agent that runs on one query, seen from C.
 *
 * ipw_agent_start() opens a Lua state, loads the agent's file, builds `query` and `cfg`, and runs
 * the agent's run(query, cfg) as a task.  It calls `done` once, with plain C values.  The object
 * owns the state until ipw_agent_free(). */
#ifndef IPW_SCRIPT_AGENT_H
#define IPW_SCRIPT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "script/dataset.h"
#include "script/host.h"
#include "script/vm.h"

struct ipw_agent_config {     /* options of the command line that replace the agent's defaults */
    int64_t max_turns;        /* 0: the agent's own */
    double temperature;       /* NAN: the agent's own */
    int64_t seed;             /* INT64_MIN: none */
    int64_t max_tokens;       /* < 0: none */
    const char *const *tools; /* names, NULL-terminated; NULL: the agent's own */
    const char *const *paths; /* --path folders */
    size_t memory_bytes;      /* of the Lua heap; 0: the default */
    int64_t slice_cpu_ns;     /* between two waits; 0: the default */
};

/* What an agent file declares. */
struct ipw_agent_info {
    char name[64], about[256];
    char path[1024]; /* of the file, or "builtin:..." */
    char dir[1024];  /* its folder, or "" */
    char sha256[65];
    int64_t max_turns; /* of its defaults, or -1 */
    char unknown[160]; /* a field that no agent has, and the one that was probably meant; or "" */
};
/* Finds the file by its name in a folder of that kind ("agents", "programs"; a name
 * "builtin:agents/NAME.lua" is an embedded file) and loads it once, so that a missing
 * file (IPW_ENOTFOUND), a syntax error or a wrong table (IPW_ELUA) is reported before a run
 * begins. */
int ipw_agent_inspect(struct ipw_agent_info *out, const char *kind, const char *name,
                      const char *const *paths, struct ipw_err *err);

struct ipw_agent_result {
    bool completed;        /* it returned an answer */
    const char *outcome;   /* "answered", "max_turns" or the agent's own reason, "error",
                              "cancelled", "memory", "cpu" */
    const char *response;  /* the text that it returned, or NULL */
    const char *source;    /* its own word for where the answer came from, or NULL */
    const char *error;     /* one line, or NULL */
    const char *traceback; /* lines, or "" */
    size_t lua_peak_bytes;
    int64_t lua_cpu_ns; /* time the loop's thread spent in this state */
};

/* Pushes the list of tools that its queries get as cfg.tools, or nil; `vm` has the agent's folder
 * and paths. [0, +1, -] on success */
int ipw_agent_push_tools(struct ipw_vm *vm, const struct ipw_agent_info *info,
                         const struct ipw_agent_config *config, struct ipw_err *err);

struct ipw_agent;
typedef void (*ipw_agent_fn)(void *ud, const struct ipw_agent_result *result);

/* `host` must outlive the object. */
int ipw_agent_start(struct ipw_agent **out, const struct ipw_agent_info *info,
                    const struct ipw_agent_config *config, const struct ipw_case *query,
                    struct ipw_host *host, ipw_agent_fn done, void *ud, struct ipw_err *err);
void ipw_agent_cancel(struct ipw_agent *agent, const char *reason); /* done is still called */
bool ipw_agent_all_recorded(const struct ipw_agent *agent);
void ipw_agent_free(struct ipw_agent *agent); /* ends without a callback; not from inside done */

#endif
