/* script/stock.h: the allowed members of Lua's own libraries, copied by name.
 *
 * To open the stock libraries and pick names out of them takes four times as long as to build our
 * tables from lists of C functions.  So the lists are made once for each process, and each state is
 * filled from them.  script/sandbox.c adds our own functions. */
#ifndef IPW_SCRIPT_STOCK_H
#define IPW_SCRIPT_STOCK_H

#include <lua.h>
#include <stddef.h>

/* Pushes a table with the allowed globals. [0, +1, m] */
void ipw_stock_globals(lua_State *L);
/* The name of the i-th library; NULL after the last. */
const char *ipw_stock_name(size_t i);
/* Pushes the i-th library with room for `n_extra` more members. [0, +1, m] */
void ipw_stock_push(lua_State *L, size_t i, int n_extra);
/* Pushes the string operators ("1" + 1): a metatable without __index. [0, +1, m] */
void ipw_stock_string_operators(lua_State *L);
/* A library that can be opened late, as a set of one (else 0); all of them; and those that a source
 * text names (script/standard_library.h). */
unsigned ipw_stock_late(const char *lib);
enum { IPW_STOCK_ALL_LATE = 15 };
unsigned ipw_stock_named(const char *text, size_t n);
/* A function of the stock library that is in the list, for our function that replaces it. */
lua_CFunction ipw_stock_function(const char *lib, const char *name);

#endif
