#include "script/fields.h"

#include <lauxlib.h>
#include <string.h>

#include "base/text.h"

/* Unknown fields are slips. */
static void check_names(lua_State *L, int idx, const char *where, const char *const *known,
                        bool list)
{
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL, *near;
        bool is = list && lua_isinteger(L, -2);

        for (size_t i = 0; key && known[i]; i++) is |= strcmp(known[i], key) == 0;
        if (!is) {
            near = key ? ipw_nearest(key, known) : NULL;
            luaL_error(L, "%s: unknown field '%s'%s%s%s", where, key ? key : "(not a string)",
                       near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        }
        lua_pop(L, 1);
    }
}

void ipw_fields_take(lua_State *L, int idx, const char *where, const char *const *known, bool list)
{
    lua_Unsigned n;

    luaL_checktype(L, idx, LUA_TTABLE);
    check_names(L, idx, where, known, list);
    if (!lua_getmetatable(L, idx)) return;
    lua_pop(L, 1);
    lua_newtable(L);
    for (size_t i = 0; known[i]; i++) {
        lua_getfield(L, idx, known[i]);
        lua_setfield(L, -2, known[i]);
    }
    n = list ? lua_rawlen(L, idx) : 0;
    for (lua_Unsigned i = 1; i <= n; i++) {
        lua_rawgeti(L, idx, (lua_Integer)i);
        lua_rawseti(L, -2, (lua_Integer)i);
    }
    lua_replace(L, idx);
}
