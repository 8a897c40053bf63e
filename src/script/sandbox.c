/* What scripts may use: an allow-list of Lua's own libraries, copied by name into fresh tables, and
 * our own load, require, pcall, xpcall, setmetatable, tostring, print and os. */
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "script/recorded_effect.h"
#include "script/vm_state.h"
#include "script/worker/worker_main.h"

enum { MAX_SOURCE_BYTES = 128 * 1024 };

void ipw_sandbox_check(lua_State *L)
{
    struct ipw_vm *vm = ipw_vm_of(L);

    if (vm->over_memory && !vm->refused && ipw_vm_collect(vm, L)) return;
    if (vm->over_memory) {
        vm->refused = true; /* from now on; what is caught and thrown away does not help */
        ipw_budget_stop(vm, L);
        luaL_error(L, "the script passed its memory limit");
    }
    if (vm->over_cpu) {
        ipw_budget_stop(vm, L);
        luaL_error(L, "the script passed its CPU limit");
    }
}

/* pcall and xpcall as the stock ones, but a budget that has run out cannot be caught. */
static int finish_pcall(lua_State *L, int status, lua_KContext extra)
{
    if (status != LUA_OK && status != LUA_YIELD) {
        ipw_sandbox_check(L);
        lua_pushboolean(L, 0);
        lua_pushvalue(L, -2);
        return 2;
    }
    return lua_gettop(L) - (int)extra;
}

static int base_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1); // true f args...
    return finish_pcall(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish_pcall), 0);
}

/* The script's message handler, unless the budget has run out: it runs before the stack is unwound,
 * inside the hook that raised, where Lua calls no hook that could stop it. */
static int guard_handler(lua_State *L)
{
    const struct ipw_vm *vm = ipw_vm_of(L);

    if (vm->over_cpu || vm->over_memory) return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int base_xpcall(lua_State *L)
{
    int n = lua_gettop(L);

    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, guard_handler, 1);
    lua_replace(L, 2);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2); // f handler true f args...
    return finish_pcall(L, lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish_pcall), 2);
}

/* load(text [, name [, mode [, env]]]): text only, whatever the mode says. */
static int base_load(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    const char *name = luaL_optstring(L, 2, "=(load)");
    bool has_env = !lua_isnone(L, 4);

    if (n > MAX_SOURCE_BYTES || ipw_chain_too_long(text, n)) {
        lua_pushnil(L);
        lua_pushstring(L, n > MAX_SOURCE_BYTES ? "source text over 128 kB" : ipw_chain_message);
        return 2;
    }
    if (luaL_loadbufferx(L, text, n, name, "t") != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (has_env) {
        lua_pushvalue(L, 4);
        if (!lua_setupvalue(L, -2, 1)) lua_pop(L, 1);
    }
    return 1;
}

/* Finalizers run outside every budget: refused. */
static int base_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "__gc is not available here; use <close> variables");
        lua_pop(L, 1);
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* print is a diagnostic: to the log, never to stdout, which carries data. */
static int base_print(lua_State *L)
{
    int n = lua_gettop(L);
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        ipw_text_push(L, i);
        luaL_addvalue(&b);
        if (i < n) luaL_addchar(&b, '\t');
    }
    luaL_pushresult(&b);
    if (ipw_host_remote(L))
        ipw_remote_log(ipw_host_remote(L), lua_tostring(L, -1));
    else
        ipw_log(IPW_LOG_INFO, "%s", lua_tostring(L, -1));
    return 0;
}

static int base_tostring(lua_State *L)
{
    ipw_text_push(L, 1);
    return 1;
}

/* randomseed([x [, y]]): the stock one, which without arguments would ask the clock. */
static int math_randomseed(lua_State *L)
{
    if (lua_isnone(L, 1)) {
        lua_pushinteger(L, (lua_Integer)ipw_vm_of(L)->options.seed);
        lua_pushinteger(L, ++ipw_vm_of(L)->n_seedings);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* What the time is, is on record (script/recorded_effect.h); what a given time is called is arithmetic,
 * except for the time zone. */
static int time_value(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)time(NULL));
    return 1;
}

static int os_time(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        return ipw_effect_call(L, "os.time", time_value);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int os_clock(lua_State *L)
{
    lua_settop(L, 0);
    return ipw_effect_call(L, "os.clock", lua_tocfunction(L, lua_upvalueindex(1)));
}

static int os_date(lua_State *L)
{
    lua_CFunction stock = lua_tocfunction(L, lua_upvalueindex(1));
    const char *format = luaL_optstring(L, 1, "%c");

    if (format[0] == '!' && !lua_isnoneornil(L, 2)) return stock(L);
    return ipw_effect_call(L, "os.date", stock);
}

/* Puts `ours` in the place of the member, which it keeps as its upvalue. [0, 0, m] */
static void wrap(lua_State *L, const char *name, lua_CFunction ours)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, ours, 1);
    lua_setfield(L, -2, name);
}

/* ---- what the stock libraries have of it ---- */

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

/* One member of a library: a C function, or a constant.  A function that has a userdata beside it
 * (the state of math.random) gets a fresh one in each Lua state, shared within its library. */
struct member {
    char *name;
    int type;
    lua_CFunction function;
    size_t userdata_bytes;
    bool is_integer;
    lua_Integer integer;
    lua_Number number;
    char *text;
    size_t text_n;
};

static struct stock {
    struct member members[MAX_MEMBERS];
    int n;
} libraries[N_LIBS], string_operators;
static bool gathered;

lua_CFunction ipw_sandbox_stock(const char *lib, const char *name)
{
    for (size_t i = 0; i < N_LIBS; i++)
        for (int k = 0; !strcmp(allowed[i].lib, lib) && k < libraries[i].n; k++)
            if (!strcmp(libraries[i].members[k].name, name))
                return libraries[i].members[k].function;
    IPW_BUG("%s.%s is not there", lib, name);
}

/* Notes the value at the top of the stack. [0, 0, -] */
static void note_member(lua_State *L, struct stock *stock, const char *name, size_t n)
{
    struct member *m = &stock->members[stock->n++];

    if (stock->n > MAX_MEMBERS) IPW_BUG("too many members in a library of Lua's");
    *m = (struct member){.name = ipw_memdup(name, n), .type = lua_type(L, -1)};
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

/* Opening the stock libraries and picking names out of them takes four times as long as making our
 * tables from lists of C functions; so the lists are made once, with a state that is then closed. */
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
    while (lua_next(L, -2)) { /* "1" + 1 and the like; __index is ours */
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
        lua_pushstring(L, m->name); // (userdata) lib name
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

/* How many of ours come beside the stock ones. */
static int extra_members(lua_CFunction open)
{
    return open == luaopen_coroutine || open == luaopen_string ? 4 : open == luaopen_table ? 3 : 0;
}

void ipw_sandbox_open(lua_State *L)
{
    static const luaL_Reg base[] = {{"pcall", base_pcall},     {"xpcall", base_xpcall},
                                    {"load", base_load},       {"setmetatable", base_setmetatable},
                                    {"print", base_print},     {"tostring", base_tostring},
                                    {"pairs", ipw_base_pairs}, {NULL, NULL}};

    if (!gathered) gather();
    lua_createtable(L, 0, 32); // globals
    put_members(L, &libraries[0]);
    luaL_setfuncs(L, base, 0);
    for (size_t i = 1; i < N_LIBS; i++) {
        lua_createtable(L, 0, libraries[i].n + extra_members(allowed[i].open));
        put_members(L, &libraries[i]); // globals lib
        if (allowed[i].open == luaopen_coroutine) ipw_coroutine_open(L);
        if (allowed[i].open == luaopen_string) ipw_string_open(L);
        if (allowed[i].open == luaopen_table) ipw_table_open(L);
        if (allowed[i].open == luaopen_os) {
            wrap(L, "time", os_time);
            wrap(L, "clock", os_clock);
            wrap(L, "date", os_date);
        }
        if (allowed[i].open == luaopen_math) {
            lua_getfield(L, -1, "randomseed");
            lua_pushvalue(L, -1);
            lua_pushcclosure(L, math_randomseed, 1);
            lua_setfield(L, -3, "randomseed");
            lua_pushinteger(L, (lua_Integer)ipw_vm_of(L)->options.seed);
            lua_call(L, 1, 0);
        }
        if (allowed[i].open == luaopen_string) {
            /* Strings index our string table, and their metatable is out of reach. */
            lua_pushliteral(L, "");
            lua_createtable(L, 0, string_operators.n + 2); // globals lib "" operators
            put_members(L, &string_operators);
            lua_pushvalue(L, -3);
            lua_setfield(L, -2, "__index");
            lua_pushboolean(L, 0);
            lua_setfield(L, -2, "__metatable");
            lua_setmetatable(L, -2);
            lua_pop(L, 1);
        }
        lua_setfield(L, -2, allowed[i].lib); // globals
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "_G");
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); // globals
    ipw_chunk_open(L);
    lua_pop(L, 1);
}
