#include "script/sandbox.h"

#include <lauxlib.h>
#include <string.h>

#include "base/log.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/require.h"
#include "script/search.h"
#include "script/source_check.h"
#include "script/standard_library.h"
#include "script/stock.h"
#include "script/task.h"
#include "script/tostring.h"
#include "script/vm_priv.h"

enum { MAX_SOURCE_BYTES = 128 * 1024 };

/* pcall and xpcall as the stock functions, but a spent budget cannot be caught. */
static int finish_pcall(lua_State *L, int status, lua_KContext extra)
{
    if (status != LUA_OK && status != LUA_YIELD) {
        ipw_budget_check(L);
        lua_pushboolean(L, 0);
        lua_pushvalue(L, -2);
        return 2;
    }
    return lua_gettop(L) - (int)extra;
}

static int base_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1); // true f args...
    return finish_pcall(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish_pcall), 0);
}

/* Calls the script's message handler, unless the budget is spent.  The handler runs before the
 * stack is unwound, inside the hook that raised, where Lua calls no hook that could stop it. */
static int guard_handler(lua_State *L)
{
    const struct ipw_vm *vm = ipw_vm_of(L);

    if (vm->over_cpu || vm->over_memory) return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int base_xpcall(lua_State *L)
{
    int n = lua_gettop(L);

    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, guard_handler, 1);
    lua_replace(L, 2);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2); // f handler true f args...
    return finish_pcall(L, lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish_pcall), 2);
}

/* load(text [, name [, mode [, env]]]): only text, in every mode. */
static int base_load(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    const char *name = luaL_optstring(L, 2, "=(load)");
    bool has_env = !lua_isnone(L, 4);

    if (n > MAX_SOURCE_BYTES || ipw_source_check_fails(text, n)) {
        lua_pushnil(L);
        lua_pushstring(L,
                       n > MAX_SOURCE_BYTES ? "source text over 128 kB" : ipw_source_check_message);
        return 2;
    }
    ipw_vm_of(L)->open_libraries(L, ipw_stock_named(text, n));
    if (luaL_loadbufferx(L, text, n, name, "t") != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (has_env) {
        lua_pushvalue(L, 4);
        if (!lua_setupvalue(L, -2, 1)) lua_pop(L, 1);
    }
    return 1;
}

/* Refuses __gc: finalizers run outside of every budget. */
static int base_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "__gc is not available here; use <close> variables");
        lua_pop(L, 1);
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* print is for diagnostics: it writes to the log, never to stdout, which carries data. */
static int base_print(lua_State *L)
{
    int n = lua_gettop(L);
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        ipw_tostring_push(L, i);
        luaL_addvalue(&b);
        if (i < n) luaL_addchar(&b, '\t');
    }
    luaL_pushresult(&b);
    ipw_log(IPW_LOG_INFO, "%s", lua_tostring(L, -1));
    return 0;
}

static int base_tostring(lua_State *L)
{
    ipw_tostring_push(L, 1);
    return 1;
}

/* Fills the new state. [0, 0, v] */
static int fill(lua_State *L)
{
    static const luaL_Reg base[] = {{"pcall", base_pcall},    {"xpcall", base_xpcall},
                                    {"load", base_load},      {"setmetatable", base_setmetatable},
                                    {"print", base_print},    {"tostring", base_tostring},
                                    {"pairs", ipw_lib_pairs}, {NULL, NULL}};

    ipw_stock_globals(L); // globals
    luaL_setfuncs(L, base, 0);
    ipw_standard_library_open(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "_G");
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); // globals
    ipw_require_open(L);
    lua_pop(L, 1);
    return 0;
}

int ipw_sandbox_open(struct ipw_vm **out, const struct ipw_vm_options *options, struct ipw_err *err)
{
    int rc = ipw_search_check(options, err);

    return rc ? rc : ipw_vm_new(out, options, fill, err);
}

void ipw_sandbox_close(struct ipw_vm *vm)
{
    if (!vm) return;
    ipw_task_drop_all(vm);
    ipw_vm_free(vm);
}
