/* serve/server.h: an OpenAI-compatible server for a model written in Lua, or for a record.
 *
 * Owns a listening socket on a loopback address, its connections, and the model's Lua state; all of
 * it lives in the thread that calls ipw_serve_run().  GET /v1/models, GET /v1/models/NAME, POST
 * /v1/chat/completions (whole and streamed), GET /health; errors are OpenAI-shaped JSON.
 * Requests for a Host that is not loopback's are refused, and POSTs that a foreign page can send
 * (serve/visitor.h).
 *
 * A token is a piece of at most four bytes that ends between characters.  A reply's
 * completion_tokens are its pieces (text, and name and arguments of calls); prompt_tokens are the
 * bytes of the compact JSON of `messages` and `tools`, divided by four, rounded up.  The first
 * token leaves `ttft_ns` after the request was read, each further one `itl_ns` later. */
#ifndef IPW_SERVE_SERVER_H
#define IPW_SERVE_SERVER_H

#include <stdint.h>

#include "base/err.h"
#include "serve/recorded.h"
#include "serve/visitor.h"

struct ipw_serve;

struct ipw_serve_options {
    const char *host;  /* NULL: 127.0.0.1; only loopback addresses and "localhost" are taken */
    int port;          /* 0: any free one */
    const char *model; /* NULL: "demo"; a bundled model's name or the path of a Lua file */
    const char *const *paths; /* --path folders, or NULL */
    int64_t ttft_ns, itl_ns;
    const char *const
        *allow_hosts; /* names that a request's Host may have besides loopback's; NULL */
    struct ipw_serve_recorded
        *recorded; /* answers in place of a model, by its own times; borrowed */
};

int ipw_serve_open(struct ipw_serve **out, const struct ipw_serve_options *options,
                   struct ipw_err *err);
/* "http://127.0.0.1:8765/v1", and the name clients send as `model`. */
const char *ipw_serve_url(const struct ipw_serve *serve);
const char *ipw_serve_model(const struct ipw_serve *serve);
/* Serves until stop_fd can be read. */
int ipw_serve_run(struct ipw_serve *serve, int stop_fd, struct ipw_err *err);
void ipw_serve_close(struct ipw_serve *serve); /* NULL is fine; open connections are closed */

#endif
