#include "script/lua_release.h"

#include <lua.h>
#include <stdio.h>
#include <string.h>

/* In every Lua library (lapi.c), but in no header. */
extern const char lua_ident[];

int ipw_lua_release(void)
{
    const char *at = strstr(lua_ident, "Lua 5.");
    int major, minor, patch;

    if (!at || sscanf(at, "Lua %d.%d.%d", &major, &minor, &patch) != 3) return 0;
    return major * 10000 + minor * 100 + patch;
}
