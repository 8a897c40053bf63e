/* script/tostring.h: values as text without addresses, which differ from run to run.
 *
 * tostring, print and string.format show a table as its kind and a number, in the order in which a
 * script first asked for them. */
#ifndef IPW_SCRIPT_TOSTRING_H
#define IPW_SCRIPT_TOSTRING_H

#include <lua.h>

/* tostring() of the value, with a number instead of its address. [0, +1, e] */
const char *ipw_tostring_push(lua_State *L, int idx);
void ipw_tostring_push_identity(lua_State *L, int idx);

#endif
