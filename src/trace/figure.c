#include "trace/figure.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const char *const ipw_provenance_words[] = {"measured", "interpolated", "distributed", "estimated",
                                            NULL};

const char *ipw_provenance_name(enum ipw_provenance p)
{
    return p > IPW_PROV_NONE && p <= IPW_PROV_ESTIMATED ? ipw_provenance_words[p - 1] : "none";
}

/* As nearbyint() and floor(), which are calls: a line has some hundred of them.  Beyond this a
 * double has no fraction. */
#define NO_FRACTION 4503599627370496.0 /* 2^52 */

static double nearest(double x)
{
    return fabs(x) < NO_FRACTION ? (double)(int64_t)(x + (x < 0 ? -0.5 : 0.5)) : x;
}

static double below(double x)
{
    double cut;

    if (!(fabs(x) < NO_FRACTION)) return x;
    cut = (double)(int64_t)x;
    return cut > x ? cut - 1 : cut;
}

/* Joules and watts from here on have all their digits, in memory and in lines. */
#define NOT_MICRO 1e9

static double whole_micro(double x) { return fabs(x) < NOT_MICRO ? nearest(x * 1e6) / 1e6 : x; }

double ipw_figure_j(double j) { return whole_micro(j); }

/* The whole number that is not above x; what is whole but for its last bits stays as it is. */
static double whole_below(double x)
{
    double near = nearest(x), size = fabs(x) > 1 ? fabs(x) : 1;

    return fabs(x - near) <= 1e-9 * size ? near : below(x);
}

double ipw_figure_mean_w(double w) { return whole_micro(w); }

double ipw_figure_least_w(double w)
{
    double parts = 1e6;

    while (fabs(w) * parts >= 1e6 && parts > 1) parts /= 10;
    return whole_below(w * parts) / parts;
}

double ipw_figure_peak_w(double w) { return 0 - ipw_figure_least_w(-w); }

/* In microjoules; minus_hi, because both then move down. */
struct bounds {
    double lo, minus_hi;
};

static double apart(struct bounds b) { return -b.minus_hi - b.lo; }

/* A bound is no more exact than the readings are, and all its digits make a line longer.  When the
 * bounds move apart, the unit may grow once more. */
static struct bounds widen(struct bounds b)
{
    double unit = 1;

    while (unit * 200 <= apart(b) && apart(b) < NO_FRACTION) {
        unit *= 10;
        if (unit * 200 > apart(b))
            b = (struct bounds){below(b.lo / unit) * unit, below(b.minus_hi / unit) * unit};
    }
    return b;
}

/* Are the bounds as near to each other as the provenance says? */
static bool as_promised(const struct ipw_figure *f, struct bounds b)
{
    double most = f->provenance == IPW_PROV_MEASURED       ? IPW_MEASURED_HALF
                  : f->provenance == IPW_PROV_INTERPOLATED ? IPW_INTERPOLATED_HALF
                                                           : (double)INFINITY;

    return most > 1 || apart(b) / 2 <= most * f->j * 1e6;
}

/* Two digits of a share below 1. */
static double two_digits(double share)
{
    double parts = share >= 0.1 ? 1e2 : share >= 0.01 ? 1e3 : 1e4;

    return nearest(share * parts) / parts;
}

/* Two digits, rounded up; whole microjoules. */
static double uncertainty(double u)
{
    double unit = 1;

    if (!(u > 0) || !(u < NOT_MICRO)) return u > 0 ? u : 0;
    while (u * 1e6 / unit > 99.5) unit *= 10;
    return 0 - whole_below(-u * 1e6 / unit) * unit / 1e6;
}

static bool replace(double *old, double rounded)
{
    bool changed = *old != rounded;

    *old = rounded;
    return changed;
}

bool ipw_figure_round(struct ipw_figure *f)
{
    struct bounds whole, wide;
    bool changed;

    if (!f->known && !f->estimated && f->coverage == 0) return false; /* nothing is measured */
    whole = (struct bounds){whole_below(f->lo_j * 1e6), whole_below(-f->hi_j * 1e6)};
    wide = widen(whole);
    changed = replace(&f->j, whole_micro(f->j));
    if (as_promised(f, wide)) whole = wide;
    changed |= replace(&f->lo_j, whole.lo / 1e6);
    changed |= replace(&f->hi_j, (0 - whole.minus_hi) / 1e6); /* 0, not -0 */
    changed |= replace(&f->u_j, uncertainty(f->u_j));
    changed |= replace(&f->estimate_j, whole_micro(f->estimate_j));
    changed |= replace(&f->coverage, whole_micro(f->coverage));
    return replace(&f->split_fraction, two_digits(f->split_fraction)) || changed;
}

struct ipw_bounds ipw_figure_bounds(const struct ipw_figure *f)
{
    if (!f->known || (f->lo_j == 0 && f->hi_j == 0 && f->j != 0)) return IPW_NO_BOUNDS;
    return (struct ipw_bounds){f->lo_j, f->hi_j, f->u_j > 0 || f->j == 0 ? f->u_j : (double)NAN};
}

/* The square of u without the sensor's stated error. */
static double ends_j2(struct ipw_bounds b, double j)
{
    double ends = b.u * b.u - IPW_STATED_U * j * IPW_STATED_U * j;

    return ends < 0 ? 0 : ends; /* NAN stays NAN */
}

void ipw_bounds_add(struct ipw_bounds *sum, double sum_j, struct ipw_bounds more, double more_j)
{
    double ends = ends_j2(*sum, sum_j) + ends_j2(more, more_j);

    sum->lo += more.lo;
    sum->hi += more.hi;
    sum->u = hypot(IPW_STATED_U * (sum_j + more_j), sqrt(ends));
}

struct ipw_bounds ipw_bounds_times(struct ipw_bounds b, double factor)
{
    return (struct ipw_bounds){b.lo * factor, b.hi * factor, b.u * factor};
}

double ipw_figure_add_j(double a, double b)
{
    if (!(fabs(a) < NOT_MICRO && fabs(b) < NOT_MICRO)) return a + b;
    return (nearest(a * 1e6) + nearest(b * 1e6)) / 1e6;
}

enum ipw_reason ipw_reason_of(const char *text)
{
    static const char *const texts[] = {"",       "no_sensor", "permission",  "switched_off",
                                        "remote", "suspended", "gap_too_long"};

    for (unsigned i = 1; text && i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(text, texts[i]) == 0) return (enum ipw_reason)i;
    }
    return IPW_REASON_OTHER;
}
