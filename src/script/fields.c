#include "script/fields.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

/* Unknown fields are mistakes. */
static void check_names(lua_State *L, int idx, const char *where, const char *const *known,
                        bool list)
{
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL, *near;
        bool is = list && lua_isinteger(L, -2);

        for (size_t i = 0; key && known[i]; i++) is |= strcmp(known[i], key) == 0;
        if (!is) {
            near = key ? ipw_nearest(key, known) : NULL;
            luaL_error(L, "%s: unknown field '%s'%s%s%s", where, key ? key : "(not a string)",
                       near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        }
        lua_pop(L, 1);
    }
}

void ipw_fields_take(lua_State *L, int idx, const char *where, const char *const *known, bool list)
{
    lua_Unsigned n;

    luaL_checktype(L, idx, LUA_TTABLE);
    check_names(L, idx, where, known, list);
    if (!lua_getmetatable(L, idx)) return;
    lua_pop(L, 1);
    lua_newtable(L);
    for (size_t i = 0; known[i]; i++) {
        lua_getfield(L, idx, known[i]);
        lua_setfield(L, -2, known[i]);
    }
    n = list ? lua_rawlen(L, idx) : 0;
    for (lua_Unsigned i = 1; i <= n; i++) {
        lua_rawgeti(L, idx, (lua_Integer)i);
        lua_rawseti(L, -2, (lua_Integer)i);
    }
    lua_replace(L, idx);
}

double ipw_fields_number(lua_State *L, int idx, const char *where, const char *name,
                         double fallback, double least, double most)
{
    double x = fallback;
    char range[48];
    int is = 1;

    if (lua_getfield(L, idx, name) != LUA_TNIL) {
        x = lua_tonumberx(L, -1, &is);
        if (!is && isinf(most))
            luaL_error(L, "%s: %s: expected a number, got %s", where, name, luaL_typename(L, -1));
        if (!is || !(x >= least && x <= most)) {
            snprintf(range, sizeof range, "%g to %.9g", least, most);
            luaL_error(L, "%s: %s: expected a number from %s", where, name, range);
        }
    }
    lua_pop(L, 1);
    return x;
}

int64_t ipw_fields_integer(lua_State *L, int idx, const char *where, const char *name,
                           int64_t fallback)
{
    int64_t x = fallback;
    int is = 1;

    if (lua_getfield(L, idx, name) != LUA_TNIL) x = lua_tointegerx(L, -1, &is);
    if (!is)
        luaL_error(L, "%s: %s: expected a whole number, got %s", where, name, luaL_typename(L, -1));
    lua_pop(L, 1);
    return x;
}

size_t ipw_fields_bytes(lua_State *L, int idx, const char *where, const char *name, size_t fallback,
                        size_t least, size_t most)
{
    size_t bytes = fallback;
    lua_Integer n;
    struct ipw_err err;
    int is;

    if (lua_getfield(L, idx, name) != LUA_TNIL && lua_type(L, -1) == LUA_TSTRING) {
        if (ipw_parse_bytes(&bytes, lua_tostring(L, -1), &err))
            luaL_error(L, "%s: %s: %s", where, name, err.text);
    } else if (!lua_isnil(L, -1)) {
        n = lua_tointegerx(L, -1, &is);
        if (!is || n < (lua_Integer)least)
            luaL_error(L, "%s: %s: expected bytes, or a text such as 64K", where, name);
        bytes = (size_t)n;
    }
    if (bytes < least || bytes > most)
        luaL_error(L, "%s: %s: %d MiB at most", where, name, (int)(most / IPW_MIB));
    lua_pop(L, 1);
    return bytes;
}

const char *ipw_fields_text(lua_State *L, int idx, const char *where, const char *name, size_t *n)
{
    const char *text = NULL;

    if (lua_getfield(L, idx, name) != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "%s: %s: expected a string, got %s", where, name, luaL_typename(L, -1));
        text = lua_tolstring(L, -1, n);
    }
    lua_pop(L, 1);
    return text;
}
