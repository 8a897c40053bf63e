/* proxy/passage.h: one call on its way: from a client to a server, and the answer back.
 *
 * What passes is what came: bytes go on as they come, an error as it is, a silent stream stays
 * open, and a client that goes away cancels the call.  Beside it the answer of a turn is read
 * (llm/chat_other.h), for the events of the session.  A passage belongs to its session until it
 * is over, and frees itself. */
#ifndef IPW_PROXY_PASSAGE_H
#define IPW_PROXY_PASSAGE_H

#include "io/server.h"
#include "proxy/session.h"
#include "proxy/session_rules.h"
#include "proxy/upstream.h"

struct ipw_passage_ground { /* what all passages of a proxy share */
    struct ipw_http *http;
    struct ipw_upstreams upstreams;
    int64_t connect_ns;
};

/* `path`: behind the query's own part, of the client's target.  Takes over what the call owns.
 * `found`: the agent that calls, and its parent. */
void ipw_passage_start(const struct ipw_passage_ground *ground, struct ipw_proxy_session *session,
                       struct ipw_exchange *client, const char *path, struct ipw_proxy_call *call,
                       const struct ipw_session_found *found);
/* For the route: the client reads again; it has its answer (`sent`), or has gone. */
void ipw_passage_room(struct ipw_exchange *client);
void ipw_passage_over(struct ipw_exchange *client);
/* An error of ours, in place of an answer. */
void ipw_passage_refuse(struct ipw_exchange *client, const struct ipw_proxy_call *call, int status,
                        const char *code, const char *message);

#endif
