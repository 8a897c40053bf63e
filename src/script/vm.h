/* script/vm.h: a Lua state with allow-listed libraries, a memory cap and the embedded searcher.
 *
 * One state per query (and one for the dataset script, one for the demo model).  A state has
 * string, table, math, utf8, coroutine, a reduced os, our own load and require, and the raw C
 * modules `ipw.core.*` that the Lua files in lua/ipw wrap.  script/search.h says where modules and
 * scripts are looked for.  Chunks are compiled once a
 * process and kept as bytecode of our own making, so that a new state costs little.
 *
 * Everything that can raise runs under one protected call.  ipw_vm_close() ends pending operations
 * first; nothing of a state outlives it. */
#ifndef IPW_SCRIPT_VM_H
#define IPW_SCRIPT_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_vm;
struct lua_State; /* only script/ includes lua.h */

struct ipw_vm_options {
    size_t memory_bytes;      /* soft cap of the Lua heap; 0: 64 MiB */
    int64_t slice_cpu_ns;     /* CPU time between two waits; 0: 2 s */
    const char *const *paths; /* --path folders, NULL-terminated; or NULL */
    const char *script_dir;   /* the folder of the user's script, or NULL */
    uint64_t seed;            /* for math.random */
    void *host;               /* what the library functions act on: struct ipw_host * (host.h) */
};

int ipw_vm_open(struct ipw_vm **out, const struct ipw_vm_options *options, struct ipw_err *err);
void ipw_vm_close(struct ipw_vm *vm); /* NULL is fine */
struct lua_State *ipw_vm_lua(struct ipw_vm *vm);
struct ipw_vm *ipw_vm_of(struct lua_State *L);
void *ipw_vm_host(struct lua_State *L);
/* The budget between two waits, from now on; 0: the default. */
void ipw_vm_set_slice(struct ipw_vm *vm, int64_t cpu_ns);
size_t ipw_vm_peak_bytes(const struct ipw_vm *vm);
/* Where the last task that failed was, a line a level, innermost first; "" when none did. */
const char *ipw_vm_traceback(const struct ipw_vm *vm);

/* Finds a script: `name` as a file if it exists (or looks like a path), else KIND/NAME.lua among
 * the user's folders and the embedded files; kind is "agents", "agents/tools" or "datasets".  On
 * failure the message offers the nearest name.  `path` receives the path or "builtin:...". */
int ipw_vm_find(struct ipw_vm *vm, const char *kind, const char *name, char *path, size_t path_size,
                struct ipw_err *err);
/* Loads and runs that script, leaving the table it returned on the stack. [0,+1,-] on success.
 * Syntax errors and raises give IPW_ELUA with file and line. */
int ipw_vm_load(struct ipw_vm *vm, const char *path, struct ipw_err *err);

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

/* Lets `require` look in Lua's usual folders too, after all others (--lua-path); with `native` for C
 * modules as well (--allow-native).  For the whole process, before a state is opened. */
void ipw_search_allow(bool lua_paths, bool native);

/* Lists the names available for a kind ("agents", ...): calls fn for each, embedded and on disk. */
void ipw_vm_each_script(const char *kind, const char *const *paths,
                        void (*fn)(void *ud, const char *name, const char *path), void *ud);

#endif
