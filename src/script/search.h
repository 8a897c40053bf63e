/* script/search.h: finds modules, agents, tools and datasets.
 *
 * The order is: the folder of the script that was loaded first; --path folders; the folders of
 * IPW_AGENT_PATH (separated by colons); the user's data folder ($XDG_DATA_HOME/ipw-agent, modules
 * in its lua/); the files inside the binary.  For modules Lua's own paths follow, from
 * LUA_PATH_5_4 and LUA_CPATH_5_4 or their defaults (only absolute paths), as far as the run
 * allows; for scripts by name the current folder.  The process remembers where a name was found. */
#ifndef IPW_SCRIPT_SEARCH_H
#define IPW_SCRIPT_SEARCH_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "script/vm.h"

enum ipw_found { IPW_FOUND_NOT, IPW_FOUND_TEXT, IPW_FOUND_NATIVE };

/* Fails if the name of a folder is too long to be searched. */
int ipw_search_check(const struct ipw_vm_options *o, struct ipw_err *err);
/* Finds "a.b" and fills `path` (a path or "builtin:...") if something was found. */
enum ipw_found ipw_search_module(const struct ipw_vm_options *o, const char *name, char *path,
                                 size_t size);
/* Raises: the module was not found, and what can help. [0, 0, v] */
int ipw_search_fail(lua_State *L, const char *name);
/* $XDG_DATA_HOME/ipw-agent, or its default. */
void ipw_search_user_folder(char *out, size_t size);

/* Finds a script: `name` as a file if it exists (or looks like a path), else KIND/NAME.lua in the
 * user's folders and the embedded files; kind is "agents", "agents/tools", "datasets" or "exports".
 * On failure the message offers the nearest name.  `path` receives the path or "builtin:...". */
int ipw_search_script(struct ipw_vm *vm, const char *kind, const char *name, char *path,
                      size_t path_size, struct ipw_err *err);
/* Lets `require` also look in Lua's usual folders, after all others (--lua-path); with `native`
 * also for C modules (--allow-native).  For the whole process, before a state is opened. */
void ipw_search_allow(bool lua_paths, bool native);

/* Calls fn for each name of a kind ("agents", ...), embedded and on disk. */
void ipw_search_each(const char *kind, const char *const *paths,
                     void (*fn)(void *ud, const char *name, const char *path), void *ud);

#endif
