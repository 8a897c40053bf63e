/* proxy/upstream.h: the servers that calls go on to, and the headers that go with them.
 *
 * A table: an upstream serves all calls, or those of a path (/v1/messages) or a model (gpt-*); the
 * first that fits is taken.  Nothing else is ever reached.  Owns copies of addresses and keys.  A
 * client's key that is the run's word becomes the upstream's own key on the way out; any other goes
 * on as it is. */
#ifndef IPW_PROXY_UPSTREAM_H
#define IPW_PROXY_UPSTREAM_H

#include "base/err.h"
#include "io/http.h"
#include "proxy/call.h"

struct ipw_upstream {
    char *match;   /* a path, or a model's name in which * stands for any text; NULL: every call */
    char *url;     /* without a slash at its end */
    char *key;     /* or NULL */
    bool messages; /* it speaks Anthropic messages: its key is an x-api-key */
};

struct ipw_upstreams {
    struct ipw_upstream *list;
    size_t n, cap;
};

/* "URL" or "MATCH=URL". IPW_EINVAL for anything else. */
int ipw_upstreams_add(struct ipw_upstreams *all, const char *text, const char *key, bool messages,
                      struct ipw_err *err);
void ipw_upstreams_release(struct ipw_upstreams *all);
/* NULL: none fits. */
const struct ipw_upstream *ipw_upstreams_for(const struct ipw_upstreams *all,
                                             const struct ipw_proxy_call *call, const char *path);
/* The address of a call, malloc'ed; `path` as in ipw_proxy_call_of_path(). */
char *ipw_upstream_url(const struct ipw_upstream *u, const struct ipw_proxy_call *call,
                       const char *path);

/* A message's headers that go on; but for the key they are the client's own texts. */
struct ipw_proxy_headers {
    struct ipw_http_header *list;
    size_t n, cap;
    char *key; /* the upstream's own */
};
/* A header of the client's request.  `word`: see above. */
void ipw_upstream_header(struct ipw_proxy_headers *out, const struct ipw_upstream *u,
                         const char *name, const char *value, const char *word);
void ipw_proxy_headers_release(struct ipw_proxy_headers *headers);

#endif
