/* proxy/told_spans.h: tools as a program's own instrumentation tells them.
 *
 * A program that emits OpenTelemetry spans sends them to the proxy's address (OTLP over HTTP, JSON
 * or protobuf, with or without gzip); lua/ipw/told_spans.lua reads them.  A tool's span replaces
 * the one that was inferred from the calls around it.  Owns nothing. */
#ifndef IPW_PROXY_TOLD_SPANS_H
#define IPW_PROXY_TOLD_SPANS_H

#include "io/server.h"
#include "proxy/session.h"

/* Answers a POST of spans.  `own`: the session of its path; NULL: each span names its own, by its
 * trace, its session or its call, among all of the list. */
void ipw_told_spans_take(struct ipw_exchange *x, struct ipw_proxy_session *own,
                         struct ipw_proxy_session *const *all);

#endif
