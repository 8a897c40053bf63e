/* llm/times.h: the times of one attempt, and quantiles of the gaps between its tokens.
 *
 * Has no clock: the caller reads the clock first in the callback that receives bytes, before any
 * parsing, and passes the time.  Events of one read have the same time, so the gap is 0.  Gaps are
 * counted in buckets of 1/16 octave, from 16 microseconds to over an hour, so a quantile is within
 * 3 % of the exact value.  The buckets take 2 KB for a stream of any length.  Until there are more
 * than a few gaps, their buckets are kept as a list. */
#ifndef IPW_LLM_TIMES_H
#define IPW_LLM_TIMES_H

#include <stdint.h>

enum { IPW_LLM_GAP_BUCKETS = 16 + 28 * 16, IPW_LLM_GAPS_FEW = 24 };

struct ipw_llm_gaps {
    int64_t n, max_ns;
    uint16_t few[IPW_LLM_GAPS_FEW]; /* the buckets of the first gaps, sorted */
    uint32_t *count;                /* of each bucket; NULL: `few` has them all */
};

void ipw_llm_gaps_add(struct ipw_llm_gaps *g, int64_t gap_ns);
/* The gap that the share q of all gaps does not exceed (0.5: the median); 0 without gaps. */
int64_t ipw_llm_gaps_quantile(const struct ipw_llm_gaps *g, double q);

struct ipw_llm_times { /* 0: not seen yet */
    int64_t first_event_ns, first_token_ns, second_token_ns, last_token_ns;
    int64_t first_text_ns, first_reasoning_ns, first_call_ns;
    struct ipw_llm_gaps gaps;
};

void ipw_llm_times_release(struct ipw_llm_times *t); /* all zero again */
/* Takes one stream event; `seen`: its flags of ipw_chat_seen. */
void ipw_llm_times_event(struct ipw_llm_times *t, int64_t t_ns, int seen);

struct ipw_llm_server_times { /* 0: not reported */
    int64_t queue_ns, prefill_ns, decode_ns;
};

/* Reads a reply's "timings" (llama.cpp) or "metrics" (vLLM) text; NULL: all 0. */
void ipw_llm_server_times(struct ipw_llm_server_times *out, const char *timings);

#endif
