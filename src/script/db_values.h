/* script/db_values.h: Lua values for the ? of an SQL statement (data/db.h).
 *
 * Texts, numbers and booleans; json.null is NULL. */
#ifndef IPW_SCRIPT_DB_VALUES_H
#define IPW_SCRIPT_DB_VALUES_H

#include <lua.h>

#include "data/db.h"

/* Copies the list at idx and returns its length; nil is an empty list.  One free() is enough.  A
 * longer list than `max` and other values raise. [0, 0, e] */
size_t ipw_db_values_take(struct ipw_db_value **out, lua_State *L, int idx, size_t max);

#endif
