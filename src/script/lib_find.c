/* ipw.core.script: finds, lists and loads scripts by name, and finds the nearest of several
 * names. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/jsonl.h"
#include "script/chunk.h"
#include "script/embedded.h"
#include "script/lib.h"
#include "script/search.h"
#include "script/value.h"
#include "script/vm_priv.h"

enum { MAX_SOURCE_BYTES = 4 * 1024 * 1024, MAX_NAMES = 1000 };

int ipw_lib_find_path(lua_State *L, const char *kind, const char *name)
{
    char path[1024];
    struct ipw_err err;

    if (ipw_search_script(ipw_vm_of(L), kind, name, path, sizeof path, &err))
        return ipw_value_push_failure(L, err.text);
    lua_pushstring(L, path);
    return 1;
}

/* find(kind, name): the path of "agents", "agents/tools" or "datasets" NAME; or nil and a reason.
 * [-2, +(1|2), e] */
static int script_find(lua_State *L)
{
    return ipw_lib_find_path(L, luaL_checkstring(L, 1), luaL_checkstring(L, 2));
}

int ipw_lib_find_load(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct ipw_err err;

    if (ipw_chunk_load(L, path, &err)) {
        lua_pushstring(L, err.text); /* names file and line, so luaL_error() must not add its own */
        return lua_error(L);
    }
    lua_call(L, 0, 1);
    return 1;
}

/* source(path): the text of a script, also of an embedded one; or nil and a reason. [-1, +(1|2),
 * e] */
static int script_source(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const struct ipw_embedded_file *f = NULL;
    struct ipw_buf text = IPW_BUF(MAX_SOURCE_BYTES);
    struct ipw_err err;

    if (strncmp(path, "builtin:", 8) == 0) f = ipw_embedded_find(path + 8);
    if (f) {
        lua_pushlstring(L, f->bytes, f->n);
        return 1;
    }
    if (ipw_file_read(&text, path, &err)) {
        ipw_buf_release(&text);
        return ipw_value_push_failure(L, err.text);
    }
    lua_pushlstring(L, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
    return 1;
}

static void add_name(void *ud, const char *name, const char *path)
{
    ipw_buf_addf(ud, "%s %s\n", name, path);
}

/* names(kind): a line "NAME PATH" for each name that find() knows. [-1, +1, e] */
static int script_names(lua_State *L)
{
    const char *kind = luaL_checkstring(L, 1);
    struct ipw_buf lines = IPW_BUF(MAX_SOURCE_BYTES);

    ipw_search_each(kind, ipw_vm_of(L)->options.paths, add_name, &lines);
    lua_pushlstring(L, ipw_buf_str(&lines), lines.len);
    ipw_buf_release(&lines);
    return 1;
}

/* nearest(name, list): the name of the list that was probably meant, or nil. [-2, +1, e] */
static int script_nearest(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1), *near;
    lua_Unsigned n;
    const char **list;

    luaL_checktype(L, 2, LUA_TTABLE);
    n = lua_rawlen(L, 2);
    luaL_argcheck(L, n <= MAX_NAMES, 2, "has more than 1000 names");
    list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 0);
    for (lua_Unsigned i = 0; i < n; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        list[i] = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : ""; /* the list keeps it */
        lua_pop(L, 1);
    }
    list[n] = NULL;
    near = ipw_nearest(name, list);
    lua_pushstring(L, near && *near ? near : NULL);
    return 1;
}

int ipw_lib_find(lua_State *L)
{
    static const luaL_Reg functions[] = {{"find", script_find},       {"load", ipw_lib_find_load},
                                         {"source", script_source},   {"names", script_names},
                                         {"nearest", script_nearest}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
