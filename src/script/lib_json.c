/* ipw.core.json, which is ipw.json as well: lua/ipw/json.lua describes it. */
#include <lauxlib.h>
#include <stdlib.h>

#include "script/lib.h"
#include "script/value.h"

enum { MAX_JSON_BYTES = 64 * 1024 * 1024, KEPT_BYTES = 64 * 1024 };

/* Texts are written here, and the room is kept for the next one: an error while Lua copies the
 * bytes leaks nothing.  Lua runs in one thread, and nothing that writes a text runs a script. */
static struct ipw_buf scratch = IPW_BUF(MAX_JSON_BYTES);

static struct ipw_buf *start(void)
{
    ipw_buf_clear(&scratch);
    return &scratch;
}

static int finish(void)
{
    if (scratch.cap > KEPT_BYTES) ipw_buf_release(&scratch);
    return 1;
}

/* encode(value): text with sorted keys; raises for values without JSON. [-1, +1, e] */
static int json_encode(lua_State *L)
{
    struct ipw_buf *out;
    struct ipw_err err;

    luaL_checkany(L, 1);
    out = start();
    if (ipw_value_encode(L, 1, out, &err)) return luaL_error(L, "json.encode: %s", err.text);
    lua_pushlstring(L, ipw_buf_str(out), out->len);
    return finish();
}

/* decode(text): the value, or nil and a message with the byte position. [-1, +(1|2), m] */
static int json_decode(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    struct ipw_err err;

    if (ipw_value_decode(L, text, n, &err)) return ipw_value_push_failure(L, err.text);
    return 1;
}

/* list(table): marks the table as a list, so that an empty one is written as []. [-1, +1, e] */
static int json_list(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    ipw_value_mark_list(L, 1);
    return 1;
}

/* raw(text): a value that is encoded as exactly this text; raises if it is not JSON. [-1, +1, e] */
static int json_raw(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);

    luaL_argcheck(L, ipw_json_valid(text, n), 1, "is not valid JSON");
    ipw_value_push_raw(L, text, n, true);
    return 1;
}

/* seal(value): the value as it is now, as read-only JSON; raises for values without JSON.
 * [-1, +1, e] */
static int json_seal(lua_State *L)
{
    struct ipw_buf *out;
    struct ipw_err err;
    size_t n;

    luaL_checkany(L, 1);
    if (ipw_value_raw(L, 1, &n)) {
        lua_settop(L, 1);
        return 1;
    }
    out = start();
    if (ipw_value_encode(L, 1, out, &err)) return luaL_error(L, "json.seal: %s", err.text);
    ipw_value_push_raw(L, ipw_buf_str(out), out->len, false);
    return finish();
}

/* object(table or nil): a table that is written as an object, {} if it is empty; raises for a list.
 * [-1, +1, e] */
static int json_object(lua_State *L)
{
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_istable(L, 1))
            return luaL_error(L, "json.object: expected a table, got %s", luaL_typename(L, 1));
        if (lua_rawlen(L, 1) > 0) return luaL_error(L, "json.object: the table is a list");
        lua_settop(L, 1);
        lua_pushnil(L);
        if (lua_next(L, 1)) {
            lua_settop(L, 1);
            return 1;
        }
    }
    lua_newtable(L); /* without the mark of a list, which makes it [] */
    return 1;
}

/* is_null(value). [-1, +1, -] */
static int json_is_null(lua_State *L)
{
    lua_pushboolean(L, lua_type(L, 1) == LUA_TLIGHTUSERDATA && !lua_touserdata(L, 1));
    return 1;
}

int ipw_lib_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"encode", json_encode}, {"decode", json_decode},   {"list", json_list},
        {"array", json_list},    {"object", json_object},   {"raw", json_raw},
        {"seal", json_seal},     {"is_null", json_is_null}, {NULL, NULL}};

    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}
