/* run/mcp_servers.h: the servers of tools that the user named (--mcp, --mcp-config).
 *
 * Owns their commands, addresses, environments and headers, which can hold keys: scripts know a
 * server by its number only (script/host.h).  A command line reads it once, after its options; its
 * grants borrow from it. */
#ifndef IPW_RUN_MCP_SERVERS_H
#define IPW_RUN_MCP_SERVERS_H

#include "base/err.h"
#include "base/option.h"
#include "json/write.h"
#include "script/host.h"

enum { IPW_MCP_SERVERS_MAX = 32 };

struct ipw_mcp_options {
    struct ipw_opt_list said;  /* commands and addresses */
    struct ipw_opt_list files; /* of JSON, with an object mcpServers */
    int64_t timeout_ns;        /* of a call; 0: 60 s */
    bool per_query;            /* each query starts servers of its own */
};
/* Rows of an option table for it. */
extern const struct ipw_opt ipw_mcp_option_rows[];

struct ipw_mcp_servers {
    struct ipw_host_server list[IPW_MCP_SERVERS_MAX];
    size_t n;
};

/* NULL if the options name none. */
int ipw_mcp_servers_new(struct ipw_mcp_servers **out, const struct ipw_mcp_options *o,
                        struct ipw_err *err);
void ipw_mcp_servers_free(struct ipw_mcp_servers *servers); /* NULL is fine */
/* Where they are, for the manifest: commands and addresses, without keys. */
void ipw_mcp_servers_write(struct ipw_jw *w, const struct ipw_mcp_servers *servers);

#endif
