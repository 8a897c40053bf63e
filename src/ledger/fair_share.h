/* ledger/fair_share.h: who causes how much of what a device draws for several queries at once.
 *
 * Pure.  A device saturates: two decodes draw less than twice one.  What each phase draws above idle
 * when its call is alone is s_p, and the device's law is
 *     v(S) = C * (1 - product over i in S of (1 - s_i / C))
 * which is s_i for one call and C for very many.  The fair part of call i is its Shapley value, the
 * mean over all orders of what it adds to those before it; under this law that is
 *     s_i * integral from 0 to 1 of (product over j other than i of (1 - u * s_j / C)) du
 * (u: the share of the others that come before i), and the parts of all sum to v.  With C much
 * larger than all demands it is s_i: proportional shares. */
#ifndef IPW_LEDGER_FAIR_SHARE_H
#define IPW_LEDGER_FAIR_SHARE_H

#include "ledger/phase.h"

struct ipw_fair {
    double single_w[IPW_PHASE_COUNT]; /* s: of one query in this phase, above idle; not negative */
    double cap_w;                     /* C: the most above idle; at least as much as each s */
};

/* The weight of one query in each phase while `count` of them are in flight; 0 for a phase that
 * nobody is in. */
void ipw_fair_weights(const struct ipw_fair *fair, const int32_t count[IPW_PHASE_COUNT],
                      double weights[IPW_PHASE_COUNT]);

#endif
