/* script/native.h: Lua modules written in C, which a run lets in with --allow-native.
 *
 * A shared object is opened once a process and stays.  Nothing guards against what it does. */
#ifndef IPW_SCRIPT_NATIVE_H
#define IPW_SCRIPT_NATIVE_H

#include <lua.h>

#include "base/err.h"

/* Leaves luaopen_NAME on the stack. [0, +1, -] on success.  Notes in the record that it came in. */
int ipw_native_load(lua_State *L, const char *name, const char *path, struct ipw_err *err);

#endif
