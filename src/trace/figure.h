/* trace/figure.h: an energy value in joules, and how it was computed.
 *
 * The ledger computes figures (energy values) and traces carry them; this header has their common
 * terms.  Plain values: they own nothing, and reasons are static texts. */
#ifndef IPW_TRACE_FIGURE_H
#define IPW_TRACE_FIGURE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum ipw_provenance {
    IPW_PROV_NONE,         /* no value: see the reason */
    IPW_PROV_MEASURED,     /* counter read at both ends of the window, or close to them */
    IPW_PROV_INTERPOLATED, /* counter split at the ends of the window */
    IPW_PROV_DISTRIBUTED,  /* a larger window's energy divided */
    IPW_PROV_ESTIMATED,    /* power times time */
};
extern const char *const ipw_provenance_words[]; /* from IPW_PROV_MEASURED on; NULL-terminated */
const char *ipw_provenance_name(enum ipw_provenance p); /* "measured", ...; "none" */

/* What "measured" and "interpolated" promise: half the distance of the bounds is at most this part
 * of the energy. */
#define IPW_MEASURED_HALF     0.02
#define IPW_INTERPOLATED_HALF 0.10

/* A sensor is taken to be right within 5 %, any error within that being as likely as any other:
 * 0.05 / sqrt(3). */
#define IPW_STATED_U 0.0288675134594813

/* The reasons for an unknown value that decide something; all others are only shown. */
enum ipw_reason {
    IPW_REASON_OTHER,
    IPW_REASON_NO_SENSOR,
    IPW_REASON_PERMISSION,
    IPW_REASON_SWITCHED_OFF,
    IPW_REASON_REMOTE,
    IPW_REASON_SUSPENDED,
    IPW_REASON_GAP_TOO_LONG,
};
enum ipw_reason ipw_reason_of(const char *text); /* NULL: IPW_REASON_OTHER */

/* An energy value in joules with its provenance.  An unknown value is never 0: check `known`. */
struct ipw_figure {
    bool known;
    double j;
    enum ipw_provenance provenance;
    double coverage;    /* the share of the window that unbroken chains cover, 0 to 1 */
    int64_t samples;    /* readings inside the window (for a slow counter: to about one step) */
    const char *reason; /* static text, if unknown: "no_sensor", "permission", ... */
    /* If the device counts correctly, the true energy lies between them (docs/method.md, "Bounds");
     * they do not include the sensor's own error.  Both 0 if no bounds are known. */
    double lo_j, hi_j;
    /* The standard uncertainty of `j` (docs/method.md, "Bounds and standard uncertainty"): the
     * sensor's stated error, which is the same in every window, and the ends of the window, which
     * are independent: u^2 = (IPW_STATED_U * j)^2 + ends^2.  0 if it is not known. */
    double u_j;
    double split_fraction; /* the share of `j` from gaps that cross the ends of the window */
    /* Unknown, but a model gives an estimate (docs/method.md, "Fallbacks"); lo_j and hi_j are its
     * bounds.  It is not part of any total. */
    bool estimated;
    double estimate_j;
    const char *estimate_by; /* "gauge", "last_power" */
    /* For an unknown value: the energy that was measured, which covers `coverage` of the window (of
     * several devices, the least).  A separate member, so that it is not mistaken for the value. */
    double partial_j;
};

/* Joules as a line states them: whole microjoules, below 1e9 J. */
double ipw_figure_j(double j);
/* A mean power as a line states it: whole microwatts.  An extreme comes from the few joules between
 * two readings: it has six digits, but none below a microwatt; a peak is rounded up, a least power
 * down. */
double ipw_figure_mean_w(double w);
double ipw_figure_peak_w(double w);
double ipw_figure_least_w(double w);
/* Makes a figure as a line states it; false: it was.  The joules are whole microjoules.  The bounds
 * move outward, to as many digits as a twentieth of their distance has, but not below a microjoule,
 * and to a microjoule where more would break the promise of the provenance.  The standard
 * uncertainty has two digits and is rounded up.  Coverage is a whole millionth, and split_fraction
 * has two digits, but none below a ten-thousandth. */
bool ipw_figure_round(struct ipw_figure *f);

/* Adds joules as whole microjoules, so that sums are exact; NAN if one of them is unknown. */
double ipw_figure_add_j(double a, double b);

/* Bounds and standard uncertainty of a value, or of a sum; NAN: not known. */
struct ipw_bounds {
    double lo, hi, u;
};
#define IPW_NO_BOUNDS ((struct ipw_bounds){NAN, NAN, NAN})
struct ipw_bounds ipw_figure_bounds(const struct ipw_figure *f);
/* Adds a value of the same sensor.  Its stated error is the same in both and adds up; the ends are
 * independent. */
void ipw_bounds_add(struct ipw_bounds *sum, double sum_j, struct ipw_bounds more, double more_j);
struct ipw_bounds ipw_bounds_times(struct ipw_bounds b, double factor);

/* The power between neighbouring readings, weighted by time.  NAN: unknown. */
struct ipw_power_stats {
    double avg_w, median_w, min_w, max_w;
};

#endif
