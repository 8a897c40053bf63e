#include "script/require.h"

#include <lauxlib.h>
#include <string.h>

#include "script/chunk.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/native.h"
#include "script/search.h"
#include "script/vm_priv.h"

enum { PATH_BYTES = 1024 };

static const struct {
    const char *name;
    lua_CFunction open;
} core[] = {
    {"ipw.core.run", ipw_lib_core},        {"ipw.core.json", ipw_lib_json},
    {"ipw.core.llm", ipw_lib_llm},         {"ipw.core.tool", ipw_lib_tool},
    {"ipw.core.fs", ipw_lib_fs},           {"ipw.core.budget", ipw_lib_budget},
    {"ipw.core.data", ipw_lib_data},       {"ipw.core.span", ipw_lib_span},
    {"ipw.core.script", ipw_lib_find},     {"ipw.core.http", ipw_lib_http},
    {"ipw.core.text", ipw_lib_text},       {"ipw.core.sqlite", ipw_lib_sqlite},
    {"ipw.core.fetch", ipw_lib_fetch},     {"ipw.core.export", ipw_lib_export},
    {"ipw.core.compute", ipw_lib_compute}, {"ipw.core.stats", ipw_lib_stats},
    {"ipw.core.kept", ipw_lib_kept},       {"ipw.core.child", ipw_lib_child},
    {"ipw.core.prices", ipw_lib_prices},   {"ipw.core.session", ipw_lib_session},
};

static int base_require(lua_State *L);

/* A field that the module lacks, from its rest.  Upvalues: the loaded modules, the rest's name. */
static int rest_index(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushcclosure(L, base_require, 1);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_call(L, 1, 1); // module key rest
    lua_pushvalue(L, 2);
    lua_rawget(L, 3);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

/* The chunk of a module of ours returned (module, name): what few queries need of it is in a module
 * of that name, which is loaded when it is first used.  The metatable's `rest` tells the name.
 * [-1, 0, m] */
static void set_rest(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_insert(L, -2); // module meta name
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "rest");
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, -2);
    lua_pushcclosure(L, rest_index, 2);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

/* require(name): one table for each module of a state.  Upvalue 1: the loaded modules. */
static int base_require(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    char path[PATH_BYTES];
    enum ipw_found found;
    struct ipw_err err;

    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) {
        if (!lua_isboolean(L, -1) || lua_toboolean(L, -1)) return 1;
        return luaL_error(L, "module '%s' requires itself", name);
    }
    lua_settop(L, 1);
    for (size_t i = 0; i < sizeof core / sizeof *core; i++) {
        if (strcmp(core[i].name, name)) continue;
        lua_pushcfunction(L, core[i].open);
        lua_call(L, 0, 1); // name module
        goto store;
    }
    found = ipw_search_module(&ipw_vm_of(L)->options, name, path, sizeof path);
    if (!found) return ipw_search_fail(L, name);
    lua_pushboolean(L, 0); /* marks "is being loaded" */
    lua_setfield(L, lua_upvalueindex(1), name);
    if (found == IPW_FOUND_NATIVE ? ipw_native_load(L, name, path, &err)
                                  : ipw_chunk_load(L, path, &err)) {
        lua_pushnil(L);
        lua_setfield(L, lua_upvalueindex(1), name);
        return luaL_error(L, "%s", err.text);
    }
    lua_pushvalue(L, 1);
    lua_pushstring(L, path);
    if (lua_pcall(L, 2, 2, 0) != LUA_OK) {
        lua_pushnil(L); /* the next require must fail with the same message */
        lua_setfield(L, lua_upvalueindex(1), name);
        return lua_error(L);
    }
    if (lua_type(L, -1) == LUA_TSTRING && strncmp(name, "ipw.", 4) == 0)
        set_rest(L);
    else
        lua_pop(L, 1);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
store:
    lua_pushvalue(L, -1);
    lua_setfield(L, lua_upvalueindex(1), name);
    return 1;
}

void ipw_require_open(lua_State *L)
{
    lua_createtable(L, 0, 12);
    lua_pushcclosure(L, base_require, 1);
    lua_setglobal(L, "require");
}
