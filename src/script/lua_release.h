/* script/lua_release.h: the release of Lua that is linked, which can differ from the header's. */
#ifndef IPW_SCRIPT_LUA_RELEASE_H
#define IPW_SCRIPT_LUA_RELEASE_H

#include <stddef.h>

/* 5.4.4 as 50404; 0 if the library does not have it. */
int ipw_lua_release(void);

#endif
