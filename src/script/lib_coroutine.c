/* coroutine.resume and coroutine.wrap that pass a wait inside a script's own coroutine on to the
 * task. If the inner coroutine yields the task's token, the outer one yields it as well, and
 * resumes the inner one when it is resumed.  They also publish which Lua thread runs, for the
 * budget. */
#include <lauxlib.h>

#include "script/lib.h"
#include "script/task.h"
#include "script/vm_priv.h"

enum { MAX_CLOSING = 100 };

/* Runs co until it ends, yields to the script, or waits.  Returns the status; if co waits, it
 * yields L and does not return. */
static int run_on(lua_State *L, lua_State *co, int nargs, lua_KFunction k, int *nresults)
{
    struct ipw_vm *vm = ipw_vm_of(L);
    int status;

    vm->running = co;
    if (vm->over_cpu || vm->over_memory) ipw_budget_stop(co);
    status = lua_resume(co, L, nargs, nresults);
    vm->running = L;
    if (vm->over_cpu || vm->over_memory) ipw_budget_stop(L);
    if (status == LUA_YIELD && *nresults == 1 && lua_touserdata(co, -1) == &ipw_task_token) {
        lua_pop(co, 1);
        if (!lua_isyieldable(L)) {
            ipw_task_forget_op(vm);
            luaL_error(L, "a coroutine waits here, and nothing may wait inside table.sort, "
                          "string.gsub, a metamethod called from C, or require");
        }
        lua_pushlightuserdata(L, (void *)&ipw_task_token);
        return lua_yieldk(L, 1, 0, k);
    }
    return status;
}

static lua_State *check_thread(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);

    luaL_argexpected(L, co, 1, "coroutine");
    return co;
}

/* yield(...): as the stock function, but a task's own coroutine cannot yield to a script. */
static int co_yield (lua_State *L)
{
    const struct ipw_vm *vm = ipw_vm_of(L);

    if (vm->current && ipw_task_thread(vm->current) == L)
        return luaL_error(L, "coroutine.yield outside a coroutine of the script's own");
    return lua_yield(L, lua_gettop(L));
}

/* Suspended, but not in coroutine.yield: it waits for the core, and only the core wakes it, through
 * the coroutine that resumed it. */
static bool waits(lua_State *co)
{
    lua_Debug ar;
    bool is;

    if (lua_status(co) != LUA_YIELD || !lua_checkstack(co, 1) || !lua_getstack(co, 0, &ar) ||
        !lua_getinfo(co, "f", &ar))
        return false;
    is = lua_tocfunction(co, -1) != co_yield;
    lua_pop(co, 1);
    return is;
}

static bool can_start(lua_State *L, lua_State *co, int nargs)
{
    if (!lua_checkstack(co, nargs)) {
        lua_pushliteral(L, "too many arguments to resume");
        return false;
    }
    if (co == L || (lua_status(co) == LUA_OK && lua_getstack(co, 0, &(lua_Debug){0}))) {
        lua_pushliteral(L, "cannot resume non-suspended coroutine");
        return false;
    }
    if (lua_status(co) == LUA_OK && lua_gettop(co) == 0) {
        lua_pushliteral(L, "cannot resume dead coroutine");
        return false;
    }
    if (waits(co)) {
        lua_pushliteral(L, "cannot resume a coroutine that waits in another branch");
        return false;
    }
    return true;
}

/* Pushes `true` and the values that co returned or yielded; or `false` and its error. */
static int give_results(lua_State *L, lua_State *co, int status, int n)
{
    ipw_budget_check(L);
    if (status == LUA_OK || status == LUA_YIELD) {
        luaL_checkstack(L, n + 1, "too many results to resume");
        lua_pushboolean(L, 1);
        lua_xmove(co, L, n);
        return n + 1;
    }
    lua_pushboolean(L, 0);
    lua_xmove(co, L, 1);
    return 2;
}

static int resume_k(lua_State *L, int status, lua_KContext ctx)
{
    lua_State *co = lua_tothread(L, 1);
    int n = 0;

    (void)status, (void)ctx;
    status = run_on(L, co, 0, resume_k, &n);
    return give_results(L, co, status, n);
}

static int co_resume(lua_State *L)
{
    lua_State *co = check_thread(L);
    int nargs = lua_gettop(L) - 1, n = 0, status;

    if (!can_start(L, co, nargs)) {
        lua_pushboolean(L, 0);
        lua_insert(L, -2);
        return 2;
    }
    lua_xmove(L, co, nargs);
    status = run_on(L, co, nargs, resume_k, &n);
    return give_results(L, co, status, n);
}

/* lua_resetthread() under its own budget: runs co's pending <close> variables. [0, 0, -] */
static int reset(lua_State *L, lua_State *co)
{
    struct ipw_vm *vm = ipw_vm_of(L);
    int status;

    if (vm->n_closing == MAX_CLOSING)
        return luaL_error(L, "coroutines that close coroutines, more than %d deep", MAX_CLOSING);
    vm->n_closing++;
    vm->running = co;
    status = lua_resetthread(co);
    vm->running = L;
    vm->n_closing--;
    if (vm->over_cpu || vm->over_memory) ipw_budget_stop(L);
    return status;
}

static int give_or_raise(lua_State *L, lua_State *co, int status, int n)
{
    ipw_budget_check(L);
    if (status == LUA_OK || status == LUA_YIELD) {
        luaL_checkstack(L, n, "too many results");
        lua_xmove(co, L, n);
        return n;
    }
    reset(L, co); /* leaves the error object */
    lua_xmove(co, L, 1);
    return lua_error(L);
}

static int wrap_k(lua_State *L, int status, lua_KContext ctx)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int n = 0;

    (void)status, (void)ctx;
    status = run_on(L, co, 0, wrap_k, &n);
    return give_or_raise(L, co, status, n);
}

static int call_wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int nargs = lua_gettop(L), n = 0, status;

    if (!can_start(L, co, nargs)) return lua_error(L);
    lua_xmove(L, co, nargs);
    status = run_on(L, co, nargs, wrap_k, &n);
    return give_or_raise(L, co, status, n);
}

static int co_wrap(lua_State *L)
{
    lua_State *co;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    co = lua_newthread(L); // f co
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, call_wrapped, 1);
    return 1;
}

/* close(co): as the stock function, but its <close> variables run under the budget. [-1, +(1|2),
 * e] */
static int co_close(lua_State *L)
{
    lua_State *co = check_thread(L);

    if (co == L || lua_status(co) == LUA_OK) {
        if (co == L || lua_getstack(co, 0, &(lua_Debug){0}))
            return luaL_error(L, "cannot close a running coroutine");
    } else if (waits(co)) {
        return luaL_error(L, "cannot close a coroutine that waits in another branch");
    }
    if (reset(L, co) == LUA_OK) {
        lua_pushboolean(L, 1);
        return 1;
    }
    ipw_budget_check(L);
    lua_pushboolean(L, 0);
    lua_xmove(co, L, 1);
    return 2;
}

void ipw_lib_coroutine(lua_State *L)
{
    static const luaL_Reg functions[] = {{"resume", co_resume},
                                         {"wrap", co_wrap},
                                         {"yield", co_yield },
                                         {"close", co_close},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
