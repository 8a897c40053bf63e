/* ipw.core.compute: call.
 *
 * Some modules of the library only compute: text in, a number or text out, and nothing stays
 * between two calls.  To load one costs more than to use it once.  Such a module runs in a Lua
 * state of the program's own, which all queries share.  No script runs there: the modules are
 * embedded ones from the list below, and only numbers and strings pass.  After an error the state
 * is closed, and the next call opens a new one. */
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "script/chunk.h"
#include "script/lib.h"
#include "script/sandbox.h"
#include "script/vm_priv.h"

static const char *const modules[] = {"calc_grammar", NULL};

static struct ipw_vm *shared; /* NULL: not open */

static bool is_plain(lua_State *L, int idx)
{
    int type = lua_type(L, idx);

    return type == LUA_TNIL || type == LUA_TBOOLEAN || type == LUA_TNUMBER || type == LUA_TSTRING;
}

/* Copies a plain value to the other state. [to: 0, 1, m] */
static void copy(lua_State *to, lua_State *from, int idx)
{
    const char *s;
    size_t n;

    switch (lua_type(from, idx)) {
    case LUA_TBOOLEAN: lua_pushboolean(to, lua_toboolean(from, idx)); break;
    case LUA_TNUMBER:
        if (lua_isinteger(from, idx))
            lua_pushinteger(to, lua_tointeger(from, idx));
        else
            lua_pushnumber(to, lua_tonumber(from, idx));
        break;
    case LUA_TSTRING:
        s = lua_tolstring(from, idx, &n);
        lua_pushlstring(to, s, n);
        break;
    default: lua_pushnil(to);
    }
}

/* In the shared state: the function that the caller's stack names, with its arguments. */
static int call_inside(lua_State *S)
{
    lua_State *L = lua_touserdata(S, 1);
    const char *module = lua_tostring(L, 1);
    char name[64];
    struct ipw_err err;
    int n = lua_gettop(L);

    lua_settop(S, 0);
    luaL_checkstack(S, n + 4, NULL);
    if (lua_getfield(S, LUA_REGISTRYINDEX, module) != LUA_TTABLE) {
        lua_pop(S, 1);
        snprintf(name, sizeof name, "builtin:lua/ipw/%s.lua", module);
        if (ipw_chunk_load(S, name, &err)) return luaL_error(S, "%s", err.text);
        lua_call(S, 0, 1);
        lua_pushvalue(S, -1);
        lua_setfield(S, LUA_REGISTRYINDEX, module);
    }
    lua_getfield(S, -1, lua_tostring(L, 2)); // module function
    for (int i = 3; i <= n; i++) copy(S, L, i);
    lua_call(S, n - 2, LUA_MULTRET);
    return lua_gettop(S) - 1;
}

/* call(module, function, ...): what it returns. [-n, +m, e] */
static int compute_call(lua_State *L)
{
    struct ipw_vm_options options = {0};
    struct ipw_err err;
    lua_State *S;
    int n, rc;

    luaL_checkoption(L, 1, NULL, modules);
    luaL_checkstring(L, 2);
    for (int i = 3; i <= lua_gettop(L); i++)
        luaL_argcheck(L, is_plain(L, i), i, "a number or a string expected");
    if (!shared && ipw_sandbox_open(&shared, &options, &err)) return luaL_error(L, "%s", err.text);
    S = ipw_vm_lua(shared);
    lua_settop(S, 0);
    lua_pushcfunction(S, call_inside);
    lua_pushlightuserdata(S, L);
    rc = ipw_vm_call(shared, 1, LUA_MULTRET, &err);
    ipw_vm_of(L)->slice_ticks += shared->slice_ticks; /* CPU time of the caller's */
    if (rc) {
        ipw_sandbox_close(shared);
        shared = NULL;
        return luaL_error(L, "%s", err.text);
    }
    n = lua_gettop(S);
    luaL_checkstack(L, n, NULL);
    for (int i = 1; i <= n; i++) copy(L, S, i);
    return n;
}

int ipw_lib_compute(lua_State *L)
{
    static const luaL_Reg functions[] = {{"call", compute_call}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
