/* energy/sources/battery.h: what a laptop draws, while its battery gives it.
 *
 * One gauge for the whole machine, from /sys/class/power_supply: the sum over its batteries of
 * power_now, or of current_now times voltage_now where that is missing, whichever sign the driver
 * gives them.  It is the machine's power only while a battery is discharging: on mains, or while
 * any battery is being charged, there is no value.  Batteries of mice and phones (scope "Device")
 * are none of it.  Moves every 1 to 30 s: fit for runs of minutes, not for turns. */
#ifndef IPW_ENERGY_SOURCES_BATTERY_H
#define IPW_ENERGY_SOURCES_BATTERY_H

#include "energy/source.h"

struct ipw_battery_options {
    const char *root; /* NULL: "/sys/class/power_supply" */
};
/* `options` may be NULL.  A battery that does not discharge now is opened all the same; the source's
 * note says so. */
int ipw_battery_open(struct ipw_source **out, const struct ipw_battery_options *options,
                     struct ipw_err *err);

#endif
