/* script/vm.h: a Lua state with a memory cap and a CPU budget.
 *
 * script/sandbox.h opens one with what scripts may use.  Everything that can raise runs under one
 * protected call. */
#ifndef IPW_SCRIPT_VM_H
#define IPW_SCRIPT_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_vm;
struct ipw_host;
struct ipw_host_worker;
struct lua_State; /* only script/ includes lua.h */

struct ipw_vm_options {
    size_t memory_bytes;      /* soft cap of the Lua heap; 0: 64 MiB */
    int64_t slice_cpu_ns;     /* CPU time between two waits; 0: 2 s */
    const char *const *paths; /* --path folders, NULL-terminated; or NULL */
    const char *script_dir;   /* the folder of the user's script, or NULL */
    uint64_t seed;            /* for math.random */
    struct ipw_host *host;    /* what the library functions act on */
};

/* `fill` gives the fresh state what scripts may use. */
int ipw_vm_new(struct ipw_vm **out, const struct ipw_vm_options *options,
               int (*fill)(struct lua_State *L), struct ipw_err *err);
void ipw_vm_free(struct ipw_vm *vm); /* no task of it is left */
struct lua_State *ipw_vm_lua(struct ipw_vm *vm);
struct ipw_vm *ipw_vm_of(struct lua_State *L);
struct ipw_host *ipw_vm_host(struct lua_State *L);
/* The way to the core from a worker process; NULL in the core's own. */
const struct ipw_host_worker *ipw_vm_worker(struct lua_State *L);
/* The budget between two waits, from now on; 0: the default. */
void ipw_vm_set_slice(struct ipw_vm *vm, int64_t cpu_ns);
size_t ipw_vm_peak_bytes(const struct ipw_vm *vm);
/* Where the last task that failed was, a line a level, innermost first; "" when none did. */
const char *ipw_vm_traceback(const struct ipw_vm *vm);

/* Calls the function at stack position -(nargs+1) protected, no yields.  [-(nargs+1), +nresults]
 * on success; on failure pops all of it and gives IPW_ELUA with the message and its place. */
int ipw_vm_call(struct ipw_vm *vm, int nargs, int nresults, struct ipw_err *err);
/* A call that ran out of its CPU time ends all that come after it, unless they are to have their
 * own: for a state whose calls have nothing to do with one another. */
void ipw_vm_renew_cpu(struct ipw_vm *vm);

/* Turns the error value at the top of the stack into one line of text that can be printed (no
 * __tostring of foreign values is called, Lua allocates nothing), and pops it. */
void ipw_vm_take_error(struct lua_State *L, struct ipw_err *err);
void ipw_vm_read_error(struct lua_State *L, struct ipw_err *err); /* the same, and leaves it */

#endif
