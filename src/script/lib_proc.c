/* ipw.core.proc: run a child process and wait for it. */
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/proc.h"
#include "script/fields.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/recorded_effect.h"
#include "script/task.h"
#include "script/tool_call.h"
#include "script/value.h"
#include "script/vm.h"

enum { MAX_ARGS = 256 };

struct proc_op {
    struct ipw_op op;
    struct ipw_proc *proc;
    struct ipw_loop *loop;
    struct ipw_timer *look;  /* counts the workspace while the child runs */
    const char *folder;      /* the workspace; owned by the host */
    struct ipw_quota *quota; /* it knows of the child, and not yet of its end; or NULL */
    char **argv, *input;
    size_t input_len;
    int code;
    int64_t effect;
    struct ipw_err err;
    struct ipw_proc_result result; /* out and err point to copies of ours */
};

static void leave_quota(struct proc_op *op)
{
    ipw_timer_cancel(op->look);
    op->look = NULL;
    if (op->quota) ipw_quota_child_ended(op->quota);
    op->quota = NULL;
}

/* If the child has filled the workspace, this ends it and everything that it started. */
static void look(void *ud)
{
    struct proc_op *op = ud;
    int64_t again_ns;

    op->look = NULL;
    op->code = ipw_quota_look(op->quota, op->folder, op->proc, &again_ns, &op->err);
    if (!op->code) {
        if (again_ns) op->look = ipw_timer_start(op->loop, again_ns, look, op);
        return;
    }
    ipw_proc_cancel(op->proc);
    op->proc = NULL;
    leave_quota(op);
    ipw_op_done(&op->op);
}

static void proc_over(void *ud, const struct ipw_proc_result *result)
{
    struct proc_op *op = ud;

    op->proc = NULL;
    leave_quota(op);
    op->result = *result;
    op->result.out = ipw_memdup(result->out, result->out_len);
    op->result.err = ipw_memdup(result->err, result->err_len);
    ipw_op_done(&op->op);
}

static void proc_cancel(struct ipw_op *base)
{
    struct proc_op *op = (struct proc_op *)base;

    if (op->proc) ipw_proc_cancel(op->proc);
    op->proc = NULL;
    leave_quota(op);
}

static void proc_release(struct ipw_op *base)
{
    struct proc_op *op = (struct proc_op *)base;

    leave_quota(op);
    for (size_t i = 0; op->argv && op->argv[i]; i++) free(op->argv[i]);
    free(op->argv);
    free(op->input);
    free((void *)op->result.out);
    free((void *)op->result.err);
}

static void push_no_sandbox(lua_State *L, const struct ipw_proc_result *r)
{
    size_t line = 0;

    while (line < r->err_len && r->err[line] != '\n') line++;
    lua_pushfstring(L, "no program was started: the sandbox could not be made (");
    if (line)
        lua_pushlstring(L, r->err, line);
    else
        lua_pushfstring(L, "bwrap: %s",
                        r->exec_errno ? strerror(r->exec_errno) : "it said nothing");
    lua_pushstring(L, "): see ipw-agent doctor, or use --unsafe-tools");
    lua_concat(L, 3);
}

static int push_outcome(lua_State *L, const struct proc_op *op)
{
    const struct ipw_proc_result *r = &op->result;

    if (op->code || r->exec_errno || r->no_sandbox) {
        lua_pushnil(L);
        if (op->code)
            lua_pushstring(L, op->err.text);
        else if (r->no_sandbox)
            push_no_sandbox(L, r);
        else
            lua_pushfstring(L, "%s: %s", op->argv[0], strerror(r->exec_errno));
        return 2;
    }
    lua_createtable(L, 0, 8);
    if (r->exit_code >= 0) {
        lua_pushinteger(L, r->exit_code);
        lua_setfield(L, -2, "code");
    }
    if (r->term_signal) {
        lua_pushinteger(L, r->term_signal);
        lua_setfield(L, -2, "signal");
    }
    lua_pushlstring(L, r->out, r->out_len);
    lua_setfield(L, -2, "stdout");
    lua_pushlstring(L, r->err, r->err_len);
    lua_setfield(L, -2, "stderr");
    lua_pushboolean(L, r->timed_out);
    lua_setfield(L, -2, "timed_out");
    lua_pushinteger(L, (lua_Integer)(r->out_dropped + r->err_dropped));
    lua_setfield(L, -2, "dropped");
    lua_pushnumber(L, ipw_ns_to_s(r->end_ns - r->start_ns));
    lua_setfield(L, -2, "seconds");
    return 1;
}

static int proc_finish(lua_State *L, struct ipw_op *base)
{
    struct proc_op *op = (struct proc_op *)base;
    struct ipw_vm *vm = ipw_vm_of(L);
    int n = push_outcome(L, op);

    if (op->result.no_sandbox) ipw_tool_call_refused(vm);
    if (!op->code) ipw_tool_call_child_ended(vm, &op->result);
    ipw_tool_call_cut(vm, (int64_t)(op->result.out_dropped + op->result.err_dropped));
    ipw_recorded_effect_note(L, op->effect, "proc", n);
    return n;
}

/* run{program, args..., input=, seconds=, cpu=, memory=, output=, sandbox=}: its output and how it
 * ended; or nil and why it could not be started. [-1, +(1|2), e] */
static int proc_run(lua_State *L)
{
    static const char *const known[] = {"cpu",     "input",   "memory", "output",
                                        "sandbox", "seconds", NULL};
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_proc_request request = {0};
    struct proc_op *op;
    int64_t effect;
    lua_Unsigned n;

    lua_settop(L, 1);
    ipw_fields_take(L, 1, "proc.run", known, true);
    n = lua_rawlen(L, 1);
    luaL_argcheck(L, n >= 1 && n <= MAX_ARGS, 1, "expects a program and its arguments");
    for (lua_Unsigned i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, (lua_Integer)i);
        if (lua_type(L, -1) != LUA_TSTRING)
            return luaL_error(L, "proc.run: argument %d: expected a string, got %s", (int)i,
                              luaL_typename(L, -1));
        if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
            return luaL_error(L, "proc.run: argument %d has a NUL in it", (int)i);
        lua_pop(L, 1);
    }
    lua_getfield(L, 1, "sandbox");
    request.sandbox = lua_toboolean(L, -1);
    lua_pop(L, 1);
    lua_getfield(L, 1, "input");
    if (!lua_isnil(L, -1) && !lua_isstring(L, -1))
        return luaL_error(L, "proc.run: input: expected a text, got %s", luaL_typename(L, -1));
    lua_pop(L, 1);
    request.wall_ns = ipw_s_to_ns(ipw_fields_number(L, 1, "proc.run", "seconds", 0, 0, 1e8));
    request.cpu_s = (int64_t)ceil(ipw_fields_number(L, 1, "proc.run", "cpu", 0, 0, 1e8));
    request.memory_bytes = ipw_fields_bytes(L, 1, "proc.run", "memory", 0, 0, SIZE_MAX);
    request.output_max_bytes = ipw_fields_bytes(L, 1, "proc.run", "output", 0, 0, SIZE_MAX);
    effect = ipw_recorded_effect_begin(L);
    if (ipw_recorded_effect_replayed(L, effect)) return ipw_recorded_effect_wait(L, effect, "proc");
    if (!host || !host->grants.may_start)
        return luaL_error(L, "proc.run: %s",
                          host && host->grants.no_proc ? host->grants.no_proc : "not granted here");

    op = ipw_op_new(L, sizeof *op, proc_cancel, proc_finish, proc_release);
    op->effect = effect;
    op->argv = ipw_calloc(n + 1, sizeof *op->argv);
    for (lua_Unsigned i = 0; i < n; i++) {
        lua_rawgeti(L, 1, (lua_Integer)i + 1);
        op->argv[i] = ipw_strdup(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_getfield(L, 1, "input");
    if (!lua_isnil(L, -1)) {
        const char *input = lua_tolstring(L, -1, &op->input_len);
        op->input = ipw_memdup(input, op->input_len);
    }
    lua_pop(L, 1);
    request.argv = (const char *const *)op->argv;
    request.input = op->input;
    request.input_len = op->input_len;
    request.cwd = ipw_host_workspace(host);
    request.sandbox = request.sandbox || host->grants.sandbox;
    request.reads = host->grants.readable;
    op->code =
        ipw_quota_child_begins(&host->grants.quota, request.cwd, &request.file_bytes, &op->err);
    if (!op->code) {
        op->quota = &host->grants.quota;
        op->code = ipw_proc_start(&op->proc, host->loop, &request, proc_over, op, &op->err);
    }
    op->loop = host->loop;
    op->folder = request.cwd;
    if (!op->code) ipw_tool_call_child_starts(ipw_vm_of(L));
    if (op->code)
        op->op.done = true;
    else
        op->look = ipw_timer_start(op->loop, IPW_QUOTA_LOOK_NS, look, op);
    return ipw_op_await(L);
}

int ipw_lib_proc(lua_State *L)
{
    static const luaL_Reg functions[] = {{"run", proc_run}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
