#include "run/run_options.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

enum { MOST_IN_FLIGHT = 100000 };

void ipw_run_options_init(struct ipw_run_options *o)
{
    *o = (struct ipw_run_options){
        .server = {.max_retries = 2, .server_failures = 5, .server_wait_ns = 40 * IPW_NS_PER_S},
        .agent = {.kind = "agents",
                  .seed = INT64_MIN,
                  .max_tokens = -1,
                  .lua_cpu_ns = 2 * IPW_NS_PER_S,
                  .lua_memory_bytes = 64 * IPW_MIB,
                  .temperature = NAN},
        .data = {.epochs = 1},
        .sensors = {.energy = "auto"},
        .resume = {.retry = "cut"},
        .output = {.sync = "query"},
        .grace_ns = 30 * IPW_NS_PER_S,
    };
    ipw_limits_init(&o->limits);
}

int64_t ipw_run_concurrency(const struct ipw_run_options *o)
{
    if (o->concurrency) return o->concurrency;
    return o->data.pacing.rate > 0 || ipw_pacing_is_recorded(&o->data.pacing) ? MOST_IN_FLIGHT : 1;
}

const char **ipw_tools_cut(char **text, const char *tools)
{
    const char **list = NULL;
    size_t n = 0, cap = 0;
    char *save = NULL;

    if (!tools) return NULL;
    *text = ipw_strdup(tools);
    IPW_GROW(list, cap, 1);
    for (char *t = strtok_r(*text, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
        size_t len;

        t += strspn(t, " \t\n");
        for (len = strlen(t); len && strchr(" \t\n", t[len - 1]);) t[--len] = '\0';
        if (!len) continue;
        IPW_GROW(list, cap, n + 2);
        list[n++] = t;
    }
    list[n] = NULL;
    return list;
}

_Static_assert(IPW_MCP_SERVERS_MAX == 32, "a name for each server");

const char **ipw_tools_with_servers(const char **list, size_t n)
{
    static const char *const names[] = {
        "mcp:1",  "mcp:2",  "mcp:3",  "mcp:4",  "mcp:5",  "mcp:6",  "mcp:7",  "mcp:8",
        "mcp:9",  "mcp:10", "mcp:11", "mcp:12", "mcp:13", "mcp:14", "mcp:15", "mcp:16",
        "mcp:17", "mcp:18", "mcp:19", "mcp:20", "mcp:21", "mcp:22", "mcp:23", "mcp:24",
        "mcp:25", "mcp:26", "mcp:27", "mcp:28", "mcp:29", "mcp:30", "mcp:31", "mcp:32"};
    size_t at = 0;

    if (!n) return list;
    while (list && list[at]) at++;
    list = ipw_realloc(list, (at + n + 2) * sizeof *list);
    if (!at) list[at++] = "+";
    for (size_t i = 0; i < n; i++) list[at++] = names[i];
    list[at] = NULL;
    return list;
}

void ipw_run_grants(struct ipw_host_grants *out, const struct ipw_run_options *o)
{
    ipw_script_grants(out, &o->script);
    out->try_sandbox = out->sandbox;
    out->leave_out = !o->agent.tools;
}
