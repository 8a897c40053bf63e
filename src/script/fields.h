/* script/fields.h: the table of named fields that a function of the library takes.
 *
 * A function calls ipw_fields_take() before it reads any of them with the functions below.  After it nothing of the script's
 * runs while they are read, and what was read stays while the table lies on the stack: a metamethod
 * could otherwise free what C holds, or wait in the middle of an operation's making. */
#ifndef IPW_SCRIPT_FIELDS_H
#define IPW_SCRIPT_FIELDS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raises for what is no table, and for a name that is not among `known` (ends with NULL), with the
 * nearest right one behind `where`; with `list` the table may have elements too.  One with a
 * metatable is replaced by a plain copy of what it gives. [0, 0, e] */
void ipw_fields_take(lua_State *L, int idx, const char *where, const char *const *known, bool list);

/* The field `name` of the table at idx, or the fallback when it is nil.  They raise for anything else,
 * in words that begin with "WHERE: NAME". [0, 0, e] */
double ipw_fields_number(lua_State *L, int idx, const char *where, const char *name,
                         double fallback, double least, double most);
int64_t ipw_fields_integer(lua_State *L, int idx, const char *where, const char *name,
                           int64_t fallback);
/* A number of bytes, or a text such as "64K". */
size_t ipw_fields_bytes(lua_State *L, int idx, const char *where, const char *name, size_t fallback,
                        size_t least, size_t most);
/* The table keeps the text; NULL without one.  `n` may be NULL. */
const char *ipw_fields_text(lua_State *L, int idx, const char *where, const char *name, size_t *n);

#endif
