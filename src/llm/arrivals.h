/* llm/arrivals.h: when each event of a streamed reply came, and what it brought.
 *
 * Gathered while a stream is read, kept with the reply in the record as one text of numbers
 * (base/vlq.h, about five letters an event), and read again by who serves the record.  Two numbers
 * an entry: the microseconds since the entry before (0 for the first, which came at the attempt's
 * first_event_ns), then 8 * bytes + kind.  An event that brought several things has an entry for
 * each, 0 microseconds apart.  The bytes of ARGUMENTS go through the calls in their order.
 * Owns its text and no clock. */
#ifndef IPW_LLM_ARRIVALS_H
#define IPW_LLM_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "llm/chat.h"

enum ipw_arrival_kind {
    IPW_ARRIVAL_OTHER, /* nothing of the reply: a role, a finish reason, usage, [DONE] */
    IPW_ARRIVAL_TEXT,
    IPW_ARRIVAL_REASONING,
    IPW_ARRIVAL_ARGUMENTS,
    IPW_ARRIVAL_CALL, /* `bytes` further calls begin */
};

struct ipw_arrivals { /* all zero: none yet */
    struct ipw_buf text;
    int64_t last_us;
    size_t text_bytes, reasoning_bytes, argument_bytes, n_calls; /* so far */
};

/* An event came, and the reply is now what `so_far` says. */
void ipw_arrivals_add(struct ipw_arrivals *a, int64_t t_ns, const struct ipw_chat_reply *so_far);
/* Moves the text; *out stays empty when there is too much of it. */
void ipw_arrivals_take(struct ipw_buf *out, struct ipw_arrivals *a);

struct ipw_arrival {
    int64_t after_us; /* since the first event */
    enum ipw_arrival_kind kind;
    size_t bytes;
};
/* Reads the entry at *at into *arrival, which holds the one before (all zero: none), and moves *at
 * on.  False at the end, and at what is no entry. */
bool ipw_arrivals_next(const char **at, struct ipw_arrival *arrival);

#endif
