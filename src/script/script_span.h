/* script/script_span.h: spans that a script makes, and those of its web requests.
 *
 * A span is a pair of events, from which the trace computes its joules.  A query can make a limited
 * number, because they stay in memory until its energy is computed. */
#ifndef IPW_SCRIPT_SCRIPT_SPAN_H
#define IPW_SCRIPT_SCRIPT_SPAN_H

#include <lua.h>

#include "script/host.h"

enum { IPW_SCRIPT_SPANS_MAX = 10000 }; /* of a query */

/* The end of a span. */
struct ipw_script_span_end {
    int64_t t_ns; /* 0: now */
    bool ok;
    const char *outcome;  /* "ok", "error", "timeout", ... */
    const char *error;    /* one line, or NULL */
    int64_t result_bytes; /* -1: none */
    const char *json;     /* JSON object text, or NULL */
    size_t json_n;
};

/* Starts a span; `kind`: "event" or "http".  Returns its number, or 0 if the query has too many. */
int32_t ipw_script_span_start(lua_State *L, const char *kind, const char *name, const char *json,
                              size_t json_n);
void ipw_script_span_finish(struct ipw_host *host, int32_t span, const char *kind, const char *name,
                            const struct ipw_script_span_end *end);

#endif
