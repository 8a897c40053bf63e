/* script/vm.h: a Lua state with a memory cap and a CPU budget.
 *
 * script/sandbox.h opens one with the library of scripts.  Everything that can raise runs under one
 * protected call. */
#ifndef IPW_SCRIPT_VM_H
#define IPW_SCRIPT_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_vm;
struct ipw_host;
struct lua_State; /* only script/ includes lua.h */

struct ipw_vm_options {
    size_t memory_bytes;      /* soft cap of the Lua heap; 0: 64 MiB */
    int64_t slice_cpu_ns;     /* CPU time between two waits; 0: 2 s */
    bool lasting;             /* no limit of all slices together; else a minute */
    const char *const *paths; /* --path folders, NULL-terminated; or NULL */
    const char *script_dir;   /* the folder of the user's script, or NULL */
    uint64_t seed;            /* for math.random */
    bool late_libraries;      /* see script/standard_library.h */
    struct ipw_host *host;    /* what the library functions act on */
};

/* `fill` adds the library of scripts to the new state. */
int ipw_vm_new(struct ipw_vm **out, const struct ipw_vm_options *options,
               int (*fill)(struct lua_State *L), struct ipw_err *err);
void ipw_vm_free(struct ipw_vm *vm); /* no task of it may be left */
struct lua_State *ipw_vm_lua(struct ipw_vm *vm);
struct ipw_vm *ipw_vm_of(struct lua_State *L);
struct ipw_host *ipw_vm_host(struct lua_State *L);
/* Sets the budget between two waits, from now on; 0: the default. */
void ipw_vm_set_slice(struct ipw_vm *vm, int64_t cpu_ns);
size_t ipw_vm_peak_bytes(const struct ipw_vm *vm);
/* The call stack of the last task that failed, one line for each level, innermost first; "" if none
 * failed. */
const char *ipw_vm_traceback(const struct ipw_vm *vm);

/* Calls the function at stack position -(nargs+1) protected, without yields.  [-(nargs+1),
 * +nresults] on success; on failure it pops all of them and gives IPW_ELUA with the message and its
 * place. */
int ipw_vm_call(struct ipw_vm *vm, int nargs, int nresults, struct ipw_err *err);
/* A call that exceeds its CPU time also ends all later calls.  This gives later calls their own
 * time, in a state whose calls are independent. */
void ipw_vm_renew_cpu(struct ipw_vm *vm);

/* Turns the error value at the top of the stack into one printable line and pops it.  It calls no
 * __tostring of foreign values, and Lua allocates nothing. */
void ipw_vm_take_error(struct lua_State *L, struct ipw_err *err);
void ipw_vm_read_error(struct lua_State *L,
                       struct ipw_err *err); /* leaves the error on the stack */

#endif
