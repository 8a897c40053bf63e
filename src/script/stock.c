/* The members of Lua's own libraries that scripts can use, listed once for each process. */
#include "script/stock.h"

#include <ctype.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

static const struct {
    const char *lib; /* "" for the globals */
    lua_CFunction open;
    const char *names;
} allowed[] = {
    {"", luaopen_base,
     "assert error getmetatable ipairs next rawequal rawget rawlen rawset select tonumber type "
     "_VERSION"},
    {"string", luaopen_string,
     "byte char format len lower rep reverse sub upper pack packsize unpack"},
    {"table", luaopen_table, "concat move pack unpack"},
    {"math", luaopen_math,
     "abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min mininteger modf "
     "pi rad random randomseed sin sqrt tan tointeger type ult"},
    {"utf8", luaopen_utf8, "char charpattern codepoint codes len offset"},
    {"coroutine", luaopen_coroutine, "create isyieldable running status"},
    {"os", luaopen_os, "clock date difftime time"},
};
enum { N_LIBS = sizeof allowed / sizeof *allowed, MAX_MEMBERS = 40 };

/* One member of a library: a C function or a constant.  A function with a userdata as its upvalue
 * (the state of math.random) gets a new one in each Lua state, shared within its library. */
struct member {
    char *name;
    size_t name_n;
    int type;
    lua_CFunction function;
    size_t userdata_bytes;
    bool is_integer;
    lua_Integer integer;
    lua_Number number;
    char *text;
    size_t text_n;
};

struct stock {
    struct member members[MAX_MEMBERS];
    int n;
};
static struct stock libraries[N_LIBS], string_operators;
static bool gathered;

lua_CFunction ipw_stock_function(const char *lib, const char *name)
{
    for (size_t i = 0; i < N_LIBS; i++)
        for (int k = 0; !strcmp(allowed[i].lib, lib) && k < libraries[i].n; k++)
            if (!strcmp(libraries[i].members[k].name, name))
                return libraries[i].members[k].function;
    IPW_BUG("%s.%s is not there", lib, name);
}

/* Adds the value at the top of the stack to the list. [0, 0, -] */
static void note_member(lua_State *L, struct stock *stock, const char *name, size_t n)
{
    struct member *m = &stock->members[stock->n++];

    if (stock->n > MAX_MEMBERS) IPW_BUG("too many members in a library of Lua's");
    *m = (struct member){.name = ipw_memdup(name, n), .name_n = n, .type = lua_type(L, -1)};
    switch (m->type) {
    case LUA_TFUNCTION:
        m->function = lua_tocfunction(L, -1);
        if (lua_getupvalue(L, -1, 1)) {
            if (lua_type(L, -1) != LUA_TUSERDATA || lua_getmetatable(L, -1))
                IPW_BUG("%s has an upvalue that is not understood", m->name);
            m->userdata_bytes = (size_t)lua_rawlen(L, -1);
            lua_pop(L, 1);
        }
        break;
    case LUA_TNUMBER:
        m->is_integer = lua_isinteger(L, -1);
        m->integer = lua_tointeger(L, -1);
        m->number = lua_tonumber(L, -1);
        break;
    case LUA_TSTRING: {
        const char *text = lua_tolstring(L, -1, &m->text_n);
        m->text = ipw_memdup(text, m->text_n);
        break;
    }
    default: IPW_BUG("%s is missing from Lua", m->name);
    }
}

/* To open the stock libraries and pick names out of them takes four times as long as to build our
 * tables from lists of C functions.  So the lists are made once, with a state that is then
 * closed. */
static void gather(void)
{
    lua_State *L = luaL_newstate();

    if (!L) IPW_BUG("out of memory");
    for (size_t i = 0; i < N_LIBS; i++) {
        const char *name = allowed[i].names;
        lua_pushcfunction(L, allowed[i].open);
        lua_call(L, 0, 1);
        while (*name) {
            size_t n = strcspn(name, " ");
            lua_pushlstring(L, name, n);
            lua_rawget(L, -2);
            note_member(L, &libraries[i], name, n);
            lua_pop(L, 1);
            name += n;
            name += strspn(name, " ");
        }
        lua_pop(L, 1);
    }
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushnil(L);
    while (lua_next(L, -2)) { /* "1" + 1 and so on; __index is ours */
        const char *name = lua_tostring(L, -2);
        if (strcmp(name, "__index")) note_member(L, &string_operators, name, strlen(name));
        lua_pop(L, 1);
    }
    lua_close(L);
    gathered = true;
}

/* Puts the members into the table at the top. [0, 0, m] */
static void put_members(lua_State *L, const struct stock *stock)
{
    bool has_userdata = false;

    for (int i = 0; i < stock->n; i++) {
        const struct member *m = &stock->members[i];
        lua_pushlstring(L, m->name, m->name_n); // (userdata) lib name
        if (m->type == LUA_TSTRING) {
            lua_pushlstring(L, m->text, m->text_n);
        } else if (m->type == LUA_TNUMBER) {
            if (m->is_integer)
                lua_pushinteger(L, m->integer);
            else
                lua_pushnumber(L, m->number);
        } else if (!m->userdata_bytes) {
            lua_pushcfunction(L, m->function);
        } else {
            if (!has_userdata) {
                memset(lua_newuserdatauv(L, m->userdata_bytes, 0), 0, m->userdata_bytes);
                lua_insert(L, -3); // userdata lib name
                has_userdata = true;
            }
            lua_pushvalue(L, -3);
            lua_pushcclosure(L, m->function, 1);
        }
        lua_rawset(L, -3);
    }
    if (has_userdata) lua_remove(L, -2);
}

void ipw_stock_globals(lua_State *L)
{
    if (!gathered) gather();
    lua_createtable(L, 0, 32); // globals
    put_members(L, &libraries[0]);
}

const char *ipw_stock_name(size_t i) { return i + 1 < N_LIBS ? allowed[i + 1].lib : NULL; }

void ipw_stock_push(lua_State *L, size_t i, int n_extra)
{
    lua_createtable(L, 0, libraries[i + 1].n + n_extra);
    put_members(L, &libraries[i + 1]);
}

void ipw_stock_string_operators(lua_State *L)
{
    lua_createtable(L, 0, string_operators.n + 2);
    put_members(L, &string_operators);
}

/* Libraries that can be opened late.  Every text needs string, and nearly all scripts use table. */
static const char *const late[] = {"math", "utf8", "coroutine", "os"};
enum { N_LATE = sizeof late / sizeof *late };

unsigned ipw_stock_late(const char *name)
{
    for (unsigned k = 0; k < N_LATE; k++)
        if (strcmp(late[k], name) == 0) return 1U << k;
    return 0;
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

unsigned ipw_stock_named(const char *text, size_t n)
{
    unsigned named = 0;

    for (size_t at = 0, end; at < n && named != IPW_STOCK_ALL_LATE; at = end + 1) {
        end = at;
        while (end < n && (isalnum((unsigned char)text[end]) || text[end] == '_')) end++;
        if (is_word(text + at, end - at, "_G") || is_word(text + at, end - at, "_ENV"))
            return IPW_STOCK_ALL_LATE;
        for (unsigned k = 0; k < N_LATE; k++)
            if (is_word(text + at, end - at, late[k])) named |= 1U << k;
    }
    return named;
}
