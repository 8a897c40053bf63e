/* script/native.h: Lua modules written in C, which --allow-native permits.
 *
 * A shared object is opened once for each process and stays open.  Nothing protects the program
 * from its code. */
#ifndef IPW_SCRIPT_NATIVE_H
#define IPW_SCRIPT_NATIVE_H

#include <lua.h>

#include "base/err.h"

/* Pushes luaopen_NAME and writes a note that the module was loaded. [0, +1, -] on success */
int ipw_native_load(lua_State *L, const char *name, const char *path, struct ipw_err *err);

#endif
