/* trace/workload_prompt.h: makes a text for a request of which only the length is known.
 *
 * It consists of common words that are one token each in common vocabularies.  Blocks of equal id
 * get equal words, so a prefix cache still finds them.  The same turn and seed always give the same
 * text. */
#ifndef IPW_TRACE_WORKLOAD_PROMPT_H
#define IPW_TRACE_WORKLOAD_PROMPT_H

#include "base/buf.h"
#include "trace/workload.h"

/* Appends one message as JSON with about the turn's number of tokens: its blocks, then other words,
 * by `seed`. */
void ipw_workload_prompt(struct ipw_buf *out, const struct ipw_workload_turn *turn, uint64_t seed);

#endif
