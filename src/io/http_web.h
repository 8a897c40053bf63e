/* io/http_web.h: web requests of scripts.
 *
 * They have their own connections, which never carry the model's key.  Up to five redirects are
 * followed, each by the same rules.  Headers of the script go only to the origin that it named.
 * Only public addresses are reached: the actual address is checked on every hop, so neither a name
 * nor a redirect leads to an inner network.  Hosts that the user allowed are exempt.  A proxy of
 * the environment would hide the address, so with a proxy a request is refused unless the user
 * allowed it. */
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

/* Makes no connection and cannot fail: the pools are opened at first use. */
struct ipw_web *ipw_web_new(struct ipw_loop *loop, const struct ipw_web_options *options);
void ipw_web_free(struct ipw_web *web); /* cancels requests in flight; NULL is fine */

struct ipw_web_result {
    enum ipw_code code; /* IPW_OK: an answer came, with any status */
    const char *error;  /* one line, or NULL */
    int status, redirects;
    const char *url; /* the final URL */
    const char *content_type;
    /* Headers of the final answer: name, value, name, value, ...; names in lower case. */
    const char *const *headers;
    size_t n_headers; /* pairs */
    struct ipw_buf *body;
    int64_t end_ns;
};

typedef void (*ipw_web_fn)(void *ud, const struct ipw_web_result *result);

/* `request` as for ipw_http_start(), with its total_ns over all hops; take_body is not used.
 * `done` is called once unless cancelled, never inside this call.  After it the call no longer
 * exists. */
int ipw_web_start(struct ipw_web_call **out, struct ipw_web *web,
                  const struct ipw_http_request *request, int max_redirects, ipw_web_fn done,
                  void *ud, struct ipw_err *err);
void ipw_web_cancel(struct ipw_web_call *call);
/* Calls `enough` with each piece of the body, and with the call's `ud`.  If it returns true, the
 * request ends well with what has come: the answer of a stream that stays open. */
void ipw_web_watch(struct ipw_web_call *call,
                   bool (*enough)(void *ud, const char *bytes, size_t n));

#endif
