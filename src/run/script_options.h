/* run/script_options.h: the options of scripts: their folders and their rights.
 *
 * Every command that loads Lua has these rows in its option table, under "Scripts and safety", and
 * calls ipw_script_options_apply() before it opens a state. */
#ifndef IPW_RUN_SCRIPT_OPTIONS_H
#define IPW_RUN_SCRIPT_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"
#include "io/http_web.h"
#include "run/mcp_servers.h"
#include "run/search_engine.h"
#include "script/host.h"

#define IPW_WORKSPACE_BYTES (256 * IPW_MIB)
enum { IPW_WORKSPACE_FILES = 10000 };

struct ipw_script_options {
    struct ipw_opt_list paths;
    struct ipw_opt_list web_allow, read;
    const char *search_said;        /* --search */
    struct ipw_host_server *search; /* see ipw_script_options_servers() */
    const char *speech_url, *speech_model, *speech_key_env;
    struct ipw_host_server *speech; /* likewise */
    struct ipw_mcp_options mcp;
    struct ipw_mcp_servers *servers; /* see ipw_script_options_servers() */
    size_t workspace_bytes;          /* 0: IPW_WORKSPACE_BYTES */
    int64_t workspace_files;         /* 0: IPW_WORKSPACE_FILES */
    bool lua_path, allow_native, no_proc, unsafe_tools, no_web, web_via_proxy;
};

/* Rows of an option table, for a struct ipw_script_options. */
extern const struct ipw_opt ipw_script_option_rows[];

/* The --path folders in the form that the floors below take. */
const char *const *ipw_script_paths(const struct ipw_script_options *o);
struct ipw_quota ipw_script_quota(const struct ipw_script_options *o);
/* What scripts may do by these options, but for web requests: `web` and `may_fetch` are the
 * caller's.  The lists stay the options' own. */
void ipw_script_grants(struct ipw_host_grants *out, const struct ipw_script_options *o);
void ipw_script_options_apply(const struct ipw_script_options *o);
/* Reads the MCP servers, the search engine and the server for sound that the options or the
 * environment name, and allows web requests to their hosts.  A command
 * that has --tools or opens tools calls it after its command line was read. */
int ipw_script_options_servers(struct ipw_script_options *o, struct ipw_err *err);
/* The web settings of ipw.http; NULL with --no-web. */
struct ipw_web *ipw_script_web(const struct ipw_script_options *o, struct ipw_loop *loop,
                               const char *cacert);
void ipw_script_options_release(struct ipw_script_options *o);

#endif
