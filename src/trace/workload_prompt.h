/* trace/workload_prompt.h: a text for a request of which only the length is known.
 *
 * Common words, each of which is one token in the vocabularies in use; blocks of equal id get equal
 * words, so that what could be taken out of a prefix cache still can.  The same turn and seed give
 * the same text, always. */
#ifndef IPW_TRACE_WORKLOAD_PROMPT_H
#define IPW_TRACE_WORKLOAD_PROMPT_H

#include "base/buf.h"
#include "trace/workload.h"

/* Appends one message as JSON whose text has about that many tokens: the turn's blocks, then words
 * of its own, by `seed`. */
void ipw_workload_prompt(struct ipw_buf *out, const struct ipw_workload_turn *turn, uint64_t seed);

#endif
