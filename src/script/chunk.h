/* script/chunk.h: compiled scripts; script/search.h finds them.
 *
 * Each script is compiled once for each process and kept as bytecode (with debug information),
 * because the states of a thousand queries parse the same text otherwise.  Scripts themselves can
 * load only text. */
#ifndef IPW_SCRIPT_CHUNK_H
#define IPW_SCRIPT_CHUNK_H

#include "script/vm.h"

/* Pushes the compiled function, or fills err. [0, +1, -] on success */
int ipw_chunk_load(struct lua_State *L, const char *path, struct ipw_err *err);
/* Loads and runs a script (`path` is from ipw_search_script()) and pushes the table that it
 * returned. Syntax errors and raises give IPW_ELUA with file and line. [0, +1, -] on success */
int ipw_chunk_run(struct ipw_vm *vm, const char *path, struct ipw_err *err);

#endif
