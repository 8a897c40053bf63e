/* serve/completion.h: a request to a scripted model, and its reply, without any I/O.
 *
 * Pure: it reads a decoded request and the model's reply, and writes the answer's bytes with
 * serve/answer.h.  Each part of an answer is due with a token. */
#ifndef IPW_SERVE_COMPLETION_H
#define IPW_SERVE_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "json/json.h"
#include "serve/answer.h"

struct ipw_serve_ask { /* what the server needs of a request; borrowed from it */
    const char *model;
    bool stream, include_usage;
    const char *format; /* the type of response_format; NULL: text */
    bool logprobs, pictures;
    int64_t max_tokens; /* -1: no limit */
    const struct ipw_json *stop;
    int64_t prompt_tokens;
    uint64_t hash; /* of the request's text, for ids that repeat */
};

/* On failure the answer to the request must be status 400 with the message. */
int ipw_serve_ask_read(struct ipw_serve_ask *ask, const struct ipw_json *body, const char *text,
                       size_t n, struct ipw_err *err);

/* Reads the JSON text of a model's reply table, cut by `stop` and max_tokens of the request.  The
 * counted tokens are the reply's usage. */
int ipw_serve_reply_read(struct ipw_chat_reply *out, const char *json, size_t n,
                         const struct ipw_serve_ask *ask, struct ipw_err *err);

/* `created` is the date in seconds.  A whole answer is one part, due with its last token. */
void ipw_serve_answer_whole(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                            const struct ipw_chat_reply *reply, int64_t created);
void ipw_serve_answer_stream(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                             const struct ipw_chat_reply *reply, int64_t created);

#endif
