/* ipw.core.budget: the energy that the query has used, and what is left of its limits. */
#include <lauxlib.h>
#include <math.h>

#include "script/host.h"
#include "script/lib.h"
#include "script/recorded_effect.h"
#include "script/vm.h"

/* Unknown is nil. */
static void put(lua_State *L, const char *name, double x)
{
    if (isnan(x)) return;
    lua_pushnumber(L, x);
    lua_setfield(L, -2, name);
}

static void put_count(lua_State *L, const char *name, double n)
{
    if (isnan(n)) return;
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, name);
}

static void put_joules(lua_State *L, const char *j, const char *lo_j, const char *hi_j,
                       const struct ipw_host_joules *joules)
{
    put(L, j, joules->j);
    put(L, lo_j, joules->lo_j);
    put(L, hi_j, joules->hi_j);
}

/* energy(): {gpu_j, gpu_lo_j, gpu_hi_j, ..., until_s, provenance}. [0, +1, m] */
static int energy_value(lua_State *L)
{
    static const struct ipw_host_joules none = {NAN, NAN, NAN};
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_host_energy e = {none, none, none, none, NAN, NULL};

    if (host && host->on.energy) host->on.energy(host->on.ud, &e);
    lua_createtable(L, 0, 8);
    put_joules(L, "gpu_j", "gpu_lo_j", "gpu_hi_j", &e.gpu);
    put_joules(L, "cpu_j", "cpu_lo_j", "cpu_hi_j", &e.cpu);
    put_joules(L, "dram_j", "dram_lo_j", "dram_hi_j", &e.dram);
    put_joules(L, "machine_j", "machine_lo_j", "machine_hi_j", &e.machine);
    put(L, "until_s", e.until_s);
    if (e.provenance) {
        lua_pushstring(L, e.provenance);
        lua_setfield(L, -2, "provenance");
    }
    return 1;
}

/* left(): {tokens_left, turns_left, seconds_left, joules_left, usd_left}. [0, +1, m] */
static int left_value(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_host_budget b = {NAN, NAN, NAN, NAN, NAN};

    if (host && host->on.budget) host->on.budget(host->on.ud, &b);
    lua_createtable(L, 0, 5);
    put_count(L, "tokens_left", b.tokens);
    put_count(L, "turns_left", b.turns);
    put(L, "seconds_left", b.seconds);
    put(L, "joules_left", b.joules);
    put(L, "usd_left", b.usd);
    return 1;
}

static int budget_energy(lua_State *L)
{
    return ipw_recorded_effect_call(L, "energy", energy_value);
}
static int budget_left(lua_State *L) { return ipw_recorded_effect_call(L, "budget", left_value); }

int ipw_lib_budget(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"energy", budget_energy}, {"left", budget_left}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
