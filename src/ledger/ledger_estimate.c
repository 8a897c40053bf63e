/* The estimate beside an unknown value (docs/method.md, "Fallbacks"), where no sensor measured it.
 *
 * The part of the window inside chains counts as measured.  The rest is the last known power times
 * the time; with n queries in flight, a query gets a n-th of it.  The lower bound is the measured
 * part.  The upper bound adds the device's highest power for the rest.  The figure stays unknown
 * and is in no total. */

#include "base/clock.h"
#include "ledger/ledger_priv.h"

/* The mean of 1 / n over the window, with n queries in flight. */
static double mean_part(const struct ipw_book *b, const struct ipw_book_account *a, int64_t t0_ns,
                        int64_t t1_ns)
{
    return (ipw_book_record_at(b, a, t1_ns).parted_ns - ipw_book_record_at(b, a, t0_ns).parted_ns) /
           (double)(t1_ns - t0_ns);
}

struct ipw_figure ipw_ledger_estimate(const struct ipw_book *b, const struct ipw_book_account *a,
                                      int64_t t0_ns, int64_t t1_ns, struct ipw_figure f)
{
    const struct ipw_series *gauge = ipw_book_has_gauge(b) ? &b->gauge : NULL;
    double watts, part, missing_s, known_j;

    if (f.known || t1_ns <= t0_ns || !f.reason || ipw_reason_of(f.reason) == IPW_REASON_SUSPENDED)
        return f;
    if (!ipw_series_guess(&b->series, gauge, t0_ns, t1_ns, &watts, &f.estimate_by)) {
        f.estimate_by = NULL;
        return f;
    }
    part = mean_part(b, a, t0_ns, t1_ns);
    missing_s = ipw_ns_to_s(t1_ns - t0_ns) * (1 - ipw_series_coverage(&b->series, t0_ns, t1_ns));
    known_j =
        (double)(ipw_book_record_at(b, a, t1_ns).uj - ipw_book_record_at(b, a, t0_ns).uj) / 1e6;
    f.estimated = true;
    f.estimate_j = known_j + watts * missing_s * part;
    f.lo_j = known_j;
    f.hi_j = known_j + (double)ipw_series_most_w(&b->series) * missing_s * part;
    if (f.hi_j < f.estimate_j) f.hi_j = f.estimate_j;
    return f;
}

/* A model's energy up to t; beyond its newest reading, by the power between the last two. */
static double model_uj(const struct ipw_series *s, int64_t t_ns)
{
    const struct ipw_series_sample *a, *b;
    double slope;

    if (t_ns <= s->last.t_ns || s->n - s->first < 2) return (double)ipw_series_at(s, t_ns);
    a = &s->samples[s->n - 2];
    b = &s->samples[s->n - 1];
    slope = (double)(b->uj - a->uj) / (double)(b->t_ns - a->t_ns);
    return (double)b->uj + slope * (double)(t_ns - b->t_ns);
}

struct ipw_figure ipw_ledger_by_model(const struct ipw_book *b, const struct ipw_book_account *a,
                                      int64_t t0_ns, int64_t t1_ns, struct ipw_figure f)
{
    const struct ipw_series *model[3] = {&b->series, &b->gauge, &b->most};
    double part, j[3];

    if (f.known || f.estimated || !a || t1_ns <= t0_ns || b->most.n < 2) return f;
    if (t0_ns < b->series.samples[b->series.first].t_ns - IPW_NS_PER_S / 10) return f;
    part = mean_part(b, a, t0_ns, t1_ns);
    for (int i = 0; i < 3; i++)
        j[i] = (model_uj(model[i], t1_ns) - model_uj(model[i], t0_ns)) * part / 1e6;
    f.estimated = true;
    f.estimate_by = "model";
    f.estimate_j = j[0];
    f.lo_j = j[1] < j[0] ? j[1] : j[0];
    f.hi_j = j[2] > j[0] ? j[2] : j[0];
    return f;
}
