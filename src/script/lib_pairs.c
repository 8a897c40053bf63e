/* pairs() in an order that is the same in every run.
 *
 * Lua hashes strings with a different seed in each state, so the order of a table's members
 * differs. An agent that builds a prompt in that order could not be replayed.  Our order is:
 * numbers by value, then strings by bytes, then everything else in Lua's order.  Lists, and tables
 * with one member, take the stock way. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "script/lib.h"
#include "script/vm.h"

struct key {
    const char *text; /* NULL: a number */
    size_t n;
    double number;
    lua_Integer at; /* in the list of keys */
};

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order;

    if (!x->text != !y->text) return x->text ? 1 : -1;
    if (!x->text) return x->number < y->number ? -1 : x->number > y->number;
    order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);
    return order ? order : x->n < y->n ? -1 : x->n > y->n;
}

/* next(table): upvalues: the list of keys, the number of keys that were returned. */
static int next_in_order(lua_State *L)
{
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));

    luaL_checktype(L, 1, LUA_TTABLE);
    for (;;) {
        if (lua_rawgeti(L, lua_upvalueindex(1), ++i) == LUA_TNIL) return 1;
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) != LUA_TNIL) break; /* removed meanwhile: left out */
        lua_pop(L, 2);
    }
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(2));
    return 2;
}

static int stock_next(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (lua_next(L, 1)) return 2;
    lua_pushnil(L);
    return 1;
}

/* The number of members, and of those whose place depends on the hash. */
static size_t count(lua_State *L, size_t *by_chance)
{
    size_t n = 0;

    *by_chance = 0;
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        int type = lua_type(L, -2);

        n++;
        *by_chance += type != LUA_TNUMBER && type != LUA_TBOOLEAN;
        lua_pop(L, 1);
    }
    return n;
}

/* The table's keys in our order, as a list. [0, +1, m] */
static void push_keys(lua_State *L, size_t n)
{
    struct key *keys = lua_newuserdatauv(L, n * sizeof *keys, 0); // keys
    lua_Integer n_sorted = 0, n_rest = 0;

    lua_createtable(L, (int)n, 0); // keys list
    lua_createtable(L, 0, 0);      // keys list rest
    lua_pushnil(L);
    while (lua_next(L, 1)) { // keys list rest key value
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        if (lua_type(L, -1) == LUA_TNUMBER) {
            keys[n_sorted] = (struct key){.number = lua_tonumber(L, -1), .at = n_sorted + 1};
            lua_rawseti(L, -4, ++n_sorted);
        } else if (lua_type(L, -1) == LUA_TSTRING) {
            keys[n_sorted].text = lua_tolstring(L, -1, &keys[n_sorted].n);
            keys[n_sorted].at = n_sorted + 1;
            lua_rawseti(L, -4, ++n_sorted);
        } else {
            lua_rawseti(L, -3, ++n_rest);
        }
    }
    qsort(keys, (size_t)n_sorted, sizeof *keys, by_key);
    lua_createtable(L, (int)n, 0); // keys list rest sorted
    for (lua_Integer i = 0; i < n_sorted; i++) {
        lua_rawgeti(L, -3, keys[i].at);
        lua_rawseti(L, -2, i + 1);
    }
    for (lua_Integer i = 1; i <= n_rest; i++) {
        lua_rawgeti(L, -2, i);
        lua_rawseti(L, -2, n_sorted + i);
    }
    lua_replace(L, -4);
    lua_pop(L, 2);
}

int ipw_lib_pairs(lua_State *L)
{
    size_t n, by_chance;

    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_callk(L, 1, 3, 0, NULL);
        return 3;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    n = count(L, &by_chance);
    if (by_chance == 0 || n < 2) {
        lua_pushcfunction(L, stock_next);
    } else {
        push_keys(L, n);
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, next_in_order, 2);
    }
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}
