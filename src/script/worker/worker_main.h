/* script/worker/worker_main.h: the inside of a worker process: an agent whose calls leave it.
 *
 * A Lua state whose host has a `remote` finds the functions of ipw.core.* that touch the world
 * replaced by messages to the core (script/worker/worker_host.h), which runs them and answers; those that wait
 * suspend the task, the others block the process.  Modules and scripts come as text from there too.
 * What computes only stays as it is. */
#ifndef IPW_SCRIPT_WORKER_WORKER_MAIN_H
#define IPW_SCRIPT_WORKER_WORKER_MAIN_H

#include <lua.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_remote;

/* The whole life of a worker; the descriptor is its socket to the core.  An exit status. */
int ipw_remote_main(int fd);

/* What ipw.core.MODULE is on this side: replaces functions in the table at the top, or raises when
 * the module is not for untrusted scripts. [0, 0, e] */
void ipw_remote_open(lua_State *L, const char *module);
/* Calls the core's function with the arguments on the stack: ends a lua_CFunction. */
int ipw_remote_call(lua_State *L, const char *name);
/* Where require finds a module; raises when it does not. [0, 0, e] */
void ipw_remote_module(lua_State *L, const char *name, char *path, size_t size);
int ipw_remote_source(struct ipw_remote *remote, const char *path, struct ipw_buf *out,
                      struct ipw_err *err);
void ipw_remote_log(struct ipw_remote *remote, const char *text);

/* Both sides: the functions of a module that go to the core, blanks between, a '*' behind those
 * that wait; NULL: none; "" is never given.  k counts the modules. */
const char *ipw_remote_forwarded(size_t k, const char **module);

#endif
