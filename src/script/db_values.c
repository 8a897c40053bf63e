#include "script/db_values.h"

#include <lauxlib.h>
#include <string.h>

#include "base/mem.h"

/* Raises for what is no value; returns the bytes of all texts. */
static size_t check_values(lua_State *L, int idx, size_t max)
{
    size_t bytes = 0;

    luaL_checktype(L, idx, LUA_TTABLE);
    if (lua_rawlen(L, idx) > max) luaL_error(L, "sqlite: more than %d values", (int)max);
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, idx); i++) {
        int type = lua_rawgeti(L, idx, (lua_Integer)i);
        if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD ||
            type == LUA_TUSERDATA)
            luaL_error(L, "sqlite: value %d: expected a text, a number or a boolean, got %s",
                       (int)i, luaL_typename(L, -1));
        if (type == LUA_TSTRING) bytes += lua_rawlen(L, -1);
        lua_pop(L, 1);
    }
    return bytes;
}

size_t ipw_db_values_take(struct ipw_db_value **out, lua_State *L, int idx, size_t max)
{
    size_t bytes, n;
    char *text;

    *out = NULL;
    if (lua_isnoneornil(L, idx)) return 0;
    bytes = check_values(L, idx, max);
    n = lua_rawlen(L, idx);
    *out = ipw_calloc(1, (n + 1) * sizeof **out + bytes);
    text = (char *)(*out + n + 1); /* the texts follow the values */
    for (size_t i = 0; i < n; i++) {
        struct ipw_db_value *v = &(*out)[i];
        int type = lua_rawgeti(L, idx, (lua_Integer)i + 1);

        if (type == LUA_TNUMBER) {
            v->type = lua_isinteger(L, -1) ? IPW_DB_INT : IPW_DB_NUM;
            v->integer = lua_tointeger(L, -1);
            v->number = lua_tonumber(L, -1);
        } else if (type == LUA_TBOOLEAN) {
            v->type = IPW_DB_INT;
            v->integer = lua_toboolean(L, -1);
        } else if (type == LUA_TSTRING) {
            v->type = IPW_DB_TEXT;
            v->text = memcpy(text, lua_tolstring(L, -1, &v->n), lua_rawlen(L, -1));
            text += v->n;
        }
        lua_pop(L, 1);
    }
    return n;
}
