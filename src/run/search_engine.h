/* run/search_engine.h: the search engine of the tool web_search (--search, or the environment).
 *
 * Owns its address and key; scripts know its name only (script/host.h, lib_http.c).  A command line
 * reads it once, after its options. */
#ifndef IPW_RUN_SEARCH_ENGINE_H
#define IPW_RUN_SEARCH_ENGINE_H

#include "base/err.h"
#include "script/host.h"

/* The engine that `said` names: "NAME", "NAME=URL", or the path of a folder, which has a slash.
 * NULL: the first one whose variable is set; *out is NULL if there is none. */
int ipw_search_engine_new(struct ipw_host_server **out, const char *said, struct ipw_err *err);
void ipw_search_engine_free(struct ipw_host_server *engine); /* NULL is fine */

#endif
