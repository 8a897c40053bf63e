#include "script/tostring.h"

#include <lauxlib.h>

#include "script/vm_priv.h"

static const char numbers_key;

/* The value's number in this state. */
static lua_Integer number_of(lua_State *L, int idx)
{
    lua_Integer number;

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &numbers_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_createtable(L, 0, 1); // numbers mt
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &numbers_key);
    }
    lua_pushvalue(L, idx); // numbers value
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushvalue(L, idx);
        lua_pushinteger(L, ++ipw_vm_of(L)->last_number);
        lua_rawset(L, -3);
        lua_pushinteger(L, ipw_vm_of(L)->last_number);
    }
    number = lua_tointeger(L, -1);
    lua_pop(L, 2);
    return number;
}

void ipw_tostring_push_identity(lua_State *L, int idx)
{
    int type = lua_type(L, idx);

    if (type == LUA_TSTRING || type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD ||
        type == LUA_TUSERDATA)
        lua_pushfstring(L, "0x%I", (LUAI_UACINT)number_of(L, lua_absindex(L, idx)));
    else
        lua_pushliteral(L, "(null)");
}

const char *ipw_tostring_push(lua_State *L, int idx)
{
    const char *kind;
    int type;

    idx = lua_absindex(L, idx);
    luaL_checkany(L, idx);
    if (luaL_callmeta(L, idx, "__tostring")) {
        if (!lua_isstring(L, -1)) luaL_error(L, "'__tostring' must return a string");
        return lua_tostring(L, -1);
    }
    switch (lua_type(L, idx)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN:
    case LUA_TNUMBER:
    case LUA_TSTRING: return luaL_tolstring(L, idx, NULL);
    case LUA_TLIGHTUSERDATA: /* json.null */
        return lua_pushstring(L, lua_touserdata(L, idx) ? "userdata" : "null");
    default: break;
    }
    type = luaL_getmetafield(L, idx, "__name");
    kind = type == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, idx);
    lua_pushfstring(L, "%s: %I", kind, (LUAI_UACINT)number_of(L, idx));
    if (type != LUA_TNIL) lua_remove(L, -2);
    return lua_tostring(L, -1);
}
