#include "script/task.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "script/host.h"
#include "script/value.h"
#include "script/vm_priv.h"

struct ipw_task {
    struct ipw_vm *vm;
    lua_State *co;
    int ref;      /* keeps co alive in the registry */
    int nargs;    /* of the first resume */
    int depth;    /* 0: not started by another task */
    int in_tool;  /* number of tool calls around it that are recorded as a whole */
    int32_t tool; /* span of the innermost tool call around it, or 0 */
    bool started, waiting, ended;
    const char *cancelled; /* the reason, or NULL */
    struct ipw_op *op;
    struct ipw_defer *wake;
    ipw_task_fn done;
    void *ud;
    struct ipw_task *prev, *next;
};

enum { TRACEBACK_BYTES = 2048 };

const char ipw_task_token = 0;
static bool in_lua; /* Lua runs below us on the C stack */

lua_State *ipw_task_thread(const struct ipw_task *task) { return task->co; }
size_t ipw_task_count(const struct ipw_vm *vm) { return vm->n_tasks; }
int64_t ipw_task_cpu_ns(const struct ipw_vm *vm) { return vm->cpu_ns; }
int ipw_task_depth(const struct ipw_vm *vm) { return vm->current ? vm->current->depth : 0; }

bool ipw_task_in_tool(const struct ipw_vm *vm) { return vm->current && vm->current->in_tool > 0; }

void ipw_task_enter_tool(struct ipw_vm *vm, int by)
{
    if (vm->current && vm->current->in_tool + by >= 0) vm->current->in_tool += by;
}

int32_t ipw_task_tool(const struct ipw_vm *vm) { return vm->current ? vm->current->tool : 0; }

void ipw_task_set_tool(struct ipw_vm *vm, int32_t span)
{
    if (vm->current) vm->current->tool = span;
}

bool ipw_task_all_recorded(const struct ipw_vm *vm)
{
    for (const struct ipw_task *t = vm->tasks; t; t = t->next)
        if (!t->waiting || t->wake || !t->op || t->op->done || !t->op->recorded) return false;
    return true;
}

/* ---- rest ---- */

static void say_rest(struct ipw_vm *vm, bool rest)
{
    const struct ipw_host *host = vm->options.host;

    if (vm->rest == rest) return;
    vm->rest = rest;
    if (host->on.rest) host->on.rest(host->on.ud, ipw_now_ns(), rest);
}

static void look_for_rest(struct ipw_vm *vm)
{
    bool any = false;

    for (const struct ipw_task *t = vm->tasks; t; t = t->next) {
        if (t->ended) continue;
        if (!t->waiting || t->wake || !t->op || t->op->done || !t->op->rests) return;
        any = true;
    }
    if (any) say_rest(vm, true);
}

void ipw_op_rest(struct ipw_op *op, bool rests)
{
    struct ipw_vm *vm = op->task->vm;

    op->rests = rests;
    if (rests)
        look_for_rest(vm);
    else
        say_rest(vm, false);
}

/* ---- operations ---- */

static void op_free(struct ipw_op *op)
{
    if (op->release) op->release(op);
    free(op);
}

static void release_finished(struct ipw_vm *vm)
{
    while (vm->finished) {
        struct ipw_op *op = vm->finished;
        vm->finished = op->next;
        op_free(op);
    }
}

/* Ends an operation for which no wait will follow. */
static void drop_op(struct ipw_task *task)
{
    struct ipw_op *op = task->op;

    if (!op) return;
    task->op = NULL;
    if (!op->done && op->cancel) op->cancel(op);
    op_free(op);
}

void ipw_task_forget_op(struct ipw_vm *vm)
{
    if (vm->current) drop_op(vm->current);
}

static void task_free(struct ipw_task *task)
{
    struct ipw_vm *vm = task->vm;

    drop_op(task);
    ipw_defer_cancel(task->wake);
    task->wake = NULL;
    if (task->prev)
        task->prev->next = task->next;
    else
        vm->tasks = task->next;
    if (task->next) task->next->prev = task->prev;
    vm->n_tasks--;
    luaL_unref(vm->L, LUA_REGISTRYINDEX, task->ref);
    free(task);
}

static void resume(struct ipw_task *task);

static void resume_deferred(void *ud)
{
    struct ipw_task *task = ud;

    task->wake = NULL;
    resume(task);
}

static void wake(struct ipw_task *task)
{
    struct ipw_host *host = task->vm->options.host;

    if (task->wake) return;
    if (in_lua)
        task->wake = ipw_defer_start(host->loop, resume_deferred, task);
    else
        resume(task);
}

static void end_task(struct ipw_task *task, enum ipw_task_end end, int nresults,
                     const struct ipw_err *err)
{
    task->ended = true;
    look_for_rest(task->vm); /* all other tasks may rest */
    task->done(task->ud, task, end, task->co, nresults, err);
    task_free(task);
}

/* Keeps the place of the error before the stack is unwound; allocates nothing in Lua. */
static void note_traceback(struct ipw_vm *vm, lua_State *co)
{
    size_t used = 0;
    lua_Debug ar;

    if (!vm->traceback) vm->traceback = ipw_malloc(TRACEBACK_BYTES);
    vm->traceback[0] = '\0';
    for (int level = 0; level < 20 && lua_getstack(co, level, &ar); level++) {
        int n;
        if (!lua_getinfo(co, "Sl", &ar) || ar.currentline < 0) continue;
        n = snprintf(vm->traceback + used, TRACEBACK_BYTES - used, "%s%s:%d", used ? "\n" : "",
                     ar.short_src, ar.currentline);
        if (n < 0 || (size_t)n >= TRACEBACK_BYTES - used) break;
        used += (size_t)n;
    }
}

/* The task's coroutine raised: its error object is at the top of its stack. */
static void fail_task(struct ipw_task *task)
{
    struct ipw_vm *vm = task->vm;
    struct ipw_err err = {0};
    enum ipw_task_end end = IPW_TASK_FAILED;
    bool entered = !in_lua;

    note_traceback(vm, task->co);
    in_lua = true;
    vm->running = task->co;
    ipw_budget_enter(vm);
    /* Runs pending <close> variables, unless the budget is spent: after the hook has raised, Lua
     * keeps hooks off in this thread, so nothing could stop them. */
    if (!vm->over_cpu && !vm->over_memory) lua_resetthread(task->co);
    ipw_budget_leave(vm);
    vm->running = NULL;
    if (entered) in_lua = false;
    drop_op(task);
    release_finished(vm);
    ipw_vm_read_error(task->co, &err);
    if (task->cancelled) {
        end = IPW_TASK_CANCELLED;
        ipw_fail(&err, IPW_ECANCELLED, "%s", task->cancelled);
    } else if (vm->over_memory) {
        end = IPW_TASK_MEMORY;
        ipw_fail(&err, IPW_ELIMIT, "the script passed its memory limit of %zu MiB",
                 vm->options.memory_bytes / IPW_MIB);
    } else if (vm->over_cpu) {
        end = IPW_TASK_CPU;
        ipw_fail(&err, IPW_ELIMIT, "the script passed its CPU limit");
    }
    end_task(task, end, 1, &err);
}

/* Runs the coroutine until it waits or ends; loops while the operation is already done. */
static void resume(struct ipw_task *task)
{
    struct ipw_vm *vm = task->vm;
    struct ipw_err err = {0};
    int64_t began_ns;
    int status, n = 0, nargs = task->started ? 0 : task->nargs;

    if (task->ended) return;
    if (!task->started && task->cancelled) {
        ipw_fail(&err, IPW_ECANCELLED, "%s", task->cancelled);
        end_task(task, IPW_TASK_CANCELLED, 0, &err);
        return;
    }
    task->started = true;
    task->waiting = false;
    say_rest(vm, false);
    vm->current = task;
    vm->running = task->co;
    in_lua = true;
    began_ns = ipw_now_ns();
    ipw_budget_enter(vm);
    status = lua_resume(task->co, NULL, nargs, &n);
    ipw_budget_leave(vm);
    vm->cpu_ns += ipw_now_ns() - began_ns;
    in_lua = false;
    vm->running = NULL;
    vm->current = NULL;
    release_finished(vm);

    if (status == LUA_YIELD) {
        if (n == 1 && lua_touserdata(task->co, -1) == &ipw_task_token && task->op) {
            lua_pop(task->co, n);
            task->waiting = true;
            if (task->op->done)
                wake(task); /* the operation ended before Lua returned */
            else if (task->op->rests)
                look_for_rest(vm);
            return;
        }
        IPW_BUG("a task yielded %d values to no waiter", n); /* our coroutine.yield raises */
    } else if (status == LUA_OK) {
        drop_op(task);
        if (task->cancelled) {
            ipw_fail(&err, IPW_ECANCELLED, "%s", task->cancelled);
            end_task(task, IPW_TASK_CANCELLED, 0, &err);
        } else {
            end_task(task, IPW_TASK_DONE, n, NULL);
        }
    } else {
        fail_task(task);
    }
}

struct ipw_task *ipw_task_new(lua_State *from, struct ipw_vm *vm, int nargs, ipw_task_fn done,
                              void *ud)
{
    struct ipw_host *host = vm->options.host;
    struct ipw_task *task;
    lua_State *co = lua_newthread(from);         // f args... co
    int ref = luaL_ref(from, LUA_REGISTRYINDEX); // f args...

    if (!lua_checkstack(co, nargs + 8)) {
        luaL_unref(from, LUA_REGISTRYINDEX, ref);
        luaL_error(from, "not enough memory");
    }
    lua_xmove(from, co, nargs + 1);
    task = ipw_calloc(1, sizeof *task);
    *task = (struct ipw_task){.vm = vm,
                              .co = co,
                              .ref = ref,
                              .nargs = nargs,
                              .done = done,
                              .ud = ud,
                              .next = vm->tasks,
                              .in_tool = vm->current ? vm->current->in_tool : 0,
                              .tool = ipw_task_tool(vm),
                              .depth = vm->current ? vm->current->depth + 1 : 0};
    if (vm->tasks) vm->tasks->prev = task;
    vm->tasks = task;
    vm->n_tasks++;
    task->wake = ipw_defer_start(host->loop, resume_deferred, task);
    return task;
}

struct start_args {
    struct ipw_task *task;
    struct ipw_vm *vm;
    ipw_task_fn done;
    void *ud;
};

static int start_protected(lua_State *L)
{
    struct start_args *args = lua_touserdata(L, lua_gettop(L));

    lua_pop(L, 1);
    args->task = ipw_task_new(L, args->vm, lua_gettop(L) - 1, args->done, args->ud);
    return 0;
}

int ipw_task_start(struct ipw_task **out, struct ipw_vm *vm, int nargs, ipw_task_fn done, void *ud,
                   struct ipw_err *err)
{
    struct start_args args = {.vm = vm, .done = done, .ud = ud};
    lua_State *L = vm->L;
    int rc;

    lua_pushcfunction(L, start_protected); // f args... start
    lua_insert(L, -(nargs + 2));           // start f args...
    lua_pushlightuserdata(L, &args);
    rc = ipw_vm_call(vm, nargs + 2, 0, err);
    *out = args.task;
    return rc;
}

void ipw_task_cancel(struct ipw_task *task, const char *reason)
{
    if (task->cancelled || task->ended) return;
    task->cancelled = reason;
    if (!task->waiting) return; /* it runs, or has not started, and will see this */
    if (task->op && !task->op->done) {
        if (task->op->cancel) task->op->cancel(task->op);
        task->op->done = true;
    }
    wake(task);
}

static void orphan_done(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                        int nresults, const struct ipw_err *err)
{
    (void)ud, (void)task, (void)end, (void)co, (void)nresults, (void)err;
}

void ipw_task_orphan(struct ipw_task *task)
{
    task->done = orphan_done;
    task->ud = NULL;
}

void ipw_task_drop_all(struct ipw_vm *vm)
{
    /* None may run again, even if cancelling another task's operation wakes it. */
    for (struct ipw_task *t = vm->tasks; t; t = t->next) t->ended = true;
    /* Operations first: that of ipw.map reads its branches, which are tasks as well. */
    for (struct ipw_task *t = vm->tasks; t; t = t->next) drop_op(t);
    while (vm->tasks) task_free(vm->tasks);
    release_finished(vm);
}

void *ipw_op_new(lua_State *L, size_t size, void (*cancel)(struct ipw_op *),
                 int (*finish)(lua_State *, struct ipw_op *), void (*release)(struct ipw_op *))
{
    struct ipw_task *task = ipw_vm_of(L)->current;
    struct ipw_op *op;

    if (!task) luaL_error(L, "this function waits, and nothing may wait while a file is loaded");
    if (!lua_isyieldable(L))
        luaL_error(L, "this function waits, and nothing may wait inside table.sort, string.gsub, "
                      "a metamethod called from C, or require");
    if (task->cancelled) {
        ipw_value_push_error(L, "cancelled", task->cancelled, false);
        lua_error(L);
    }
    op = ipw_calloc(1, size);
    op->task = task;
    op->cancel = cancel;
    op->finish = finish;
    op->release = release;
    drop_op(task); /* left by a function that raised after making it */
    task->op = op;
    return op;
}

static int finish_op(lua_State *L)
{
    struct ipw_vm *vm = ipw_vm_of(L);
    struct ipw_task *task = vm->current;
    struct ipw_op *op = task ? task->op : NULL;

    if (!op || !op->done || op->waiter != L)
        return luaL_error(L, "the operation that this coroutine waited for has ended");
    task->op = NULL;
    op->next = vm->finished;
    vm->finished = op;
    if (task->cancelled) {
        ipw_value_push_error(L, "cancelled", task->cancelled, false);
        return lua_error(L);
    }
    return op->finish(L, op);
}

static int await_k(lua_State *L, int status, lua_KContext ctx)
{
    (void)status, (void)ctx;
    return finish_op(L);
}

int ipw_op_await(lua_State *L)
{
    struct ipw_op *op = ipw_vm_of(L)->current->op;

    op->waiter = L;
    if (op->done) return finish_op(L);
    lua_pushlightuserdata(L, (void *)&ipw_task_token);
    return lua_yieldk(L, 1, 0, await_k);
}

int ipw_op_again(lua_State *L, struct ipw_op *op)
{
    struct ipw_vm *vm = ipw_vm_of(L);
    struct ipw_op **at = &vm->finished;

    /* Others may have ended meanwhile: finish() can run a coroutine whose operation is already
     * done. */
    while (*at && *at != op) at = &(*at)->next;
    if (!*at) IPW_BUG("an operation that is not being finished");
    *at = op->next;
    op->next = NULL;
    op->done = false;
    drop_op(vm->current); /* left by a function that raised */
    vm->current->op = op;
    return ipw_op_await(L);
}

void ipw_op_done(struct ipw_op *op)
{
    op->done = true;
    if (op->task->waiting) wake(op->task);
}
