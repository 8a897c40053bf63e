/* script/sandbox.h: Lua states for scripts.
 *
 * Each query has a state, and so have the dataset script and the demo model; embedded modules that
 * only compute share one (compute.c).  A state has string,
 * table, math, utf8, coroutine, a reduced os, and our own load, require, pcall, xpcall,
 * setmetatable, tostring, pairs and print.  It also has the C modules `ipw.core.*`, which the Lua
 * files in lua/ipw wrap.  script/search.h finds modules and scripts.
 *
 * Closing a state first ends its pending operations; nothing of a state outlives it. */
#ifndef IPW_SCRIPT_SANDBOX_H
#define IPW_SCRIPT_SANDBOX_H

#include "script/vm.h"

int ipw_sandbox_open(struct ipw_vm **out, const struct ipw_vm_options *options,
                     struct ipw_err *err);
void ipw_sandbox_close(struct ipw_vm *vm); /* NULL is fine */

#endif
