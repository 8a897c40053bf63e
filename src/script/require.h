/* script/require.h: our require(), for the C modules `ipw.core.*` and the Lua files that
 * script/search.h finds. */
#ifndef IPW_SCRIPT_REQUIRE_H
#define IPW_SCRIPT_REQUIRE_H

#include <lua.h>

void ipw_require_open(lua_State *L); /* sets the global. [0, 0, v] */

#endif
