/* io/http_web.h: web requests of scripts.
 *
 * Connections of their own, that never carry the model's key.  Up to five redirects are followed, each
 * by the same rules; headers that the script gave go to the origin it named and to no other.  Only
 * public addresses are reached: the address that is connected to is checked, on every hop, so that
 * neither a name nor a redirect leads inside.  Hosts that the user allowed are free of that.  Where
 * the environment names a proxy, which would hide the address, a request is refused unless the user
 * said that it may go through it. */
#ifndef IPW_IO_HTTP_WEB_H
#define IPW_IO_HTTP_WEB_H

#include "io/http.h"

enum { IPW_WEB_REDIRECTS = 5 };

struct ipw_web;
struct ipw_web_call;

struct ipw_web_options {
    const char *const *allow; /* "HOST", "HOST:PORT" or "*", NULL-terminated; or NULL.  Borrowed */
    bool via_proxy;
    const char *cacert; /* or NULL; borrowed */
};

/* Makes no connection and cannot fail: the pools are opened when they are first used. */
struct ipw_web *ipw_web_new(struct ipw_loop *loop, const struct ipw_web_options *options);
void ipw_web_free(struct ipw_web *web); /* cancels what is in flight; NULL is fine */

struct ipw_web_result {
    enum ipw_code code; /* IPW_OK: an answer came, whatever its status */
    const char *error;  /* one line, or NULL */
    int status, redirects;
    const char *url; /* the last one */
    const char *content_type;
    /* Of the last answer: name, value, name, value, ...; names in small letters. */
    const char *const *headers;
    size_t n_headers; /* pairs */
    struct ipw_buf *body;
    int64_t end_ns;
};

typedef void (*ipw_web_fn)(void *ud, const struct ipw_web_result *result);

/* `request` as for ipw_http_start(), its total_ns over all hops; take_body is not used.  `done` is
 * called once unless cancelled, never inside this call; the call is gone when it returns. */
int ipw_web_start(struct ipw_web_call **out, struct ipw_web *web,
                  const struct ipw_http_request *request, int max_redirects, ipw_web_fn done,
                  void *ud, struct ipw_err *err);
void ipw_web_cancel(struct ipw_web_call *call);

#endif
