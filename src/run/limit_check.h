/* run/limit_check.h: checks that limits can be enforced on this machine.
 *
 * Called once, before a run.  A limit of energy needs believed sensors and a model on this machine;
 * a limit of cost needs a price.  Otherwise the limit is refused with the reason. */
#ifndef IPW_RUN_LIMIT_CHECK_H
#define IPW_RUN_LIMIT_CHECK_H

#include "run/connect.h"
#include "run/limits.h"
#include "run/run_pricing.h"
#include "run/sensors.h"

/* IPW_EINVAL, with the name of the option. */
int ipw_limits_kept(const struct ipw_limit_options *o, const struct ipw_sensors *sensors,
                    const struct ipw_connection *connection, const struct ipw_pricing *pricing,
                    struct ipw_err *err);

#endif
