/* The fallback for windows that no counter can separate (docs/method.md, "Fallbacks").
 *
 * The windows share their common energy.  If every window of any length had tokens, or if the
 * device's idle power is known, the energy above idle is split by tokens.  Otherwise all of it is
 * split by wall clock. */
#include <math.h>

#include "ledger/ledger_priv.h"

void ipw_ledger_split_begin(struct ledger_split *s, int64_t rest_uj)
{
    bool all_have = true;

    s->rest = rest_uj;
    for (size_t i = 0; i < s->n; i++) {
        double weight = 0;

        if (!s->open[i]) continue;
        s->open_ns += s->t[i + 1] - s->t[i];
        if (s->q) weight = ipw_ledger_token_weight(s->l, s->q, s->t[i], s->t[i + 1]);
        if (!(weight > 0) && s->t[i + 1] > s->t[i]) all_have = false;
        s->weight += weight;
    }
    s->idle = (double)ipw_ledger_idle_part(s->line, rest_uj, s->open_ns);
    if (!all_have && isnan(s->line->baseline_w)) s->weight = 0;
}

int64_t ipw_ledger_split_upto(struct ledger_split *s, size_t i)
{
    double part;

    s->done_ns += s->t[i + 1] - s->t[i];
    if (s->done_ns >= s->open_ns) return s->rest;
    if (!(s->weight > 0)) return (int64_t)((__int128)s->rest * s->done_ns / s->open_ns);
    s->done_weight += ipw_ledger_token_weight(s->l, s->q, s->t[i], s->t[i + 1]);
    part = s->idle * (double)s->done_ns / (double)s->open_ns +
           ((double)s->rest - s->idle) * s->done_weight / s->weight;
    return part < (double)s->rest ? (int64_t)part : s->rest;
}
