/* script/coroutine.h: our coroutine.resume, wrap, yield and close.
 *
 * They let a wait inside a script's own coroutine pass through to the task: when the inner coroutine
 * yields the task's token, the outer one yields it on, and resumes the inner one when it is resumed.
 * They also publish which Lua thread runs, for the budget. */
#ifndef IPW_SCRIPT_COROUTINE_H
#define IPW_SCRIPT_COROUTINE_H

#include <lua.h>

void ipw_coroutine_open(lua_State *L); /* puts them into the table at the top. [0, 0, v] */

#endif
