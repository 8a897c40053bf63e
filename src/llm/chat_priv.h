/* llm/chat_priv.h: what the chat_*.c files share.
 *
 * Defines the fold; only src/llm includes it.  An event of a stream of chat completions takes one
 * of two paths: the scanner (chat_scan.c) reads an event that has only usual members without a
 * tree; any other is parsed (chat_fold.c).  Both append through ipw_chat_gather(), which enforces
 * the size limit of a reply. */
#ifndef IPW_LLM_CHAT_PRIV_H
#define IPW_LLM_CHAT_PRIV_H

#include "json/json.h"
#include "llm/chat_other.h"

struct ipw_chat_fold {
    struct ipw_chat_reply reply;
    size_t max, left; /* size limit of the reply; bytes left of it */
    enum ipw_chat_protocol protocol;
    bool exact; /* every event is parsed */
    bool whole; /* a whole answer was read; it is complete without a finish reason */
    int64_t timed_prompt, timed_cached, timed_predicted; /* llama.cpp's timings; -1: unknown */
    int64_t fresh; /* of messages: input outside of the cache; -1: unknown */
    bool in_call;  /* of messages: the block announced last is a call that the client answers */
};

/* chat_gather.c puts the parts of an event into the reply, for every protocol.
 * has_content: whether some of the answer has come. */
bool ipw_chat_has_content(const struct ipw_chat_fold *fold);
/* Appends to one of the reply's buffers, within the size limit of the whole reply. */
int ipw_chat_gather(struct ipw_chat_fold *fold, struct ipw_buf *to, const char *text, size_t n,
                    struct ipw_err *err);
/* The same of a JSON text; anything else adds nothing. */
int ipw_chat_gather_node(struct ipw_chat_fold *fold, struct ipw_buf *to,
                         const struct ipw_json *text, enum ipw_chat_seen kind, int *seen,
                         struct ipw_err *err);
/* Keeps the first text that is not empty; a plausible count; the provider's price in USD. */
void ipw_chat_keep_first(char **slot, const struct ipw_json *node);
void ipw_chat_keep_count(int64_t *slot, const struct ipw_json *node);
void ipw_chat_keep_cost(struct ipw_chat_reply *reply, const struct ipw_json *cost);
void ipw_chat_fold_error(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen);
/* Translates the finish reason of chat completions. */
enum ipw_chat_finish ipw_chat_finish_of(const char *word);
/* Keeps the server's word and its meaning. */
void ipw_chat_set_finish(struct ipw_chat_reply *reply, const char *word,
                         enum ipw_chat_finish finish);

/* chat_scan.c: folds an event that has only usual members, without parsing it.  True: *result is
 * the result of ipw_chat_fold_event().  False: nothing was done, the event must be parsed. */
bool ipw_chat_scan(struct ipw_chat_fold *fold, const char *data, size_t n, int *result,
                   struct ipw_err *err);

/* Whether [DONE] was seen; nothing after it is read. */
bool ipw_chat_fold_done(const struct ipw_chat_fold *fold);

/* chat_fold_call.c: takes delta.tool_calls (an array), or one call of it.  Adds IPW_SEEN_CALL to
 * *seen. */
int ipw_chat_call_fold(struct ipw_chat_fold *fold, const struct ipw_json *calls, int *seen,
                       struct ipw_err *err);
struct ipw_chat_call_delta {
    const char *id, *name; /* or NULL */
    bool has_index;
    int64_t index;
    const char *arguments; /* as text, or NULL */
    size_t arguments_n;
    const struct ipw_json *object; /* the arguments as an object, or NULL */
};
int ipw_chat_call_fold_one(struct ipw_chat_fold *fold, const struct ipw_chat_call_delta *delta,
                           int *seen, struct ipw_err *err);
/* Takes the deprecated function_call, which has no id and no index. */
int ipw_chat_function_fold(struct ipw_chat_fold *fold, const struct ipw_json *function, int *seen,
                           struct ipw_err *err);
/* Call at the end of a reply: drops empty calls, adds missing ids, makes empty arguments {}. */
void ipw_chat_call_finish(struct ipw_chat_reply *reply);

/* chat_responses.c, chat_messages.c: an event or a whole answer of that protocol. */
int ipw_chat_responses_event(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                             struct ipw_err *err);
int ipw_chat_responses_whole(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                             struct ipw_err *err);
int ipw_chat_messages_event(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                            struct ipw_err *err);
int ipw_chat_messages_whole(struct ipw_chat_fold *fold, const struct ipw_json *root, int *seen,
                            struct ipw_err *err);

/* chat_foreign.c: the protocol of an answer that is not chat completions ("/v1/responses").  NULL:
 * chat completions, or unknown. */
const char *ipw_chat_foreign(const struct ipw_json *root);

/* chat_choices.c: choices other than the first, and log probabilities. */
struct ipw_jw;
int ipw_chat_logprobs_fold(struct ipw_chat_fold *fold, const struct ipw_json *choice,
                           struct ipw_err *err);
int ipw_chat_other_fold(struct ipw_chat_fold *fold, const struct ipw_json *choice, int64_t index,
                        struct ipw_err *err);
void ipw_chat_more_release(struct ipw_chat_reply *reply);
void ipw_chat_logprobs_json(struct ipw_jw *w, const struct ipw_chat_reply *reply);
void ipw_chat_others_json(struct ipw_jw *w, const struct ipw_chat_reply *reply);

struct ipw_chat_error {
    char text[512];
    char type[64];
    int code; /* a number from 400 to 599, or 0 */
};

/* True if this JSON value is an error: {"error": object or text}, {"object":"error"}. */
bool ipw_chat_error_is(const struct ipw_json *root);
/* Reads an error of a known form.  False: there is no text in any known place. */
bool ipw_chat_error_read(struct ipw_chat_error *out, const struct ipw_json *root);
/* One printable line of at most size-1 bytes, cut between characters. */
void ipw_chat_line(char *out, size_t size, const char *text, size_t n);

/* Appends the request body with sorted keys.  *cut_at and *cut_n receive the place of the
 * "stream_options" member with its comma, so that it can be cut out later; *cut_n is 0 if the
 * member is absent. */
int ipw_chat_body(struct ipw_buf *out, const struct ipw_chat_request *request, size_t *cut_at,
                  size_t *cut_n, struct ipw_err *err);

#endif
