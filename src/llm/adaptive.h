/* llm/adaptive.h: how many requests to keep in flight, found out while running.
 *
 * A controller after TCP's pattern, pure: it is told how each inference went and answers with a
 * limit; it owns no clock and starts nothing.  Slow start: one more for each good answer, until the
 * first sign of too much.  Then gentle growth: one more for each full round of good answers.  Signs
 * of too much are a 429 (down to 0.7 of it) and a time to first token that has risen to twice the
 * best round's (down to 0.85; when that does not help, the requests themselves have changed and the
 * longer time is the new measure).  After a sign, answers of requests that were sent before it
 * count for nothing.  Where a 429 came is remembered: growth stops one below and tries again only
 * after 8 rounds, then 16, 32, ... so that a server with a fixed limit is not asked beyond it again
 * and again.  Any other failure (5xx, refused, cut) changes nothing. */
#ifndef IPW_LLM_ADAPTIVE_H
#define IPW_LLM_ADAPTIVE_H

#include <stdbool.h>
#include <stdint.h>

enum ipw_adaptive_seen {
    IPW_ADAPTIVE_GOOD,  /* an answer */
    IPW_ADAPTIVE_BUSY,  /* 429 */
    IPW_ADAPTIVE_OTHER, /* any other failure */
};

struct ipw_adaptive_sample {
    enum ipw_adaptive_seen seen;
    int64_t sent_ns, t_ns; /* of the request; of its end */
    int64_t ttft_ns;       /* 0: not known */
    int in_flight;         /* when it ended, itself included */
};

struct ipw_adaptive {
    double limit;
    int most;
    bool slow_start;
    int64_t ignore_before_ns;           /* requests sent before are of an older limit */
    int round_left;                     /* good answers until the round is full */
    double round_ttft_ns, best_ttft_ns; /* mean so far; of the best round */
    double eased_from_ns;               /* the mean that made us back off; 0: none */
    int round_n;
    int ceiling;          /* a 429 came at that many; 0: none */
    int patience, rounds; /* rounds below the ceiling to wait; passed */
};

struct ipw_adaptive_change {
    int from, to;
    const char *reason; /* "slow_start", "growth", "429", "ttft", "probe" */
};

void ipw_adaptive_init(struct ipw_adaptive *a, int start, int most);
int ipw_adaptive_limit(const struct ipw_adaptive *a);
/* True when the limit changed; *change then says how and why. */
bool ipw_adaptive_sample(struct ipw_adaptive *a, const struct ipw_adaptive_sample *s,
                         struct ipw_adaptive_change *change);

#endif
