/* trace/figure.h: a figure in joules, and how it was obtained.
 *
 * The ledger makes figures, traces carry them, and both speak of them in these words.  Plain values:
 * they own nothing, reasons are static texts. */
#ifndef IPW_TRACE_FIGURE_H
#define IPW_TRACE_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

enum ipw_provenance {
    IPW_PROV_NONE,         /* no figure: see the reason */
    IPW_PROV_MEASURED,     /* counter read at, or close to, both ends of the window */
    IPW_PROV_INTERPOLATED, /* counter cut at the window's edges */
    IPW_PROV_DISTRIBUTED,  /* a larger window's energy shared out */
    IPW_PROV_ESTIMATED,    /* power times time */
};
extern const char *const ipw_provenance_words[]; /* from IPW_PROV_MEASURED on; NULL ends them */
const char *ipw_provenance_name(enum ipw_provenance p); /* "measured", ...; "none" */

/* A figure in joules and how it was obtained.  Never 0 for unknown: `known` says. */
struct ipw_figure {
    bool known;
    double j;
    enum ipw_provenance provenance;
    double coverage;    /* share of the window inside unbroken chains, 0 to 1 */
    int64_t samples;    /* readings inside the window (of a slow counter: to about one step) */
    const char *reason; /* static text, when not known: "no_sensor", "permission", ... */
    /* The true energy lies between them if the device counts right (docs/method.md, "Bounds"); the
     * sensor's own error comes on top.  Both 0 when no bounds are known. */
    double lo_j, hi_j;
    double split_fraction; /* share of `j` out of gaps that cross the ends of the window */
    /* Not known, but a model has an answer (docs/method.md, "Fallbacks"); lo_j and hi_j are its bounds.  It
     * counts in no total. */
    bool estimated;
    double estimate_j;
    const char *estimate_by; /* "gauge", "last_power" */
    /* Not known: what was measured of it, which is `coverage` of the window (the least, of several
     * devices).  Under a name of its own: it must not pass for the figure. */
    double partial_j;
};

/* The power between neighbouring readings, weighted by time.  NAN: not known. */
struct ipw_power_stats {
    double avg_w, median_w, min_w, max_w;
};

#endif
