/* serve/model_server.h: an OpenAI-compatible server for a model written in Lua, or for a saved run.
 *
 * Owns a server (io/server.h) and the model's Lua state; all of it belongs to the thread of the
 * loop.  It serves GET /v1/models, GET /v1/models/NAME, GET /health, and POST /v1/chat/completions,
 * /v1/responses and /v1/messages (whole and streamed), on a loopback address; errors are
 * OpenAI-shaped JSON. */
#ifndef IPW_SERVE_MODEL_SERVER_H
#define IPW_SERVE_MODEL_SERVER_H

#include "base/err.h"
#include "io/loop.h"
#include "script/served_model.h"

struct ipw_serve;

struct ipw_serve_options {
    const char *host; /* NULL: 127.0.0.1; only loopback addresses and "localhost" are accepted */
    int port;         /* 0: any free port */
    struct ipw_served_model_options model; /* what answers; its `name` NULL: "demo" */
    const char *const
        *allow_hosts; /* names that a request's Host can have besides loopback's; or NULL */
};

/* Takes the port, and answers from the loop until it is closed, which keeps the loop running. */
int ipw_serve_open(struct ipw_serve **out, const struct ipw_serve_options *options,
                   struct ipw_loop *loop, struct ipw_err *err);
const char *ipw_serve_url(const struct ipw_serve *serve); /* "http://127.0.0.1:8765/v1" */
/* How requests were found in a saved run. */
struct ipw_served_counts ipw_serve_counts(const struct ipw_serve *serve);
void ipw_serve_close(struct ipw_serve *serve); /* NULL is fine; open connections are closed */

#endif
