/* energy/sources/battery.h: the power of a laptop while it runs on battery.
 *
 * One gauge for the whole machine, from /sys/class/power_supply.  It is the sum over the batteries
 * of power_now or, if that is missing, of current_now times voltage_now, regardless of the driver's
 * sign.  It is the machine's power only while a battery is discharging: on mains, or while any
 * battery is being charged, there is no value.  Batteries of mice and phones (scope "Device") are
 * ignored.  Its value changes every 1 to 30 s, which suits runs of minutes but not turns. */
#ifndef IPW_ENERGY_SOURCES_BATTERY_H
#define IPW_ENERGY_SOURCES_BATTERY_H

#include "energy/source.h"

/* A battery that does not discharge now is opened anyway; the source's note says so. */
int ipw_battery_open(struct ipw_source **out, const struct ipw_source_place *place,
                     const char *name, struct ipw_err *err);

#endif
