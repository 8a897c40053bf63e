/* ipw.core.stats: intervals and random draws (lua/ipw/stats.lua has the rest). */
#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>

#include "base/interval.h"
#include "script/lib.h"

/* t975(degrees): the 97.5 % quantile of Student's t; nan for 0 degrees. [-1, +1, e] */
static int stats_t975(lua_State *L)
{
    lua_Integer degrees = luaL_checkinteger(L, 1);

    luaL_argcheck(L, degrees >= 0, 1, "expects 0 or more");
    lua_pushnumber(L, ipw_stats_t975((size_t)degrees));
    return 1;
}

/* wilson(share, n): Wilson's 95 % interval. [-2, +2, e] */
static int stats_wilson(lua_State *L)
{
    double share = luaL_checknumber(L, 1), n = luaL_checknumber(L, 2), lo, hi;

    luaL_argcheck(L, share >= 0 && share <= 1, 1, "expects 0 to 1");
    luaL_argcheck(L, n > 0, 2, "expects more than 0 observations");
    ipw_stats_wilson(&lo, &hi, share, n);
    lua_pushnumber(L, lo);
    lua_pushnumber(L, hi);
    return 2;
}

static void push_known(lua_State *L, double x)
{
    if (isnan(x))
        lua_pushnil(L);
    else
        lua_pushnumber(L, x);
}

static void check_clusters(lua_State *L, struct ipw_stats_cluster *clusters, lua_Integer n,
                           bool share)
{
    for (lua_Integer i = 1; i <= n; i++) {
        struct ipw_stats_cluster *c = &clusters[i - 1];

        lua_rawgeti(L, 2, i);
        lua_rawgeti(L, 3, i);
        c->sum = luaL_checknumber(L, -2);
        c->n = luaL_checknumber(L, -1);
        lua_pop(L, 2);
        if (!isfinite(c->sum) || !isfinite(c->n)) luaL_error(L, "stats: value %I is not finite", i);
        if (share && !(c->sum >= 0 && c->n > 0 && c->sum <= c->n))
            luaL_error(L, "stats: cluster %I is no proportion: its sum is not within 0 and n", i);
    }
}

/* interval(kind, sums, counts, seed): mean, lo, hi, min, max, method; nil: unknown.  kind: "mean",
 * "share" or "ratio". [-4, +6, e] */
static int stats_interval(lua_State *L)
{
    int kind = luaL_checkoption(L, 1, NULL, ipw_interval_kinds);
    lua_Integer seed = luaL_optinteger(L, 4, IPW_INTERVAL_SEED), n;
    struct ipw_interval_sample sample = {.kind = (enum ipw_interval_kind)kind};
    struct ipw_stats_cluster *clusters;

    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_argcheck(L, seed != 0, 4, "expects a seed that is not 0");
    n = (lua_Integer)lua_rawlen(L, 2);
    luaL_argcheck(L, (lua_Integer)lua_rawlen(L, 3) == n, 3, "expects as many counts as sums");
    clusters = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *clusters, 0);
    check_clusters(L, clusters, n, kind == IPW_INTERVAL_SHARE);

    ipw_columns_init(&sample.clusters, 2);
    for (lua_Integer i = 0; i < n; i++)
        ipw_columns_add(&sample.clusters, (double[]){clusters[i].sum, clusters[i].n});
    ipw_interval_make(&sample, 1, (uint64_t)seed);
    ipw_columns_release(&sample.clusters);

    push_known(L, sample.out.mean);
    push_known(L, sample.out.lo);
    push_known(L, sample.out.hi);
    push_known(L, sample.out.min);
    push_known(L, sample.out.max);
    lua_pushstring(L, sample.out.method);
    return 6;
}

/* draws(seed, n, out): fills out[1] to out[n] with numbers from 1 to n, and returns the seed for
 * the next draws. [-3, +1, e] */
static int stats_draws(lua_State *L)
{
    uint64_t state = (uint64_t)luaL_checkinteger(L, 1);
    lua_Integer n = luaL_checkinteger(L, 2);

    luaL_argcheck(L, state != 0, 1, "expects a seed that is not 0");
    luaL_argcheck(L, n > 0 && n <= UINT32_MAX, 2, "expects 1 or more");
    luaL_checktype(L, 3, LUA_TTABLE);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_pushinteger(L, (lua_Integer)ipw_interval_draw(&state, (size_t)n) + 1);
        lua_rawseti(L, 3, i);
    }
    lua_pushinteger(L, (lua_Integer)state);
    return 1;
}

int ipw_lib_stats(lua_State *L)
{
    static const luaL_Reg functions[] = {{"t975", stats_t975},
                                         {"wilson", stats_wilson},
                                         {"interval", stats_interval},
                                         {"draws", stats_draws},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
