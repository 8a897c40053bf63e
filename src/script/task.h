/* script/task.h: coroutines that wait for the loop.
 *
 * A task is one coroutine that runs a Lua function to its end: a query's agent, or one branch of an
 * ipw.map.  Inside it, a library function that must wait makes an operation (ipw_op_new), starts the
 * asynchronous work, and ends with `return ipw_op_await(L)`, which yields a token that only the
 * core knows; to the script the call looks blocking.  When the work calls back, ipw_op_done()
 * resumes the task, and the operation's `finish` pushes the results (or raises) inside it.
 *
 * An operation belongs to its task: it is released after the task ran on, and cancelled first when
 * the task is cancelled, fails, or its state is closed, so that a jump out of a library function
 * leaks nothing.  Cancellation is sticky: every later wait raises again. */
#ifndef IPW_SCRIPT_TASK_H
#define IPW_SCRIPT_TASK_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "script/vm.h"

enum ipw_task_end {
    IPW_TASK_DONE,      /* returned: its results are on the stack of `co` */
    IPW_TASK_FAILED,    /* raised */
    IPW_TASK_CANCELLED, /* was cancelled, whatever it returned */
    IPW_TASK_MEMORY,    /* passed the heap cap */
    IPW_TASK_CPU,       /* passed the CPU budget */
};

struct ipw_task;

/* Called once, outside Lua, when the task is over.  On IPW_TASK_DONE `nresults` values are at the
 * top of co's stack; otherwise err tells.  The task is gone when it returns. */
typedef void (*ipw_task_fn)(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                            int nresults, const struct ipw_err *err);

/* Makes a task of the function and `nargs` arguments at the top of the state's main stack, which
 * are popped.  It starts to run on the next round of the loop. */
int ipw_task_start(struct ipw_task **out, struct ipw_vm *vm, int nargs, ipw_task_fn done, void *ud,
                   struct ipw_err *err);
/* Asks the task to end: its pending operation is cancelled and the wait raises {code="cancelled"}.
 * `done` is still called.  `reason` is static text. */
void ipw_task_cancel(struct ipw_task *task, const char *reason);

struct ipw_op {
    struct ipw_task *task;
    /* Stops the work; no ipw_op_done() may come after.  Not called once done. */
    void (*cancel)(struct ipw_op *op);
    /* Pushes the results and returns their number, or raises.  Runs in the waiting coroutine. */
    int (*finish)(lua_State *L, struct ipw_op *op);
    void (*release)(struct ipw_op *op); /* frees what op holds, not op itself; may be NULL */
    bool done;
    bool recorded; /* nothing in the loop ends it: a record does, or tasks that wait themselves */
    bool rests;    /* for it nobody works: a pause, or tasks that are looked at themselves */
    struct ipw_op *next; /* finished operations wait here for their release */
    lua_State *waiter;   /* the coroutine that awaits it: another one may not run it */
};

/* `size` bytes, zeroed, that begin with a struct ipw_op.  Raises where no wait is possible.
 * [0, 0, v] */
void *ipw_op_new(lua_State *L, size_t size, void (*cancel)(struct ipw_op *),
                 int (*finish)(lua_State *, struct ipw_op *), void (*release)(struct ipw_op *));
/* Ends a lua_CFunction: waits for op (or finishes at once when it is done). */
int ipw_op_await(lua_State *L);
/* From finish(): the operation is not over yet after all, and is waited for again. */
int ipw_op_again(lua_State *L, struct ipw_op *op);
/* The work is over: resumes the task (at once, or on the next round when Lua is running). */
void ipw_op_done(struct ipw_op *op);

/* The operation begins or ends a pause (op->rests); the host is told when all of the state's tasks
 * rest, and when the first of them goes on. */
void ipw_op_rest(struct ipw_op *op, bool rests);

/* Every task waits for an operation that is `recorded`: without a record none will run again. */
bool ipw_task_all_recorded(const struct ipw_vm *vm);
/* The running task enters (1) or leaves (-1) a tool whose result is on record as a whole, and tasks
 * that it starts there with it. */
void ipw_task_enter_tool(struct ipw_vm *vm, int by);
bool ipw_task_in_tool(const struct ipw_vm *vm);

/* The task does what a tool that is on record as a whole asked for. */
void ipw_task_mark_in_tool(struct ipw_task *task);
/* Counts for tests: tasks and operations alive in this state. */
size_t ipw_task_count(const struct ipw_vm *vm);
/* CPU time all tasks of this state have used. */
int64_t ipw_task_cpu_ns(const struct ipw_vm *vm);

/* Makes a task from function and arguments at the top of `from`. [-(nargs+1), 0, m] */
struct ipw_task *ipw_task_new(lua_State *from, struct ipw_vm *vm, int nargs, ipw_task_fn done,
                              void *ud);
/* The task goes on to its end, but nobody is told. */
void ipw_task_orphan(struct ipw_task *task);
void ipw_task_drop_all(struct ipw_vm *vm);
lua_State *ipw_task_thread(const struct ipw_task *task);
/* Cancels and frees the operation of the running task, which nothing can wait for any more. */
void ipw_task_forget_op(struct ipw_vm *vm);
/* How many tasks are above the running one: branches of ipw.map in branches. */
int ipw_task_depth(const struct ipw_vm *vm);
extern const char ipw_task_token; /* its address is what a waiting coroutine yields */

#endif
