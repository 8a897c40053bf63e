/* The power of a domain: see ledger/ledger.h.  A step is the mean power between two neighbouring
 * readings, and how much of it lies in the window. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/ledger_priv.h"

struct devices { /* those of a question */
    const struct ipw_series **all;
    size_t n;
};

struct step {
    double w, seconds;
};

struct steps {
    struct step *all;
    size_t n, cap;
    double seconds; /* sum over all steps */
};

static struct devices devices_of(const struct ipw_ledger *l, const struct ipw_ledger_question *q)
{
    struct devices d = {0};
    size_t cap = 0;

    for (struct ledger_asked a = ipw_ledger_asks(l, q); ipw_ledger_next(&a);) {
        IPW_GROW(d.all, cap, d.n + 1);
        d.all[d.n++] = &a.book->series;
    }
    return d;
}

static int64_t sum_uj(const struct devices *d, int64_t t_ns)
{
    int64_t uj = 0;

    for (size_t i = 0; i < d->n; i++) uj += ipw_series_at(d->all[i], t_ns);
    return uj;
}

/* The steps of a sum are those of the channel that is read most often. */
static struct steps steps_of(const struct devices *d, const struct ipw_ledger_question *q)
{
    const struct ipw_series *s = d->all[0];
    int64_t upto_ns = INT64_MIN, uj = 0; /* end and energy of the step before */
    struct steps steps = {0};

    for (size_t i = 1; i < d->n; i++)
        if (d->all[i]->pace.spacing_ns < s->pace.spacing_ns) s = d->all[i];
    for (size_t i = ipw_series_find(s, q->t0_ns); i < s->n && s->samples[i].t_ns < q->t1_ns; i++) {
        const struct ipw_series_sample *a = &s->samples[i], *b = i + 1 < s->n ? a + 1 : &s->last;
        int64_t from = a->t_ns > q->t0_ns ? a->t_ns : q->t0_ns;
        int64_t to = b->t_ns < q->t1_ns ? b->t_ns : q->t1_ns, before;
        struct step step = {.seconds = ipw_ns_to_s(to - from)};

        if (a->chain != b->chain || to <= from) continue;
        before = a->t_ns == upto_ns ? uj : sum_uj(d, a->t_ns);
        upto_ns = b->t_ns;
        uj = sum_uj(d, upto_ns);
        step.w = (double)(uj - before) * 1e3 / (double)(upto_ns - a->t_ns); /* uJ / ns = kW */
        IPW_GROW(steps.all, steps.cap, steps.n + 1);
        steps.all[steps.n++] = step;
        steps.seconds += step.seconds;
    }
    return steps;
}

static int by_power(const void *a, const void *b)
{
    const struct step *x = a, *y = b;

    return x->w < y->w ? -1 : x->w > y->w;
}

/* The power that was exceeded during half of the time; the steps are sorted by power. */
static double median_w(const struct steps *s)
{
    double upto = 0;

    for (size_t i = 0; i < s->n; i++) {
        upto += s->all[i].seconds;
        if (upto > s->seconds / 2) return s->all[i].w;
        if (upto == s->seconds / 2 && i + 1 < s->n) return (s->all[i].w + s->all[i + 1].w) / 2;
    }
    return s->all[s->n - 1].w;
}

static bool mean_power(const struct devices *d, const struct ipw_ledger_question *q, double *mean_w,
                       double *peak_w)
{
    double j, part, joules = 0, coverage = d->n ? 1 : 0;
    struct steps steps;

    *mean_w = *peak_w = NAN;
    for (size_t i = 0; i < d->n; i++) {
        if (!ipw_series_joules(d->all[i], q->t0_ns, q->t1_ns, IPW_BOOK_WINDOW_SLACK_NS, &j, &part))
            return false;
        joules = ipw_figure_add_j(joules, j);
        coverage = fmin(coverage, part);
    }
    if (q->t1_ns <= q->t0_ns || coverage <= 0) return false;
    if (d->n == 1) return ipw_series_power(d->all[0], q->t0_ns, q->t1_ns, mean_w, peak_w);
    *mean_w = *peak_w = joules / (ipw_ns_to_s(q->t1_ns - q->t0_ns) * coverage);
    steps = steps_of(d, q);
    for (size_t i = 0; i < steps.n; i++) *peak_w = fmax(*peak_w, steps.all[i].w);
    free(steps.all);
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

bool ipw_ledger_power(const struct ipw_ledger *l, struct ipw_ledger_question q,
                      struct ipw_power_stats *out)
{
    struct devices d = devices_of(l, &q);
    bool known;

    *out = (struct ipw_power_stats){NAN, NAN, NAN, NAN};
    known = mean_power(&d, &q, &out->avg_w, &out->max_w);
    if (known) {
        struct steps steps = steps_of(&d, &q);

        out->min_w = out->avg_w; /* no more than that, for the same reason as the peak: series.h */
        if (steps.n) {
            qsort(steps.all, steps.n, sizeof *steps.all, by_power);
            out->median_w = median_w(&steps);
            out->min_w = fmin(steps.all[0].w, out->avg_w);
        }
        free(steps.all);
    }
    free(d.all);
    return known;
}
