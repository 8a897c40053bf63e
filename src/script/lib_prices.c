/* ipw.core.prices: price tables, for commands that price a saved run (llm/pricing.h). */
#include <lauxlib.h>
#include <math.h>

#include "llm/pricing.h"
#include "script/lib.h"
#include "script/value.h"

static const char TABLE[] = "ipw.core.prices";

static struct ipw_prices *table_of(lua_State *L)
{
    struct ipw_prices **at = luaL_checkudata(L, 1, TABLE);

    luaL_argcheck(L, *at != NULL, 1, "the table is closed");
    return *at;
}

static int prices_close(lua_State *L)
{
    struct ipw_prices **at = luaL_checkudata(L, 1, TABLE);

    ipw_prices_free(*at);
    *at = NULL;
    return 0;
}

/* A count of tokens in the table at `index`; -1: not there. */
static int64_t count(lua_State *L, int index, const char *key)
{
    int whole = 0;
    lua_Integer n = -1;

    if (lua_getfield(L, index, key) == LUA_TNUMBER) n = lua_tointegerx(L, -1, &whole);
    lua_pop(L, 1);
    return whole ? n : -1;
}

/* prices:cost(model, day, usage): USD of a call, or nil; then the name of the row that priced it,
 * or nil if the table has none. [-4, +2, e] */
static int prices_cost(lua_State *L)
{
    const struct ipw_price *price =
        ipw_prices_find(table_of(L), luaL_checkstring(L, 2), luaL_checkstring(L, 3));
    struct ipw_price_usage usage;
    double usd;

    luaL_checktype(L, 4, LUA_TTABLE);
    if (!price) return 0;
    usage = (struct ipw_price_usage){.input = count(L, 4, "input"),
                                     .output = count(L, 4, "output"),
                                     .cached_read = count(L, 4, "cached_read"),
                                     .cached_write = count(L, 4, "cached_write"),
                                     .cached_write_1h = count(L, 4, "cached_write_1h"),
                                     .reasoning = count(L, 4, "reasoning")};
    usd = ipw_price_cost(price, &usage);
    if (isnan(usd))
        lua_pushnil(L);
    else
        lua_pushnumber(L, usd);
    lua_pushstring(L, price->model);
    return 2;
}

/* prices:as_of(): the day that the file states, or "". [-1, +1, e] */
static int prices_as_of(lua_State *L)
{
    lua_pushstring(L, ipw_prices_as_of(table_of(L)));
    return 1;
}

/* open(text, name): a table of prices; or nil and a reason that names file, model and field.
 * [-2, +(1|2), e] */
static int prices_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"cost", prices_cost},
                                       {"as_of", prices_as_of},
                                       {"__gc", prices_close},
                                       {"__close", prices_close},
                                       {NULL, NULL}};
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n), *name = luaL_checkstring(L, 2);
    struct ipw_prices **at = lua_newuserdatauv(L, sizeof *at, 0);
    struct ipw_err err;

    *at = NULL;
    if (luaL_newmetatable(L, TABLE)) {
        luaL_setfuncs(L, methods, 0);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
    if (ipw_prices_parse(at, text, n, name, &err)) return ipw_value_push_failure(L, err.text);
    return 1;
}

int ipw_lib_prices(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", prices_open}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
