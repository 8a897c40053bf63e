/* llm/adaptive.h: finds the number of requests to keep in flight while a run goes on.
 *
 * Pure: the caller reports each attempt and obeys the limit; the controller has no clock and starts
 * nothing.  It follows TCP's congestion control:
 * - Slow start: each good answer raises the limit by one, until the first sign of overload.
 * - Growth: afterwards each full round of good answers raises the limit by one.
 * - A 429 is a sign of overload: the limit falls to 0.7 of the requests in flight.  Growth then
 *   stops one below that number.  It tries the number again after 8 rounds, then 16, 32, ...
 * - A time to first token of twice the best round's is a sign of overload: the limit falls to 0.85.
 *   If the time stays long, the requests have changed, and the longer time becomes the best.
 * - After a sign, the answers of requests sent before it are ignored.
 * - Other failures (5xx, refused, cut) change nothing. */
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
    int64_t sent_ns, t_ns; /* when the request was sent; when it ended */
    int64_t ttft_ns;       /* 0: unknown */
    int in_flight;         /* requests in flight at its end, including itself */
};

struct ipw_adaptive {
    double limit;
    int most;
    bool slow_start;
    int64_t ignore_before_ns;           /* requests sent before this belong to an older limit */
    int round_left;                     /* good answers until the round is full */
    double round_ttft_ns, best_ttft_ns; /* mean of this round so far; mean of the best round */
    double eased_from_ns;               /* the round's mean before the last back-off; 0: none */
    int round_n;
    int ceiling;          /* requests in flight at the last 429; 0: none */
    int patience, rounds; /* rounds to wait below the ceiling; rounds waited */
};

struct ipw_adaptive_change {
    int from, to;
    const char *reason; /* "slow_start", "growth", "429", "ttft", "probe" */
};

void ipw_adaptive_init(struct ipw_adaptive *a, int start, int most);
int ipw_adaptive_limit(const struct ipw_adaptive *a);
/* Returns true if the limit changed, and writes how and why into *change. */
bool ipw_adaptive_sample(struct ipw_adaptive *a, const struct ipw_adaptive_sample *s,
                         struct ipw_adaptive_change *change);

#endif
