/* ipw.core.report: what a report asks of C (lua/ipw/report makes the pages).
 *
 * windows() computes a saved run's ledger again from its files (ledger/recompute.h) and asks it for
 * the joules of windows that the script chooses, while the ledger can still answer for a query. */
#include <lauxlib.h>
#include <math.h>

#include "base/buf.h"
#include "ledger/recompute.h"
#include "script/export_job.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/value.h"
#include "script/vm_priv.h"

struct windows { /* of one call */
    lua_State *L;
    int ask;     /* stack position of the script's function */
    bool failed; /* its error is at the top of the stack */
};

/* The joules of consecutive windows, whose edges are the list at the top of the stack.  Pushes a
 * table of lists {uj, lo, hi}; nil: the ledger does not know one of them. [0, +1, m] */
static void push_domain(lua_State *L, const struct ipw_ledger *ledger,
                        struct ipw_ledger_question ask)
{
    int edges = lua_gettop(L);
    lua_Integer n = (lua_Integer)lua_rawlen(L, edges);

    lua_createtable(L, 0, 3);
    for (int k = 0; k < 3; k++) lua_createtable(L, (int)n - 1, 0);
    for (lua_Integer i = 1; i < n; i++) {
        struct ipw_figure f;

        lua_rawgeti(L, edges, i);
        lua_rawgeti(L, edges, i + 1);
        ask.t0_ns = lua_tointeger(L, -2);
        ask.t1_ns = lua_tointeger(L, -1);
        lua_pop(L, 2);
        f = ipw_ledger_figure(ledger, ask);
        if (!f.known) {
            lua_settop(L, edges);
            lua_pushnil(L);
            return;
        }
        lua_pushinteger(L, (lua_Integer)llround(f.j * 1e6));
        lua_rawseti(L, edges + 2, i);
        lua_pushnumber(L, f.lo_j);
        lua_rawseti(L, edges + 3, i);
        lua_pushnumber(L, f.hi_j);
        lua_rawseti(L, edges + 4, i);
    }
    lua_setfield(L, edges + 1, "hi");
    lua_setfield(L, edges + 1, "lo");
    lua_setfield(L, edges + 1, "uj");
}

/* The numbers of the turns, from 0, whose reply the agent could not use. [0, +1, m] */
static void push_malformed(lua_State *L, const struct ipw_query_trace *trace)
{
    lua_newtable(L);
    for (size_t i = 0; i < trace->n_turns; i++) {
        if (!trace->turns[i].malformed) continue;
        lua_pushboolean(L, 1);
        lua_rawseti(L, -2, trace->turns[i].index);
    }
}

/* Calls ask(index, segment, malformed): the edges that it wants of this query, or nil; then
 * ask(index, segment, malformed, joules by domain). */
static int call_ask(lua_State *L)
{
    const struct ipw_ledger *ledger = lua_touserdata(L, 2);
    lua_Integer query = lua_tointeger(L, 3);
    int edges;

    push_malformed(L, lua_touserdata(L, 6));
    lua_replace(L, 6);
    for (int i = 1; i <= 6; i++) {
        if (i != 2 && i != 3) lua_pushvalue(L, i);
    }
    lua_call(L, 3, 1);
    if (!lua_istable(L, -1)) return 0;
    edges = lua_gettop(L);
    lua_createtable(L, 0, IPW_DOMAIN_COUNT);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_ledger_question q = {query, (enum ipw_domain)d, .device = IPW_LEDGER_ALL};

        lua_pushvalue(L, edges);
        push_domain(L, ledger, q);
        lua_setfield(L, edges + 1, ipw_domain_name((enum ipw_domain)d));
        lua_settop(L, edges + 1);
    }
    for (int i = 1; i <= 6; i++) {
        if (i != 2 && i != 3) lua_pushvalue(L, i);
    }
    lua_pushvalue(L, edges + 1);
    lua_call(L, 4, 0);
    return 0;
}

static void before_query(void *ud, const struct ipw_ledger *ledger, int64_t ordinal,
                         const struct ipw_recompute_query *query)
{
    struct windows *w = ud;
    lua_State *L = w->L;

    ipw_vm_of(L)->slice_ticks = 0; /* a long run is no endless loop */
    if (w->failed || query->warmup) return;
    lua_pushcfunction(L, call_ask);
    lua_pushvalue(L, w->ask);
    lua_pushlightuserdata(L, (void *)(uintptr_t)ledger);
    lua_pushinteger(L, ordinal);
    lua_pushinteger(L, query->trace->index);
    lua_pushinteger(L, query->segment);
    lua_pushlightuserdata(L, query->trace);
    w->failed = lua_pcall(L, 6, 0, 0) != LUA_OK;
}

static int each_query(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    const struct windows *w = ud;

    (void)query;
    return w->failed ? ipw_fail(err, IPW_ELUA, "the script failed") : 0;
}

/* windows(number, ask): goes through the queries of a run as they ended, without its warm-up.
 * true; or nil and why the ledger cannot be computed again. [-2, +(1|2), e] */
static int report_windows(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);
    const struct ipw_export_job *job = host ? host->export_job : NULL;
    lua_Integer i = luaL_checkinteger(L, 1);
    struct windows w = {L, 2, false};
    struct ipw_recompute_options options = {.query = each_query, .before = before_query, .ud = &w};
    struct ipw_recompute redone;
    struct ipw_err err;
    int rc;

    if (!job) return luaL_error(L, "ipw.core.report: only for: ipw-agent report RUN");
    luaL_argcheck(L, i >= 1 && i <= job->n_runs, 1, "there is no such run");
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_checkstack(L, 16, "report");
    rc = ipw_recompute_run(&redone, job->runs[i - 1], &options, &err);
    if (!rc) ipw_recompute_release(&redone);
    if (w.failed) return lua_error(L);
    if (rc) return ipw_value_push_failure(L, err.text);
    lua_pushboolean(L, 1);
    return 1;
}

int ipw_lib_report(lua_State *L)
{
    static const luaL_Reg functions[] = {{"windows", report_windows}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
