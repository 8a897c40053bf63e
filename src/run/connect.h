/* run/connect.h: the model's server, and the client that talks to it.
 *
 * Finds the model that answers: on the server that was named, on a server on the usual local ports,
 * or the demo model in a child process.  Nothing is ever sent to a remote server that was not
 * named.  Owns the HTTP pool, the client and the demo model's process; borrows the loop. */
#ifndef IPW_RUN_CONNECT_H
#define IPW_RUN_CONNECT_H

#include <stdbool.h>

#include "io/proc.h"
#include "llm/client.h"
#include "run/server_options.h"

struct ipw_connection {
    const struct ipw_connect_options *o;
    struct ipw_loop *loop;
    bool quiet; /* --quiet */

    struct ipw_http *http;
    struct ipw_llm *llm;
    struct ipw_llm *sub; /* the server of --sub-url; NULL: the run's */
    char *base_url, *model;
    const char *key;      /* sent to the server; or NULL */
    bool demo;            /* answered by the demo model */
    const char *demo_why; /* why, if the user did not request it; or NULL */

    struct ipw_proc *service; /* the demo model's server */
    char said[160];           /* its first line */
    bool service_told;        /* its address, or that it ended */
    int service_exit;
};

/* The caller has set o, loop and quiet.  IPW_EINVAL for invalid options. */
int ipw_connect(struct ipw_connection *c, uint64_t jitter_seed, struct ipw_err *err);
/* The addresses of the servers, NULL at the end; the array is freed by the caller. */
const char **ipw_connection_urls(const struct ipw_connection *c);
/* The address of a server of the model on another machine; NULL if all are on this machine. */
const char *ipw_connection_elsewhere(const struct ipw_connection *c);
/* The same of the server of --sub-url. */
const char *ipw_connection_sub_elsewhere(const struct ipw_connection *c);
/* The loop then reaps the child and closes everything. */
void ipw_connection_close(struct ipw_connection *c);

#endif
