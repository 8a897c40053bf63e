/* run/search_engine.h: the servers that built-in tools ask.
 *
 * The search engine of web_search (--search, or the environment), and the server that turns sound
 * into text (--speech-url).  Owns their addresses and keys; scripts know their names only
 * (script/host.h, lib_http.c).  A command line reads them once, after its options. */
#ifndef IPW_RUN_SEARCH_ENGINE_H
#define IPW_RUN_SEARCH_ENGINE_H

#include "base/err.h"
#include "script/host.h"

/* The engine that `said` names: "NAME", "NAME=URL", or the path of a folder.
 * NULL: the first one whose variable is set; *out is NULL if there is none. */
int ipw_search_engine_new(struct ipw_host_server **out, const char *said, struct ipw_err *err);
/* A server with OpenAI's /v1/audio/transcriptions; its name is the model's.  NULL without `url`.
 * `key_env`: the variable with its key, or NULL. */
int ipw_speech_server_new(struct ipw_host_server **out, const char *url, const char *model,
                          const char *key_env, struct ipw_err *err);
void ipw_search_engine_free(struct ipw_host_server *server); /* of both; NULL is fine */

#endif
