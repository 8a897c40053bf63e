/* serve/recorded_write.h: a saved reply as the bytes of an answer, with the times of its parts.
 *
 * Pure; used by serve/recorded.c and its tests. */
#ifndef IPW_SERVE_RECORDED_WRITE_H
#define IPW_SERVE_RECORDED_WRITE_H

#include "llm/record_lookup.h"
#include "serve/completion.h"

struct ipw_serve_told {
    const struct ipw_record_lookup_reply *reply;
    const struct ipw_serve_ask *ask;
    int64_t created; /* date in seconds; the server's own is not saved */
    double speed;    /* 0: no waiting */
};

/* The time from the request to the end of the attempt. */
int64_t ipw_serve_told_close(const struct ipw_serve_told *told);
void ipw_serve_told_whole(struct ipw_serve_answer *out, const struct ipw_serve_told *told);
/* A reply that broke off has no end: no finish reason, usage or [DONE]. */
void ipw_serve_told_stream(struct ipw_serve_answer *out, const struct ipw_serve_told *told);
/* Writes an error object inside a 200. */
void ipw_serve_told_error(struct ipw_serve_answer *out, const struct ipw_serve_told *told,
                          const char *message);

#endif
