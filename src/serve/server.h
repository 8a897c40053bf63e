/* serve/server.h: an OpenAI-compatible server for a model written in Lua, or for a saved run.
 *
 * Owns a listening socket on a loopback address, its connections, and the model's Lua state; all of
 * them belong to the thread that calls ipw_serve_run().  It serves GET /v1/models, GET
 * /v1/models/NAME, POST /v1/chat/completions (whole and streamed) and GET /health; errors are
 * OpenAI-shaped JSON. It refuses requests for a Host that is not loopback's, and POSTs that a
 * foreign page can send (serve/visitor.h). */
#ifndef IPW_SERVE_SERVER_H
#define IPW_SERVE_SERVER_H

#include <stdint.h>

#include "base/err.h"
#include "script/served_model.h"
#include "serve/visitor.h"

struct ipw_serve;

struct ipw_serve_options {
    const char *host; /* NULL: 127.0.0.1; only loopback addresses and "localhost" are accepted */
    int port;         /* 0: any free port */
    struct ipw_served_model_options model; /* what answers; its `name` NULL: "demo" */
    const char *const
        *allow_hosts; /* names that a request's Host can have besides loopback's; or NULL */
};

int ipw_serve_open(struct ipw_serve **out, const struct ipw_serve_options *options,
                   struct ipw_err *err);
/* "http://127.0.0.1:8765/v1", and the model's name for clients. */
const char *ipw_serve_url(const struct ipw_serve *serve);
const char *ipw_serve_model(const struct ipw_serve *serve);
/* How requests were found in a saved run. */
struct ipw_served_counts ipw_serve_counts(const struct ipw_serve *serve);
/* Serves until stop_fd can be read. */
int ipw_serve_run(struct ipw_serve *serve, int stop_fd, struct ipw_err *err);
void ipw_serve_close(struct ipw_serve *serve); /* NULL is fine; open connections are closed */

#endif
