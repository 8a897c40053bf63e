/* run/server_watch.h: watches the servers during a run, and decides when they have room for a
 * query.
 *
 * Reports that a request waits for a retry, that no server answers, or that a model is being
 * loaded. Sets the number of requests in flight under --adaptive.  Checks a forced length, and
 * whether the server silently cut a prompt.  Each change of the limit and each remark is a note in
 * events.jsonl.  Tells its owner when a query may begin, and when the servers are lost.  Borrows
 * the client and the run's folder. */
#ifndef IPW_RUN_SERVER_WATCH_H
#define IPW_RUN_SERVER_WATCH_H

#include "llm/adaptive.h"
#include "llm/client.h"
#include "trace/rundir.h"

struct ipw_server_watch {
    struct ipw_llm *llm;
    struct ipw_rundir *dir;
    bool adaptive;
    int64_t concurrency, server_wait_ns; /* from the options */
    void (*changed)(void *ud);
    void (*lost)(void *ud, const char *why); /* a sentence; changed() follows */
    void *ud;

    size_t n_queries, n_silent; /* in flight; those that have not called the model yet */
    bool said_length, said_truncated;
    int64_t said_loading_ns; /* start of the loading that was last reported */
    struct ipw_adaptive controller;
};

struct ipw_server_query { /* of a query in flight */
    const char *id;
    int32_t query;
    const bool *extended; /* its request is the one before with more messages after it */
    bool asked;           /* it has called the model, or waits to */
    int64_t last_prompt_tokens;
};

void ipw_server_watch_start(struct ipw_server_watch *w);
/* For the progress line: why all queries wait, in a few words; "" if they do not. */
void ipw_server_watch_standstill(void *w, char *out, size_t size);
/* Whether another query may begin now. */
bool ipw_server_watch_room(const struct ipw_server_watch *w);

void ipw_server_query_begin(struct ipw_server_watch *w, struct ipw_server_query *q);
void ipw_server_query_end(struct ipw_server_watch *w, struct ipw_server_query *q);
/* A request was sent, or is held back. */
void ipw_server_query_asks(struct ipw_server_watch *w, struct ipw_server_query *q);
void ipw_server_query_event(struct ipw_server_watch *w, struct ipw_server_query *q,
                            const struct ipw_event *event);

#endif
