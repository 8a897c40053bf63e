/* llm/chat.h: the chat-completions protocol, without any I/O.
 *
 * Pure: request structs to bodies, bytes of answers to a reply struct.  Servers differ in what they
 * send; each file says which differences it accepts.  A `struct ipw_chat_fold` gathers the deltas
 * of a stream, or takes a whole answer; both end in the same `struct ipw_chat_reply`, which owns
 * its buffers. */
#ifndef IPW_LLM_CHAT_H
#define IPW_LLM_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_chat_request {
    const char *model;
    /* JSON texts of one message or of several with commas between them, sorted keys; borrowed. */
    const struct ipw_chat_text {
        const char *json;
        size_t n;
    } * messages;
    size_t n_messages;
    const char *tools;           /* JSON array text, or NULL */
    const char *tool_choice;     /* JSON text, or NULL */
    const char *response_format; /* JSON text, or NULL */
    const char *extra;         /* JSON object text whose members are added (theirs win), or NULL */
    const char *stop;          /* JSON text (string or array), or NULL */
    double temperature, top_p; /* NAN: not sent */
    int64_t seed;              /* INT64_MIN: not sent */
    int64_t max_tokens;        /* < 0: not sent */
    int64_t force_tokens;      /* > 0: a reply of exactly that many (ignore_eos, min_tokens) */
    int64_t not_before_ns;     /* the request is made ready, and sent at that instant; 0: at once */
    bool use_max_completion_tokens; /* the name the limit is sent under */
    bool stream;        /* always true in runs; whole answers are understood all the same */
    bool include_usage; /* stream_options, with stream only */
    const char *over;   /* JSON object text whose members win over all others, or NULL */
};

struct ipw_chat_call {
    char *id, *name;
    struct ipw_buf arguments; /* text as the model wrote it; "{}" when it wrote none */
    bool has_index;
    int64_t index;
};

enum ipw_chat_finish {
    IPW_FINISH_NONE, /* none came */
    IPW_FINISH_STOP,
    IPW_FINISH_LENGTH,
    IPW_FINISH_TOOL_CALLS,
    IPW_FINISH_FILTER,
    IPW_FINISH_OTHER, /* a word we do not know: finish_word keeps it */
};

struct ipw_chat_usage { /* -1: not told */
    int64_t prompt, completion, total, cached, reasoning;
};

struct ipw_chat_reply {
    struct ipw_buf text, reasoning;
    struct ipw_chat_call *calls;
    size_t n_calls, cap_calls;
    enum ipw_chat_finish finish;
    char *finish_word; /* the server's, or NULL */
    char *model, *id;  /* or NULL */
    struct ipw_chat_usage usage;
    char *timings;    /* llama.cpp's "timings" (or vLLM's "metrics") object as JSON text, or NULL */
    bool done_marker; /* [DONE] was seen */
    char *error;      /* an error object inside the answer: its message, or NULL */
    char *error_type; /* its "type" or "code" as text, or NULL */
    int64_t chunks;   /* events that carried content */
    int64_t repairs;  /* bytes and escapes that the JSON guard repaired */
    int error_code;   /* the error's numeric code when it is a status from 400 to 599, or 0 */
    int64_t ignored_choices; /* deltas of choices other than the first */
    bool cost_told;          /* usage.cost, as OpenRouter sends it: */
    double cost_usd;
    /* For the record: entries of the first choice's logprobs.content, joined by commas, and what
     * the other choices said (n > 1). */
    struct ipw_buf logprobs;
    struct ipw_chat_choice {
        int64_t index;
        struct ipw_buf text;
        char *finish_word;
    } * others;
    size_t n_others, cap_others;
    struct ipw_buf arrivals; /* of a stream's events (llm/arrivals.h), or empty */
};

/* What one stream event carried: or-ed flags. */
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

struct ipw_chat_fold; /* opaque: remembers the shape of the last chunk to read the next one fast */

struct ipw_chat_fold *ipw_chat_fold_new(size_t reply_max_bytes);
void ipw_chat_fold_free(struct ipw_chat_fold *fold);
/* true: parse every event, never take the fast path; the result is the same (tests compare). */
void ipw_chat_fold_set_exact(struct ipw_chat_fold *fold, bool exact);
/* One SSE event's data.  `name` is its event: name ("" usual; "error" is one).  Returns or-ed
 * ipw_chat_seen (0 for an event of unknown shape), or a negative code: data that is not JSON, or of
 * another protocol. */
int ipw_chat_fold_event(struct ipw_chat_fold *fold, const char *name, const char *data, size_t n,
                        struct ipw_err *err);
/* A whole (not streamed) answer's body with status 2xx. */
int ipw_chat_fold_whole(struct ipw_chat_fold *fold, const char *body, size_t n,
                        struct ipw_err *err);
/* What has come; valid until the next call on the fold. */
const struct ipw_chat_reply *ipw_chat_fold_so_far(const struct ipw_chat_fold *fold);
/* The stream or body is over.  0 when the answer is complete (a finish reason, or [DONE], and no
 * error); IPW_ENET "cut" when it is not; IPW_EHTTP for an error object.  In all cases *out receives
 * what was gathered (call ids made up where none came, empty arguments as {}). */
int ipw_chat_fold_end(struct ipw_chat_fold *fold, struct ipw_chat_reply *out, struct ipw_err *err);
void ipw_chat_reply_release(struct ipw_chat_reply *reply);

/* Reads an error body of any of the known shapes into one line ("model 'x' not found"); at most 500
 * bytes of an unknown one.  `type` receives its type or code, "" when none. */
void ipw_chat_error_text(char *text, size_t text_size, char *type, size_t type_size,
                         const char *body, size_t n);

/* A call as it goes back to the server in the history.  Of the arguments what every server can read
 * again is appended, at most three bytes for each (and two): the text of one JSON object without
 * lone surrogates, "{}" where the model wrote anything else.  A call without a name gets one: it is
 * answered like any other unknown tool. */
void ipw_chat_history_arguments(struct ipw_buf *out, const struct ipw_chat_call *call);
const char *ipw_chat_history_name(const struct ipw_chat_call *call);
/* Appends the reply as JSON for the record: text, reasoning, calls, finish, usage, model, ... */
void ipw_chat_reply_json(struct ipw_buf *out, const struct ipw_chat_reply *reply);
/* The reverse: what the record says of a reply.  Release it afterwards. */
struct ipw_json;
void ipw_chat_reply_read(struct ipw_chat_reply *out, const struct ipw_json *data);

#endif
