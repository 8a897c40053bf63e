/* The guaranteed bounds of ledger/series.h (docs/method.md, "Bounds").
 *
 * A sample of value v says that E(x) lies in [v, v + unit] for some x in [t - early, t + late].
 * With the power in [0, most], at an instant s
 *     E(s) >= v                               when s >= t + late, else v - most * (t + late - s)
 *     E(s) <= v + unit                        when s <= t - early, else v + unit + most * (s - ...)
 * Both are taken over the samples next to s. */
#include "ledger/series_priv.h"

#define UNIT_WRAPPING_UJ 62   /* the coarsest usual RAPL unit is 61.04 uJ */
#define UNIT_UJ          1000 /* NVML counts millijoules */
#define SAMPLES_BEFORE   2

int64_t ipw_series_most_w(const struct ipw_series *s)
{
    int64_t twice = (int64_t)(2 * s->largest_mw / 1000) + 1;

    return s->channel.max_w >= IPW_SERIES_UNLIMITED_W && s->largest_mw > 0 && twice < s->most_w
               ? twice
               : s->most_w;
}

struct span {
    int64_t lo, hi;
};

static void narrow_by(struct span *span, const struct ipw_series_sample *x, int64_t s_ns,
                      int64_t most_w, int64_t unit)
{
    int64_t early = x->t_ns - x->early_ns, late = x->t_ns + x->late_ns;
    int64_t lo = x->uj, hi = x->uj + unit, cost;

    /* W * ns = nJ.  An overflow is not a bound. */
    if (s_ns < late) {
        if (__builtin_mul_overflow(late - s_ns, most_w, &cost)) return;
        lo -= cost / 1000 + 1;
    }
    if (s_ns > early) {
        if (__builtin_mul_overflow(s_ns - early, most_w, &cost)) return;
        hi += cost / 1000 + 1;
    }
    if (lo > span->lo) span->lo = lo;
    if (hi < span->hi) span->hi = hi;
}

void ipw_series_bound(const struct ipw_series *s, int64_t t_ns, int64_t uj,
                      const struct ipw_series_sample *at, const struct ipw_series_sample *next,
                      int64_t *below_uj, int64_t *above_uj)
{
    bool in_head = s->head.n && at >= s->head.samples && at < s->head.samples + s->head.n;
    const struct ipw_series_sample *begin = in_head ? s->head.samples : s->samples + s->first;
    int64_t most_w = next && next->most_w > at->most_w ? next->most_w : at->most_w;
    int64_t unit = s->channel.modulus_uj > 0 ? UNIT_WRAPPING_UJ : UNIT_UJ;
    struct span span = {INT64_MIN, INT64_MAX};

    for (int back = 0; back <= SAMPLES_BEFORE && at - begin >= back; back++) {
        if (at[-back].chain != at->chain) break;
        narrow_by(&span, at - back, t_ns, most_w, unit);
    }
    /* Use only the one sample that the energy here depends on, so that a final figure stays
     * final. */
    if (next && t_ns > at->t_ns && next->chain == at->chain) {
        narrow_by(&span, next, t_ns, most_w, unit);
    }
    *below_uj = span.lo < uj ? uj - span.lo : 0;
    *above_uj = span.hi > uj ? span.hi - uj : 0;
}
