/* Checks arguments from a model against a tool's declaration (lua/ipw/schema.lua describes it).  In
 * C, because otherwise every query that calls a tool loads the Lua for it. */
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#include "script/lib.h"
#include "script/tostring.h"
#include "script/value.h"
#include "script/vm.h"

enum { INPUT = 1, ARGS, OUT, FIELD, KIND, NAME, VALUE }; /* stack positions */

static bool is(const char *kind, const char *word) { return kind && strcmp(kind, word) == 0; }

/* Pushes tostring() of the value, without metamethods for tables. */
static const char *push_text(lua_State *L, int idx) { return ipw_tostring_push(L, idx); }

/* Models write 5 as "5" and "5" as 5: a value that is clear beyond doubt is accepted. Replaces
 * VALUE. */
static void coerce(lua_State *L, const char *kind)
{
    bool whole = is(kind, "integer");
    int type = lua_type(L, VALUE);
    size_t n;
    const char *s;

    if (type == LUA_TSTRING && (whole || is(kind, "number"))) {
        s = lua_tolstring(L, VALUE, &n);
        if (lua_stringtonumber(L, s) == n + 1)
            lua_replace(L, VALUE);
        else
            lua_settop(L, VALUE);
    } else if (type == LUA_TSTRING && is(kind, "boolean")) {
        s = lua_tostring(L, VALUE);
        if (is(s, "true") || is(s, "false")) {
            lua_pushboolean(L, s[0] == 't');
            lua_replace(L, VALUE);
        }
    } else if (type == LUA_TNUMBER && is(kind, "string")) {
        push_text(L, VALUE);
        lua_replace(L, VALUE);
    }
    if (whole && lua_type(L, VALUE) == LUA_TNUMBER) {
        int exact;
        lua_Integer i = lua_tointegerx(L, VALUE, &exact);
        if (exact) {
            lua_pushinteger(L, i);
            lua_replace(L, VALUE);
        }
    }
}

static bool fits(lua_State *L, const char *kind)
{
    int type = lua_type(L, VALUE);
    bool empty;

    if (is(kind, "string")) return type == LUA_TSTRING;
    if (is(kind, "boolean")) return type == LUA_TBOOLEAN;
    if (is(kind, "number")) return type == LUA_TNUMBER;
    if (is(kind, "integer")) return lua_isinteger(L, VALUE);
    if (type != LUA_TTABLE || !is(kind, "array")) return type == LUA_TTABLE;
    if (lua_rawlen(L, VALUE) > 0) return true;
    lua_pushnil(L);
    empty = !lua_next(L, VALUE);
    lua_settop(L, VALUE);
    return empty;
}

/* Checks field.enum; without a match it sets *ok to false and pushes the message. */
static void check_enum(lua_State *L, bool *ok, const char *name)
{
    luaL_Buffer b;
    lua_Integer n;

    if (lua_getfield(L, FIELD, "enum") != LUA_TTABLE) return;
    n = luaL_len(L, -1);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, VALUE + 1, i);
        if (lua_compare(L, VALUE, -1, LUA_OPEQ)) return;
        lua_pop(L, 1);
    }
    *ok = false;
    luaL_buffinit(L, &b);
    for (lua_Integer i = 1; i <= n; i++) {
        if (i > 1) luaL_addstring(&b, ", ");
        lua_geti(L, VALUE + 1, i);
        push_text(L, -1);
        lua_remove(L, -2);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    lua_pushfstring(L, "argument '%s' must be one of: %s", name, lua_tostring(L, -1));
}

/* Stores the value in OUT; or pushes the message and returns false. */
static bool check_field(lua_State *L)
{
    const char *name, *kind;
    bool ok = true;

    lua_geti(L, FIELD, 2);
    kind = lua_tostring(L, KIND);
    lua_geti(L, FIELD, 1);
    name = luaL_checkstring(L, NAME);
    lua_pushvalue(L, NAME);
    lua_rawget(L, ARGS); // ... VALUE
    if (lua_isnil(L, VALUE) || (lua_islightuserdata(L, VALUE) && !lua_touserdata(L, VALUE))) {
        lua_pop(L, 1);
        lua_getfield(L, FIELD, "default"); // ... VALUE
        lua_getfield(L, FIELD, "optional");
        if (lua_isnil(L, VALUE) && !lua_toboolean(L, -1)) {
            lua_geti(L, FIELD, 3);
            lua_pushfstring(L, "argument '%s' is missing (%s: %s)", name, kind,
                            lua_isstring(L, -1) ? lua_tostring(L, -1) : "");
            return false;
        }
        lua_settop(L, VALUE);
        lua_rawset(L, OUT);
        return true;
    }
    coerce(L, kind);
    if (!fits(L, kind)) {
        lua_pushfstring(L, "argument '%s' must be of type %s", name, kind);
        return false;
    }
    if (lua_type(L, VALUE) == LUA_TNUMBER) {
        if (lua_getfield(L, FIELD, "min") != LUA_TNIL && lua_compare(L, VALUE, -1, LUA_OPLT)) {
            lua_pushfstring(L, "argument '%s' must be at least %s", name, push_text(L, -1));
            return false;
        }
        lua_settop(L, VALUE);
        if (lua_getfield(L, FIELD, "max") != LUA_TNIL && lua_compare(L, -1, VALUE, LUA_OPLT)) {
            lua_pushfstring(L, "argument '%s' must be at most %s", name, push_text(L, -1));
            return false;
        }
        lua_settop(L, VALUE);
    }
    check_enum(L, &ok, name);
    if (!ok) return false;
    lua_settop(L, VALUE);
    lua_rawset(L, OUT);
    return true;
}

static bool is_known(lua_State *L, int key)
{
    bool known = false;

    for (lua_Integer i = 1; !known && lua_geti(L, INPUT, i) == LUA_TTABLE; i++) {
        lua_geti(L, -1, 1);
        known = lua_rawequal(L, key, -1);
        lua_pop(L, 2);
    }
    lua_settop(L, key);
    return known;
}

static void push_unknown(lua_State *L, int key)
{
    const char *name = push_text(L, key);
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (lua_Integer i = 1; i <= luaL_len(L, INPUT); i++) {
        if (i > 1) luaL_addstring(&b, ", ");
        lua_geti(L, INPUT, i);
        lua_geti(L, -1, 1);
        lua_remove(L, -2);
        luaL_addvalue(&b);
    }
    if (!luaL_len(L, INPUT)) luaL_addstring(&b, "none");
    luaL_pushresult(&b);
    lua_pushfstring(L, "unknown argument '%s' (known: %s)", name, lua_tostring(L, -1));
}

int ipw_lib_validate(lua_State *L)
{
    luaL_checktype(L, INPUT, LUA_TTABLE);
    luaL_checkany(L, ARGS);
    lua_settop(L, ARGS);
    if (!lua_istable(L, ARGS)) {
        lua_pushnil(L);
        lua_pushliteral(L, "the arguments must be a JSON object");
        return 2;
    }
    lua_createtable(L, 0, 2); // input args OUT
    for (lua_Integer i = 1; lua_geti(L, INPUT, i) != LUA_TNIL; i++) {
        if (!check_field(L)) {
            lua_pushnil(L);
            lua_insert(L, -2);
            return 2;
        }
        lua_settop(L, OUT);
    }
    lua_settop(L, OUT);
    lua_pushnil(L);
    while (lua_next(L, ARGS)) {
        lua_pop(L, 1); // input args out key
        if (is_known(L, OUT + 1)) continue;
        push_unknown(L, OUT + 1);
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    lua_settop(L, OUT);
    return 1;
}

int ipw_lib_arguments(lua_State *L)
{
    struct ipw_err err;
    const char *text;
    size_t n;

    lua_settop(L, 2);
    if (lua_type(L, 2) == LUA_TSTRING) {
        text = lua_tolstring(L, 2, &n);
        if (n == 0) {
            lua_newtable(L);
        } else if (ipw_value_decode(L, text, n, &err)) {
            lua_pushnil(L);
            lua_pushfstring(L, "the arguments are not valid JSON (%s); send one JSON object",
                            err.text);
            return 2;
        }
        lua_replace(L, 2);
    }
    if (lua_getfield(L, 1, "free") != LUA_TNIL &&
        lua_toboolean(L, -1)) { /* the server checks them */
        lua_settop(L, 2);
        if (lua_istable(L, 2)) return 1;
        return ipw_value_push_failure(L, "expected a JSON object");
    }
    lua_getfield(L, 1, "input");
    lua_replace(L, INPUT);
    lua_settop(L, ARGS);
    return ipw_lib_validate(L);
}
