#include "run/script_options.h"

#include <stdlib.h>

#include "base/mem.h"
#include "io/bubblewrap.h"
#include "script/search.h"
#include "script/vm.h"

/* clang-format off */
#define AT(field) offsetof(struct ipw_script_options, field)
const struct ipw_opt ipw_script_option_rows[] = {
    {"path", 'p', IPW_OPT_LIST, AT(paths), "DIR", "search here first for agents, tools, modules"},
    {"lua-path", 0, IPW_OPT_FLAG, AT(lua_path), NULL, "let require search Lua's own folders (LUA_PATH_5_4)"},
    {"allow-native", 0, IPW_OPT_FLAG, AT(allow_native), NULL, "let require load C modules, without protection"},
    {"no-proc", 0, IPW_OPT_FLAG, AT(no_proc), NULL, "forbid starting programs"},
    {"unsafe-tools", 0, IPW_OPT_FLAG, AT(unsafe_tools), NULL, "start programs without a sandbox, with your rights"},
    {"no-web", 0, IPW_OPT_FLAG, AT(no_web), NULL, "forbid web requests by tools"},
    {"web-allow", 0, IPW_OPT_LIST, AT(web_allow), "HOST[:PORT]", "allow this host, even if private; '*': any"},
    {"web-via-proxy", 0, IPW_OPT_FLAG, AT(web_via_proxy), NULL, "let tools use the environment's proxy"},
    {"", 0, IPW_OPT_BLOCK, AT(mcp), NULL, NULL, .rows = ipw_mcp_option_rows},
    {"search", 0, IPW_OPT_STR, AT(search_said), "ENGINE|DIR", "engine of web_search: searxng, brave, tavily, serper"},
    {"speech-url", 0, IPW_OPT_STR, AT(speech_url), "URL", "server that writes down sound files for read_file"},
    {"speech-model", 0, IPW_OPT_STR, AT(speech_model), "NAME", "its model (default: whisper-1)"},
    {"speech-key-env", 0, IPW_OPT_STR, AT(speech_key_env), "VAR", "variable with its key (default: no key)", .holds = IPW_HOLDS_KEY_NAME},
    {"read", 0, IPW_OPT_LIST, AT(read), "DIR", "let programs and ipw.sqlite read this folder"},
    {"workspace-size", 0, IPW_OPT_BYTES, AT(workspace_bytes), "SIZE", "bytes in a query's workspace (default: 256M)", 1024, INT64_C(1) << 50},
    {"workspace-files", 0, IPW_OPT_INT, AT(workspace_files), "N", "files and folders in a workspace (default: 10000)", 1, 1000000000},
    IPW_OPT_END,
};
/* clang-format on */

const char *const *ipw_script_paths(const struct ipw_script_options *o)
{
    return (const char *const *)o->paths.items;
}

struct ipw_quota ipw_script_quota(const struct ipw_script_options *o)
{
    return (struct ipw_quota){
        .max_bytes = o->workspace_bytes ? o->workspace_bytes : IPW_WORKSPACE_BYTES,
        .max_files = o->workspace_files ? (size_t)o->workspace_files : IPW_WORKSPACE_FILES};
}

static const char *no_programs(const struct ipw_script_options *o)
{
    if (o->no_proc) return "child processes are switched off by --no-proc";
    if (o->unsafe_tools || ipw_bubblewrap_found()) return NULL;
    return "programs run in a sandbox only, and bubblewrap is not installed: apt-get install "
           "bubblewrap, or use --unsafe-tools";
}

void ipw_script_grants(struct ipw_host_grants *out, const struct ipw_script_options *o)
{
    *out = (struct ipw_host_grants){.quota = ipw_script_quota(o),
                                    .sandbox = !o->unsafe_tools,
                                    .readable = (const char *const *)o->read.items,
                                    .no_web = "web requests are switched off by --no-web",
                                    .no_proc = no_programs(o)};
    out->may_start = !out->no_proc;
    if (o->search && (o->search->folder || !o->no_web)) out->search = o->search;
    if (!o->no_web) out->speech = o->speech;
    if (!o->servers) return;
    out->servers = o->servers->list;
    out->n_servers = o->servers->n;
}

void ipw_script_options_apply(const struct ipw_script_options *o)
{
    ipw_search_allow(o->lua_path, o->allow_native);
}

static void add(struct ipw_opt_list *list, const char *item)
{
    IPW_GROW(list->items, list->cap, list->n + 2);
    list->items[list->n++] = item;
    list->items[list->n] = NULL;
}

int ipw_script_options_servers(struct ipw_script_options *o, struct ipw_err *err)
{
    int rc = ipw_mcp_servers_new(&o->servers, &o->mcp, err);

    if (!rc) rc = ipw_search_engine_new(&o->search, o->search_said, err);
    if (!rc)
        rc = ipw_speech_server_new(&o->speech, o->speech_url, o->speech_model, o->speech_key_env,
                                   err);
    if (!rc && o->speech) add(&o->web_allow, o->speech->host);
    if (!rc && o->search && o->search->host) add(&o->web_allow, o->search->host);
    if (!rc && o->search && o->search->folder) add(&o->read, o->search->folder);
    for (size_t i = 0; !rc && o->servers && i < o->servers->n; i++) {
        const char *url = o->servers->list[i].url;

        if (url ? o->no_web : o->no_proc)
            return ipw_fail(err, IPW_EINVAL, "--mcp: %s forbids this server",
                            url ? "--no-web" : "--no-proc");
        if (url) add(&o->web_allow, o->servers->list[i].host);
    }
    return rc;
}

struct ipw_web *ipw_script_web(const struct ipw_script_options *o, struct ipw_loop *loop,
                               const char *cacert)
{
    struct ipw_web_options options = {.allow = (const char *const *)o->web_allow.items,
                                      .via_proxy = o->web_via_proxy,
                                      .cacert = cacert};

    return o->no_web ? NULL : ipw_web_new(loop, &options);
}

void ipw_script_options_release(struct ipw_script_options *o)
{
    free(o->paths.items);
    free(o->web_allow.items);
    free(o->read.items);
    free(o->mcp.said.items);
    free(o->mcp.files.items);
    ipw_mcp_servers_free(o->servers);
    ipw_search_engine_free(o->search);
    ipw_search_engine_free(o->speech);
    *o = (struct ipw_script_options){0};
}
