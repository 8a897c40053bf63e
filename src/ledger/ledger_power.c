/* The power of a domain: see ledger/ledger.h. */
#include <math.h>

#include "base/clock.h"
#include "ledger/ledger_priv.h"
#include "ledger/power_steps.h"

static int64_t domain_uj(const struct ipw_ledger *l, const struct ledger_domain *d, int64_t t_ns)
{
    int64_t uj = 0;

    for (size_t i = 0; i < d->n; i++) uj += ipw_series_at(l->lines[d->first + i].series, t_ns);
    return uj;
}

/* The domain's channel that is read most often; the steps of the sum are its steps. */
static const struct ipw_series *finest(const struct ipw_ledger *l, const struct ledger_domain *d)
{
    const struct ipw_series *s = l->lines[d->first].series;

    for (size_t i = 1; i < d->n; i++) {
        const struct ipw_series *other = l->lines[d->first + i].series;

        if (other->spacing_ns < s->spacing_ns) s = other;
    }
    return s;
}

/* The peak of the sum of several channels. */
static double peak_of_sum(const struct ipw_ledger *l, const struct ledger_domain *d, int64_t t0_ns,
                          int64_t t1_ns)
{
    const struct ipw_series *s = finest(l, d);
    int64_t t = 0, uj = 0;
    double peak = 0;

    for (size_t first = ipw_series_find(s, t0_ns), i = first; i <= s->n; i++) {
        int64_t t_before = t, uj_before = uj;

        t = i < s->n ? s->samples[i].t_ns : s->last.t_ns;
        uj = domain_uj(l, d, t);
        if (i > first && t > t_before) {
            double w = (double)(uj - uj_before) * 1e3 / (double)(t - t_before);
            if (w > peak) peak = w;
        }
        if (t >= t1_ns) break;
    }
    return peak;
}

bool ipw_ledger_mean_power(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                           int64_t t1_ns, double *mean_w, double *peak_w)
{
    const struct ledger_domain *d = &l->domains[domain];
    struct ipw_ledger_question q = {
        .domain = domain, .device = IPW_LEDGER_ALL, .t0_ns = t0_ns, .t1_ns = t1_ns};
    struct ipw_figure f = ipw_ledger_gather(l, &q, IPW_LEDGER_WINDOW_SLACK_NS);

    *mean_w = *peak_w = NAN;
    if (!f.known || t1_ns <= t0_ns || f.coverage <= 0) return false;
    if (d->n == 1) return ipw_series_power(l->lines[d->first].series, t0_ns, t1_ns, mean_w, peak_w);
    *mean_w = f.j / (ipw_ns_to_s(t1_ns - t0_ns) * f.coverage);
    *peak_w = fmax(peak_of_sum(l, d, t0_ns, t1_ns), *mean_w);
    return true;
}

bool ipw_ledger_power(const struct ipw_ledger *l, enum ipw_domain domain, int64_t t0_ns,
                      int64_t t1_ns, struct ipw_power_stats *out)
{
    const struct ledger_domain *d = &l->domains[domain];
    struct ipw_power_steps steps = {0};
    const struct ipw_series *s;
    int64_t upto_ns = INT64_MIN, uj = 0; /* of the step before */

    *out = (struct ipw_power_stats){NAN, NAN, NAN, NAN};
    if (!ipw_ledger_mean_power(l, domain, t0_ns, t1_ns, &out->avg_w, &out->max_w)) return false;
    s = finest(l, d);
    for (size_t i = ipw_series_find(s, t0_ns); i < s->n && s->samples[i].t_ns < t1_ns; i++) {
        const struct ipw_series_sample *a = &s->samples[i], *b = i + 1 < s->n ? a + 1 : &s->last;
        int64_t from = a->t_ns > t0_ns ? a->t_ns : t0_ns, to = b->t_ns < t1_ns ? b->t_ns : t1_ns;
        int64_t before;
        double w;

        if (a->chain != b->chain || to <= from) continue;
        before = a->t_ns == upto_ns ? uj : domain_uj(l, d, a->t_ns);
        upto_ns = b->t_ns;
        uj = domain_uj(l, d, upto_ns);
        w = (double)(uj - before) * 1e3 / (double)(upto_ns - a->t_ns); /* uJ / ns = kW */
        if (!(w >= out->min_w)) out->min_w = w;
        ipw_power_steps_add(&steps, w, ipw_ns_to_s(to - from));
    }
    if (steps.n) out->median_w = ipw_power_steps_median(&steps);
    /* Raised for the same reason as the peak: ledger/series.h. */
    out->min_w = fmin(out->min_w, out->avg_w);
    ipw_power_steps_release(&steps);
    return true;
}
