/* llm/arrivals.h: when each event of a streamed reply arrived, and what it contained.
 *
 * The entries are gathered while a stream is read.  They are saved with the reply as one text of
 * numbers (base/vlq.h), about five characters per event.  The replay server reads them again.
 *
 * An entry has two numbers: the microseconds since the entry before it, then 8 * bytes + kind.  The
 * first entry has 0 microseconds; its time is the attempt's first_event_ns.  An event with several
 * kinds of content has one entry for each, 0 microseconds apart.  The bytes of ARGUMENTS belong to
 * the calls in their order.  Owns its text, has no clock. */
#ifndef IPW_LLM_ARRIVALS_H
#define IPW_LLM_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "llm/chat.h"

enum ipw_arrival_kind {
    IPW_ARRIVAL_OTHER, /* no content: a role, a finish reason, usage, [DONE] */
    IPW_ARRIVAL_TEXT,
    IPW_ARRIVAL_REASONING,
    IPW_ARRIVAL_ARGUMENTS,
    IPW_ARRIVAL_CALL, /* `bytes` is the number of calls that begin */
};

struct ipw_arrivals { /* all zero: no entry yet */
    struct ipw_buf text;
    int64_t last_us;
    size_t text_bytes, reasoning_bytes, argument_bytes, n_calls; /* seen so far */
};

/* Adds an event.  `so_far`: the reply including the event. */
void ipw_arrivals_add(struct ipw_arrivals *a, int64_t t_ns, const struct ipw_chat_reply *so_far);
/* Moves the text into *out; *out is empty if the text is too long. */
void ipw_arrivals_take(struct ipw_buf *out, struct ipw_arrivals *a);

struct ipw_arrival {
    int64_t after_us; /* since the first event */
    enum ipw_arrival_kind kind;
    size_t bytes;
};
/* Reads the entry at *at and moves *at behind it.  *arrival must hold the entry before it, or all
 * zeros before the first.  False: the end, or not an entry. */
bool ipw_arrivals_next(const char **at, struct ipw_arrival *arrival);

#endif
