/* script/stock.h: what scripts have of Lua's own libraries: an allow-list, copied by name.
 *
 * Opening the stock libraries and picking names out of them takes four times as long as making our
 * tables from lists of C functions; so the lists are made once a process, and each state is filled
 * from them.  script/sandbox.c adds our own functions. */
#ifndef IPW_SCRIPT_STOCK_H
#define IPW_SCRIPT_STOCK_H

#include <lua.h>
#include <stddef.h>

/* Pushes a table with the allowed globals. [0, +1, m] */
void ipw_stock_globals(lua_State *L);
/* The name of the i-th library; NULL: there are no more. */
const char *ipw_stock_name(size_t i);
/* Pushes it with room for `n_extra` members more. [0, +1, m] */
void ipw_stock_push(lua_State *L, size_t i, int n_extra);
/* Pushes the arithmetic of strings ("1" + 1): a metatable without __index. [0, +1, m] */
void ipw_stock_string_operators(lua_State *L);
/* A function of the stock library that is in the list, for ours that stand in for it. */
lua_CFunction ipw_stock_function(const char *lib, const char *name);

#endif
