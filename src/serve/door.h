/* serve/door.h: the listening side of the proxy: requests in, answers out, on the loop. */
#ifndef IPW_SERVE_DOOR_H
#define IPW_SERVE_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "io/http.h"
#include "io/loop.h"

struct ipw_door;
struct ipw_visit; /* one request and its answer */

struct ipw_door_request {        /* borrowed for the callback */
    const char *method, *target; /* "/q/WORD/v1/models?limit=3", undecoded */
    const struct ipw_http_header *headers;
    size_t n_headers;
    const char *body;
    size_t n;
    uint64_t connection;
};

struct ipw_door_options {
    struct ipw_loop *loop;
    const char *host; /* NULL: 127.0.0.1 */
    int port;         /* 0: any free one */
    void (*on_request)(void *ud, struct ipw_visit *visit, const struct ipw_door_request *request);
    void *ud;
};
int ipw_door_open(struct ipw_door **out, const struct ipw_door_options *options,
                  struct ipw_err *err);
const char *ipw_door_url(const struct ipw_door *door); /* http://127.0.0.1:PORT */
void ipw_door_close(struct ipw_door *door);

/* on_gone: the client went away before the answer's end; the visit no longer exists. */
void ipw_visit_on_gone(struct ipw_visit *visit, void (*on_gone)(void *ud), void *ud);
/* Begins the answer; length: of its body; -1: not known. */
void ipw_visit_answer(struct ipw_visit *visit, int status, const struct ipw_http_header *headers,
                      size_t n, int64_t length);
void ipw_visit_push(struct ipw_visit *visit, const char *bytes, size_t n);
void ipw_visit_end(struct ipw_visit *visit);
void ipw_visit_break(struct ipw_visit *visit); /* the client sees that the answer is cut */

#endif
