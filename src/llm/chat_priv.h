/* llm/chat_priv.h: what the chat_*.c files share.
 *
 * Owns the insides of a fold and nothing else; only src/llm includes it.  The full path of a stream
 * event is parse, then ipw_chat_call_fold() and friends; the fast path (chat_fast.c) appends one
 * string without parsing when the event repeats the last one but for that string.  Everything that
 * is appended to a reply goes through ipw_chat_gather(), which keeps the ceiling and notes what the
 * fast path has to know. */
#ifndef IPW_LLM_CHAT_PRIV_H
#define IPW_LLM_CHAT_PRIV_H

#include "json/json.h"
#include "llm/chat.h"

/* Everything before and after the one string of the last event, its quotes included. */
struct ipw_chat_shape {
    bool ready;
    enum ipw_chat_seen kind;
    size_t call; /* kind IPW_SEEN_CALL: which one it was appended to */
    struct ipw_buf head, tail;
};

struct ipw_chat_fold {
    struct ipw_chat_reply reply;
    size_t max, left; /* bytes a reply may gather, and may still gather */
    bool exact;       /* the fast path is switched off */
    bool whole;       /* a whole answer was read: complete without a finish reason */
    int64_t timed_prompt, timed_cached, timed_predicted; /* llama.cpp's timings; -1 unknown */
    struct ipw_chat_shape shape;
    struct { /* what the event at hand did, kept for the shape */
        int appends;
        enum ipw_chat_seen kind;
        const char *field; /* the delta's member that was appended; NULL: not a plain one */
        size_t call;
    } did;
};

/* Appends to one of the reply's buffers within the ceiling of the whole reply. */
int ipw_chat_gather(struct ipw_chat_fold *fold, struct ipw_buf *to, const char *text, size_t n,
                    enum ipw_chat_seen kind, const char *field, struct ipw_err *err);

/* 0: this event must be parsed; else what ipw_chat_fold_event() returns. */
int ipw_chat_fast(struct ipw_chat_fold *fold, const char *data, size_t n);
/* Remembers the shape of an event that was parsed without a repair and did exactly one append. */
void ipw_chat_fast_learn(struct ipw_chat_fold *fold, const char *data, size_t n);

/* The same, where the string is known: n bytes at `body`. */
void ipw_chat_fast_keep(struct ipw_chat_fold *fold, const char *data, size_t n, const char *body,
                        size_t body_n);
/* Writes the text of the string body s, at most n bytes.  False: not a plain body. */
bool ipw_chat_unescape(char *to, size_t *written, const char *s, size_t n);

/* chat_scan.c: folds an event of the usual members without parsing it.  False: it has to be parsed,
 * and nothing was done; else *result is what ipw_chat_fold_event() returns. */
bool ipw_chat_scan(struct ipw_chat_fold *fold, const char *data, size_t n, int *result,
                   struct ipw_err *err);

/* [DONE] was seen: nothing after it is read. */
bool ipw_chat_fold_done(const struct ipw_chat_fold *fold);

/* delta.tool_calls (array), or one call of it.  or-s IPW_SEEN_CALL into *seen. */
int ipw_chat_call_fold(struct ipw_chat_fold *fold, const struct ipw_json *calls, int *seen,
                       struct ipw_err *err);
struct ipw_chat_call_delta {
    const char *id, *name; /* NULL: none */
    bool has_index;
    int64_t index;
    const char *arguments; /* as text, or NULL */
    size_t arguments_n;
    const struct ipw_json *object; /* the arguments as an object, or NULL */
};
int ipw_chat_call_fold_one(struct ipw_chat_fold *fold, const struct ipw_chat_call_delta *delta,
                           int *seen, struct ipw_err *err);
/* The old function_call: without id and index. */
int ipw_chat_function_fold(struct ipw_chat_fold *fold, const struct ipw_json *function, int *seen,
                           struct ipw_err *err);
/* At the end: drops empty calls, makes up ids, turns empty arguments into {}. */
void ipw_chat_call_finish(struct ipw_chat_reply *reply);

/* chat_foreign.c: the protocol of an answer that is not chat completions ("/v1/responses"), or
 * NULL. */
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

/* The server's word for how a reply ended. */
enum ipw_chat_finish ipw_chat_finish_of(const char *word);
void ipw_chat_set_finish(struct ipw_chat_reply *reply, const char *word);

struct ipw_chat_error {
    char text[512];
    char type[64];
    int code; /* a number from 400 to 599, or 0 */
};

/* True if this JSON value is an error: {"error": object or text}, {"object":"error"}. */
bool ipw_chat_error_is(const struct ipw_json *root);
/* Fills *out from any of the known shapes; false when there is no text in any known place. */
bool ipw_chat_error_read(struct ipw_chat_error *out, const struct ipw_json *root);
/* One printable line of at most size-1 bytes, cut between characters. */
void ipw_chat_line(char *out, size_t size, const char *text, size_t n);

/* Appends the request body, keys sorted, "messages" included.  Tells where the "stream_options"
 * member stands, its comma included, so that it can be cut out again; *cut_n is 0 when it is not
 * there. */
int ipw_chat_body(struct ipw_buf *out, const struct ipw_chat_request *request, size_t *cut_at,
                  size_t *cut_n, struct ipw_err *err);

#endif
