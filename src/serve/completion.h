/* serve/completion.h: chat completions from the server's side, without any I/O.
 *
 * Pure: reads a decoded request, reads what a model replied, writes the answer's bytes.  A streamed
 * answer is written at once, in parts; each part says at which token it is due, and app/serve holds
 * it back until then. */
#ifndef IPW_SERVE_COMPLETION_H
#define IPW_SERVE_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

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

struct ipw_serve_call {
    char *name, *arguments; /* arguments: JSON text */
};

struct ipw_serve_reply {
    char *text;
    size_t text_len;
    struct ipw_serve_call *calls;
    size_t n_calls;
    const char *finish; /* static */
    int64_t tokens;
};

/* Reads the JSON text of a model's reply table; `stop` and max_tokens of the request cut it. */
int ipw_serve_reply_read(struct ipw_serve_reply *out, const char *json, size_t n,
                         const struct ipw_serve_ask *ask, struct ipw_err *err);
void ipw_serve_reply_release(struct ipw_serve_reply *reply);

struct ipw_serve_answer {
    struct ipw_buf bytes;
    struct ipw_serve_part {
        size_t end;       /* in bytes */
        int64_t token;    /* due with this token, from 0; -1: at `after_ns` */
        int64_t after_ns; /* after the request */
    } * parts;
    size_t n_parts, cap_parts;
};

/* `created` is the date in seconds.  A whole answer is one part, due with its last token. */
void ipw_serve_answer_whole(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                            const struct ipw_serve_reply *reply, int64_t created);
void ipw_serve_answer_stream(struct ipw_serve_answer *out, const struct ipw_serve_ask *ask,
                             const struct ipw_serve_reply *reply, int64_t created);
/* {"error": {"code", "message", "param", "type"}}; the words follow from the status. */
void ipw_serve_answer_error(struct ipw_serve_answer *out, int status, const char *message);
/* What was appended since the part before is one, due so long after the request. */
void ipw_serve_part_end(struct ipw_serve_answer *answer, int64_t after_ns);
void ipw_serve_answer_release(struct ipw_serve_answer *answer);

#endif
