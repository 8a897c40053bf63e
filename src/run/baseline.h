/* run/baseline.h: what the machine draws with nothing in flight, before the first query and after
 * the last.
 *
 * Each of the two takes --baseline, and nothing without it.  The first is told to the ledger; the
 * two together say whether the machine drifted meanwhile. */
#ifndef IPW_RUN_BASELINE_H
#define IPW_RUN_BASELINE_H

#include "report/summary.h"
#include "run/sensors.h"

struct ipw_baseline {
    struct ipw_baseline_watts domain[IPW_DOMAIN_COUNT]; /* NAN: not measured */
};

void ipw_baseline_before(struct ipw_baseline *out, struct ipw_sensors *s);
void ipw_baseline_after(struct ipw_baseline *out, struct ipw_sensors *s);

#endif
