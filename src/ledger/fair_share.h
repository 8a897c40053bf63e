/* ledger/fair_share.h: how much of a device's power each of several concurrent queries causes.
 *
 * Pure.  A device saturates: two decodes draw less than twice the power of one.  s_p is the power
 * that a phase draws above idle when its call is alone.  The device's law is
 *     v(S) = C * (1 - product over i in S of (1 - s_i / C))
 * which is s_i for one call and C for very many.  The fair part of call i is its Shapley value: the
 * mean, over all orders, of the power that it adds to the calls before it.  Under this law that is
 *     s_i * integral from 0 to 1 of (product over j other than i of (1 - u * s_j / C)) du
 * (u: the share of the other calls that come before i).  The parts of all calls sum to v.  If C is
 * much larger than all demands, the part is s_i: proportional shares. */
#ifndef IPW_LEDGER_FAIR_SHARE_H
#define IPW_LEDGER_FAIR_SHARE_H

#include "ledger/phase.h"

struct ipw_fair {
    /* s: power of one query in this phase, above idle; not negative. */
    double single_w[IPW_PHASE_COUNT];
    /* C: the highest power above idle; at least as much as each s. */
    double cap_w;
};

/* The weight of one query in each phase while `count` queries are in flight; 0 for a phase without
 * queries. */
void ipw_fair_weights(const struct ipw_fair *fair, const int32_t count[IPW_PHASE_COUNT],
                      double weights[IPW_PHASE_COUNT]);

#endif
