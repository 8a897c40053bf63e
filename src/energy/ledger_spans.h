/* energy/ledger_spans.h: what labelled windows of one query cost: its tools, the idle tax, waste.
 *
 * Pure: questions to a ledger.  Windows may overlap, and no joule is counted twice: overlapping
 * spans share equally what they have in common (case 26), a union counts it once, and of several
 * kinds of waste at one instant the first kind has it.  A figure is known when the query's energy
 * is known in all of its windows; bounds are sums of theirs, the label the weakest. */
#ifndef IPW_ENERGY_LEDGER_SPANS_H
#define IPW_ENERGY_LEDGER_SPANS_H

#include "energy/attribution.h"

struct ipw_window {
    int64_t t0_ns, t1_ns; /* turned round or of no length: costs nothing */
    int label;            /* ipw_ledger_waste(): an enum ipw_waste */
};

/* The query's energy in the union of the windows.  Of none: exactly 0, measured.  With the windows
 * of tools and retry waits and the domain of the device that the model runs on it is the *idle
 * tax*: what the device draws while the agent does not use it. */
struct ipw_figure ipw_ledger_union(const struct ipw_ledger *l, int64_t query,
                                   enum ipw_domain domain, const struct ipw_window *windows,
                                   size_t n);

/* Each span's own part: where k of them overlap each has a k-th; they sum to the union. */
void ipw_ledger_spans(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                      const struct ipw_window *windows, size_t n, struct ipw_figure *out);

/* Joules that brought the query nowhere. */
enum ipw_waste {
    IPW_WASTE_CANCELLED, /* a stream cut off */
    IPW_WASTE_TIMEOUT,
    IPW_WASTE_FAILED,    /* an attempt that ended in an error */
    IPW_WASTE_MALFORMED, /* a reply that could not be used */
    IPW_WASTE_COUNT,
};
const char *ipw_waste_name(enum ipw_waste waste); /* "cancelled", ... */
void ipw_ledger_waste(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                      const struct ipw_window *windows, size_t n,
                      struct ipw_figure out[IPW_WASTE_COUNT]);

#endif
