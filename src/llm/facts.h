/* llm/facts.h: what is told of an attempt, from its reply and its stamps.
 *
 * Pure.  The program's own calls (llm/client.c) and those of others that pass through the recording
 * proxy have the same facts.  Texts of the facts are the reply's, which must outlive them. */
#ifndef IPW_LLM_FACTS_H
#define IPW_LLM_FACTS_H

#include "io/http.h"
#include "llm/chat.h"
#include "llm/times.h"
#include "trace/event.h"

/* All times but sent_ns, headers_ns and first_byte_ns.  `result` NULL: it was cancelled.
 * `timings`: of the reply; or NULL. */
void ipw_llm_facts_times(struct ipw_lm_times *out, const struct ipw_llm_times *t,
                         const struct ipw_http_result *result, const char *timings);
/* Model, finish reason, tokens, cost, calls and chunks. */
void ipw_llm_facts_reply(struct ipw_lm_facts *out, const struct ipw_chat_reply *reply,
                         bool streamed);

#endif
