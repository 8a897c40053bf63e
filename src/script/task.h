/* script/task.h: coroutines that wait for the loop.
 *
 * A task is one coroutine that runs a Lua function to its end: a query's agent, or one branch of
 * ipw.map.  A library function that must wait makes an operation (ipw_op_new), starts the
 * asynchronous work, and ends with `return ipw_op_await(L)`.  That yields a token that only the
 * core knows, so to the script the call looks blocking.  When the work calls back, ipw_op_done()
 * resumes the task, and the operation's `finish` pushes the results (or raises) inside it.
 *
 * An operation belongs to its task and is released after the task has run on.  It is cancelled
 * first if the task is cancelled or fails, or if its state is closed, so that a jump out of a
 * library function leaks nothing.  Cancellation is sticky: every later wait raises again. */
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
    IPW_TASK_CANCELLED, /* was cancelled; its results do not count */
    IPW_TASK_MEMORY,    /* passed the heap cap */
    IPW_TASK_CPU,       /* passed the CPU budget */
};

struct ipw_task;

/* Called once, outside of Lua, when the task has ended.  On IPW_TASK_DONE `nresults` values are at
 * the top of co's stack; otherwise err has the reason.  The task is freed when it returns. */
typedef void (*ipw_task_fn)(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                            int nresults, const struct ipw_err *err);

/* Makes a task of the function and `nargs` arguments at the top of the state's main stack, which
 * are popped.  It starts to run on the next round of the loop. */
int ipw_task_start(struct ipw_task **out, struct ipw_vm *vm, int nargs, ipw_task_fn done, void *ud,
                   struct ipw_err *err);
/* Asks the task to end: its pending operation is cancelled, and the wait raises {code="cancelled"}.
 * `done` is still called.  `reason` is static text. */
void ipw_task_cancel(struct ipw_task *task, const char *reason);

struct ipw_op {
    struct ipw_task *task;
    /* Stops the work; ipw_op_done() must not follow.  Not called after the work is done. */
    void (*cancel)(struct ipw_op *op);
    /* Pushes the results and returns their number, or raises.  Runs in the waiting coroutine. */
    int (*finish)(lua_State *L, struct ipw_op *op);
    void (*release)(struct ipw_op *op); /* frees what op holds, not op itself; may be NULL */
    bool done;
    bool recorded;       /* the loop does not end it: a recorded result does, or other tasks do */
    bool rests;          /* no work is done for it: a pause, or it waits for other tasks */
    struct ipw_op *next; /* finished operations wait here for their release */
    lua_State *waiter;   /* the coroutine that awaits it; no other may resume it */
};

/* `size` zeroed bytes that begin with a struct ipw_op.  Raises where a wait is impossible. [0, 0,
 * v] */
void *ipw_op_new(lua_State *L, size_t size, void (*cancel)(struct ipw_op *),
                 int (*finish)(lua_State *, struct ipw_op *), void (*release)(struct ipw_op *));
/* Ends a lua_CFunction: waits for op (or finishes at once if it is done). */
int ipw_op_await(lua_State *L);
/* From finish(): the operation is not over, and the task waits again. */
int ipw_op_again(lua_State *L, struct ipw_op *op);
/* The work is over: resumes the task (at once, or in the next round if Lua is running). */
void ipw_op_done(struct ipw_op *op);

/* The operation begins or ends a pause (op->rests).  The host is told when all tasks of the state
 * rest, and when the first one continues. */
void ipw_op_rest(struct ipw_op *op, bool rests);

/* Whether every task waits for a `recorded` operation: without a recorded result none will run
 * again. */
bool ipw_task_all_recorded(const struct ipw_vm *vm);
/* The running task enters (1) or leaves (-1) a tool whose result is recorded as a whole, together
 * with the tasks that it starts there. */
void ipw_task_enter_tool(struct ipw_vm *vm, int by);
bool ipw_task_in_tool(const struct ipw_vm *vm);

/* The span of the innermost tool call around the running task, which the tasks that it starts
 * inherit; 0: none. */
int32_t ipw_task_tool(const struct ipw_vm *vm);
void ipw_task_set_tool(struct ipw_vm *vm, int32_t span);

/* For tests: the tasks and operations of this state. */
size_t ipw_task_count(const struct ipw_vm *vm);
/* CPU time of all tasks of this state. */
int64_t ipw_task_cpu_ns(const struct ipw_vm *vm);

/* Makes a task from function and arguments at the top of `from`. [-(nargs+1), 0, m] */
struct ipw_task *ipw_task_new(lua_State *from, struct ipw_vm *vm, int nargs, ipw_task_fn done,
                              void *ud);
/* The task continues to its end, but `done` is not called. */
void ipw_task_orphan(struct ipw_task *task);
void ipw_task_drop_all(struct ipw_vm *vm);
lua_State *ipw_task_thread(const struct ipw_task *task);
/* Cancels and frees the operation of the running task, for which no wait is possible any more. */
void ipw_task_forget_op(struct ipw_vm *vm);
/* The number of tasks above the running one: branches of ipw.map inside branches. */
int ipw_task_depth(const struct ipw_vm *vm);
extern const char ipw_task_token; /* its address is what a waiting coroutine yields */

#endif
