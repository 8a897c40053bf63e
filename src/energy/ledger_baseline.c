#include "energy/ledger_baseline.h"

#include <math.h>

#include "base/clock.h"
#include "energy/attribution_priv.h"
#include "energy/power_steps.h"

#define LEAST_COVERAGE 0.9
#define LEAST_STEPS    3
#define DRIFT_W        2.0
#define DRIFT_SHARE    0.10
#define RATIO_OFF      0.05
#define RATIO_NS       (10 * IPW_NS_PER_S)

struct ipw_baseline ipw_series_baseline(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_baseline b = {.reason = "no_samples"};
    struct ipw_power_steps steps = {0};

    if (!s->n) return b;
    b.reason = "not_covered";
    for (size_t i = ipw_series_find(s, t0_ns); i + 1 < s->n && s->samples[i].t_ns < t1_ns; i++) {
        const struct ipw_series_sample *a = &s->samples[i];
        int64_t from = a->t_ns > t0_ns ? a->t_ns : t0_ns;
        int64_t to = a[1].t_ns < t1_ns ? a[1].t_ns : t1_ns;

        if (a->chain != a[1].chain || to <= from) continue;
        ipw_power_steps_add(&steps, (double)(a[1].uj - a->uj) * 1e3 / (double)(a[1].t_ns - a->t_ns),
                            ipw_ns_to_s(to - from));
    }
    b.seconds = steps.seconds;
    if (steps.n >= LEAST_STEPS && b.seconds >= LEAST_COVERAGE * ipw_ns_to_s(t1_ns - t0_ns)) {
        b.known = true;
        b.w = ipw_power_steps_median(&steps);
        b.reason = NULL;
    }
    ipw_power_steps_release(&steps);
    return b;
}

struct ipw_baseline ipw_ledger_baseline(const struct ipw_ledger *l, enum ipw_domain domain,
                                        int64_t t0_ns, int64_t t1_ns)
{
    const struct ledger_domain *d = &l->domains[domain];
    struct ipw_baseline sum = {.known = true, .seconds = INFINITY};

    if (!d->n) return (struct ipw_baseline){.reason = d->reason};
    for (size_t i = 0; i < d->n; i++) {
        struct ipw_baseline b = ipw_series_baseline(l->lines[d->first + i].series, t0_ns, t1_ns);

        if (!b.known) return b;
        sum.w += b.w;
        if (b.seconds < sum.seconds) sum.seconds = b.seconds;
    }
    return sum;
}

struct ipw_idle_verdict ipw_baseline_judge(const struct ipw_baseline *before,
                                           const struct ipw_baseline *after)
{
    struct ipw_idle_verdict v = {.usable = true, .drift_w = NAN};
    double limit;

    if (!before->known) {
        v.usable = false;
        v.reason = before->reason;
        if (after && after->known) v.w = after->w;
        return v;
    }
    v.w = before->w;
    if (!after) return v;
    if (!after->known) {
        v.usable = false;
        v.reason = after->reason;
        return v;
    }
    v.w = (before->w + after->w) / 2;
    v.drift_w = after->w - before->w;
    limit = DRIFT_SHARE * before->w > DRIFT_W ? DRIFT_SHARE * before->w : DRIFT_W;
    if (fabs(v.drift_w) > limit) {
        v.usable = false;
        v.reason = "baseline_drift";
    }
    return v;
}

struct ipw_figure ipw_baseline_net(const struct ipw_figure *gross,
                                   const struct ipw_idle_verdict *verdict, double seconds)
{
    struct ipw_figure net = *gross;

    if (!gross->known) return net;
    if (!verdict->usable) {
        return (struct ipw_figure){.provenance = IPW_PROV_NONE, .reason = verdict->reason};
    }
    net.j -= verdict->w * seconds;
    net.lo_j -= verdict->w * seconds;
    net.hi_j -= verdict->w * seconds;
    return net;
}

bool ipw_series_ratio(const struct ipw_series *counter, const struct ipw_series *gauge,
                      int64_t t0_ns, int64_t t1_ns, double *ratio, bool *suspicious)
{
    struct ipw_figure c = ipw_series_between(counter, t0_ns, t1_ns, 0);
    struct ipw_figure g = ipw_series_between(gauge, t0_ns, t1_ns, 0);

    if (t1_ns - t0_ns < RATIO_NS || !c.known || !g.known || !(g.j > 0)) return false;
    *ratio = c.j / g.j;
    *suspicious = fabs(*ratio - 1) > RATIO_OFF;
    return true;
}

bool ipw_ledger_ratio(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                      int64_t t1_ns, double *ratio, bool *suspicious)
{
    const struct ledger_domain *d = &l->domains[domain];
    bool found = false;

    for (size_t i = 0; i < d->n; i++) {
        double r;
        bool odd;

        if (!l->lines[d->first + i].gauge ||
            !ipw_series_ratio(l->lines[d->first + i].series, l->lines[d->first + i].gauge, t0_ns,
                              t1_ns, &r, &odd)) {
            continue;
        }
        if (found && fabs(r - 1) <= fabs(*ratio - 1)) continue;
        *ratio = r;
        *suspicious = odd;
        found = true;
    }
    return found;
}
