/* energy/sources/hwmon.h: power and energy files of /sys/class/hwmon.
 *
 * One tree, several sources, so that a slow bus does not delay a fast one and each source says
 * which part of the machine it covers.  lua/ipw/hwmon.lua has the table of drivers and their files;
 * it is asked once, with what lies in the tree.  The channels are read here.
 *   amdgpu      AMD GPUs: energy1_input if it exists, with power1_average or power1_input beside or
 *               instead of it ("amdgpu0", "amdgpu0/power").  A processor with graphics (it shows
 *               vddnb) reports its package's power, which stays out of the sum.
 *   intel_gpu   Intel GPUs (xe, i915): the card's energy counter ("intelgpu0"), the package's and
 *               the tiles' beside it.
 *   power_meter ACPI power meters: of the machine, or on NVIDIA Grace of its parts ("module-0",
 *               "grace-0", "cpu-0", "sysio-0").
 *   ina3221     the rails of a Jetson board, voltage times current; VDD_IN includes all others.
 *   hwmon       powerN and energyN of all other drivers.  Their place is unknown, so they are in no
 *               sum, except the sockets of amd_energy, which are the packages.
 * GPUs that sleep (runtime_status) are not woken: 0 W.  Missing readings (ENODATA, and the
 * 4294967295 of some meters) are no value. */
#ifndef IPW_ENERGY_SOURCES_HWMON_H
#define IPW_ENERGY_SOURCES_HWMON_H

#include "energy/source.h"

/* `name` is one of the sources above.  Of GPUs, place->gpus names some by bus id or by channel
 * ("amdgpu0"); words of other kinds choose none.  IPW_ENOTFOUND if no GPU matches. */
int ipw_hwmon_open(struct ipw_source **out, const struct ipw_source_place *place, const char *name,
                   struct ipw_err *err);
/* The source of the GPU that a word of such a list names: "amdgpu", "intel_gpu", or NULL. */
const char *ipw_hwmon_gpu_kind(const char *word, const struct ipw_source_place *place);

#endif
