#include "script/lua_command.h"

#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/export_job.h"
#include "script/fields.h"
#include "script/lib.h"
#include "script/sandbox.h"
#include "script/task.h"
#include "script/value.h"

struct session {
    struct ipw_loop *loop;
    struct ipw_err *err;
    int64_t status;
    int code;
    bool over;
};

static int raise_err(lua_State *L, const struct ipw_err *err)
{
    ipw_value_push_error(L, ipw_code_name(err->code), err->text, false);
    return lua_error(L);
}

static int io_say(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, lua_upvalueindex(1));

    const char *line = luaL_checkstring(L, 1);
    struct ipw_err err;

    if (e->say(e->ud, line)) return 0;
    if (errno == EPIPE)
        ipw_fail(&err, IPW_EIO, "standard output: the reader has closed it");
    else
        ipw_fail_errno(&err, errno, "standard output: the result could not be written");
    return raise_err(L, &err);
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

/* The saved runs of io.saved(), which ipw.core.export reads.  Lives as long as the state. */
struct saved {
    struct ipw_export_job job;
    struct ipw_redactor redactor;
    char **runs, *output;
};

static int saved_drop(lua_State *L)
{
    struct saved *saved = lua_touserdata(L, 1);

    for (int i = 0; i < saved->job.n_runs; i++) free(saved->runs[i]);
    free(saved->runs);
    free(saved->output);
    *saved = (struct saved){.runs = NULL};
    return 0;
}

/* saved{run..., output=, redact=}: replaces those of an earlier call. */
static int io_saved(lua_State *L)
{
    static const char *const known[] = {"output", "redact", NULL};
    const char *output, *what;
    struct saved *saved;
    enum ipw_redact redact = 0;
    struct ipw_err err;

    ipw_fields_take(L, 1, "io.saved", known, true);
    output = ipw_fields_text(L, 1, "io.saved", "output", NULL);
    what = ipw_fields_text(L, 1, "io.saved", "redact", NULL);
    saved = ipw_value_push_box(L, sizeof *saved, "ipw.command.saved", saved_drop);
    if (what && ipw_redact_parse(&redact, what, &err)) return raise_err(L, &err);
    if (redact && ipw_redactor_init(&saved->redactor, redact, &err)) return raise_err(L, &err);
    saved->runs = ipw_calloc(lua_rawlen(L, 1) + 1, sizeof *saved->runs);
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, 1); i++) {
        lua_rawgeti(L, 1, (lua_Integer)i);
        saved->runs[saved->job.n_runs++] = ipw_strdup(luaL_checkstring(L, -1));
        lua_pop(L, 1);
    }
    saved->output = ipw_strdup(output);
    saved->job.runs = saved->runs;
    saved->job.output = saved->output;
    saved->job.stream = stdout;
    saved->job.redactor = redact ? &saved->redactor : NULL;
    ipw_vm_host(L)->export_job = &saved->job;
    lua_setfield(L, LUA_REGISTRYINDEX, "ipw.command.saved.runs");
    return 0;
}

static int text_drop(lua_State *L)
{
    ipw_buf_release(lua_touserdata(L, 1));
    return 0;
}

/* call(name, text...): [-n, +1, e] */
static int io_call(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, lua_upvalueindex(1));
    const char *name = luaL_checkstring(L, 1);
    const struct ipw_lua_call *c = e->calls;
    size_t n = (size_t)lua_gettop(L) - 1;
    const char **args = lua_newuserdatauv(L, (n + 1) * sizeof *args, 0);
    struct ipw_buf *out = ipw_value_push_box(L, sizeof *out, "ipw.command.text", text_drop);
    struct ipw_err err = {0};
    int rc;

    while (c && c->name && strcmp(c->name, name)) c++;
    if (!c || !c->name) return luaL_error(L, "io.call: there is no '%s'", name);
    if (n < c->least) return luaL_error(L, "io.call: %s takes %d texts", name, (int)c->least);
    for (size_t i = 0; i < n; i++) args[i] = luaL_optstring(L, (int)i + 2, "");
    args[n] = NULL;
    *out = IPW_BUF(1024 * IPW_MIB); /* the scores of a long run */
    rc = c->call(&(struct ipw_call){e->ud, args, n, out}, &err);
    if (!rc && !out->len) return 0;
    if (!rc) rc = ipw_value_decode(L, ipw_buf_str(out), out->len, &err);
    return rc ? raise_err(L, &err) : 1;
}

static const luaL_Reg io[] = {{"say", io_say},          {"warn", io_warn}, {"ask", io_ask},
                              {"draw", io_draw},        {"call", io_call}, {"saved", io_saved},
                              {"serve", ipw_lib_serve}, {NULL, NULL}};

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void push_io(lua_State *L, const struct ipw_lua_command *e)
{
    lua_createtable(L, 0, 16);
    lua_pushlightuserdata(L, (void *)e);
    luaL_setfuncs(L, io, 1);
    lua_pushboolean(L, e->facts.colour);
    lua_setfield(L, -2, "colour");
    lua_pushboolean(L, e->facts.input);
    lua_setfield(L, -2, "input");
    lua_pushinteger(L, e->facts.width);
    lua_setfield(L, -2, "width");
    set_text(L, "program", e->facts.program);
    set_text(L, "version", e->facts.version);
    set_text(L, "folder", e->facts.folder);
    set_text(L, "model", e->facts.model);
}

static void push_args(lua_State *L, const struct ipw_lua_command *e)
{
    lua_createtable(L, (int)e->n_args, 0);
    for (size_t i = 0; i < e->n_args; i++) {
        if (e->results)
            lua_pushinteger(L, e->results[i]);
        else
            lua_pushstring(L, e->args[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* prepare(light userdata): leaves the function and its arguments. */
static int prepare(lua_State *L)
{
    const struct ipw_lua_command *e = lua_touserdata(L, 1);

    lua_settop(L, 0);
    ipw_value_push_function(L, "ipw.command", "call");
    push_io(L, e);
    lua_pushstring(L, e->file->name);
    lua_pushboolean(L, e->file->built_in);
    lua_pushstring(L, e->results ? "total" : "run");
    ipw_command_file_push(L, e->file, e->values);
    push_args(L, e);
    return 7;
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
    int rc = ipw_sandbox_open(&vm, &entry->vm, err), n;

    if (rc) return rc;
    lua_pushcfunction(ipw_vm_lua(vm), prepare);
    lua_pushlightuserdata(ipw_vm_lua(vm), (void *)entry);
    rc = ipw_vm_call(vm, 1, LUA_MULTRET, err);
    n = rc ? 0 : lua_gettop(ipw_vm_lua(vm));
    if (!rc) rc = ipw_task_start(&task, vm, n - 1, over, &s, err);
    while (!rc && !s.over) ipw_loop_run(s.loop);
    if (!rc) rc = s.code;
    if (!rc && ipw_task_count(vm))
        rc = ipw_fail(err, IPW_ELUA, "%zu tasks are left over", ipw_task_count(vm));
    entry->vm.host->export_job = NULL; /* the state has it */
    ipw_sandbox_close(vm);
    *status = s.status;
    return rc;
}
