/* script/script_span.h: spans that a script makes itself, and those of its web requests.
 *
 * A pair of events in the record, from which the trace gives the span its own joules.  A query may
 * make so many and no more: they are kept in memory until it is booked. */
#ifndef IPW_SCRIPT_SCRIPT_SPAN_H
#define IPW_SCRIPT_SCRIPT_SPAN_H

#include <lua.h>

#include "script/host.h"

enum { IPW_SCRIPT_SPANS_MAX = 10000 }; /* of a query */

/* What the span's end has to say. */
struct ipw_script_span_end {
    int64_t t_ns; /* 0: now */
    bool ok;
    const char *outcome;  /* "ok", "error", "timeout", ... */
    const char *error;    /* one line, or NULL */
    int64_t result_bytes; /* -1: none */
    const char *json;     /* JSON object text, or NULL */
    size_t json_n;
};

/* `kind`: "event" or "http".  Gives the span's number, or 0 when the query has too many. */
int32_t ipw_script_span_start(lua_State *L, const char *kind, const char *name, const char *json,
                              size_t json_n);
void ipw_script_span_finish(struct ipw_host *host, int32_t span, const char *kind, const char *name,
                            const struct ipw_script_span_end *end);

#endif
