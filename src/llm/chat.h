/* llm/chat.h: the chat-completions protocol, without any I/O.
 *
 * Pure: turns a request struct into a body, and the bytes of an answer into a reply struct.
 * Servers differ in what they send; each chat_*.c file states the differences that it accepts.  A
 * `struct ipw_chat_fold` collects the deltas of a stream (ipw_chat_fold_event() for each event), or
 * takes a whole answer (ipw_chat_fold_whole()).  Either way ipw_chat_fold_end() gives the same
 * `struct ipw_chat_reply`, which owns its buffers. */
#ifndef IPW_LLM_CHAT_H
#define IPW_LLM_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_chat_request {
    const char *model;
    /* Each a JSON text of one message, or of several with commas between; keys sorted; borrowed. */
    const struct ipw_chat_text {
        const char *json;
        size_t n;
    } * messages;
    size_t n_messages;
    const char *tools;              /* JSON array text, or NULL */
    const char *tool_choice;        /* JSON text, or NULL */
    const char *response_format;    /* JSON text, or NULL */
    const char *extra;              /* JSON object text whose members override ours, or NULL */
    const char *stop;               /* JSON text (string or array), or NULL */
    double temperature, top_p;      /* NAN: not sent */
    int64_t seed;                   /* INT64_MIN: not sent */
    int64_t max_tokens;             /* < 0: not sent */
    int64_t force_tokens;           /* > 0: reply with exactly so many (ignore_eos, min_tokens) */
    int64_t not_before_ns;          /* the instant to send the prepared request; 0: at once */
    bool use_max_completion_tokens; /* field name of max_tokens */
    bool stream;                    /* always true in runs; whole answers are accepted anyway */
    bool include_usage;             /* send stream_options; only with `stream` */
    const char *over; /* JSON object text whose members override all others, or NULL */
};

struct ipw_chat_call {
    char *id, *name;
    struct ipw_buf arguments; /* text as the model wrote it; "{}" if it wrote none */
    bool has_index;
    int64_t index;
};

enum ipw_chat_finish {
    IPW_FINISH_NONE, /* not received */
    IPW_FINISH_STOP,
    IPW_FINISH_LENGTH,
    IPW_FINISH_TOOL_CALLS,
    IPW_FINISH_FILTER,
    IPW_FINISH_OTHER, /* an unknown word; finish_word has it */
};

struct ipw_chat_usage { /* -1: not reported */
    int64_t prompt, completion, total, cached, reasoning;
    int64_t written;    /* to the cache; part of prompt, as `cached` is */
    int64_t written_1h; /* of these, kept for an hour and not for 5 minutes */
};

struct ipw_chat_reply {
    struct ipw_buf text, reasoning;
    struct ipw_chat_call *calls;
    size_t n_calls, cap_calls;
    enum ipw_chat_finish finish;
    char *finish_word; /* the server's word, or NULL */
    char *model, *id;  /* or NULL */
    struct ipw_chat_usage usage;
    char *timings;           /* JSON text of llama.cpp's "timings" or vLLM's "metrics", or NULL */
    bool done_marker;        /* [DONE] was seen */
    char *error;             /* message of an error object in the answer, or NULL */
    char *error_type;        /* its "type" or "code" as text, or NULL */
    int64_t chunks;          /* events with content */
    int64_t repairs;         /* bytes and escapes that the JSON guard repaired */
    int error_code;          /* the error's code if it is a status from 400 to 599, or 0 */
    int64_t ignored_choices; /* deltas of choices other than the first */
    bool cost_told;          /* OpenRouter sent usage.cost: cost_usd */
    double cost_usd;
    /* Kept for the saved run only: the entries of the first choice's logprobs.content, joined by
     * commas, and the other choices (n > 1). */
    struct ipw_buf logprobs;
    struct ipw_chat_choice {
        int64_t index;
        struct ipw_buf text;
        char *finish_word;
    } * others;
    size_t n_others, cap_others;
    struct ipw_buf arrivals; /* the arrivals of a stream's events (llm/arrivals.h), or empty */
};

/* Flags for the content of one stream event. */
enum ipw_chat_seen {
    IPW_SEEN_TEXT = 1,
    IPW_SEEN_REASONING = 2,
    IPW_SEEN_CALL = 4, /* a tool-call delta */
    IPW_SEEN_USAGE = 8,
    IPW_SEEN_FINISH = 16,
    IPW_SEEN_DONE = 32,
    IPW_SEEN_ERROR = 64,
};
#define IPW_SEEN_TOKEN (IPW_SEEN_TEXT | IPW_SEEN_REASONING | IPW_SEEN_CALL)

struct ipw_chat_fold;

struct ipw_chat_fold *ipw_chat_fold_new(size_t reply_max_bytes);
void ipw_chat_fold_free(struct ipw_chat_fold *fold);
/* true: parse every event, without the scanner.  The result is the same; tests compare both. */
void ipw_chat_fold_set_exact(struct ipw_chat_fold *fold, bool exact);
/* Takes the data of one SSE event.  `name` is the value of its event field, usually "".  Returns
 * the flags of ipw_chat_seen (0 for an event of unknown form).  Returns a negative code if the data
 * is not JSON or belongs to another protocol. */
int ipw_chat_fold_event(struct ipw_chat_fold *fold, const char *name, const char *data, size_t n,
                        struct ipw_err *err);
/* Takes the body of an answer that is not a stream.  Its status must be 2xx. */
int ipw_chat_fold_whole(struct ipw_chat_fold *fold, const char *body, size_t n,
                        struct ipw_err *err);
/* The reply so far; valid until the next call on the fold. */
const struct ipw_chat_reply *ipw_chat_fold_so_far(const struct ipw_chat_fold *fold);
/* Ends the stream or body.  Returns 0 for a complete answer (it has a finish reason or [DONE], and
 * no error), IPW_ENET "cut" for an incomplete answer, IPW_EHTTP for an error object.  *out always
 * receives the content so far.  A call without an id gets one, empty arguments become {}. */
int ipw_chat_fold_end(struct ipw_chat_fold *fold, struct ipw_chat_reply *out, struct ipw_err *err);
void ipw_chat_reply_release(struct ipw_chat_reply *reply);

/* Whether an error of this type or text says that the request is longer than the context. */
bool ipw_chat_error_is_context(const char *type, const char *text);
/* Reads an error body of a known form into one line ("model 'x' not found").  Of an unknown form it
 * takes up to 500 bytes.  `type` receives the error's type or code, or "". */
void ipw_chat_error_text(char *text, size_t text_size, char *type, size_t type_size,
                         const char *body, size_t n);

/* A call's arguments and name as they go back to the server in the history.
 *
 * Arguments: the text of one JSON object without lone surrogates, since servers refuse anything
 * else; "{}" if the model wrote anything else.  At most three bytes for each byte of the call, plus
 * two.  False: they were replaced so.  Name: a call without a name gets one, so that it is answered
 * like an unknown tool. */
bool ipw_chat_history_arguments(struct ipw_buf *out, const struct ipw_chat_call *call);
const char *ipw_chat_history_name(const struct ipw_chat_call *call);
/* Appends the reply as JSON for events.jsonl: text, reasoning, calls, finish, usage, model, ... */
void ipw_chat_reply_json(struct ipw_buf *out, const struct ipw_chat_reply *reply);
/* Reads a reply from such JSON.  Release it afterwards. */
struct ipw_json;
void ipw_chat_reply_read(struct ipw_chat_reply *out, const struct ipw_json *data);

#endif
