/* run/run_options.h: the options of a run.
 *
 * Plain values, grouped by the part that uses them; app/cmd_run.c has the rows that fill them.
 * ipw_run_options_init() sets the defaults.  They do not change after the command line is read, and
 * all strings are borrowed from it. */
#ifndef IPW_RUN_RUN_OPTIONS_H
#define IPW_RUN_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/judge_options.h"
#include "run/limits.h"
#include "run/pacing.h"
#include "run/script_options.h"
#include "run/sensor_options.h"
#include "run/server_options.h"
#include "run/shard.h"

struct ipw_agent_options {
    const char *kind;  /* of the agent's file: "agents", "programs" */
    const char *tools; /* names separated by commas; NULL: the agent's own */
    int64_t max_turns, seed, max_tokens, lua_cpu_ns;
    size_t lua_memory_bytes;
    double temperature;
};

struct ipw_data_options {
    const char *dataset, *data_dir, *encoding, *limit, *sample, *where, *ids;
    const char *query; /* of a workload: the one query of the recording; or NULL */
    int64_t epochs, warmup;
    struct ipw_pacing_options pacing;
    const char *shard_text; /* --shard as it was given; `shard` is what it means */
    struct ipw_shard shard;
};

struct ipw_resume_options {
    bool on, force;
    const char *retry;
};

struct ipw_output_options {
    const char *dir, *sync;
    bool no_content, json, quiet, verbose;
};

struct ipw_run_options {
    struct ipw_connect_options server;
    struct ipw_agent_options agent;
    struct ipw_data_options data;
    struct ipw_judge_options judge;
    struct ipw_script_options script;
    struct ipw_sensor_options sensors;
    struct ipw_limit_options limits;
    struct ipw_resume_options resume;
    struct ipw_output_options output;
    int64_t concurrency; /* at most; 0: 1, or with --rate as many as are due */
    int64_t grace_ns;
};

void ipw_run_options_init(struct ipw_run_options *options);
/* How many queries may be in flight. */
int64_t ipw_run_concurrency(const struct ipw_run_options *options);
/* --tools as a list that ends with NULL, cut at commas alone: a tool may be a path, and a path may
 * hold blanks.  NULL gives NULL.  The caller frees the list and *text, which holds the names. */
const char **ipw_tools_cut(char **text, const char *tools);
/* Adds "mcp:1", ... for that many MCP servers to such a list; NULL becomes "+", the agent's own. */
const char **ipw_tools_with_servers(const char **list, size_t n);
/* What the scripts of a run may do, but for web requests, which need the run's own client. */
void ipw_run_grants(struct ipw_host_grants *out, const struct ipw_run_options *options);

#endif
