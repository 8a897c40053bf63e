/* Tool files, for ipw.core.tool: what a process knows of those that its queries have opened.
 *
 * Their texts (name, schema, description) do not change while the program runs, because a file is
 * compiled once.  So a query that does not call a tool need not load it, and a list of tools that a
 * query opened is opened again without a look at its members. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/lib.h"
#include "script/search.h"
#include "script/value.h"
#include "script/vm_priv.h"

enum { MAX_LIST_BYTES = 16 * 1024 * 1024, MAX_LISTED = 1000, PATH_BYTES = 1024 };

struct card {
    char *path, *name; /* an empty name: the run goes without the tool */
    struct ipw_buf schema, about;
    struct card *next;
};
static struct card *cards;

/* A list of tools all of which have cards. */
struct kit {
    struct ipw_buf key; /* the script's folder and the names, each with a NUL */
    const struct card **cards;
    size_t n;
    struct ipw_buf schemas, about; /* JSON; a text */
    struct kit *next;
};
static struct kit *kits;

static struct card *card_at(const char *path)
{
    struct card *c = cards;

    while (c && strcmp(c->path, path)) c = c->next;
    return c;
}

/* keep(path, name, schema, about): the file's card, for later queries; it replaces an older one.  A
 * list of an MCP server's tools is kept as a name, at no path. [-4, 0, e] */
int ipw_lib_tool_keep(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2), *schema, *about;
    size_t n_schema, n_about;
    struct card *c;

    schema = luaL_checklstring(L, 3, &n_schema);
    about = luaL_checklstring(L, 4, &n_about);
    c = ipw_calloc(1, sizeof *c);
    c->path = ipw_strdup(path);
    c->name = ipw_strdup(name);
    ipw_buf_init(&c->schema, MAX_LIST_BYTES);
    ipw_buf_init(&c->about, MAX_LIST_BYTES);
    ipw_buf_add(&c->schema, schema, n_schema);
    ipw_buf_add(&c->about, about, n_about);
    c->next = cards;
    cards = c;
    return 0;
}

/* kept(path): the name, or nothing. [-1, +(0|1), e] */
int ipw_lib_tool_kept(lua_State *L)
{
    const struct card *c = card_at(luaL_checkstring(L, 1));

    if (c) lua_pushstring(L, c->name);
    return c != NULL;
}

/* ---- tools whose file is not loaded ---- */

/* __index of a tool that has its card at 1 and its name: loads the file, mostly because the tool is
 * called. */
static int unread_index(lua_State *L)
{
    const struct card *c = cards;

    lua_settop(L, 2);
    lua_rawgeti(L, 1, 1);
    while (c && c != lua_touserdata(L, 3)) c = c->next;
    lua_settop(L, 2);
    lua_pushnil(L);
    lua_setmetatable(L, 1);
    lua_pushnil(L);
    lua_rawseti(L, 1, 1);
    if (!c) return 0;
    lua_pushcfunction(L, ipw_lib_find_load);
    lua_pushstring(L, c->path);
    lua_call(L, 1, 1); // tool key file
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 3)) { // tool key file name value
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 1);
    }
    if (lua_getfield(L, 1, "input") == LUA_TNIL) {
        lua_newtable(L);
        lua_setfield(L, 1, "input");
    }
    if (lua_getfield(L, 1, "needs") != LUA_TNIL) {
        ipw_value_push_function(L, "ipw.tool_rest", "check_grants");
        lua_pushvalue(L, 1);
        lua_call(L, 1, 0);
    }
    lua_settop(L, 2);
    lua_rawget(L, 1);
    return 1;
}

static void push_unread(lua_State *L, const struct card *c)
{
    lua_createtable(L, 1, 1);
    lua_pushlightuserdata(L, (void *)c);
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, c->name);
    lua_setfield(L, -2, "name");
    if (luaL_newmetatable(L, "ipw.tool.unread")) {
        lua_pushcfunction(L, unread_index);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, false); /* hidden, because a script could put a __gc there */
        lua_setfield(L, -2, "__metatable");
    }
    lua_setmetatable(L, -2);
}

/* unread(path): the tool, its schema and its description; false if the run goes without it; nothing
 * if no query has opened it. [-1, +(0|1|3), e] */
int ipw_lib_tool_unread(lua_State *L)
{
    const struct card *c = card_at(luaL_checkstring(L, 1));

    if (!c) return 0;
    lua_pushboolean(L, false);
    if (!c->name[0]) return 1;
    push_unread(L, c);
    lua_pushlstring(L, ipw_buf_str(&c->schema), c->schema.len);
    lua_pushlstring(L, ipw_buf_str(&c->about), c->about.len);
    return 3;
}

/* ---- kits ---- */

/* The key of the list at 1; false if it has more than names of files. */
static bool make_key(lua_State *L, struct ipw_buf *key)
{
    const char *dir = ipw_vm_of(L)->options.script_dir;
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    size_t length;

    ipw_buf_adds(key, dir ? dir : "");
    ipw_buf_addc(key, '\0');
    for (lua_Integer i = 1; i <= n; i++) {
        const char *name =
            lua_rawgeti(L, 1, i) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;

        lua_pop(L, 1); /* the list keeps it */
        if (!name || strlen(name) != length || strncmp(name, "mcp:", 4) == 0) return false;
        ipw_buf_add(key, name, length + 1);
    }
    return !key->failed;
}

/* The cards of the list at 1, without tools that are left out; false if one has none, or if two
 * have one name. */
static bool find_cards(lua_State *L, struct kit *kit)
{
    size_t n = (size_t)lua_rawlen(L, 1);
    char path[PATH_BYTES];

    if (n > MAX_LISTED) return false;
    kit->cards = ipw_calloc(n, sizeof *kit->cards);
    for (size_t i = 1; i <= n; i++) {
        const struct card *c = NULL;

        lua_rawgeti(L, 1, (lua_Integer)i);
        if (!ipw_search_script(ipw_vm_of(L), "agents/tools", lua_tostring(L, -1), path, sizeof path,
                               NULL))
            c = card_at(path);
        lua_pop(L, 1);
        if (!c) return false;
        if (!c->name[0]) continue;
        for (size_t k = 0; k < kit->n; k++)
            if (!strcmp(kit->cards[k]->name, c->name)) return false;
        kit->cards[kit->n++] = c;
    }
    return true;
}

static const struct kit *make_kit(lua_State *L, const struct ipw_buf *key)
{
    struct kit *kit = ipw_calloc(1, sizeof *kit);

    if (!find_cards(L, kit)) {
        free(kit->cards);
        free(kit);
        return NULL;
    }
    ipw_buf_init(&kit->key, MAX_LIST_BYTES);
    ipw_buf_add(&kit->key, ipw_buf_str(key), key->len);
    ipw_buf_init(&kit->schemas, MAX_LIST_BYTES);
    ipw_buf_init(&kit->about, MAX_LIST_BYTES);
    ipw_buf_addc(&kit->schemas, '[');
    for (size_t i = 0; i < kit->n; i++) {
        const struct card *c = kit->cards[i];

        if (i) ipw_buf_addc(&kit->schemas, ',');
        ipw_buf_add(&kit->schemas, ipw_buf_str(&c->schema), c->schema.len);
        if (i) ipw_buf_addc(&kit->about, '\n');
        ipw_buf_add(&kit->about, ipw_buf_str(&c->about), c->about.len);
    }
    ipw_buf_addc(&kit->schemas, ']');
    kit->next = kits;
    kits = kit;
    return kit;
}

/* open(list): the fields of a kit; or nothing if the tools must be looked at one by one.
 * [-1, +(0|1), e] */
int ipw_lib_tool_open(lua_State *L)
{
    static struct ipw_buf key = IPW_BUF(MAX_LIST_BYTES);
    const struct kit *kit = kits;

    if (!lua_istable(L, 1)) return 0;
    lua_settop(L, 1);
    ipw_buf_clear(&key);
    if (!make_key(L, &key)) return 0;
    while (kit && (kit->key.len != key.len || memcmp(kit->key.data, key.data, key.len)))
        kit = kit->next;
    if (!kit) kit = make_kit(L, &key);
    if (!kit) return 0;
    lua_createtable(L, 0, 5);
    lua_createtable(L, (int)kit->n, 0);
    lua_createtable(L, 0, (int)kit->n); // kit list by_name
    for (size_t i = 0; i < kit->n; i++) {
        push_unread(L, kit->cards[i]);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, kit->cards[i]->name);
        lua_rawseti(L, -3, (lua_Integer)i + 1);
    }
    lua_setfield(L, 2, "by_name");
    lua_setfield(L, 2, "list");
    ipw_value_push_raw(L, ipw_buf_str(&kit->schemas), kit->schemas.len, true);
    lua_setfield(L, 2, "schemas");
    lua_pushlightuserdata(L, (void *)kit);
    lua_setfield(L, 2, "about");
    return 1;
}

/* describe(kit): the descriptions of its tools. [-1, +1, e] */
int ipw_lib_tool_describe(lua_State *L)
{
    const struct kit *kit = kits;

    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_getfield(L, 1, "about") != LUA_TLIGHTUSERDATA) return 1;
    while (kit && kit != lua_touserdata(L, -1)) kit = kit->next;
    if (kit) lua_pushlstring(L, ipw_buf_str(&kit->about), kit->about.len);
    return 1;
}
