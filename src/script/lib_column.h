/* script/lib_column.h: packed columns, which hold of many queries what a reader needs of each.
 *
 * Owns the columns: arrays of doubles, filled from objects of JSON as they pass, and seen from Lua
 * by row and column.  Does not read files: lib_export.c gives it each line of a run.  A column is
 * named by the way to its value: keys with dots between them ("energy.gpu.joules"); "spans/decode"
 * is the last object of the list `spans` whose `kind` is "decode"; after "|" stands another way,
 * for where the first one leads to nothing.  "$" at the end: a text (of a list its texts, each with
 * a blank behind it); "?": true or false as 1 or 0.  What is of another kind is not known: nil. */
#ifndef IPW_SCRIPT_LIB_COLUMN_H
#define IPW_SCRIPT_LIB_COLUMN_H

#include <lua.h>

#include "json/json.h"

/* columns(paths): empty columns. [-1, +1, e] */
int ipw_columns_new(lua_State *L);
/* A further row in the columns at `index`, from an object. [0, 0, e] */
void ipw_columns_take(lua_State *L, int index, const struct ipw_json *object);
/* cells(columns, row, column...): its values; nil: not known. [-n, +(n - 2), e] */
int ipw_columns_cells(lua_State *L);
/* set(columns, row, column, number or nil). [-4, 0, e] */
int ipw_columns_set(lua_State *L);
/* rows(columns): how many rows they have. [-1, +1, e] */
int ipw_columns_rows(lua_State *L);

#endif
