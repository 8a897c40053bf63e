/* The power of a domain: see ledger/ledger.h. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/ledger_priv.h"
#include "ledger/power_steps.h"

struct devices { /* those of a question */
    const struct ipw_series **all;
    size_t n;
};

static struct devices devices_of(const struct ipw_ledger *l, const struct ipw_ledger_question *q)
{
    struct devices d = {0};
    size_t cap = 0;

    for (struct ledger_asked a = ipw_ledger_asks(l, q); ipw_ledger_next(&a);) {
        IPW_GROW(d.all, cap, d.n + 1);
        d.all[d.n++] = a.line->series;
    }
    return d;
}

static int64_t sum_uj(const struct devices *d, int64_t t_ns)
{
    int64_t uj = 0;

    for (size_t i = 0; i < d->n; i++) uj += ipw_series_at(d->all[i], t_ns);
    return uj;
}

/* The channel that is read most often; the steps of the sum are its steps. */
static const struct ipw_series *finest(const struct devices *d)
{
    const struct ipw_series *s = d->all[0];

    for (size_t i = 1; i < d->n; i++)
        if (d->all[i]->pace.spacing_ns < s->pace.spacing_ns) s = d->all[i];
    return s;
}

/* The peak of the sum of several channels. */
static double peak_of_sum(const struct devices *d, int64_t t0_ns, int64_t t1_ns)
{
    const struct ipw_series *s = finest(d);
    int64_t t = 0, uj = 0;
    double peak = 0;

    for (size_t first = ipw_series_find(s, t0_ns), i = first; i <= s->n; i++) {
        int64_t t_before = t, uj_before = uj;

        t = i < s->n ? s->samples[i].t_ns : s->last.t_ns;
        uj = sum_uj(d, t);
        if (i > first && t > t_before) {
            double w = (double)(uj - uj_before) * 1e3 / (double)(t - t_before);
            if (w > peak) peak = w;
        }
        if (t >= t1_ns) break;
    }
    return peak;
}

static bool mean_power(const struct devices *d, const struct ipw_ledger_question *q, double *mean_w,
                       double *peak_w)
{
    double j, part, joules = 0, coverage = d->n ? 1 : 0;

    *mean_w = *peak_w = NAN;
    for (size_t i = 0; i < d->n; i++) {
        if (!ipw_series_joules(d->all[i], q->t0_ns, q->t1_ns, IPW_LEDGER_WINDOW_SLACK_NS, &j,
                               &part))
            return false;
        joules = ipw_figure_add_j(joules, j);
        coverage = fmin(coverage, part);
    }
    if (q->t1_ns <= q->t0_ns || coverage <= 0) return false;
    if (d->n == 1) return ipw_series_power(d->all[0], q->t0_ns, q->t1_ns, mean_w, peak_w);
    *mean_w = joules / (ipw_ns_to_s(q->t1_ns - q->t0_ns) * coverage);
    *peak_w = fmax(peak_of_sum(d, q->t0_ns, q->t1_ns), *mean_w);
    return true;
}

bool ipw_ledger_mean_power(const struct ipw_ledger *l, struct ipw_ledger_question q, double *mean_w,
                           double *peak_w)
{
    struct devices d = devices_of(l, &q);
    bool known = mean_power(&d, &q, mean_w, peak_w);

    free(d.all);
    return known;
}

static void add_steps(struct ipw_power_steps *steps, const struct devices *d,
                      const struct ipw_ledger_question *q, struct ipw_power_stats *out)
{
    const struct ipw_series *s = finest(d);
    int64_t upto_ns = INT64_MIN, uj = 0; /* end and energy of the step before */

    for (size_t i = ipw_series_find(s, q->t0_ns); i < s->n && s->samples[i].t_ns < q->t1_ns; i++) {
        const struct ipw_series_sample *a = &s->samples[i], *b = i + 1 < s->n ? a + 1 : &s->last;
        int64_t from = a->t_ns > q->t0_ns ? a->t_ns : q->t0_ns;
        int64_t to = b->t_ns < q->t1_ns ? b->t_ns : q->t1_ns, before;
        double w;

        if (a->chain != b->chain || to <= from) continue;
        before = a->t_ns == upto_ns ? uj : sum_uj(d, a->t_ns);
        upto_ns = b->t_ns;
        uj = sum_uj(d, upto_ns);
        w = (double)(uj - before) * 1e3 / (double)(upto_ns - a->t_ns); /* uJ / ns = kW */
        if (!(w >= out->min_w)) out->min_w = w;
        ipw_power_steps_add(steps, w, ipw_ns_to_s(to - from));
    }
}

bool ipw_ledger_power(const struct ipw_ledger *l, struct ipw_ledger_question q,
                      struct ipw_power_stats *out)
{
    struct devices d = devices_of(l, &q);
    struct ipw_power_steps steps = {0};
    bool known;

    *out = (struct ipw_power_stats){NAN, NAN, NAN, NAN};
    known = mean_power(&d, &q, &out->avg_w, &out->max_w);
    if (known) {
        add_steps(&steps, &d, &q, out);
        if (steps.n) out->median_w = ipw_power_steps_median(&steps);
        /* Raised for the same reason as the peak: ledger/series.h. */
        out->min_w = fmin(out->min_w, out->avg_w);
        ipw_power_steps_release(&steps);
    }
    free(d.all);
    return known;
}
