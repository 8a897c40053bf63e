#include "script/lua_command.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

#include "script/sandbox.h"
#include "script/task.h"

struct session {
    struct ipw_loop *loop;
    struct ipw_err *err;
    int64_t status;
    int code;
    bool over;
};

static int io_say(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, lua_upvalueindex(1));

    e->say(e->ud, luaL_checkstring(L, 1));
    return 0;
}

static int io_warn(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, lua_upvalueindex(1));

    e->warn(e->ud, luaL_checkstring(L, 1));
    return 0;
}

/* draw(line): whether there is a terminal that shows it. */
static int io_draw(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, lua_upvalueindex(1));

    lua_pushboolean(L, e->draw && e->draw(e->ud, luaL_checkstring(L, 1)));
    return 1;
}

static int io_ask(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, lua_upvalueindex(1));
    const char *prompt = luaL_optstring(L, 1, "");
    char *line = e->ask ? e->ask(e->ud, prompt) : NULL;

    lua_pushstring(L, line); /* out of memory: the line and the command are lost */
    free(line);
    return 1;
}

static const luaL_Reg io[] = {
    {"say", io_say}, {"warn", io_warn}, {"ask", io_ask}, {"draw", io_draw}, {NULL, NULL}};

/* prepare(light userdata): leaves the function, io and the arguments. */
static int prepare(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, 1);
    int n = 2;

    lua_settop(L, 0);
    lua_getglobal(L, "require");
    lua_pushstring(L, e->module);
    lua_call(L, 1, 1);
    lua_createtable(L, 0, 4); // f io
    lua_pushlightuserdata(L, (void *)e);
    luaL_setfuncs(L, io, 1);
    for (; e->args && e->args[n - 2]; n++) {
        luaL_checkstack(L, 2, "too many arguments");
        lua_pushstring(L, e->args[n - 2]);
    }
    return n;
}

static void over(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                 int nresults, const struct ipw_err *err)
{
    struct session *s = ud;

    (void)task;
    s->over = true;
    if (end == IPW_TASK_DONE)
        s->status = nresults > 0 ? lua_tointeger(co, -nresults) : 0;
    else
        s->code = ipw_fail(s->err, err ? err->code : IPW_ELUA, "%s",
                           err ? err->text : "the script was ended");
    ipw_loop_stop(s->loop);
}

int ipw_lua_command_run(int64_t *status, const struct ipw_lua_command *entry, struct ipw_err *err)
{
    const struct ipw_host *host = entry->vm.host;
    struct session s = {.loop = host->loop, .err = err};
    struct ipw_task *task;
    struct ipw_vm *vm;
    int rc = ipw_sandbox_open(&vm, &entry->vm, err), n = 2;

    if (rc) return rc;
    lua_pushcfunction(ipw_vm_lua(vm), prepare);
    lua_pushlightuserdata(ipw_vm_lua(vm), (void *)entry);
    while (entry->args && entry->args[n - 2]) n++;
    rc = ipw_vm_call(vm, 1, n, err);
    if (!rc) rc = ipw_task_start(&task, vm, n - 1, over, &s, err);
    while (!rc && !s.over) ipw_loop_run(s.loop);
    if (!rc) rc = s.code;
    if (!rc && ipw_task_count(vm))
        rc = ipw_fail(err, IPW_ELUA, "%zu tasks are left over", ipw_task_count(vm));
    ipw_sandbox_close(vm);
    *status = s.status;
    return rc;
}
