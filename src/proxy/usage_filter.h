/* proxy/usage_filter.h: takes out of a stream what the server sends because we asked for usage.
 *
 * Pure.  A client that did not ask for usage gets none: the chunk with usage and no choice is left
 * out, and so is `"usage":null` in the others.  Everything else passes byte for byte.  An event is
 * held until its last byte has come, and no longer. */
#ifndef IPW_PROXY_USAGE_FILTER_H
#define IPW_PROXY_USAGE_FILTER_H

#include "base/buf.h"

struct ipw_usage_filter {
    struct ipw_buf event; /* the event that has begun */
    bool passes;          /* something longer than an event: it goes on as it comes */
};

void ipw_usage_filter_init(struct ipw_usage_filter *f);
void ipw_usage_filter_release(struct ipw_usage_filter *f);
/* Appends to `out` what the client gets. */
void ipw_usage_filter_feed(struct ipw_usage_filter *f, struct ipw_buf *out, const char *bytes,
                           size_t n);
/* The stream has ended: the rest goes on. */
void ipw_usage_filter_end(struct ipw_usage_filter *f, struct ipw_buf *out);

#endif
