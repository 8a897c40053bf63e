/* serve/answer.h: the bytes of an answer in parts, and the one writer of chat completions.
 *
 * Pure: no I/O.  An answer is written at once.  Each part has the time at which it is due, and
 * serve/server holds it back until then.  The caller ends the parts; the writer below only
 * appends. */
#ifndef IPW_SERVE_ANSWER_H
#define IPW_SERVE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "llm/chat.h"

struct ipw_serve_answer {
    struct ipw_buf bytes;
    struct ipw_serve_part {
        size_t end;       /* in bytes */
        int64_t token;    /* due with this token, from 0; -1: at `after_ns` */
        int64_t after_ns; /* after the request */
    } * parts;
    size_t n_parts, cap_parts;
};

void ipw_serve_answer_open(struct ipw_serve_answer *answer);
/* {"error": {"code", "message", "param", "type"}}; the words follow from the status. */
void ipw_serve_answer_error(struct ipw_serve_answer *out, int status, const char *message);
/* Makes a part of everything that was appended since the part before.  It is due at a time after
 * the request, or with a token. */
void ipw_serve_part_end(struct ipw_serve_answer *answer, int64_t after_ns);
void ipw_serve_part_end_token(struct ipw_serve_answer *answer, int64_t token);
void ipw_serve_answer_release(struct ipw_serve_answer *answer);

struct ipw_serve_writer {
    struct ipw_serve_answer *out;
    const struct ipw_chat_reply *reply; /* with an id and a model */
    const char *fingerprint;            /* or NULL */
    int64_t created;                    /* date in seconds */
    bool include_usage;
    bool has_role; /* the role was sent, once for each stream */
};

/* Writes the whole answer; an unknown usage is left out. */
void ipw_serve_write_whole(struct ipw_serve_writer *w);
/* Each of these writes one event of a stream.  `key`: "content" or "reasoning_content". */
void ipw_serve_write_text(struct ipw_serve_writer *w, const char *key, const char *text, size_t n);
/* A fragment of the reply's i-th call.  The first fragment (`begins`) has id and name. */
void ipw_serve_write_call(struct ipw_serve_writer *w, size_t i, const char *arguments, size_t n,
                          bool begins);
void ipw_serve_write_finish(struct ipw_serve_writer *w);
/* Returns false and writes nothing if no usage was requested, or if it is unknown. */
bool ipw_serve_write_usage(struct ipw_serve_writer *w);
void ipw_serve_write_done(struct ipw_serve_writer *w);

#endif
