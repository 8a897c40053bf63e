/* script/kept_servers.h: what a run's queries share: its MCP servers, started once.
 *
 * A Lua state of the run's own (lua/ipw/mcp_kept.lua) opens the agent's tools before the first
 * query, so that no query pays for it: it compiles their files and lists the tools of the servers.
 * It then keeps the servers.  A query's state asks it through struct ipw_host_kept (script/host.h);
 * each call is a task of that state, so calls of several queries are under way at once.  A
 * cancelled call ends alone.
 *
 * What the options point to is borrowed. */
#ifndef IPW_SCRIPT_KEPT_SERVERS_H
#define IPW_SCRIPT_KEPT_SERVERS_H

#include "script/agent.h"

struct ipw_kept_servers;

struct ipw_kept_options {
    struct ipw_loop *loop; /* which nothing else uses during open and close */
    const struct ipw_agent_info *agent;
    const struct ipw_agent_config *config;
    const struct ipw_host_grants *grants;
    const char *(*workspace)(void *ud); /* the folder of the servers */
    void *ud;
    bool per_query; /* each query starts its own servers (--mcp-per-query): these are only listed */
};

/* Fails if a server cannot list its tools. */
int ipw_kept_servers_open(struct ipw_kept_servers **out, const struct ipw_kept_options *options,
                          struct ipw_err *err);
/* Ends the servers; no call may be under way.  NULL is fine. */
void ipw_kept_servers_close(struct ipw_kept_servers *kept);
/* For the grants of the queries. */
const struct ipw_host_kept *ipw_kept_servers_host(const struct ipw_kept_servers *kept);

#endif
