/* script/vm_priv.h: the inside of struct ipw_vm, for the files of script/ only.
 *
 * struct ipw_vm is opaque to other floors.  `running` is the Lua thread that executes now; the
 * signal handler of the budget reads it, and the wrappers of coroutine.resume and wrap keep it
 * current. */
#ifndef IPW_SCRIPT_VM_PRIV_H
#define IPW_SCRIPT_VM_PRIV_H

#include <lua.h>
#include <signal.h>

#include "script/arena.h"
#include "script/vm.h"

struct ipw_vm {
    lua_State *L;
    struct ipw_vm_options options; /* script_dir is ours; paths are borrowed */
    char *script_dir;

    struct ipw_arena arena;
    size_t used_bytes, peak_bytes;
    /* See script/standard_library.h: those not open yet, and the function that opens some. */
    unsigned closed_libraries;
    void (*open_libraries)(lua_State *L, unsigned libraries);
    bool native;                       /* a C module was loaded, so its memory is unknown */
    size_t tidy_bytes;                 /* the heap after ipw_vm_tidy() */
    volatile sig_atomic_t over_memory; /* the heap passed its cap: stop at the next instruction */
    bool
        refused; /* an allocation was refused: the script ends, even if a collection frees memory */
    bool starved;                        /* the machine had no memory */
    lua_Integer last_number, n_seedings; /* last number of tostring.c; calls of math.randomseed() */

    lua_State *volatile running;
    volatile sig_atomic_t slice_ticks; /* of the CPU timer, since the slice began */
    int slice_ticks_max;
    volatile sig_atomic_t over_cpu;
    int64_t cpu_ns;         /* time spent inside Lua by all slices */
    struct ipw_vm *outside; /* the state whose Lua called into this state */
    int n_closing;          /* coroutine.close inside coroutine.close */

    struct ipw_tool_call *tool_calls; /* that are open (script/tool_call.h) */
    struct ipw_task *current, *tasks;
    size_t n_tasks;
    bool rest;               /* every task is in a pause */
    struct ipw_op *finished; /* operations to release when Lua is left */
    char *traceback;         /* of the last task that failed; or NULL */
};

/* Collects garbage before a long wait: with hundreds of states open, uncollected memory adds up.
 * Only if Lua has called C. */
void ipw_vm_tidy(struct ipw_vm *vm);
/* Collects all garbage; true if the heap is then well below its cap. [0, 0, -] */
bool ipw_vm_collect(struct ipw_vm *vm, lua_State *L);

/* vm_budget.c: the CPU timer of the thread that runs Lua. */
int ipw_budget_ticks(int64_t cpu_ns);
void ipw_budget_enter(struct ipw_vm *vm);
void ipw_budget_leave(struct ipw_vm *vm);
/* For the watch: the state whose Lua runs; a count that changes whenever Lua is entered or left,
 * and is odd inside Lua; the name of that state's host. */
struct ipw_vm *ipw_budget_active(void);
unsigned long ipw_budget_turn(void);
const char *ipw_budget_who(void);
/* Sets the hook that raises at the next instruction of L. */
void ipw_budget_stop(lua_State *L);
/* Raises if the state is over its budget.  Every function that could catch an error calls it. */
void ipw_budget_check(lua_State *L);

#endif
