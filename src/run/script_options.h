/* run/script_options.h: what the command line says about scripts: where they are looked for and what
 * they may do.
 *
 * Every command that loads Lua has these rows in its option table and calls
 * ipw_script_options_apply() before it opens a state. */
#ifndef IPW_RUN_SCRIPT_OPTIONS_H
#define IPW_RUN_SCRIPT_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"
#include "io/http_web.h"
#include "script/quota.h"

#define IPW_WORKSPACE_BYTES (256 * IPW_MIB)
enum { IPW_WORKSPACE_FILES = 10000 };

struct ipw_script_options {
    struct ipw_opt_list paths;
    struct ipw_opt_list web_allow, read;
    size_t workspace_bytes;  /* 0: IPW_WORKSPACE_BYTES */
    int64_t workspace_files; /* 0: IPW_WORKSPACE_FILES */
    bool lua_path, allow_native, no_proc, no_web, web_via_proxy;
};

/* Rows of an option table; `at` is the offset of a struct ipw_script_options. */
#define IPW_SCRIPT_AT(at, field) ((at) + offsetof(struct ipw_script_options, field))
#define IPW_SCRIPT_OPTIONS(at)                                                                     \
    {"path",       'p',                                                                            \
     IPW_OPT_LIST, IPW_SCRIPT_AT(at, paths),                                                       \
     "DIR",        "look for agents, tools, modules here first"},                                  \
        {"lua-path",   0,                                                                          \
         IPW_OPT_FLAG, IPW_SCRIPT_AT(at, lua_path),                                                \
         NULL,         "let require look in Lua 5.4's own folders too (LUA_PATH_5_4)"},            \
        {"allow-native",                                                                           \
         0,                                                                                        \
         IPW_OPT_FLAG,                                                                             \
         IPW_SCRIPT_AT(at, allow_native),                                                          \
         NULL,                                                                                     \
         "let require load C modules too (LUA_CPATH_5_4); nothing guards against them"},           \
        {"read",       0,                                                                          \
         IPW_OPT_LIST, IPW_SCRIPT_AT(at, read),                                                    \
         "DIR",        "ipw.sqlite may read below this folder too"},                               \
        {"workspace-size",                                                                         \
         0,                                                                                        \
         IPW_OPT_BYTES,                                                                            \
         IPW_SCRIPT_AT(at, workspace_bytes),                                                       \
         "SIZE",                                                                                   \
         "most that the files in a query's workspace may hold (default: 256M)",                    \
         1024,                                                                                     \
         INT64_C(1) << 50},                                                                        \
        {"workspace-files",                                                                        \
         0,                                                                                        \
         IPW_OPT_INT,                                                                              \
         IPW_SCRIPT_AT(at, workspace_files),                                                       \
         "N",                                                                                      \
         "most files and folders in a query's workspace (default: 10000)",                         \
         1,                                                                                        \
         1000000000},                                                                              \
        {"no-web",     0,                                                                          \
         IPW_OPT_FLAG, IPW_SCRIPT_AT(at, no_web),                                                  \
         NULL,         "tools may make no web requests"},                                          \
        {"web-allow",   0,                                                                         \
         IPW_OPT_LIST,  IPW_SCRIPT_AT(at, web_allow),                                              \
         "HOST[:PORT]", "tools may reach this host, public or not ('*': every one)"},              \
        {"web-via-proxy",                                                                          \
         0,                                                                                        \
         IPW_OPT_FLAG,                                                                             \
         IPW_SCRIPT_AT(at, web_via_proxy),                                                         \
         NULL,                                                                                     \
         "tools' web requests may go through the environment's proxy"},                            \
    {                                                                                              \
        "no-proc", 0, IPW_OPT_FLAG, IPW_SCRIPT_AT(at, no_proc), NULL,                              \
            "tools may not start child processes"                                                  \
    }

/* The --path folders as the floors below take them. */
const char *const *ipw_script_paths(const struct ipw_script_options *o);
struct ipw_quota ipw_script_quota(const struct ipw_script_options *o);
void ipw_script_options_apply(const struct ipw_script_options *o);
/* What ipw.http works with; NULL under --no-web. */
struct ipw_web *ipw_script_web(const struct ipw_script_options *o, struct ipw_loop *loop,
                               const char *cacert);
void ipw_script_options_release(struct ipw_script_options *o);

#endif
