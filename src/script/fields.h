/* script/fields.h: the table of named fields that a function of the library takes.
 *
 * A function calls ipw_fields_take() before it reads any of them.  After it nothing of the script's
 * runs while they are read, and what was read stays while the table lies on the stack: a metamethod
 * could otherwise free what C holds, or wait in the middle of an operation's making. */
#ifndef IPW_SCRIPT_FIELDS_H
#define IPW_SCRIPT_FIELDS_H

#include <lua.h>
#include <stdbool.h>

/* Raises for what is no table, and for a name that is not among `known` (ends with NULL), with the
 * nearest right one behind `where`; with `list` the table may have elements too.  One with a
 * metatable is replaced by a plain copy of what it gives. [0, 0, e] */
void ipw_fields_take(lua_State *L, int idx, const char *where, const char *const *known, bool list);

#endif
