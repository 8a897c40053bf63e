/* serve/saved_answer_write.h: a saved reply as the bytes of an answer, with the times of its parts.
 *
 * Pure; used by serve/saved_answer.c and its tests. */
#ifndef IPW_SERVE_SAVED_ANSWER_WRITE_H
#define IPW_SERVE_SAVED_ANSWER_WRITE_H

#include "llm/saved_replies.h"
#include "serve/completion.h"

struct ipw_serve_timed_reply {
    const struct ipw_saved_reply *reply;
    const struct ipw_serve_ask *ask;
    int64_t created; /* date in seconds; the server's own is not saved */
    double speed;    /* 0: no waiting */
};

/* The time from the request to the end of the attempt. */
int64_t ipw_serve_timed_close(const struct ipw_serve_timed_reply *timed);
void ipw_serve_timed_whole(struct ipw_serve_answer *out, const struct ipw_serve_timed_reply *timed);
/* A reply that broke off has no end: no finish reason, usage or [DONE]. */
void ipw_serve_timed_stream(struct ipw_serve_answer *out,
                            const struct ipw_serve_timed_reply *timed);
/* Writes an error object inside a 200. */
void ipw_serve_timed_error(struct ipw_serve_answer *out, const struct ipw_serve_timed_reply *timed,
                           const char *message);

#endif
