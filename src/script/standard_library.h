/* script/standard_library.h: string, table, math, utf8, coroutine and os of a state.
 *
 * Each is a table of stock functions (script/stock.h) and our own.  math, utf8, coroutine and os
 * take 3.4 KB and a quarter of the time to open a state, and few agents need them.  With the option
 * `late_libraries` a state opens each of them before it runs the first source text that names it
 * (vm->open_libraries).  Scripts do not notice: a global is reached by its name in some text, or by
 * a computed name through _G or _ENV, and a text that has one of these words opens all. */
#ifndef IPW_SCRIPT_STANDARD_LIBRARY_H
#define IPW_SCRIPT_STANDARD_LIBRARY_H

#include <lua.h>

/* Puts the libraries into the table of globals at the top. [0, 0, m] */
void ipw_standard_library_open(lua_State *L);

#endif
