/* serve/saved_answer.h: answers from a saved run, without any socket.
 *
 * Owns the index of the saved run (llm/saved_replies.h).  A reply has its saved text, reasoning,
 * calls, ids, finish reason, usage and timings.  A streamed reply is sent event by event, each as
 * long after the request as it was saved (`arrivals`).  Without `arrivals` the first and the last
 * token have their saved times, and the others come evenly between.  All times are divided by the
 * speed.  A whole reply is sent at the end of its attempt. */
#ifndef IPW_SERVE_SAVED_ANSWER_H
#define IPW_SERVE_SAVED_ANSWER_H

#include "serve/completion.h"

struct ipw_serve_saved;

struct ipw_serve_saved_options {
    const char *run;
    double speed;       /* 0: everything at once */
    bool with_failures; /* failed attempts are served as they were */
    bool filler;        /* accept a run whose texts are filler */
};

int ipw_serve_saved_open(struct ipw_serve_saved **out,
                         const struct ipw_serve_saved_options *options, struct ipw_err *err);
void ipw_serve_saved_close(struct ipw_serve_saved *saved); /* NULL is fine */
/* The models of the run, the first at 0; NULL after the last. */
const char *ipw_serve_saved_model(const struct ipw_serve_saved *saved, size_t i);

struct ipw_serve_saved_outcome {
    int status;     /* 0: there is no answer, the connection breaks */
    bool streams;   /* the answer is an event stream */
    bool breaks;    /* after the answer's last part the connection breaks */
    int64_t due_ns; /* after the request, for status 0 */
    char note[96];  /* "query 3, turn 2, attempt 1, by request": a header's value */
};
/* Writes the answer to a request that ipw_serve_ask_read() accepted. */
void ipw_serve_saved_answer(struct ipw_serve_saved *saved, struct ipw_serve_answer *answer,
                            struct ipw_serve_saved_outcome *outcome,
                            const struct ipw_serve_ask *ask, const struct ipw_json *request,
                            int64_t created);

struct ipw_serve_saved_counts {
    int64_t by_request, by_messages, by_place, not_found;
};
struct ipw_serve_saved_counts ipw_serve_saved_counts(const struct ipw_serve_saved *saved);

#endif
