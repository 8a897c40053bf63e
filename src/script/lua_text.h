/* script/lua_text.h: a text that a Lua file of ours makes of JSON.
 *
 * For the screens of commands whose work is C: the module's function `text` gets the decoded value
 * and what the screen may use, in a Lua state that is closed afterwards.  Owns nothing. */
#ifndef IPW_SCRIPT_LUA_TEXT_H
#define IPW_SCRIPT_LUA_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_lua_text_style {
    int width; /* columns of the terminal; 0: there is none */
    bool colour, brief;
};
/* Appends the text.  json: one valid value. */
int ipw_lua_text(struct ipw_buf *out, const char *module, const struct ipw_buf *json,
                 const struct ipw_lua_text_style *style, struct ipw_err *err);

/* The same for what strangers sent: `text` gets the NULL-terminated texts, of these lengths, and
 * has 4 s and 512 MiB.  IPW_ELUA: what it says of them. */
int ipw_lua_text_of(struct ipw_buf *out, const char *module, const char *const *texts,
                    const size_t *lengths, struct ipw_err *err);

#endif
