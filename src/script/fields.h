/* script/fields.h: the table of named fields that a library function takes.
 *
 * A function first calls ipw_fields_take(), then reads the fields with the functions below.  No
 * code of the script runs between these calls, and the values stay valid while the table is on the
 * stack.  Without this, a metamethod could free what C holds, or wait while an operation is being
 * set up. */
#ifndef IPW_SCRIPT_FIELDS_H
#define IPW_SCRIPT_FIELDS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raises if the value is not a table, or for a name that is not in `known` (which ends with NULL);
 * the message begins with `where` and offers the nearest name.  With `list` the table can also have
 * elements.  A table with a metatable is replaced by a plain copy of its values. [0, 0, e] */
void ipw_fields_take(lua_State *L, int idx, const char *where, const char *const *known, bool list);

/* The field `name` of the table at idx, or the fallback if it is nil.  Raises for a wrong type,
 * with a message that begins with "WHERE: NAME". [0, 0, e] */
double ipw_fields_number(lua_State *L, int idx, const char *where, const char *name,
                         double fallback, double least, double most);
int64_t ipw_fields_integer(lua_State *L, int idx, const char *where, const char *name,
                           int64_t fallback);
/* A number of bytes, or a text such as "64K". */
size_t ipw_fields_bytes(lua_State *L, int idx, const char *where, const char *name, size_t fallback,
                        size_t least, size_t most);
/* The text, which the table owns; NULL without one.  `n` can be NULL. [0, 0, e] */
const char *ipw_fields_text(lua_State *L, int idx, const char *where, const char *name, size_t *n);

#endif
