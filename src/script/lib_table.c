/* Functions of `table` that loop in C over a range: at most a million elements at a time, because a
 * __len can return anything and no hook interrupts such a loop.  sort is a stable merge sort: the
 * stock function chooses its pivots by the clock, so that a comparison which treats different
 * elements as equal sorts them differently in every run. */
#include <lauxlib.h>

#include "script/lib.h"
#include "script/stock.h"
#include "script/vm_priv.h"

enum { MAX_ELEMENTS = 1000000, COMPARES_BETWEEN_LOOKS = 256 };

static lua_CFunction stock_concat, stock_unpack, stock_move;

static lua_Integer length(lua_State *L)
{
    if (!lua_istable(L, 1)) {
        if (!lua_getmetatable(L, 1)) luaL_checktype(L, 1, LUA_TTABLE);
        lua_pop(L, 1);
    }
    return luaL_len(L, 1);
}

/* Raises if first..last has too many elements. */
static void check_range(lua_State *L, lua_Integer first, lua_Integer last)
{
    if (first <= last && (lua_Unsigned)last - (lua_Unsigned)first >= MAX_ELEMENTS)
        luaL_error(L, "more than %d elements at a time", MAX_ELEMENTS);
}

static int tab_insert(lua_State *L)
{
    lua_Integer end = (lua_Integer)((lua_Unsigned)length(L) + 1), at = end;

    if (lua_gettop(L) == 3) {
        at = luaL_checkinteger(L, 2);
        luaL_argcheck(L, (lua_Unsigned)at - 1 < (lua_Unsigned)end, 2, "position out of bounds");
        check_range(L, at, end);
        for (lua_Integer i = end; i > at; i--) {
            lua_geti(L, 1, i - 1);
            lua_seti(L, 1, i);
        }
    } else if (lua_gettop(L) != 2) {
        return luaL_error(L, "wrong number of arguments to 'insert'");
    }
    lua_seti(L, 1, at);
    return 0;
}

static int tab_remove(lua_State *L)
{
    lua_Integer n = length(L), at = luaL_optinteger(L, 2, n);

    if (at != n)
        luaL_argcheck(L, (lua_Unsigned)at - 1 <= (lua_Unsigned)n, 2, "position out of bounds");
    check_range(L, at, n);
    lua_geti(L, 1, at);
    for (; at < n; at++) {
        lua_geti(L, 1, at + 1);
        lua_seti(L, 1, at);
    }
    lua_pushnil(L);
    lua_seti(L, 1, at);
    return 1;
}

/* concat(list [, sep [, i [, j]]]): the stock function, called with the checked range. */
static int tab_concat(lua_State *L)
{
    lua_Integer n = length(L), first = luaL_optinteger(L, 3, 1), last = luaL_optinteger(L, 4, n);

    check_range(L, first, last);
    lua_settop(L, 2);
    lua_pushinteger(L, first);
    lua_pushinteger(L, last);
    return stock_concat(L);
}

static int tab_unpack(lua_State *L)
{
    lua_Integer first = luaL_optinteger(L, 2, 1);
    lua_Integer last = lua_isnoneornil(L, 3) ? luaL_len(L, 1) : luaL_checkinteger(L, 3);

    check_range(L, first, last);
    lua_settop(L, 1);
    lua_pushinteger(L, first);
    lua_pushinteger(L, last);
    return stock_unpack(L);
}

static int tab_move(lua_State *L)
{
    check_range(L, luaL_checkinteger(L, 2), luaL_checkinteger(L, 3));
    return stock_move(L);
}

/* ---- sort: list, comparison or nil, the elements, a second table; then two values ---- */

enum { LIST = 1, COMPARE, ELEMENTS, ROOM, LEFT, RIGHT };

struct sort {
    lua_State *L;
    bool has_compare;
    int n_compares;
};

/* Whether the value at RIGHT comes before the value at LEFT. */
static bool goes_before(struct sort *s)
{
    lua_State *L = s->L;
    bool before;

    if (++s->n_compares % COMPARES_BETWEEN_LOOKS == 0) ipw_budget_check(L);
    if (!s->has_compare) return lua_compare(L, RIGHT, LEFT, LUA_OPLT);
    lua_pushvalue(L, COMPARE);
    lua_pushvalue(L, RIGHT);
    lua_pushvalue(L, LEFT);
    lua_call(L, 2, 1);
    before = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return before;
}

/* Pushes element i into LEFT or RIGHT. */
static void fetch(lua_State *L, int from, lua_Integer i, int where)
{
    lua_rawgeti(L, from, i);
    lua_replace(L, where);
}

/* Merges [low, middle) and [middle, high) of one table into the other. */
static void merge(struct sort *s, int from, int to, lua_Integer low, lua_Integer middle,
                  lua_Integer high)
{
    lua_State *L = s->L;
    lua_Integer i = low, j = middle;

    if (middle < high) {
        fetch(L, from, middle - 1, LEFT);
        fetch(L, from, middle, RIGHT);
        if (!goes_before(s)) middle = j = high; /* already in order */
    }
    if (j < high) fetch(L, from, i, LEFT);
    for (lua_Integer k = low; k < high; k++) {
        bool right = i == middle || (j < high && goes_before(s));
        if (j >= high || i == middle) {
            lua_rawgeti(L, from, right ? j++ : i++);
            lua_rawseti(L, to, k);
            continue;
        }
        lua_pushvalue(L, right ? RIGHT : LEFT);
        lua_rawseti(L, to, k);
        if (right && ++j < high) fetch(L, from, j, RIGHT);
        if (!right && ++i < middle) fetch(L, from, i, LEFT);
    }
}

static int tab_sort(lua_State *L)
{
    struct sort s = {.L = L};
    lua_Integer n = length(L);
    int from = ELEMENTS, to = ROOM;

    if (n < 2) return 0;
    luaL_argcheck(L, n <= MAX_ELEMENTS, 1, "array too big");
    s.has_compare = !lua_isnoneornil(L, 2);
    if (s.has_compare) luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    lua_createtable(L, (int)n, 0);
    lua_createtable(L, (int)n, 0);
    lua_settop(L, RIGHT);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, LIST, i);
        lua_rawseti(L, from, i);
    }
    for (lua_Integer width = 1; width < n; width *= 2) {
        int other = from;
        for (lua_Integer low = 1; low <= n; low += 2 * width) {
            lua_Integer middle = low + width, high = low + 2 * width;
            merge(&s, from, to, low, middle <= n ? middle : n + 1, high <= n ? high : n + 1);
        }
        from = to;
        to = other;
    }
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, from, i);
        lua_seti(L, LIST, i);
    }
    return 0;
}

void ipw_lib_table(lua_State *L)
{
    static const luaL_Reg functions[] = {{"insert", tab_insert},
                                         {"remove", tab_remove},
                                         {"concat", tab_concat},
                                         {"unpack", tab_unpack},
                                         {"move", tab_move},
                                         {"sort", tab_sort},
                                         {NULL, NULL}};

    stock_concat = ipw_stock_function("table", "concat");
    stock_unpack = ipw_stock_function("table", "unpack");
    stock_move = ipw_stock_function("table", "move");
    luaL_setfuncs(L, functions, 0);
}
