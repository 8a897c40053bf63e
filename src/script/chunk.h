/* script/chunk.h: compiled scripts; script/search.h finds them.
 *
 * Each script is compiled once a process and kept as bytecode of our own making (debug information
 * included), because a state per query would otherwise parse the same text a thousand times.
 * Scripts themselves can load text only. */
#ifndef IPW_SCRIPT_CHUNK_H
#define IPW_SCRIPT_CHUNK_H

#include "script/vm.h"

/* Leaves the compiled function on the stack, or fills err. [0, +1, -] on success */
int ipw_chunk_load(struct lua_State *L, const char *path, struct ipw_err *err);
/* Loads and runs a script, `path` from ipw_search_script(), leaving the table it returned on the stack. [0,+1,-] on success.
 * Syntax errors and raises give IPW_ELUA with file and line. */
int ipw_chunk_run(struct ipw_vm *vm, const char *path, struct ipw_err *err);

#endif
