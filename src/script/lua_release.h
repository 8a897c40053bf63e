/* script/lua_release.h: which Lua this program runs with: the linked library's word, not the header's. */
#ifndef IPW_SCRIPT_LUA_RELEASE_H
#define IPW_SCRIPT_LUA_RELEASE_H

#include <stddef.h>

/* 5.4.4 as 50404; 0 when the library does not say. */
int ipw_lua_release(void);

#endif
