/* script/sandbox.h: Lua states for scripts.
 *
 * One state per query (and one for the dataset script, one for the demo model, one that embedded
 * modules compute in for all queries: compute.c).  A state has
 * string, table, math, utf8, coroutine, a reduced os, our own load, require, pcall, xpcall,
 * setmetatable, tostring, pairs and print, and the raw C modules `ipw.core.*` that the Lua files in
 * lua/ipw wrap.  script/search.h says where modules and scripts are looked for.
 *
 * Closing ends pending operations first; nothing of a state outlives it. */
#ifndef IPW_SCRIPT_SANDBOX_H
#define IPW_SCRIPT_SANDBOX_H

#include "script/vm.h"

int ipw_sandbox_open(struct ipw_vm **out, const struct ipw_vm_options *options,
                     struct ipw_err *err);
void ipw_sandbox_close(struct ipw_vm *vm); /* NULL is fine */

#endif
