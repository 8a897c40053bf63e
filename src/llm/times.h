/* llm/times.h: the stamps of one attempt, and the quantiles of the gaps between its events.
 *
 * Owns no clock: every instant is handed in, taken by the caller as the first statement of the
 * callback that saw the bytes, before anything was parsed.  Events that came in one read have one
 * stamp and a gap of 0 between them.  The gaps are counted in buckets of 1/16 octave (a quantile is
 * within 3 % of the true one) from 16 microseconds to over an hour, so that a stream of any length
 * takes 2 KB; a reply that has not begun takes none. */
#ifndef IPW_LLM_TIMES_H
#define IPW_LLM_TIMES_H

#include <stdint.h>

enum { IPW_LLM_GAP_BUCKETS = 16 + 28 * 16 };

struct ipw_llm_gaps {
    int64_t n, max_ns;
    uint32_t *count; /* IPW_LLM_GAP_BUCKETS of them; NULL: no gap yet */
};

void ipw_llm_gaps_add(struct ipw_llm_gaps *g, int64_t gap_ns);
/* The smallest gap that at least the share q of all are not above; 0 without any. */
int64_t ipw_llm_gaps_quantile(const struct ipw_llm_gaps *g, double q);

struct ipw_llm_times { /* all zero: nothing seen yet */
    int64_t first_event_ns, first_token_ns, second_token_ns, last_token_ns;
    int64_t first_text_ns, first_reasoning_ns, first_call_ns;
    struct ipw_llm_gaps gaps;
};

void ipw_llm_times_release(struct ipw_llm_times *t); /* all zero again */
/* One stream event; `seen` are its or-ed ipw_chat_seen flags. */
void ipw_llm_times_event(struct ipw_llm_times *t, int64_t t_ns, int seen);

struct ipw_llm_server_times { /* 0: not told */
    int64_t queue_ns, prefill_ns, decode_ns;
};

/* From a reply's "timings" (llama.cpp) or "metrics" (vLLM) text; NULL tells nothing. */
void ipw_llm_server_times(struct ipw_llm_server_times *out, const char *timings);

#endif
