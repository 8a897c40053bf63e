/* script/search.h: where modules, agents, tools and datasets are looked for.
 *
 * In this order: the folder of the script that was loaded first; --path folders; the folders of
 * IPW_AGENT_PATH (colons between); the user's data folder ($XDG_DATA_HOME/ipw-agent, modules in its
 * lua/); the files inside the binary.  Then, for modules, Lua's own paths as LUA_PATH_5_4 and
 * LUA_CPATH_5_4 and their defaults have them (absolute ones only), as far as the run allows; for
 * scripts by name, the current folder.  What was found where holds for the process.
 * ipw_vm_find() and ipw_vm_each_script() (script/vm.h) are here too. */
#ifndef IPW_SCRIPT_SEARCH_H
#define IPW_SCRIPT_SEARCH_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "script/vm.h"

enum ipw_found { IPW_FOUND_NOT, IPW_FOUND_TEXT, IPW_FOUND_NATIVE };

/* "a.b" as a path or "builtin:..."; `path` is filled when something was found. */
enum ipw_found ipw_search_module(const struct ipw_vm_options *o, const char *name, char *path,
                                 size_t size);
/* Raises: not found, and what would help. [0, 0, v] */
int ipw_search_fail(lua_State *L, const char *name);
/* $XDG_DATA_HOME/ipw-agent, or where that would be. */
void ipw_search_user_folder(char *out, size_t size);

#endif
