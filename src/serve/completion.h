/* serve/completion.h: a request to a model that is a script, and its reply, without any I/O.
 *
 * Pure: reads a decoded request, reads what the model replied, writes the answer's bytes with
 * serve/answer.h.  Each part of an answer is due with a token. */
#ifndef IPW_SERVE_COMPLETION_H
#define IPW_SERVE_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "json/json.h"
#include "serve/answer.h"

struct ipw_serve_ask { /* what concerns the server in a request; borrowed from it */
    const char *model;
    bool stream, include_usage;
    const char *format; /* the type that response_format asks for; NULL: text */
    int64_t max_tokens; /* -1: no limit */
    const struct ipw_json *stop;
    int64_t prompt_tokens;
    uint64_t hash; /* of the request's text: ids are made of it, so that they repeat */
};

/* Refuses with err->detail as the HTTP status. */
int ipw_serve_ask_read(struct ipw_serve_ask *ask, const struct ipw_json *body, const char *text,
                       size_t n, struct ipw_err *err);

/* Reads the JSON text of a model's reply table; `stop` and max_tokens of the request cut it.  The
 * tokens that it counts are the reply's usage. */
int ipw_serve_reply_read(struct ipw_chat_reply *out, const char *json, size_t n,
                         const struct ipw_serve_ask *ask, struct ipw_err *err);

/* `created` is the date in seconds.  A whole answer is one part, due with its last token. */
void ipw_serve_answer_whole(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                            const struct ipw_chat_reply *reply, int64_t created);
void ipw_serve_answer_stream(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                             const struct ipw_chat_reply *reply, int64_t created);

#endif
