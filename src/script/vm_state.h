/* script/vm_state.h: the inside of a Lua state's owner, for the files of script/ only.
 *
 * struct ipw_vm is opaque to other floors.  `running` is the Lua thread that executes now, read by
 * the budget's signal handler; the wrappers of coroutine.resume and wrap keep it right. */
#ifndef IPW_SCRIPT_VM_STATE_H
#define IPW_SCRIPT_VM_STATE_H

#include <signal.h>

#include "base/buf.h"
#include "script/arena.h"
#include "script/task.h"
#include "script/vm.h"

struct ipw_vm {
    lua_State *L;
    struct ipw_vm_options options; /* script_dir is ours; paths are borrowed */
    char *script_dir;

    struct ipw_arena arena;
    size_t used_bytes, peak_bytes;
    bool native;                       /* a C module came in: what it holds is not known */
    size_t tidy_bytes;                 /* what ipw_vm_tidy() left */
    volatile sig_atomic_t over_memory; /* the heap passed its cap: stop at the next instruction */
    bool refused; /* an allocation was: the script ends, however much there is after a collection */
    bool starved; /* the machine had none to give */
    lua_Integer last_number, n_seedings; /* of what tostring.c numbered; of math.randomseed() */

    lua_State *volatile running;
    volatile sig_atomic_t slice_ticks; /* of the CPU timer, since the slice began */
    int slice_ticks_max;
    volatile sig_atomic_t over_cpu;
    int64_t cpu_ns;         /* time spent inside Lua by all slices */
    struct ipw_vm *outside; /* whose Lua called into this state */
    int n_closing;          /* coroutine.close inside coroutine.close */

    struct ipw_task *current, *tasks;
    size_t n_tasks;
    bool rest;               /* every task is in a pause */
    struct ipw_op *finished; /* operations to release when Lua is left */
    char *traceback;         /* of the last task that failed; or NULL */
};

/* vm.c: before a long wait; with hundreds of states open what each of them has not collected adds up.
 * Only where Lua has called C. */
void ipw_vm_tidy(struct ipw_vm *vm);

/* sandbox.c: fills the fresh state with what scripts may use. [0, 0, v] */
void ipw_sandbox_open(lua_State *L);
/* Raises when the state is past its budget; called by everything that could swallow an error. */
void ipw_sandbox_check(lua_State *L);
/* pairs.c: pairs() in an order of our own. */
int ipw_base_pairs(lua_State *L);
/* A function of the stock library, from among those that scripts see or ours stand in for. */
lua_CFunction ipw_sandbox_stock(const char *lib, const char *name);
/* Collects all garbage; true when that brought the heap well below its cap again. [0, 0, -] */
bool ipw_vm_collect(struct ipw_vm *vm, lua_State *L);

/* lib_string.c, lib_table.c: ours, put into the table at the top. [0, 0, m] */
void ipw_string_open(lua_State *L);
void ipw_table_open(lua_State *L);

/* tostring.c: tostring() of the value, and what stands for its address. [0, +1, e] */
const char *ipw_text_push(lua_State *L, int idx);
void ipw_text_push_identity(lua_State *L, int idx);

/* source_check.c: whether a source text holds a chain a.x.x.x... on which Lua 5.4.4 would overflow the C
 * stack when it names the variable at fault. */
bool ipw_chain_too_long(const char *text, size_t n);
extern const char ipw_chain_message[];

/* coroutine.c: our coroutine.resume, wrap, yield and close, put into the table at the top. [0, 0, v] */
void ipw_coroutine_open(lua_State *L);
extern const char ipw_token; /* its address is what a waiting coroutine yields */
/* lua_resetthread() under the budget of its own: runs co's pending <close> variables. [0, 0, -] */
int ipw_coroutine_reset(lua_State *L, lua_State *co);

/* chunk.c: our require. [0, 0, v] */
void ipw_chunk_open(lua_State *L);
/* Leaves the compiled function on the stack, or fills err. [0, +1, -] on success */
int ipw_chunk_load(lua_State *L, const char *path, struct ipw_err *err);

/* budget.c: the CPU timer of the thread that runs Lua. */
int ipw_budget_ticks(int64_t cpu_ns);
void ipw_budget_enter(struct ipw_vm *vm);
void ipw_budget_leave(struct ipw_vm *vm);
/* For the watch: the state whose Lua runs; a count that is odd meanwhile and moves on when Lua is
 * entered or left; the name of that state's host. */
struct ipw_vm *ipw_budget_active(void);
unsigned long ipw_budget_turn(void);
const char *ipw_budget_who(void);
/* Arms the hook that raises at the next instruction of L. */
void ipw_budget_stop(struct ipw_vm *vm, lua_State *L);

/* task.c: makes a task from function and arguments at the top of `from`. [-(nargs+1), 0, m] */
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
struct ipw_host *ipw_host_of(lua_State *L);
struct ipw_remote *ipw_host_remote(lua_State *L); /* NULL in the core's own process */

#endif
