#include "script/standard_library.h"

#include <lauxlib.h>
#include <string.h>
#include <time.h>

#include "script/lib.h"
#include "script/recorded_effect.h"
#include "script/stock.h"
#include "script/vm_priv.h"

/* randomseed([x [, y]]): the stock function reads the clock if it has no arguments. */
static int math_randomseed(lua_State *L)
{
    if (lua_isnone(L, 1)) {
        lua_pushinteger(L, (lua_Integer)ipw_vm_of(L)->options.seed);
        lua_pushinteger(L, ++ipw_vm_of(L)->n_seedings);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* The current time is recorded (script/recorded_effect.h).  The date of a given time is arithmetic,
 * except for the time zone. */
static int time_value(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)time(NULL));
    return 1;
}

static int os_time(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        return ipw_recorded_effect_call(L, "os.time", time_value);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int os_clock(lua_State *L)
{
    lua_settop(L, 0);
    return ipw_recorded_effect_call(L, "os.clock", lua_tocfunction(L, lua_upvalueindex(1)));
}

static int os_date(lua_State *L)
{
    lua_CFunction stock = lua_tocfunction(L, lua_upvalueindex(1));
    const char *format = luaL_optstring(L, 1, "%c");

    if (format[0] == '!' && !lua_isnoneornil(L, 2)) return stock(L);
    return ipw_recorded_effect_call(L, "os.date", stock);
}

/* Replaces the member by `ours`, which gets the member as its upvalue. [0, 0, m] */
static void wrap(lua_State *L, const char *name, lua_CFunction ours)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, ours, 1);
    lua_setfield(L, -2, name);
}

/* Each of these adds to the library at the top. [0, 0, m] */
static void add_os(lua_State *L)
{
    wrap(L, "time", os_time);
    wrap(L, "clock", os_clock);
    wrap(L, "date", os_date);
}

static void add_math(lua_State *L)
{
    lua_getfield(L, -1, "randomseed");
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, math_randomseed, 1);
    lua_setfield(L, -3, "randomseed");
    lua_pushinteger(L, (lua_Integer)ipw_vm_of(L)->options.seed);
    lua_call(L, 1, 0);
}

/* Strings use our string table, and scripts cannot reach their metatable. */
static void add_string(lua_State *L)
{
    ipw_lib_string(L);
    lua_pushliteral(L, ""); // lib ""
    ipw_stock_string_operators(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

static const struct {
    const char *lib;
    void (*add)(lua_State *L);
    int n_extra; /* members besides the stock ones */
} ours[] = {
    {"string", add_string, 4},           {"table", ipw_lib_table, 3}, {"math", add_math, 0},
    {"coroutine", ipw_lib_coroutine, 4}, {"os", add_os, 0},
};
enum { N_OURS = sizeof ours / sizeof *ours };

/* Puts library i into the table at the top. [0, 0, m] */
static void open_library(lua_State *L, size_t i)
{
    const char *name = ipw_stock_name(i);
    size_t k = 0;

    while (k < N_OURS && strcmp(ours[k].lib, name)) k++;
    lua_pushstring(L, name);
    ipw_stock_push(L, i, k < N_OURS ? ours[k].n_extra : 0); // globals name lib
    if (k < N_OURS) ours[k].add(L);
    lua_rawset(L, -3);
}

/* Opens those of the set that are not open yet. [0, 0, m] */
static void open_late(lua_State *L, unsigned named)
{
    struct ipw_vm *vm = ipw_vm_of(L);
    unsigned open = named & vm->closed_libraries;
    const char *name;

    if (!open) return;
    luaL_checkstack(L, 8, NULL);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); // globals
    for (size_t i = 0; (name = ipw_stock_name(i)); i++)
        if (ipw_stock_late(name) & open) open_library(L, i);
    vm->closed_libraries &= ~open;
    lua_pop(L, 1);
}

void ipw_standard_library_open(lua_State *L)
{
    struct ipw_vm *vm = ipw_vm_of(L);
    const char *name;

    vm->closed_libraries = vm->options.late_libraries ? IPW_STOCK_ALL_LATE : 0;
    vm->open_libraries = open_late;
    for (size_t i = 0; (name = ipw_stock_name(i)); i++)
        if (!(ipw_stock_late(name) & vm->closed_libraries)) open_library(L, i);
}
