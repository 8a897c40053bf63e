/* run/server_watch.h: what is watched of the servers while the run goes on, and when they have room
 * for another query.
 *
 * Says aloud that a request waits to be repeated, that no server answers, that a model is loaded;
 * sets how many requests are in flight under --adaptive; checks a forced length, and a prompt that
 * the server cut short in silence.  Each change of the limit and each remark is a note in
 * events.jsonl.  Tells its owner that something changed (a query may begin), and that the servers
 * are lost.  Borrows the client and the run's folder. */
#ifndef IPW_RUN_SERVER_WATCH_H
#define IPW_RUN_SERVER_WATCH_H

#include "llm/adaptive.h"
#include "llm/client.h"
#include "trace/rundir.h"

struct ipw_server_watch {
    struct ipw_llm *llm;
    struct ipw_rundir *dir;
    bool adaptive;
    int64_t concurrency, server_wait_ns; /* as the options say */
    void (*changed)(void *ud);
    void (*lost)(void *ud, const char *why); /* a sentence; changed() follows */
    void *ud;

    size_t n_queries, n_silent; /* in flight; of them those that have not asked the model yet */
    bool said_length, said_truncated;
    int64_t said_loading_ns; /* since when the loading was that was told of last */
    struct ipw_adaptive controller;
};

struct ipw_server_query { /* of a query in flight */
    const char *id;
    int32_t query;
    const bool *extended; /* its request is the one before with more messages behind it */
    bool asked;           /* the model, or waits to be let */
    int64_t last_prompt_tokens;
};

void ipw_server_watch_start(struct ipw_server_watch *w);
/* For the progress line: what holds all queries up, in a few words; "" when nothing does. */
void ipw_server_watch_standstill(void *w, char *out, size_t size);
/* Whether another query may begin now. */
bool ipw_server_watch_room(const struct ipw_server_watch *w);

void ipw_server_query_begin(struct ipw_server_watch *w, struct ipw_server_query *q);
void ipw_server_query_end(struct ipw_server_watch *w, struct ipw_server_query *q);
/* A request is on its way, or held back. */
void ipw_server_query_asks(struct ipw_server_watch *w, struct ipw_server_query *q);
void ipw_server_query_event(struct ipw_server_watch *w, struct ipw_server_query *q,
                            const struct ipw_event *event);

#endif
