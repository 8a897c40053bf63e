/* script/value.h: converts Lua values to JSON and back.
 *
 * JSON null is `json.null` (a light userdata, NULL).  Integers and floats stay different.  An empty
 * table is an object unless it has the array mark (json.list); decoded arrays have the mark.
 * Encoding sorts keys, uses only raw access (no metamethods) and never raises.  It stops at depth
 * 128, at a million nodes, at a cycle, or at a value without JSON, with a message that names the
 * path. Stack effects are given as in the Lua manual: [-pops, +pushes, raises]. */
#ifndef IPW_SCRIPT_VALUE_H
#define IPW_SCRIPT_VALUE_H

#include <lua.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

int ipw_value_encode(lua_State *L, int idx, struct ipw_buf *out, struct ipw_err *err); /* [0,0,-] */
void ipw_value_push(lua_State *L, const struct ipw_json *node); /* [0,+1,m] */
/* Parses and pushes; on failure pushes nothing.  The text is parsed before Lua is touched. */
int ipw_value_decode(lua_State *L, const char *text, size_t n, struct ipw_err *err); /* [0,+1,m] */
/* Pushes {code=, message=, retryable=} with the error metatable (__tostring). */
void ipw_value_push_error(lua_State *L, const char *code, const char *message, bool retryable);
/* Pushes nil and the reason, which a failed library function returns. [0, +2, m] */
int ipw_value_push_failure(lua_State *L, const char *reason);
/* Pushes `size` zeroed bytes, for what C holds over calls that can raise.  `close` is the __gc of
 * all boxes of that name. [0, +1, m] */
void *ipw_value_push_box(lua_State *L, size_t size, const char *name, lua_CFunction close);
/* Pushes a value that is encoded as this text, which must be valid JSON (json.raw).  shared: other
 * states make the same text, which is kept once for all of them. */
void ipw_value_push_raw(lua_State *L, const char *json, size_t n, bool shared); /* [0,+1,m] */
/* The text of such a value, which ends with NUL and lives as long as the value; else NULL. */
const char *ipw_value_raw(lua_State *L, int idx, size_t *n); /* [0,0,-] */
/* Pushes the function of a module that is a Lua file. [0, +1, e] */
void ipw_value_push_function(lua_State *L, const char *module, const char *name);
/* Our marks of tables. */
enum ipw_value_mark { IPW_MARK_NONE, IPW_MARK_LIST, IPW_MARK_ERROR };
enum ipw_value_mark ipw_value_mark(lua_State *L, int idx); /* [0,0,-] */
void ipw_value_mark_error(lua_State *L, int idx);          /* [0,0,m] */
/* The array mark: sets the list metatable on the table at idx. */
void ipw_value_mark_list(lua_State *L, int idx); /* [0,0,-] */

#endif
