/* script/summary_text.h: the text of summary.json, computed by lua/ipw/summary.lua.
 *
 * The module gets the rows and the facts of report/summary.h, in a Lua state that is closed
 * afterwards.  Owns nothing. */
#ifndef IPW_SCRIPT_SUMMARY_TEXT_H
#define IPW_SCRIPT_SUMMARY_TEXT_H

#include "base/buf.h"
#include "base/columns.h"
#include "base/err.h"

struct ipw_summary_source {
    const struct ipw_columns *queries, *calls;
    const char *const *query_columns, *const *call_columns; /* their names; NULL-terminated */
    const char *ids;             /* of the queries, one after the other, each with a NUL */
    const struct ipw_buf *facts; /* JSON */
};
/* Appends the text. */
int ipw_summary_text(struct ipw_buf *out, const struct ipw_summary_source *source,
                     struct ipw_err *err);

#endif
