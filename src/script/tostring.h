/* script/tostring.h: values as text without addresses, which would differ from run to run.
 *
 * tostring, print and string.format show a table as its kind and a number, counted in the order in
 * which they were asked. */
#ifndef IPW_SCRIPT_TOSTRING_H
#define IPW_SCRIPT_TOSTRING_H

#include <lua.h>

/* tostring() of the value, and what stands for its address. [0, +1, e] */
const char *ipw_tostring_push(lua_State *L, int idx);
void ipw_tostring_push_identity(lua_State *L, int idx);

#endif
