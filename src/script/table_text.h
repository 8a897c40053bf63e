/* script/table_text.h: a table of the Lua library, as JSON, for C that follows its rows. */
#ifndef IPW_SCRIPT_TABLE_TEXT_H
#define IPW_SCRIPT_TABLE_TEXT_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the table that the file returns, such as "lua/ipw/sessions.lua"; an installation's copy
 * replaces the embedded one. */
int ipw_table_text(struct ipw_buf *out, const char *file, struct ipw_err *err);

#endif
