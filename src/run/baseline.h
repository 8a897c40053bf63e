/* run/baseline.h: idle power, measured before the first query and after the last.
 *
 * Each of the two measurements takes --baseline; without the option there are none.  The first is
 * given to the ledger.  Both together show whether the machine drifted during the run. */
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
