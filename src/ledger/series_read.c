/* The reading side of ledger/series.h: the place of an instant, the energy of a window. */
#include "ledger/series_priv.h"

#include <math.h>

#include "base/clock.h"
#include "base/upto.h"

#define NEAR_NS       (2 * IPW_NS_PER_MS)
#define LEAST_HOLE_NS (250 * IPW_NS_PER_MS)
#define SPLIT_SPREAD  0.15 /* relative spread of a phase's power, as in a split step */

struct place {
    int64_t t_ns;                   /* the instant, moved to the nearest sample if it lay outside */
    int64_t uj, below_uj, above_uj; /* the energy there, and its bounds once they are found */
    const struct ipw_series_sample *at, *next; /* the samples around it; next may be NULL */
    uint32_t chain;
    uint32_t before; /* readings before the instant, and up to it */
    uint32_t upto;
    int64_t near_ns;  /* distance of the nearest sample */
    int64_t gap_ns;   /* distance between the samples on either side; 0 on a sample */
    int64_t next_ns;  /* the sample after it */
    int64_t from_uj;  /* energy between the sample before it and the instant */
    int64_t to_uj;    /* energy between the instant and the sample after it; 0 on a sample */
    int64_t usual_ns; /* usual distance of samples there */
    bool slept;       /* the device slept at the instant */
    const char *why;  /* not NULL: no place, for this reason */
};

/* The last of n > 0 samples that is at or before t, or the first if none is.  Samples are nearly
 * evenly spaced, so an even spacing guesses the place to a few steps. */
static size_t last_upto(const struct ipw_series_sample *a, size_t n, int64_t t_ns)
{
    size_t lo = 0, hi = n, step = 4, guess;

    if (n < 2 || t_ns <= a[0].t_ns) return 0;
    if (t_ns >= a[n - 1].t_ns) return n - 1;
    guess = (size_t)((double)(t_ns - a[0].t_ns) / (double)(a[n - 1].t_ns - a[0].t_ns) *
                     (double)(n - 1)); /* t lies before the last: no more than n - 1 */
    if (a[guess].t_ns <= t_ns) {
        for (lo = guess; n - lo > step && a[lo + step].t_ns <= t_ns; step *= 4) lo += step;
        if (n - lo > step) hi = lo + step;
    } else {
        for (hi = guess; hi > step && a[hi - step].t_ns > t_ns; step *= 4) hi -= step;
        if (hi > step) lo = hi - step;
    }
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (a[mid].t_ns <= t_ns) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t ipw_series_find(const struct ipw_series *s, int64_t t_ns)
{
    if (s->n == s->first) return s->first;
    return s->first + last_upto(s->samples + s->first, s->n - s->first, t_ns);
}

static int64_t first_ns(const struct ipw_series *s)
{
    return s->head.n ? s->head.samples[0].t_ns : s->samples[s->first].t_ns;
}

/* The last sample at or before t (which must not lie before the first), and the one after it.  The
 * latter is a sample, the newest reading if that is not a sample yet, or NULL. */
static const struct ipw_series_sample *neighbours(const struct ipw_series *s, int64_t t_ns,
                                                  const struct ipw_series_sample **next)
{
    const struct ipw_series_sample *a = s->samples + s->first;
    size_t n = s->n - s->first, lo;

    if (t_ns < a->t_ns && s->head.n) {
        a = s->head.samples;
        n = s->head.n;
    }
    lo = last_upto(a, n, t_ns);
    if (lo + 1 < n) {
        *next = a + lo + 1;
    } else if (a == s->head.samples && s->head.n) {
        *next = NULL;
    } else {
        *next = s->last.t_ns > a[lo].t_ns ? &s->last : NULL;
    }
    return a + lo;
}

static int64_t cut(const struct ipw_series_sample *a, const struct ipw_series_sample *b, int64_t t)
{
    int64_t area;

    if (!b || t <= a->t_ns) return a->uj;
    if (t >= b->t_ns) return b->uj;
    /* Use 128 bits only if 64 are too few: their division is slow. */
    if (!__builtin_mul_overflow(b->uj - a->uj, t - a->t_ns, &area)) {
        return a->uj + area / (b->t_ns - a->t_ns);
    }
    return a->uj + (int64_t)((__int128)(b->uj - a->uj) * (t - a->t_ns) / (b->t_ns - a->t_ns));
}

/* Like cut(), but along the corners between a and b. */
static int64_t bent(const struct ipw_series *s, const struct ipw_series_sample *a,
                    const struct ipw_series_sample *b, int64_t t)
{
    struct ipw_series_sample from, to;
    bool in_head = s->head.n && t < s->samples[s->first].t_ns;
    const struct ipw_series_knot *knots = in_head ? s->head.knots : s->knots;
    size_t n = in_head ? s->head.n_knots : s->n_knots, after;

    if (!n || !b || t <= a->t_ns || t >= b->t_ns || knots[n - 1].t_ns <= a->t_ns)
        return cut(a, b, t);
    from = *a;
    to = *b;
    after = ipw_upto(&knots->t_ns, n, sizeof *knots, t); /* the first corner after t */
    if (after > 0 && knots[after - 1].t_ns > a->t_ns) {
        from.t_ns = knots[after - 1].t_ns;
        from.uj = knots[after - 1].uj;
    }
    if (after < n && knots[after].t_ns < b->t_ns) {
        to.t_ns = knots[after].t_ns;
        to.uj = knots[after].uj;
    }
    return cut(&from, &to, t);
}

int64_t ipw_series_at(const struct ipw_series *s, int64_t t_ns)
{
    const struct ipw_series_sample *a, *b;

    if (!s->n) return 0;
    if (t_ns <= first_ns(s)) return s->head.n ? s->head.samples[0].uj : s->samples[s->first].uj;
    a = neighbours(s, t_ns, &b);
    return bent(s, a, b, t_ns);
}

const struct ipw_series_sample *ipw_series_around(const struct ipw_series *s, int64_t t_ns,
                                                  const struct ipw_series_sample **next)
{
    *next = NULL;
    if (!s->n || t_ns < first_ns(s)) return NULL;
    return neighbours(s, t_ns, next);
}

int64_t ipw_series_bounds(const struct ipw_series *s, int64_t t_ns, int64_t *below_uj,
                          int64_t *above_uj)
{
    const struct ipw_series_sample *next, *at = ipw_series_around(s, t_ns, &next);
    int64_t uj;

    *below_uj = *above_uj = 0;
    if (!at) return ipw_series_at(s, t_ns);
    uj = bent(s, at, next, t_ns);
    ipw_series_bound(s, t_ns, uj, at, next, below_uj, above_uj);
    return uj;
}

static const char *break_reason_at(const struct ipw_series *s, int64_t t_ns)
{
    /* The first break that ends after t. */
    size_t i = s->n_gaps ? ipw_upto(&s->gaps->to_ns, s->n_gaps, sizeof *s->gaps, t_ns) : 0;

    return i < s->n_gaps ? s->gaps[i].reason : s->break_reason;
}

/* Has the counter stood still up to t for longer than its period allows? */
static bool in_silence(const struct ipw_series *s, int64_t t_ns)
{
    return s->channel.kind == IPW_CHANNEL_COUNTER && s->n && !s->asleep &&
           t_ns - s->pace.last_change_ns > ipw_series_quiet_ns(s) && ipw_series_silence_ns(s) > 0;
}

static const char *not_there(const struct ipw_series *s)
{
    if (s->cut_reason) return s->cut_reason;
    if (s->n && (!ipw_series_has_moved(s) || ipw_series_silence_ns(s))) return "stuck";
    return s->n == 0 || s->failing_since_ns != INT64_MIN ? "no_samples" : "not_covered";
}

static struct place locate(const struct ipw_series *s, int64_t t, int64_t slack_ns, bool is_start)
{
    struct place p = {0};
    const struct ipw_series_sample *a, *b;

    if (s->doubt) return (struct place){.why = s->doubt};
    if (!s->n || !ipw_series_has_moved(s) || in_silence(s, t))
        return (struct place){.why = not_there(s)};
    if (t < first_ns(s)) {
        if (first_ns(s) - t > slack_ns) return (struct place){.why = "not_covered"};
        t = first_ns(s);
    }
    if (t > s->last.t_ns) {
        if (t - s->last.t_ns > slack_ns) return (struct place){.why = not_there(s)};
        t = s->last.t_ns;
    }
    a = neighbours(s, t, &b);
    /* The next sample was trimmed. */
    if (!b && t > a->t_ns) return (struct place){.why = "not_covered"};
    if (b && t > a->t_ns && b->chain != a->chain) {
        if (is_start && b->t_ns - t <= slack_ns) {
            t = b->t_ns;
            a = neighbours(s, t, &b);
        } else if (!is_start && t - a->t_ns <= slack_ns) {
            t = a->t_ns;
        } else {
            return (struct place){.why = break_reason_at(s, t)};
        }
    }
    /* A counter that its gauge replaced before it ever moved. */
    if (!s->pace.changes && !s->asleep && !ipw_series_is_gauge(s, a->chain) &&
        s->channel.kind == IPW_CHANNEL_GAUGE)
        return (struct place){.why = "stuck"};
    p.t_ns = t;
    p.uj = bent(s, a, b, t);
    p.at = a;
    p.next = b;
    p.chain = a->chain;
    p.upto = b && t == b->t_ns ? b->reads : a->reads;
    p.before = t == a->t_ns ? a->reads - 1 : a->reads;
    if (b && t > a->t_ns) {
        p.near_ns = t - a->t_ns < b->t_ns - t ? t - a->t_ns : b->t_ns - t;
        p.gap_ns = b->t_ns - a->t_ns;
        p.from_uj = p.uj - a->uj;
        p.to_uj = b->uj - p.uj;
    }
    p.slept = a->slept || (b && b->slept);
    p.next_ns = b ? b->t_ns : t;
    p.usual_ns = (int64_t)(b && b->usual_us ? b->usual_us : a->usual_us) * 1000;
    return p;
}

/* The part of a window that lies inside unbroken chains. */
double ipw_series_coverage(const struct ipw_series *s, int64_t t0, int64_t t1)
{
    int64_t from = t0, to = t1, inside;

    if (!s->n || s->doubt || t1 <= t0 || !ipw_series_has_moved(s)) return 0;
    if (from < first_ns(s)) from = first_ns(s);
    if (to > s->last.t_ns) to = s->last.t_ns;
    if (in_silence(s, to)) to = s->samples[s->n - 1].t_ns;
    if (to <= from) return 0;
    inside = to - from;
    if (from < s->samples[s->first].t_ns) inside -= s->trimmed_gap_ns;
    for (size_t i = 0; i < s->n_gaps; i++) {
        int64_t a = s->gaps[i].from_ns > from ? s->gaps[i].from_ns : from;
        int64_t b = s->gaps[i].to_ns < to ? s->gaps[i].to_ns : to;
        if (b > a) inside -= b - a;
    }
    return inside > 0 ? (double)inside / (double)(t1 - t0) : 0;
}

static bool in_hole(const struct place *p)
{
    int64_t usual = p->usual_ns * 5 / 2;

    return p->gap_ns > (usual > LEAST_HOLE_NS ? usual : LEAST_HOLE_NS);
}

static enum ipw_provenance provenance(const struct ipw_series *s, const struct place *p0,
                                      const struct place *p1, const struct ipw_figure *f)
{
    int64_t near = s->channel.period_ns > NEAR_NS ? s->channel.period_ns : NEAR_NS;
    double half = (f->hi_j - f->lo_j) / 2;

    if (ipw_series_is_gauge(s, p0->chain) || p0->slept || p1->slept) return IPW_PROV_ESTIMATED;
    if (in_hole(p0) || in_hole(p1)) return IPW_PROV_DISTRIBUTED;
    if (p0->near_ns <= near && p1->near_ns <= near && half <= IPW_MEASURED_HALF * f->j) {
        return IPW_PROV_MEASURED;
    }
    return half <= IPW_INTERPOLATED_HALF * f->j ? IPW_PROV_INTERPOLATED : IPW_PROV_DISTRIBUTED;
}

/* The energy, in joules, that a gauge may show on the wrong side of a window's end. */
static double blur_of_gauge(const struct ipw_series *s, int64_t t_ns, int64_t half_ns)
{
    double most = (double)ipw_series_most_w(s) * (double)half_ns / 1e9;
    double around =
        (double)(ipw_series_at(s, t_ns + 2 * half_ns) - ipw_series_at(s, t_ns - 2 * half_ns)) / 1e6;

    /* The power outside the readings is unknown. */
    if (t_ns + 2 * half_ns > s->last.t_ns || t_ns - 2 * half_ns < first_ns(s)) return most;
    return around < most ? around : most;
}

static double still_s(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns)
{
    int64_t still = 0;

    for (size_t i = s->n_stills; i-- > 0 && s->stills[i].to_ns > t0_ns;) {
        int64_t from = s->stills[i].from_ns > t0_ns ? s->stills[i].from_ns : t0_ns;
        int64_t to = s->stills[i].to_ns < t1_ns ? s->stills[i].to_ns : t1_ns;

        if (to > from) still += to - from;
    }
    return (double)still / 1e9;
}

/* How much time around an instant a gauge's values mix. */
static int64_t gauge_half_ns(const struct ipw_series *s)
{
    int64_t step = ipw_series_gauge_step_ns(s), window = s->channel.window_ns;

    return (window > 0 ? window : step) / 2 + step * 5 / 4 + s->most_clock_ns;
}

static void span_of_gauge(const struct ipw_series *s, const struct place *p0,
                          const struct place *p1, struct ipw_figure *f)
{
    int64_t step = ipw_series_gauge_step_ns(s), window = s->channel.window_ns;
    int64_t half = gauge_half_ns(s);
    double seen = window > 0 && window < step ? (double)window / (double)step : 1;
    double length = (double)(p1->t_ns - p0->t_ns) / 1e9, most_w = (double)ipw_series_most_w(s);
    double still = still_s(s, p0->t_ns, p1->t_ns), unseen, blur;

    /* Time without reliable readings. */
    unseen = still + (length - still) * (1 - seen);
    if (unseen > length) unseen = length;
    blur = blur_of_gauge(s, p0->t_ns, half) + blur_of_gauge(s, p1->t_ns, half);
    f->lo_j = length > 0 ? f->j * (length - unseen) / length - blur : 0;
    f->hi_j = length > 0 ? f->j * (length - unseen) / length + blur + unseen * most_w : 0;
    if (f->hi_j > most_w * length) f->hi_j = most_w * length;
}

/* The bounds follow from the bounds at both ends, and are limited to 0 and the most that the device
 * can draw. */
static void span_of_counter(const struct ipw_series *s, const struct place *p0,
                            const struct place *p1, int64_t missed_ns, struct ipw_figure *f)
{
    double most_w = (double)ipw_series_most_w(s);
    double most = most_w * (double)(p1->t_ns - p0->t_ns) / 1e9;

    f->lo_j = f->j - (double)(p0->above_uj + p1->below_uj) / 1e6;
    f->hi_j = f->j + (double)(p0->below_uj + p1->above_uj) / 1e6;
    if (f->hi_j > most) f->hi_j = most;
    f->hi_j += most_w * (double)missed_ns / 1e9;
}

static void add_bounds(const struct ipw_series *s, const struct place *p0, const struct place *p1,
                       int64_t missed_ns, struct ipw_figure *f)
{
    int64_t split = p0->gap_ns ? p0->to_uj : 0;

    if (ipw_series_is_gauge(s, p0->chain)) {
        span_of_gauge(s, p0, p1, f);
    } else {
        span_of_counter(s, p0, p1, missed_ns, f);
    }
    if (f->lo_j < 0) f->lo_j = 0;
    if (f->lo_j > f->j) f->lo_j = f->j;
    if (f->hi_j < f->j) f->hi_j = f->j;
    if (p1->gap_ns) split += p1->from_uj;
    if (p0->gap_ns && p1->gap_ns && p0->next_ns == p1->next_ns) split = p1->uj - p0->uj;
    f->split_fraction = f->j > 0 ? (double)split / 1e6 / f->j : 0;
    if (f->split_fraction > 1) f->split_fraction = 1;
}

/* The power at an end of a window: of the step that it cuts, so that a final figure stays final. */
static double step_w(const struct ipw_series *s, const struct place *p)
{
    const struct ipw_series_sample *b = p->next, *a = p->at;
    const struct ipw_series_sample *first =
        s->head.n && p->t_ns < s->samples[s->first].t_ns ? s->head.samples : s->samples + s->first;

    if ((!b || p->t_ns == a->t_ns) && a > first) b = a--;
    if (!b || b->t_ns <= a->t_ns || b->chain != a->chain) return 0;
    return (double)(b->uj - a->uj) * 1e3 / (double)(b->t_ns - a->t_ns); /* uJ / ns = kW */
}

/* The standard uncertainty of the energy at an end.  The client's event may be later than the
 * power's edge, a sample may be off by as much as its reading says, and a gauge's value is a mean:
 * rectangular distributions.  A step is split by expected powers. */
static double end_u_j(const struct ipw_series *s, const struct place *p)
{
    int64_t ns = IPW_SERIES_EDGE_NS;
    double split_j = 0;

    if (ipw_series_is_gauge(s, p->chain)) {
        ns += gauge_half_ns(s);
    } else {
        ns += ((int64_t)p->at->early_ns + p->at->late_ns) / 2;
        split_j = SPLIT_SPREAD * (double)(p->from_uj < p->to_uj ? p->from_uj : p->to_uj) / 1e6;
    }
    return hypot(step_w(s, p) * (double)ns / 1e9 / sqrt(3), split_j);
}

/* The standard uncertainty: the sensor's stated error, and the two ends.  Of a gauge, the time in
 * which it showed one value may have had twice its power or none, and its readings are samples of
 * the power. */
static double uncertainty_j(const struct ipw_series *s, const struct place *p0,
                            const struct place *p1, const struct ipw_figure *f)
{
    double ends = hypot(end_u_j(s, p0), end_u_j(s, p1)), unseen = 0;
    double length = (double)(p1->t_ns - p0->t_ns) / 1e9;

    if (ipw_series_is_gauge(s, p0->chain) && length > 0) {
        double still = f->j * still_s(s, p0->t_ns, p1->t_ns) / length / sqrt(3);
        double steps = length * 1e9 / (double)ipw_series_gauge_step_ns(s);

        unseen = hypot(still, steps > 0 ? SPLIT_SPREAD * f->j / sqrt(steps) : 0);
    }
    return hypot(hypot(ends, unseen), IPW_STATED_U * f->j);
}

/* The places of a window's ends; with the reason, coverage and partial joules of a figure that is
 * unknown, else its samples. */
static struct ipw_figure find_window(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns,
                                     int64_t slack_ns, struct place *p0, struct place *p1)
{
    struct ipw_figure f = {.provenance = IPW_PROV_NONE};
    const char *why;

    *p1 = *p0 = locate(s, t0_ns, slack_ns, true);
    why = p0->why;
    if (t0_ns == t1_ns && !why) {
        f.samples = p0->near_ns == 0;
        return f;
    }
    *p1 = locate(s, t1_ns, slack_ns, false);
    if (!why && !p1->why) {
        if (p0->chain != p1->chain) {
            why = break_reason_at(s, t0_ns);
        } else if (p1->t_ns - p0->t_ns < (t1_ns - t0_ns + 1) / 2 || t1_ns < t0_ns) {
            why = not_there(s);
        }
        f.samples = p1->t_ns < p0->t_ns ? 0 : (int64_t)(uint32_t)(p1->upto - p0->before);
    }
    f.reason = why ? why : p1->why;
    if (!f.reason) return f;
    f.coverage = ipw_series_coverage(s, t0_ns, t1_ns);
    if (f.coverage > 0)
        f.partial_j = (double)(ipw_series_at(s, t1_ns) - ipw_series_at(s, t0_ns)) / 1e6;
    return f;
}

/* The part of a known window that lies between the places of its ends. */
static double covered(const struct place *p0, const struct place *p1, int64_t t0_ns, int64_t t1_ns)
{
    return p0->t_ns == t0_ns && p1->t_ns == t1_ns
               ? 1
               : (double)(p1->t_ns - p0->t_ns) / (double)(t1_ns - t0_ns);
}

/* Finds the bounds at a place, which are those of the instant if it was not moved. */
static void bound_at(const struct ipw_series *s, struct place *p, int64_t t_ns, int64_t *below_uj,
                     int64_t *above_uj)
{
    ipw_series_bound(s, p->t_ns, p->uj, p->at, p->next, &p->below_uj, &p->above_uj);
    *below_uj = p->below_uj;
    *above_uj = p->above_uj;
    if (p->t_ns != t_ns) ipw_series_bounds(s, t_ns, below_uj, above_uj);
}

struct ipw_figure ipw_series_window(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns,
                                    int64_t slack_ns, struct ipw_series_ends *ends)
{
    struct place p0, p1;
    struct ipw_figure f = find_window(s, t0_ns, t1_ns, slack_ns, &p0, &p1);

    if (f.reason) return f;
    f.known = true;
    f.coverage = 1;
    f.provenance = IPW_PROV_MEASURED;
    bound_at(s, &p0, t0_ns, &ends->below0_uj, &ends->above0_uj);
    bound_at(s, &p1, t1_ns, &ends->below1_uj, &ends->above1_uj);
    if (t0_ns == t1_ns) return f;
    f.j = (double)(p1.uj - p0.uj) / 1e6;
    add_bounds(s, &p0, &p1, t1_ns - t0_ns - (p1.t_ns - p0.t_ns), &f);
    f.provenance = provenance(s, &p0, &p1, &f);
    f.coverage = covered(&p0, &p1, t0_ns, t1_ns);
    f.u_j = uncertainty_j(s, &p0, &p1, &f);
    return f;
}

struct ipw_figure ipw_series_between(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns,
                                     int64_t slack_ns)
{
    struct ipw_series_ends ends;

    return ipw_series_window(s, t0_ns, t1_ns, slack_ns, &ends);
}

bool ipw_series_joules(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns, int64_t slack_ns,
                       double *joules, double *coverage)
{
    struct place p0, p1;

    if (find_window(s, t0_ns, t1_ns, slack_ns, &p0, &p1).reason) return false;
    *joules = (double)(p1.uj - p0.uj) / 1e6;
    *coverage = covered(&p0, &p1, t0_ns, t1_ns);
    return true;
}

bool ipw_series_power(const struct ipw_series *s, int64_t t0_ns, int64_t t1_ns, double *mean_w,
                      double *peak_w)
{
    double uj = 0, ns = 0, peak = 0;

    if (!s->n || s->doubt || t1_ns <= t0_ns || !ipw_series_has_moved(s)) return false;
    for (size_t i = ipw_series_find(s, t0_ns); i < s->n && s->samples[i].t_ns < t1_ns; i++) {
        const struct ipw_series_sample *a = s->samples + i;
        const struct ipw_series_sample *b = i + 1 < s->n ? a + 1 : &s->last;
        int64_t from = a->t_ns > t0_ns ? a->t_ns : t0_ns, to = b->t_ns < t1_ns ? b->t_ns : t1_ns;
        double w;

        if (a->chain != b->chain || to <= from) continue;
        /* The silence says nothing of its power. */
        if (b == &s->last && in_silence(s, b->t_ns)) continue;
        w = (double)(b->uj - a->uj) * 1e3 / (double)(b->t_ns - a->t_ns); /* uJ / ns = kW */
        if (ns <= 0 || w > peak) peak = w;
        uj += (double)(bent(s, a, b, to) - bent(s, a, b, from));
        ns += (double)(to - from);
    }
    if (ns <= 0) return false;
    *mean_w = uj * 1e3 / ns;
    /* Phases bend the line inside a step, so the mean of a short window may exceed the step's
     * power. */
    *peak_w = peak > *mean_w ? peak : *mean_w;
    return true;
}
